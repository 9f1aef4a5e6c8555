#!/usr/bin/env bats
# A context takes more after it was made: with its first stream, its first allocation, its first code. Nobody asked
# for that, so it is found only by looking; and it must be found before the cap is reached.

load memory_help

FIRST='cuStreamCreate=3M,cuMemAlloc*=4M,cuMemCreate=4M,cuArray*=4M'

setup()
{
	memory_setup
	export CUOTA_SIM_MEMORY=64G CUOTA_SIM_DEVICES=2
}

teardown()
{
	memory_teardown
}

# Every way to take memory, in small pieces, so that it ends close to the cap.
table()
{
	local growth=$1
	shift
	# As on the H200: a context is 518 MiB when it is made, and 526 MiB are expected from the start.
	run env CUOTA_SIM_CONTEXT=518M CUOTA_SIM_GROWTH="$growth" timeout 280 "$BUILD/tests/escape" table "$BUILD/libcuota.so" "$@"
	echo "$output"
	[ "$status" = 0 ]
	[[ "${lines[-1]}" == *" 0 escaped, 0 wrong code, "* ]]
	[ "${lines[-1]%% *}" -ge 34 ]
}

# What the device has in use in MiB, as one sees it who is not under cuota.
device_used()
{
	used J
}

judge()
{
	PRELOAD="" start J CUOTA_SIM_CONTEXT=0 CUOTA_SIM_GROWTH=
	ok J ctx 0
}

# fill A: takes 2 MiB at a time until it is refused.
fill()
{
	while say "$1" alloc x 2M && [ "$answer" = 0 ]; do :; done
	[ "$answer" = 2 ]
}

@test "what a context takes for its first stream is charged before the cap is reached, by one process" {
	table cuStreamCreate=7M 2048 1 4
}

@test "and by four processes of one group" {
	table cuStreamCreate=7M 2048 4 4
}

@test "what comes with the first allocation, and with every hundredth, is too" {
	table "$FIRST,cuMemAlloc_v2=2M@100" 2048 1 4
}

# Growth that comes with calls of several processes at one instant is seen by none of them: not every hundredth.
@test "and by four processes, in small pieces and large ones" {
	table "$FIRST" 2048 4 4
	table "$FIRST" 2048 4 256
}

@test "what another one of the group took and has not charged yet is not given away" {
	judge
	export CUOTA_GROUP=train CUOTA_MEM=2048M
	start A CUOTA_SIM_GROWTH=cuMemGetInfo_v2=9M
	start B CUOTA_SIM_GROWTH=
	ok A ctx 0
	ok B ctx 0
	ok B alloc x 900M
	ok A info
	fill B
	device_used
	[ "$answer" -le 2050 ] || { echo "$answer MiB on the device"; false; }
	[ "$answer" -ge 2040 ]
}

@test "an allocation that brings the process past its cap is undone" {
	judge
	for way in alloc async create array; do
		# A ledger of its own: nothing is known of this device's contexts.
		mkdir "$CUOTA_DIR/$way"
		start A CUOTA_MEM=1012M CUOTA_SIM_CONTEXT=500M CUOTA_DIR="$CUOTA_DIR/$way" \
			CUOTA_SIM_GROWTH='cuMemAlloc*=6M,cuMemCreate=6M,cuArray*=6M'
		ok A ctx 0
		refused A $way x 512M
		device_used
		[ "$answer" -le 506 ] || { echo "$way: $answer MiB on the device"; false; }
		# Now it is known, and the rest is to be had.
		ok A $way x 480M
		stop A
	done
}

@test "what one context grew by is charged for the next one from its first instant on, until it is seen" {
	export CUOTA_SIM_GROWTH=cuMemAlloc_v2=8M
	start A CUOTA_MEM=1024M
	ok A ctx 0
	used_is A 526
	ok A alloc x 2M
	used_is A 536
	stop A
	start B CUOTA_MEM=1024M
	ok B ctx 0
	used_is B 534
	used_within B 526 4
	stop B
	start C CUOTA_MEM=1024M
	ok C ctx 0
	ok C alloc x 2M
	used_is C 536
	sleep 1.5
	used_is C 536
}

# between_looks A BEFORE AFTER: while the service thread of A reads the driver's figure, A is told BEFORE (once our own
# figure is read) and AFTER (once the driver's is), and then the look goes on.
between_looks()
{
	touch "$BATS_TEST_TMPDIR"/gate{1,2}
	sleep 1.5
	ok $1 $2
	rm "$BATS_TEST_TMPDIR/gate1"
	sleep 0.3
	ok $1 $3
	# The next look waits, so that what this one found stays to be seen.
	touch "$BATS_TEST_TMPDIR/gate1"
	rm "$BATS_TEST_TMPDIR/gate2"
	sleep 0.3
}

gated()
{
	echo "nvmlDeviceGetComputeRunningProcesses_v3:while=$BATS_TEST_TMPDIR/gate1,nvmlProcessesRead:while=$BATS_TEST_TMPDIR/gate2"
}

@test "memory that comes and goes while the driver's figure is read is not taken for overhead" {
	start A CUOTA_MEM=4G CUOTA_SIM_NVML_FAIL="$(gated)"
	ok A ctx 0
	ok A alloc y 2M
	sleep 1.5
	used_is A 528
	between_looks A "alloc x 28M" "free x"
	used_is A 528
}

@test "and memory that goes and comes again does not hide what is" {
	start A CUOTA_MEM=4G CUOTA_SIM_NVML_FAIL="$(gated)" CUOTA_SIM_GROWTH=cuMemAlloc_v2=8M
	ok A ctx 0
	ok A alloc x 28M
	used_within A 562 5
	sleep 1.5
	between_looks A "free x" "alloc x 28M"
	used_is A 562
}
