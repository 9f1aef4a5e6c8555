#!/usr/bin/env bats
# The escape table: every way to take device memory, 8 GiB asked for under a cap of 2 GiB. The judge is
# not under cuota: it adds up what the driver granted and reads the device's use. The same program runs on a card
# (tests/gpu/escape).

load memory_help

setup()
{
	memory_setup
	export CUOTA_SIM_MEMORY=64G CUOTA_SIM_DEVICES=2
}

teardown()
{
	memory_teardown
}

# Every way must have been tried, but for those that the simulated driver lacks.
table()
{
	run timeout 280 "$BUILD/tests/escape" table "$1" 2048 "$2"
	echo "$output"
}

@test "no way gets one process past its cap" {
	table "$BUILD/libcuota.so" 1
	[ "$status" = 0 ]
	[[ "${lines[-1]}" == *" 0 escaped, 0 wrong code, "* ]]
	[ "${lines[-1]%% *}" -ge 34 ]
}

@test "no way gets four processes of one group past it" {
	table "$BUILD/libcuota.so" 4
	[ "$status" = 0 ]
	[[ "${lines[-1]}" == *" 0 escaped, 0 wrong code, "* ]]
	[ "${lines[-1]%% *}" -ge 34 ]
}

@test "the judge sees it when there is no cap" {
	run timeout 280 "$BUILD/tests/escape" table - 2048 1
	[ "$status" != 0 ]
	escaped=${lines[-1]#* held, }
	[ "${escaped%% *}" -ge 28 ]
}
