#!/usr/bin/env bash
# A good guest on the real card: programs that people run give the same results with and without cuota, tools work, and
# every view shows the quota. One table at the end; the exit status is the number of rows that are wrong.
#
#   tests/gpu/guest.sh [O] [ROW...]       O: the build directory; ROW: only these (guest.sh build list)
#
# Each program runs bare and under CUOTA_MEM=16G, the first also under CUOTA_SM=50; each within CUOTA_GUEST_SECONDS (150).
# What is not installed is shown as skipped.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
O=$(realpath "${1:-build}")
shift || true
rows=(losses loader-fork loader-spawn compiled gloo jax cupy numba sanitizer ncu doors answers views smi)
[ "${1:-}" != list ] || { printf '%s\n' "${rows[@]}"; exit 0; }
[ $# -eq 0 ] || rows=("$@")

seconds=${CUOTA_GUEST_SECONDS:-150}
here=tests/gpu/guest
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUOTA_DIR=$work/ledger TORCHINDUCTOR_CACHE_DIR=$work/inductor TRITON_CACHE_DIR=$work/triton PYTHONWARNINGS=ignore
mkdir -p "$CUOTA_DIR"
table=()
wrong=0

# row NAME BARE CUOTA VERDICT NOTE
row()
{
	table+=("$(printf '%-13s %7s %7s  %-7s %s' "$@")")
	echo "${table[-1]}"
	[ "$4" != WRONG ] || wrong=$((wrong + 1))
}

# timed OUTPUT COMMAND...: seconds in $took, exit status returned; the quota is in `quota`.
timed()
{
	local output=$1 start=$EPOCHREALTIME rc
	shift
	timeout -k 5 "$seconds" env "${quota[@]}" "$@" >"$output" 2>"$output.err" </dev/null
	rc=$?
	took=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
	return $rc
}

bare=(CUOTA_NONE=)
under=(LD_PRELOAD="$O/libcuota.so" CUOTA_MEM=16G)

# same NAME COMMAND...: the same output bare and under a memory quota.
same()
{
	local name=$1 bare_took rc
	shift
	quota=("${bare[@]}")
	timed "$work/bare" "$@"
	rc=$?
	bare_took=$took
	if [ $rc -ne 0 ]; then
		row "$name" "$bare_took" - skipped "bare: exit $rc: $(tail -1 "$work/bare.err" | cut -c1-90)"
		return 1
	fi
	quota=("${under[@]}")
	timed "$work/under" "$@"
	rc=$?
	if [ $rc -ne 0 ]; then
		row "$name" "$bare_took" "$took" WRONG "exit $rc: $(tail -1 "$work/under.err" | cut -c1-90)"
	elif cmp -s "$work/bare" "$work/under"; then
		row "$name" "$bare_took" "$took" same "$(tail -1 "$work/bare" | cut -c1-60)"
	else
		row "$name" "$bare_took" "$took" WRONG "$(diff "$work/bare" "$work/under" | sed -n 2p | cut -c1-90)"
	fi
}

have()
{
	command -v "$1" >/dev/null || [ -x "/usr/local/cuda/bin/$1" ]
}
PATH=$PATH:/usr/local/cuda/bin

run_losses()
{
	same losses python3 $here/losses.py || return
	cp "$work/bare" "$work/losses"
	quota=("${bare[@]}")
	timed "$work/again" python3 $here/losses.py
	cmp -s "$work/losses" "$work/again" || row losses-again "$took" - note "the bare program is not reproducible here"
	quota=("${under[@]}" CUOTA_SM=50)
	timed "$work/half" python3 $here/losses.py
	if cmp -s "$work/losses" "$work/half"; then
		row losses-sm50 - "$took" same "under CUOTA_SM=50, bit by bit"
	else
		row losses-sm50 - "$took" WRONG "$(diff "$work/losses" "$work/half" | sed -n 2p | cut -c1-90)"
	fi
}

program=(python3 "$here/cupied.py")

# run_tool NAME COMMAND...: the program under a tool of NVIDIA's
run_tool()
{
	local name=$1
	shift
	have "$1" || { row "$name" - - skipped "no $1"; return; }
	quota=("${bare[@]}")
	timed "$work/bare" "$@"
	local rc=$? bare_took=$took
	[ $rc -eq 0 ] || { row "$name" "$bare_took" - skipped "bare: exit $rc: $(grep -v '^$' "$work/bare" "$work/bare.err" -h | tail -1 | cut -c1-90)"; return; }
	quota=("${under[@]}")
	timed "$work/under" "$@"
	rc=$?
	# Every line of the program itself must be there; the tool's own carry times and process numbers.
	quota=("${bare[@]}")
	timed "$work/plain" "${program[@]}"
	if [ $rc -eq 0 ] && [ -s "$work/plain" ] && ! grep -vxF -f "$work/under" "$work/plain" >"$work/missing"; then
		row "$name" "$bare_took" "$took" same "$(grep -h 'ERROR SUMMARY\|Profiling' "$work/under" | tail -1 | cut -c1-60)"
	else
		row "$name" "$bare_took" "$took" WRONG "exit $rc: $(grep -v '^$' "$work/missing" "$work/under" "$work/under.err" -h | head -1 | cut -c1-90)"
	fi
}

run_doors()
{
	local way held=0 missed=() door=$O/doors/door
	[ -x "$door" ] || { row doors - - skipped "make tests first"; return; }
	for way in handle deep-handle default next program fetched-dlsym ask1 ask1-legacy ask1-ptds ask2 ask2-legacy \
		ask2-ptds ask1-itself ask2-itself ask2-itself-ptds; do
		quota=(LD_PRELOAD="$O/libcuota.so" CUOTA_MEM=2G)
		if timed "$work/door" "$door" $way; then held=$((held + 1)); else missed+=("$way"); fi
	done
	for way in library-lazy library-default library-deep library-deep-lazy; do
		if timed "$work/door" "$door" $way "$O/doors/lib_linked.so"; then held=$((held + 1)); else missed+=("$way"); fi
	done
	for way in loading-library loading-library-deep; do
		if timed "$work/door" "$door" $way "$O/doors/lib_loads.so"; then held=$((held + 1)); else missed+=("$way"); fi
	done
	if timed "$work/door" "$O/doors/door_linked"; then held=$((held + 1)); else missed+=(linked); fi
	if [ ${#missed[@]} -eq 0 ]; then
		row doors - - same "$held ways, every ABI held"
	else
		row doors - - WRONG "not held: ${missed[*]}"
	fi
}

run_answers()
{
	[ -x "$O/doors/answers" ] || { row answers - - skipped "make tests first"; return; }
	quota=("${under[@]}")
	if timed "$work/answers" "$O/doors/answers"; then
		row answers - "$took" same "$(tail -1 "$work/answers")"
	else
		row answers - "$took" WRONG "$(tail -1 "$work/answers")"
	fi
}

run_views()
{
	quota=(LD_PRELOAD="$O/libcuota.so" CUOTA_MEM=8G CUOTA_GROUP=guest-views)
	if timed "$work/views" python3 $here/views.py 8192; then
		row views - "$took" same "$(tail -1 "$work/views")"
	else
		row views - "$took" WRONG "$(tail -1 "$work/views") $(tail -1 "$work/views.err" | cut -c1-60)"
	fi
	sed 's/^/    /' "$work/views"
}

run_smi()
{
	have nvidia-smi || { row smi - - skipped "no nvidia-smi"; return; }
	# Without a quota it says the same, whatever changes by itself left out.
	quota=("${bare[@]}")
	timed "$work/bare" nvidia-smi -L
	quota=(LD_PRELOAD="$O/libcuota.so")
	timed "$work/under" nvidia-smi -L
	cmp -s "$work/bare" "$work/under" || { row smi - - WRONG "nvidia-smi -L differs"; return; }
	quota=(LD_PRELOAD="$O/libcuota.so" CUOTA_MEM=8G)
	timed "$work/under" nvidia-smi
	timed "$work/query" nvidia-smi --query-gpu=memory.total,memory.used,memory.free --format=csv,noheader,nounits
	if [ "$(head -1 "$work/query")" = "8192, 0, 8192" ] && grep -q '8192MiB' "$work/under"; then
		row smi - "$took" same "$(head -1 "$work/query") MiB under CUOTA_MEM=8G"
	else
		row smi - "$took" WRONG "$(head -1 "$work/query")"
	fi
}

printf '%-13s %7s %7s  %-7s %s\n' program bare cuota result note
for name in "${rows[@]}"; do
	case $name in
	losses) run_losses ;;
	loader-fork) same "$name" python3 $here/loader.py fork ;;
	loader-spawn) same "$name" python3 $here/loader.py spawn ;;
	compiled) same "$name" python3 $here/compiled.py ;;
	gloo) same "$name" python3 $here/gloo.py ;;
	jax) same "$name" python3 $here/jaxed.py ;;
	cupy) same "$name" python3 $here/cupied.py ;;
	numba) same "$name" python3 $here/numbaed.py ;;	sanitizer) run_tool "$name" compute-sanitizer --tool memcheck "${program[@]}" ;;
	ncu) run_tool "$name" ncu --launch-count 2 "${program[@]}" ;;
doors) run_doors ;;
	answers) run_answers ;;
	views) run_views ;;
	smi) run_smi ;;
	*) echo "no row $name: tests/gpu/guest.sh build list" >&2; exit 2 ;;
	esac
done

echo
printf '%-13s %7s %7s  %-7s %s\n' program bare cuota result note
printf '%s\n' "${table[@]}"
echo "$wrong wrong"
exit "$wrong"
