#!/usr/bin/env bats
# Caps of SM time, through the library and the simulated driver: every way to launch, kernels long and short, captures,
# live changes, and what must not happen where there is no cap.

load sm_help

setup() { sm_setup; }
teardown() { sm_teardown; }
BATS_TEST_RETRIES=2 # a neighbour on the machine can spoil a run, not three

# Without the library each path gets 95 %.
@test "a cap holds whatever the way to launch" {
	local path paths
	mapfile -t paths < <("$BUILD/tests/launches")
	[ ${#paths[@]} -eq 14 ]
	for path in "${paths[@]}"; do
		machine "$path"
		tenant "$path" CUOTA_SM=25 launches "$path" 2000 2
	done
	ended "${paths[@]}"
	for path in "${paths[@]}"; do
		between "$(cat "$DIR/$path.out")" 15 28 "$path"
	done
}

# What nobody has timed yet is charged by guess: it must neither run free nor be paid for twice later.
@test "a cap holds from the first kernels on, however long they are" {
	local us=(500 1000 20000 60000) i
	for i in "${!us[@]}"; do
		machine "us$i"
		tenant "us$i" CUOTA_SM=25 steady "${us[i]}" 1 3
	done
	ended us0 us1 us2 us3
	for i in "${!us[@]}"; do
		from=$(began "us$i")
		between "$(share "us$i" $((from + 500)) $((from + 3500)))" 10 29 "share with kernels of ${us[i]} us"
		between "$(pause_of "us$i" 0 $((from + 2500)))" 0 900 "pause with kernels of ${us[i]} us"
	done
}

@test "a kind of launch that gets a thousand times longer is held at its cap within a second" {
	local how
	for how in kernel graph; do
		machine "$how"
		tenant "$how" CUOTA_SM=25 longer "$how" 20 20000 4
	done
	ended kernel graph
	for how in kernel graph; do
		between "$(cat "$DIR/$how.out")" 10 32 "$how: percent of the device"
	done
}

# The first launches of a kind wait for what the first one takes, in vain where that waits for the program itself.
@test "kernels that nobody has timed and that wait for the host hold no launch back for long" {
	tenant ahead CUOTA_SM=50 ahead host 200 500
	ended ahead
	read -r launching waiting <"$DIR/ahead.out"
	between "$launching" 0 2500 "200 launches, ms"
	between "$waiting" 90 3000 "the wait for them, ms"
}

# Ours only: this program records no event and waits for no word. The least that has to be is that it goes on, and ends.
@test "a driver that refuses what a launch is timed and gated with costs a program nothing" {
	local call
	tenant other CUOTA_WEIGHT=100 steady 1000 8 40
	began other
	for call in cuEventCreate=2 cuEventRecord=999 cuEventRecord=999@8 cuEventQuery=999 cuEventElapsedTime=600 cuStreamQuery=999 \
		cuMemHostAlloc=2 cuMemHostGetDevicePointer_v2=1 cuStreamWaitValue32_v2=801 cuStreamWaitValue32_v2=999@3 \
		cuStreamWriteValue32_v2=801 cuStreamWriteValue32_v2=999@3 cuStreamGetCtx=400 cuCtxGetCurrent=201; do
		tenant "fails" CUOTA_WEIGHT=100 CUOTA_SM=90 CUOTA_SIM_FAIL="$call" once 300 500
		ended fails
		between "$(cat "$DIR/fails.out")" 150 2500 "300 kernels of 0.5 ms, ms, with $call"
	done
}

device_mib() { "$BUILD/cuota" status --json | jq '.gpus[0].memory.used_bytes / 1048576 | floor'; }

# Each event here takes 2 MiB of the device, and some 400 launches a second are timed.
@test "events that cannot be read are used again" {
	tenant job CUOTA_SM=50 CUOTA_SIM_GROWTH=cuEventCreate=2M@1 CUOTA_SIM_FAIL=cuEventElapsedTime=600 steady 500 1 2
	from=$(began job)
	early=$(device_mib)
	sleep 1.2
	late=$(device_mib)
	ended job
	between "$late" "$early" $((early + 100)) "MiB of the device"
}

# Settings that bind nobody: within 5 points of what the program gets without the library.
@test "a program that needs less than its cap gets all it needs" {
	machine bare
	PRELOAD='' tenant bare steady 1000 1 2
	machine capped
	tenant capped CUOTA_SM=99 steady 1000 1 2
	machine weighted
	tenant weighted CUOTA_WEIGHT=100 steady 1000 1 2
	ended bare capped weighted
	bare=$(share bare 0 9e15)
	between "$(share capped 0 9e15)" "$(awk "BEGIN { print $bare - 5 }")" 100 "with a cap of 99"
	between "$(share weighted 0 9e15)" "$(awk "BEGIN { print $bare - 5 }")" 100 "with a weight"
}

# 1,000 replays of 1 ms at 25 % take 4 s; without the library they get 95 %. A query or a wait by a hook on a capturing stream
# would be error 900 or 901, and the tool ends with it.
@test "captures in every mode live under a cap that binds, and their replays are capped" {
	local mode
	for mode in global thread relaxed; do
		machine "$mode"
		tenant "$mode" CUOTA_SM=25 CUOTA_MEM=4G captures "$mode" 1000
	done
	ended global thread relaxed
	for mode in global thread relaxed; do
		between "$(cat "$DIR/$mode.out")" 12 28 "replays, captured in mode $mode"
	done
}

# Without samples every kernel would be a short one: 95 % and more.
@test "a capture that is never ended turns nothing off" {
	local mode
	for mode in global thread relaxed; do
		machine "$mode"
		tenant "$mode" CUOTA_SM=25 captures "$mode" 600 open
	done
	ended global thread relaxed
	for mode in global thread relaxed; do
		between "$(cat "$DIR/$mode.out")" 15 30 "beside a capture in mode $mode"
	done
}

@test "a cap changed by cuota set holds within half a second, down and up" {
	tenant job CUOTA_GROUP=job CUOTA_SM=80 steady 1000 8 5
	from=$(began job)
	sleep 1.5
	down=$(now_ms)
	"$BUILD/cuota" set --sm 20 job
	sleep 1.5
	up=$(now_ms)
	"$BUILD/cuota" set --sm 60 job
	ended job
	between "$(share job $((from + 300)) "$down")" 60 85 "before"
	between "$(share job $((down + 400)) "$up")" 10 25 "after 80 -> 20"
	between "$(share job $((up + 400)) $((up + 1600)))" 42 65 "after 20 -> 60"
}

# Three kernels of 100 ms under a cap of 1 % are paid for in 30 s.
@test "a cap that is lifted lets go who waits for it, and leaves no debt of that length behind" {
	tenant job CUOTA_GROUP=job CUOTA_SM=1 steady 100000 1 6
	from=$(began job)
	sleep 1
	"$BUILD/cuota" set --sm none job
	lifted=$(now_ms)
	sleep 1.5
	"$BUILD/cuota" set --sm 50 job
	halved=$(now_ms)
	ended job
	between "$(pause_of job 0 $((lifted + 500)))" 0 1800 "its longest pause until then"
	between "$(share job $((lifted + 500)) "$halved")" 80 101 "without a cap"
	between "$(share job $((halved + 700)) $((halved + 2200)))" 35 60 "with a cap of 50"
}

@test "CUOTA_SCHED: off keeps no cap, rate and turns and auto do" {
	local mode
	for mode in off rate turns auto; do
		machine "$mode"
		tenant "$mode" CUOTA_SM=25 CUOTA_SCHED="$mode" steady 1000 4 2
	done
	ended off rate turns auto
	between "$(share off 0 9e15)" 60 101 off
	for mode in rate turns auto; do
		between "$(share "$mode" $(($(began "$mode") + 300)) 9000000000000)" 14 30 "$mode"
	done
}

# Without MPS the kernels of two processes never overlap and turns are taken; under it both may be at work all the time.
@test "under MPS there are no turns, and caps hold" {
	export CUOTA_SIM_MPS=1
	tenant a CUOTA_SM=40 steady 1000 4 2
	tenant b CUOTA_WEIGHT=1 steady 1000 4 2
	from=$(began b)
	sleep 1
	[ "$(turn_switches)" = 0 ]
	ended a b
	between "$(share a $((from + 300)) $((from + 1800)))" 28 45 "the one with a cap"
	between "$(share b $((from + 300)) $((from + 1800)))" 75 101 "the other, which waits for nobody"
}

# As without cuota: cuInit in the child of a program that has used CUDA says "not initialized" (3).
@test "a fork after use changes nothing for the parent, and its child has no seat" {
	tenant a CUOTA_SM=25 forks 1000 1.5
	PRELOAD='' machine bare
	PRELOAD='' tenant bare forks 1000 0.3
	ended a bare
	read -r before after said <"$DIR/a.out"
	between "$before" 13 30 "before"
	between "$after" 13 30 "after"
	read -r _ _ bare_said <"$DIR/bare.out"
	[ "$said" = "$bare_said" ]
}

threads_of() { cat "/proc/${pid_of[$1]}/task/"*/comm; }

@test "without a quota there is no thread of ours and no ledger" {
	tenant none CUOTA_LOG=error steady 1000 1 1.2
	machine two
	tenant some CUOTA_SM=50 steady 1000 1 1.2
	began none
	began some
	[ -z "$(threads_of none | grep -x cuota)" ]
	[ -z "$(ls -A "$DIR/one/ledger")" ]
	! grep -q '\.ledger' "/proc/${pid_of[none]}/maps"
	# And this is how it looks with one.
	threads_of some | grep -qx cuota
	grep -q '\.ledger' "/proc/${pid_of[some]}/maps"
	ended none some
}
