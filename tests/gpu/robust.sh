#!/usr/bin/env bash
# What must not hang, fail or starve on a real card: captures under a cap that binds, a kernel that does not end with
# its turn, a stopped and a killed holder, many short-lived processes. A line per fact, "N passed, N failed" last.
#
#   tests/gpu/robust.sh [O] [captures] [holders] [long] [short]     CUOTA_SHORT (150): how many short-lived processes
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
O=$(realpath "${1:-build}")
shift || true
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(captures holders long short)
many=${CUOTA_SHORT:-150}
for program in captures steady once; do
	[ -x "$O/tests/$program" ] || { echo "not built: make gpu-test"; exit 77; }
done
DIR=$(mktemp -d)
export CUOTA_DIR=$DIR/ledger
mkdir -p "$CUOTA_DIR"
unset CUOTA_MEM CUOTA_SM CUOTA_GROUP CUOTA_WEIGHT CUOTA_LOG LD_PRELOAD
declare -A pid_of=()
trap 'kill -9 "${pid_of[@]}" 2>/dev/null; rm -rf "$DIR"' EXIT
passed=0
failed=0

# fact TEXT COMMAND...: passes when the command does
fact()
{
	local text=$1
	shift
	if "$@"; then
		passed=$((passed + 1))
		echo "ok      $text"
	else
		failed=$((failed + 1))
		echo "NOT OK  $text"
	fi
}

now_ms() { awk '{ printf "%d\n", $1 * 1000 }' /proc/uptime; }
within() { awk -v v="$1" -v low="$2" -v high="$3" 'BEGIN { exit !(v != "" && v >= low && v <= high) }'; }

# tenant NAME VARIABLE=VALUE... PROGRAM ARGUMENT...: in the background, under cuota
tenant()
{
	local name=$1 variables=()
	shift
	while [[ $1 == *=* ]]; do
		variables+=("$1")
		shift
	done
	env "${variables[@]}" LD_PRELOAD="$O/libcuota.so" timeout -k 5 60 "$O/tests/$1" "${@:2}" >"$DIR/$name.out" 2>"$DIR/$name.err" &
	pid_of[$name]=$!
}

# The program itself, below `timeout`.
program_of() { pgrep -P "${pid_of[$1]}"; }

# 0 when it ended well and said nothing
well()
{
	local rc=0
	wait "${pid_of[$1]}" || rc=$?
	unset "pid_of[$1]"
	[ $rc -eq 0 ] && [ ! -s "$DIR/$1.err" ] && return 0
	echo "        $1: exit status $rc: $(head -3 "$DIR/$1.err")"
	return 1
}

began()
{
	for _ in {1..200}; do
		[ ! -s "$DIR/$1.out" ] || break
		sleep 0.1
	done
	now_ms
}

# Percent of the device from FROM to TO, and the longest pause: `steady` tells every 100 ms.
share() { awk -v a="$2" -v b="$3" '$1 > a && $1 <= b { s += $2; n++ } END { printf "%.1f\n", n ? s / n : -1 }' "$DIR/$1.out"; }
pause_of() { awk -v a="$2" -v b="$3" '$1 > a && $1 <= b && $3 > m { m = $3 } END { printf "%.0f\n", m }' "$DIR/$1.out"; }

# Captures: every mode, a cap that binds, 1,000 replays.
run_captures()
{
	for mode in global thread relaxed; do
		tenant "$mode" CUOTA_SM=25 CUOTA_MEM=4G CUOTA_GROUP="capture-$mode" captures "$mode" 1000
		fact "captured in mode $mode under a cap: 1,000 replays" well "$mode"
		got=$(cat "$DIR/$mode.out")
		fact "its replays took ${got:-nothing} % of the device under a cap of 25" within "$got" 20 27
	done
}

# A stopped holder, a killed one.
run_holders()
{
	tenant a CUOTA_WEIGHT=100 CUOTA_GROUP=a steady 1000 8 30
	tenant b CUOTA_WEIGHT=100 CUOTA_GROUP=b steady 1000 8 9
	began a >/dev/null
	began b >/dev/null
	sleep 1
	kill -STOP "$(program_of a)"
	stopped=$(now_ms)
	sleep 2
	kill -CONT "$(program_of a)"
	woken=$(now_ms)
	sleep 2
	kill -KILL "$(program_of a)"
	killed=$(now_ms)
	fact "the neighbour of a stopped and then killed holder ends well" well b
	got=$(share b $((stopped + 200)) "$woken")
	fact "it had $got % while the other was stopped" within "$got" 85 105
	got=$(pause_of b "$stopped" "$woken")
	fact "its longest pause then: $got ms" within "$got" 0 100
	got=$(share b $((woken + 300)) "$killed")
	fact "it had $got % after the other had woken" within "$got" 40 60
	got=$(pause_of b $((killed - 50)) $((killed + 1000)))
	fact "its longest pause when the other was killed: $got ms" within "$got" 0 150
	{ wait "${pid_of[a]}"; } 2>/dev/null
	unset "pid_of[a]"
}

# A kernel of two seconds beside a turn taker.
run_long()
{
	tenant a CUOTA_WEIGHT=100 CUOTA_GROUP=a steady 1000 8 8
	began a >/dev/null
	from=$(now_ms)
	tenant long CUOTA_WEIGHT=100 CUOTA_GROUP=long once 1 2000000
	fact "a kernel of two seconds ends beside a turn taker" well long
	to=$(now_ms)
	got=$(cat "$DIR/long.out")
	fact "it took ${got:-?} ms" within "$got" 1900 6500
	got=$(share a "$from" "$to")
	fact "the turn taker had $got % beside it" within "$got" 25 80
	got=$(pause_of a "$from" "$to")
	fact "its longest pause: $got ms" within "$got" 0 200
	fact "the turn taker ends well" well a
}

# begin_many NAME VARIABLE=VALUE...: $many of them, 50 begun a second (or as fast as the machine starts them); how many failed
begin_many()
{
	local name=$1 pids=() bad=0 i
	shift
	for ((i = 0; i < many; i++)); do
		env "$@" timeout 60 "$O/tests/once" 2 200 >>"$DIR/$name.out" 2>>"$DIR/$name.err" &
		pids+=($!)
		sleep 0.018
	done
	for i in "${pids[@]}"; do
		wait "$i" || bad=$((bad + 1))
	done
	echo "$bad"
}


# Fifty short-lived processes a second.
run_short()
{
	tenant a CUOTA_WEIGHT=100 CUOTA_GROUP=a steady 1000 8 58
	began a >/dev/null
	from=$(now_ms)

	bad=$(begin_many short CUOTA_WEIGHT=100 CUOTA_GROUP=short LD_PRELOAD="$O/libcuota.so")
	to=$(now_ms)
	# A card has contexts for so many at once: what fails without cuota as well is the card's.
	without=$(begin_many bare CUOTA_NONE=)
	took=$(($(now_ms) - to))
	sort "$DIR/short.err" | uniq -c | head -3
	fact "$many short-lived processes, 50 a second: $bad failed in $((to - from)) ms ($without in $took ms without cuota)" [ "$bad" -le "$without" ]
	fact "cuota said nothing" [ -z "$(grep cuota "$DIR/short.err")" ]
	got=$(awk '$1 > m { m = $1 } END { print m }' "$DIR/short.out")
	fact "two kernels of 0.2 ms took the slowest of them $got ms" within "$got" 0 2000
	got=$(share a "$from" "$to")
	fact "the turn taker had $got % meanwhile, its longest pause was $(pause_of a "$from" "$to") ms" within "$got" 30 101
	kill -KILL "$(program_of a)"
	{ wait "${pid_of[a]}"; } 2>/dev/null
	unset "pid_of[a]"
	sleep 0.3
	fact "no seat is left" [ -z "$("$O/cuota" status --json | grep '"pid"')" ]
}

for part in "${parts[@]}"; do
	case $part in
	captures | holders | long | short) "run_$part" ;;
	*) echo "robust.sh: no part $part" >&2; exit 2 ;;
	esac
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
