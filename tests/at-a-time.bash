# Of tests/run-unit and tests/run-tests: what can run side by side, and in which order.

longest=()	# begun first
together=()	# side by side
in_turn=()	# one by one, after those

# run AT_A_TIME WHAT...: run_one of each in the background; run_one tells on stdout what has ended.
run()
{
	local at_a_time=$1 what
	shift
	for what; do
		[ "$(jobs -rp | wc -l)" -lt "$at_a_time" ] || wait -n
		run_one "$what" &
	done
	wait
}

# As many at a time as there are processors, then the others.
run_all()
{
	run "$(nproc)" "${together[@]}"
	run 1 "${in_turn[@]}"
}

# longest_first SUFFIX FILE...: their names, those in `longest` before all others, so that none of these is left to
# itself at the end.
longest_first()
{
	local suffix=$1
	shift
	{
		printf '%s\n' "${longest[@]}"
		basename -s "$suffix" "$@"
	} | awk '!seen[$0]++'
}
