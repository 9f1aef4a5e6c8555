# For the memory tests: processes that run `escape script` on the simulated driver, each told line by line.
#
#	start A CUOTA_MEM=8G	a process named A with that environment, under cuota
#	say A alloc x 64M	tells it a line; its answer is in $answer
#	ok A alloc x 64M	the same, and the code must be 0
#	refused A alloc x 64M	the same, and the code must be 2 (out of memory), with nothing else said
#	used A			MiB that its group uses, as the program itself sees them
#	stop A | kill_hard A	ends it; waits until it is gone

BUILD=${BUILD:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)/build}

memory_setup()
{
	[ -x "$BUILD/tests/escape" ] || skip "not built"
	export CUOTA_SIM_STATE="$BATS_TEST_TMPDIR/sim.state"
	export CUOTA_DIR="$BATS_TEST_TMPDIR/ledger"
	export LD_LIBRARY_PATH="$BUILD/sim"
	export CUOTA_SIM_MEMORY=${CUOTA_SIM_MEMORY:-24G}
	unset CUOTA_GROUP CUOTA_MEM CUOTA_MEM_PER_PROCESS CUOTA_SM CUOTA_LOG CUOTA_LOG_FILE
	mkdir -p "$CUOTA_DIR"
	declare -gA pid_of=() to=() from=()
}

memory_teardown()
{
	local name
	for name in "${!pid_of[@]}"; do
		kill -9 "${pid_of[$name]}" 2>/dev/null || true
		wait "${pid_of[$name]}" 2>/dev/null || true
	done
	rm -f "$CUOTA_SIM_STATE"
}

start()
{
	local name=$1 in out
	shift
	mkfifo "$BATS_TEST_TMPDIR/$name.in" "$BATS_TEST_TMPDIR/$name.out"
	(
		# It must not keep the others' pipes open: they end when theirs is closed.
		for fd in "${to[@]}" "${from[@]}"; do exec {fd}>&-; done
		exec env "$@" LD_PRELOAD="${PRELOAD-$BUILD/libcuota.so}" "$BUILD/tests/escape" script \
			<"$BATS_TEST_TMPDIR/$name.in" >"$BATS_TEST_TMPDIR/$name.out" \
			2>>"$BATS_TEST_TMPDIR/$name.err" 3>&-
	) &
	pid_of[$name]=$!
	exec {in}>"$BATS_TEST_TMPDIR/$name.in" {out}<"$BATS_TEST_TMPDIR/$name.out"
	to[$name]=$in
	from[$name]=$out
	rm "$BATS_TEST_TMPDIR/$name.in" "$BATS_TEST_TMPDIR/$name.out"
}

# Only tells it; the answer is read by hear.
tell()
{
	local name=$1
	shift
	echo "$*" >&"${to[$name]}"
}

hear()
{
	answer=
	read -r -t 60 answer <&"${from[$1]}" || {
		echo "$1 does not answer"
		cat "$BATS_TEST_TMPDIR/$1.err"
		return 1
	}
	answer=${answer#* }
}

say()
{
	tell "$@"
	hear "$1"
}

ok()
{
	say "$@" || return 1
	[ "${answer%% *}" = 0 ] || {
		echo "$*: $answer"
		return 1
	}
}

refused()
{
	say "$@" || return 1
	[ "$answer" = 2 ] || {
		echo "$*: $answer, not 2"
		return 1
	}
}

used()
{
	ok "$1" info || return 1
	answer=${answer#0 used }
	answer=${answer%% *}
}

# used_is A 64: what is beyond a context, within 1 MiB.
used_is()
{
	used "$1" || return 1
	if [ "$answer" -lt "$2" ] || [ "$answer" -gt $(($2 + 1)) ]; then
		echo "$1 uses $answer MiB, not $2"
		return 1
	fi
}

# used_within A 64 SECONDS: becomes so, at the latest then.
used_within()
{
	local i
	for ((i = 0; i < $3 * 20; i++)); do
		if used_is "$1" "$2" >/dev/null; then
			return 0
		fi
		sleep 0.05
	done
	used_is "$1" "$2"
}

stop()
{
	local fd=${to[$1]}
	exec {fd}>&-
	wait "${pid_of[$1]}" || true
	unset "pid_of[$1]" "to[$1]"
}

kill_hard()
{
	kill -9 "${pid_of[$1]}"
	wait "${pid_of[$1]}" 2>/dev/null || true
	unset "pid_of[$1]"
}
