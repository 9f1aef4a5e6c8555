#!/usr/bin/env bats
# Preloaded tools that take libcuota.so for the driver, or stand in for the driver themselves: the program reaches
# every function of the driver, and the quota holds. In both orders of preloading.

setup()
{
	: "${BUILD:?the build directory}"
	DIR=$BATS_TEST_TMPDIR
	export LD_LIBRARY_PATH=$BUILD/sim CUOTA_SIM_STATE=$DIR/sim CUOTA_DIR=$DIR/ledger
	CUOTA=$BUILD/libcuota.so
	DOORS=$BUILD/doors
	mkdir -p "$CUOTA_DIR"
}

# same_under TOOL COMMAND...: says the same as with the tool alone, but for our wrappers, in both orders.
same_under()
{
	local tool=$1 order
	shift
	run env LD_PRELOAD="$tool" timeout 20 "$@"
	bare=$output
	echo "bare: $bare"
	[ "$status" -eq 0 ]
	for order in "$tool:$CUOTA" "$CUOTA:$tool"; do
		run env LD_PRELOAD="$order" timeout 20 "$@"
		echo "$order: $output"
		[ "$status" -eq 0 ]
		[[ "$output" == *": cuota"* ]]
		[ "$(sed "s/: cuota/: ${owner:-driver}/" <<<"$output")" = "$bare" ]
	done
}

# held_under TOOL DOOR...: what the door asks for beyond the cap is refused, in both orders.
held_under()
{
	local tool=$1 order
	shift
	for order in "$tool:$CUOTA" "$CUOTA:$tool"; do
		run env CUOTA_MEM=2G LD_PRELOAD="$order" timeout 60 "$DOORS/door" "$@"
		echo "$order: $output"
		[ "$status" -eq 0 ]
		[[ "$output" == *"held: over 2"* ]]
		[[ "$output" != *"NOT HELD"* ]]
	done
}

# A handle that is named by the program itself, without a tool, is libcuota's too.
@test "a program that opens libcuota.so for the driver reaches all of the driver" {
	run timeout 20 "$DOORS/lookups" driver-handle
	bare=$output
	run env LD_PRELOAD="$CUOTA" timeout 20 "$DOORS/lookups" driver-handle "$CUOTA"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ "$output" == *"cuMemAlloc_v2: cuota"* ]]
	[ "${output//: cuota/: driver}" = "$bare" ]
}

@test "without a driver the handle of libcuota.so has none of its functions" {
	run env LD_LIBRARY_PATH="$DIR" LD_PRELOAD="$CUOTA" timeout 20 "$DOORS/lookups" errors "$CUOTA"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ "$output" != *": cuota"* ]]
	[[ "$output" == *"unhooked after bad: NULL, error: undefined symbol: cuDriverGetVersion"* ]]
}

@test "a tool that opens the file where the driver's handle has cuInit" {
	FINDS=handle same_under "$DOORS/lib_finds.so" "$DOORS/lookups" driver-handle
}

@test "a tool that opens the file where RTLD_DEFAULT has cuInit" {
	FINDS=default same_under "$DOORS/lib_finds.so" "$DOORS/lookups" driver-handle
}

@test "a tool that opens the file where its own cuInit is bound, and not the driver" {
	FINDS=linked same_under "$DOORS/lib_finds.so" "$DOORS/lookups" driver-handle
}

@test "the same of a driver of another soname, with symbol versions" {
	FINDS=handle same_under "$DOORS/lib_finds.so" "$DOORS/lookups" driver-handle "$DOORS/vendor-driver.so"
	[[ "$output" == *"with its version: cuota, error: none"* ]]
}

@test "the same of NVML" {
	for way in handle default linked; do
		FINDS=$way owner=nvml same_under "$DOORS/lib_finds.so" "$DOORS/lookups" nvml-handle libnvidia-ml.so.1
	done
}

@test "every ABI is held by the handle that such a tool gives" {
	for way in handle default linked; do
		FINDS=$way held_under "$DOORS/lib_finds.so" handle
		FINDS=$way held_under "$DOORS/lib_finds.so" ask2
	done
}

@test "a tool that stands in for the driver: dlsym" { held_under "$DOORS/lib_stands.so" handle; }
@test "a tool that stands in for the driver: cuGetProcAddress_v2" { held_under "$DOORS/lib_stands.so" ask2; }
@test "a tool that stands in for the driver: its true address" {
	held_under "$DOORS/lib_stands.so" handle "$BUILD/sim/libcuda.so.1"
}

@test "a tool that stands in for the driver is called" {
	for order in "$DOORS/lib_stands.so:$CUOTA" "$CUOTA:$DOORS/lib_stands.so"; do
		run env STANDS_TELLS=1 CUOTA_MEM=2G LD_PRELOAD="$order" timeout 60 "$DOORS/door" handle
		echo "$order: $output"
		[[ "$output" == *"stand-in: called"* ]]
		[[ "$output" != *"second copy"* ]]
	done
}
