#!/usr/bin/env bats
# A million random calls of all memory families against an oracle (tests/escape/model.c): what the program is told
# equals what the driver holds, at every step, and nothing is left at the end.

load memory_help

setup()
{
	memory_setup
	export CUOTA_SIM_MEMORY=64G CUOTA_MEM=4G
}

teardown()
{
	memory_teardown
}

model()
{
	LD_PRELOAD="$BUILD/libcuota.so" run timeout 280 "$BUILD/tests/escape" model "$@"
	echo "$output"
	[ "$status" = 0 ]
	[[ "$output" == *" refused: equal" ]]
}

@test "a million calls by one thread, compared after each" { model 1 1000000; }

@test "a million calls by four threads on two devices" {
	export CUOTA_SIM_DEVICES=2
	model 2 1000000 4 2
}

@test "with other seeds too" {
	for seed in 11 12 13; do model "$seed" 50000; done
}

@test "the model sees what is not charged: managed memory, which the bare driver takes late" {
	LD_PRELOAD= run timeout 60 "$BUILD/tests/escape" model 1 20000
	echo "$output"
	[ "$status" = 1 ]
	[[ "$output" == *"after kind 3"* ]]
}
