#!/usr/bin/env bats
# Turns, through the library and the simulated driver: shares by weight, group and cap, and what happens when a holder stops,
# dies, ends after a moment or never ends.

load sm_help

setup() { sm_setup; }
teardown() { sm_teardown; }
BATS_TEST_RETRIES=2 # a neighbour on the machine can spoil a run, not three

# The parts of what both got together: the machine's other work takes from both alike.
part_of()
{
	awk -v a="$(share "$1" "$3" "$4")" -v b="$(share "$2" "$3" "$4")" 'BEGIN { printf "%.1f\n", a + b ? 100 * a / (a + b) : 0 }'
}

# Without the library (or with CUOTA_SCHED=rate) the driver's slices are 50 : 50.
@test "two groups share by weight, 70 to 30" {
	tenant a CUOTA_WEIGHT=70 steady 1000 8 4
	tenant b CUOTA_WEIGHT=30 steady 1000 8 4
	from=$(began b)
	ended a b
	between "$(part_of a b $((from + 500)) $((from + 3500)))" 65 75 "the part of weight 70"
	between "$(share a $((from + 500)) $((from + 3500)))" 40 75 "its share"
}

# Sixty is an upper bound here: it needs a hand-over every few milliseconds, which a busy machine delays.
@test "caps of 30 and 60 hold side by side" {
	tenant a CUOTA_SM=30 steady 1000 8 4
	tenant b CUOTA_SM=60 steady 1000 8 4
	from=$(began b)
	ended a b
	between "$(share a $((from + 500)) $((from + 3500)))" 22 35 "cap 30"
	between "$(share b $((from + 500)) $((from + 3500)))" 40 65 "cap 60"
}

# Without the library four processes have four fifths.
@test "a group of four processes has the share of a group of one" {
	local i
	for i in 1 2 3 4; do
		tenant "team$i" CUOTA_GROUP=team steady 2000 4 4
	done
	tenant one CUOTA_GROUP=one steady 2000 4 4
	from=$(began one)
	ended team1 team2 team3 team4 one
	one=$(share one $((from + 500)) $((from + 3500)))
	team=$(for i in 1 2 3 4; do share "team$i" $((from + 500)) $((from + 3500)); done | awk '{ sum += $1 } END { print sum }')
	between "$(awk "BEGIN { print 100 * $one / ($one + $team) }")" 40 60 "the part of the group of one ($one to $team)"
	for i in 1 2 3 4; do
		between "$(share "team$i" $((from + 500)) $((from + 3500)))" 5 20 "team$i"
	done
}

# A group at its cap rests: the other has what is left, at once and not by slices of half.
@test "a group without a cap has what a capped one leaves" {
	tenant a CUOTA_SM=20 steady 1000 8 4
	tenant b CUOTA_WEIGHT=1 steady 1000 8 4
	from=$(began b)
	ended a b
	between "$(share a $((from + 500)) $((from + 3500)))" 15 25 "cap 20"
	between "$(share b $((from + 500)) $((from + 3500)))" 40 85 "the other"
}

# From here on: what the driver alone would do well, and a turn that is never given up would spoil.
@test "a stopped holder is passed over, and finds its turn gone when it wakes" {
	tenant a CUOTA_WEIGHT=100 steady 1000 8 7
	tenant b CUOTA_WEIGHT=100 steady 1000 8 7
	began b
	sleep 1
	kill -STOP "${pid_of[a]}"
	stopped=$(now_ms)
	sleep 2
	kill -CONT "${pid_of[a]}"
	woken=$(now_ms)
	ended a b
	between "$(share b $((stopped + 200)) "$woken")" 55 101 "the other, while it was stopped"
	between "$(pause_of b "$stopped" "$woken")" 0 400 "its longest pause"
	# Neither owes the other the two seconds: the woken one has no credit, and does not run into the other's turns.
	between "$(part_of a b $((woken + 200)) $((woken + 1500)))" 40 60 "the part of the woken one"
	between "$(pause_of b "$woken" $((woken + 1500)))" 0 400 "the other's longest pause then"
}

@test "a killed holder is passed over" {
	tenant a CUOTA_WEIGHT=100 steady 1000 8 30
	tenant b CUOTA_WEIGHT=100 steady 1000 8 4
	from=$(began b)
	sleep 1.5
	kill -9 "${pid_of[a]}"
	killed=$(now_ms)
	ended b
	between "$(share b $((from + 300)) "$killed")" 20 60 "the other before"
	between "$(share b $((killed + 200)) $((killed + 2000)))" 60 101 "and after"
	between "$(pause_of b $((killed - 50)) $((killed + 1000)))" 0 400 "its longest pause"
}

# Each of them takes a seat and a turn and is gone: a turn, a seat or a want flag left behind would add up.
@test "fifty short-lived processes a second pass beside a turn taker" {
	local i failed=0 pids=()
	tenant a CUOTA_WEIGHT=100 steady 1000 8 9
	began a
	from=$(now_ms)
	for ((i = 0; i < 250; i++)); do
		env CUOTA_WEIGHT=100 LD_PRELOAD="$PRELOAD" "$BUILD/tests/once" 2 200 >>"$DIR/short.out" 2>>"$DIR/short.err" 3>&- &
		pids+=($!)
		sleep 0.017
	done
	for i in "${pids[@]}"; do
		wait "$i" || failed=$((failed + 1))
	done
	to=$(now_ms)
	[ "$failed" -eq 0 ]
	[ ! -s "$DIR/short.err" ]
	[ "$(wc -l <"$DIR/short.out")" -eq 250 ]
	between "$(awk '$1 > most { most = $1 } END { print most }' "$DIR/short.out")" 0 1000 "the slowest of them, ms"
	between "$(share a "$from" "$to")" 40 101 "the turn taker"
	between "$(pause_of a "$from" "$to")" 0 500 "its longest pause"
	ended a
	[ "$("$BUILD/cuota" status --json | jq '[.. | objects | select(has("pid"))] | length')" -eq 0 ]
}

# A stream may wait for what its program launches or stores later. The driver takes 1,021 operations meanwhile; a launch that
# waits for those before it to be done waits for ever.
@test "kernels that wait for a later launch, or for the host, hold no launch back for long" {
	local how
	tenant other CUOTA_WEIGHT=100 steady 1000 8 30
	began other
	for how in host stream; do
		tenant "$how" CUOTA_WEIGHT=100 ahead "$how" 200 500 1000
		ended "$how"
		read -r launching waiting <"$DIR/$how.out"
		between "$launching" 0 1000 "launches, ms ($how)"
		between "$waiting" 100 3000 "the wait for them, ms ($how)"
	done
}

# What gates and marks live in ends with a context, and streams of another go on. Natively nothing happens.
@test "contexts of each kind end with work under way, under a cap and beside a turn taker" {
	local how
	tenant taker CUOTA_WEIGHT=100 steady 1000 8 30
	began taker
	for how in other green primary; do
		tenant "beside-$how" CUOTA_WEIGHT=100 contexts "$how" 6
		ended "beside-$how"
	done
	machine alone
	for how in other green primary; do
		tenant "capped-$how" CUOTA_SM=60 contexts "$how" 6
		ended "capped-$how"
	done
}

# A kernel that does not end with its turn: the device is shared, as the driver would, and both end.
@test "a kernel of two seconds and a turn taker share the device" {
	tenant a CUOTA_WEIGHT=100 steady 1000 8 9
	began a
	sleep 0.5
	from=$(now_ms)
	tenant long CUOTA_WEIGHT=100 once 1 2000000
	ended long
	to=$(now_ms)
	between $((to - from)) 2000 6500 "the long kernel, ms"
	between "$(share a "$from" "$to")" 25 70 "the turn taker beside it"
	between "$(pause_of a "$from" "$to")" 0 500 "its longest pause"
	sleep 1.2
	between "$(share a $((to + 200)) $((to + 1000)))" 60 101 "the turn taker afterwards"
	ended a
}

# Two groups, and one: a lease and a drain for each round made it twelve times as long.
@test "processes that wait for one another on the device go on nearly as fast as without cuota" {
	local native
	PRELOAD="" tenant native rounds 100 100
	ended native
	native=$(cat "$DIR/native.out")
	machine two
	tenant two CUOTA_WEIGHT=100 rounds 100 100
	ended two
	machine one
	tenant one CUOTA_WEIGHT=100 CUOTA_GROUP=job rounds 100 100
	ended one
	between "$(cat "$DIR/two.out")" 50 $((5 * native + 300)) "two groups, ms, where it takes $native without cuota"
	between "$(cat "$DIR/one.out")" 50 $((5 * native + 300)) "one group, ms, where it takes $native without cuota"
}
