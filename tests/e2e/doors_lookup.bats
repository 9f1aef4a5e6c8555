#!/usr/bin/env bats
# What a look-up by name answers, and what it leaves in dlerror, with the library and without: the same, but for
# our wrapper where the driver's function was.

setup()
{
	: "${BUILD:?the build directory}"
	export LD_LIBRARY_PATH=$BUILD/sim CUOTA_SIM_STATE=$BATS_TEST_TMPDIR/sim
	CUOTA=$BUILD/libcuota.so
	DOORS=$BUILD/doors
}

# Runs it bare and under the library; $bare and $output are what they said.
both()
{
	run timeout 20 "$@"
	[ "$status" -eq 0 ] || echo "bare: $output"
	bare=$output
	run env LD_PRELOAD="$CUOTA" timeout 20 "$@"
	echo "bare: $bare"
	echo "under cuota: $output"
	[ "$status" -eq 0 ]
}

same_but_for_the_wrapper()
{
	both "$@"
	[[ "$output" == *": cuota"* ]]
	[ "${output//: cuota/: driver}" = "$bare" ]
}

same()
{
	both "$@"
	[ "$output" = "$bare" ]
}

@test "a failed look-up sets dlerror once, a good one leaves it clean" {
	same_but_for_the_wrapper "$DOORS/lookups" errors
}

@test "dlerror is true for RTLD_NEXT and RTLD_DEFAULT too" {
	same_but_for_the_wrapper "$DOORS/lookups" scope-errors
}

@test "without a driver no name of ours is found" {
	LD_LIBRARY_PATH='' same "$DOORS/lookups" no-driver
	[[ "$output" != *cuota* ]]
}

@test "a driver outside the global scope is not found in it" {
	same "$DOORS/lookups" local-driver
}

@test "names of other libraries that begin with cu or nv are theirs" {
	same "$DOORS/lookups" other-names
}

@test "the same look-up twice on one thread is no loop" {
	same "$DOORS/lookups" twice
}

@test "handles of other libraries" {
	same_but_for_the_wrapper "$DOORS/lookups" other-handles "$DOORS/lib_linked.so"
}

@test "a library that defines a name of the driver's keeps it" {
	same "$DOORS/lookups" wrapping-library "$DOORS/lib_wraps_linked.so"
}

@test "many threads at the first look-up" {
	same_but_for_the_wrapper "$DOORS/lookups" threads
}

@test "a driver that is closed and opened again" {
	same_but_for_the_wrapper "$DOORS/lookups" reopened
}

@test "a function that the driver lacks is not there, though we export it" {
	same_but_for_the_wrapper "$DOORS/lookups" lacking "$DOORS/lib_self.so"
}

@test "a second copy of the driver is told of, and the first stays under the quota" {
	cp "$BUILD/sim/libcuda.so.1" "$BATS_TEST_TMPDIR/copy.so"
	CUOTA_MEM=1G both "$DOORS/lookups" second-copy "$BATS_TEST_TMPDIR/copy.so"
	[[ "$output" == *"first: cuota"*"second: driver"*"first again: cuota"* ]]
	[ "$(grep -c 'second copy of the driver' <<<"$output")" -eq 1 ]
	both "$DOORS/lookups" second-copy "$BATS_TEST_TMPDIR/copy.so"
	[[ "$output" != *"second copy"* ]]
}

@test "dlerror after an open with RTLD_DEEPBIND, good or bad" {
	same "$DOORS/lookups" deep-open "$DOORS/lib_loads.so"
	[[ "$output" == "opened: 1, error: none"$'\n'"opened: 0, error: other" ]]
}

@test "errno is the program's" {
	same "$DOORS/lookups" errno
}

@test "a driver that looks itself up finds itself" {
	mkdir "$BATS_TEST_TMPDIR/self"
	cp "$DOORS/lib_self.so" "$BATS_TEST_TMPDIR/self/libcuda.so.1"
	export LD_LIBRARY_PATH=$BATS_TEST_TMPDIR/self
	both "$DOORS/start"
	[ "$bare" = "cuInit 0" ]
	[ "$output" = "cuInit 0" ]
}

@test "another library that hooks dlsym, loaded before" {
	run env SECOND_TELLS=1 LD_PRELOAD="$DOORS/lib_second.so:$CUOTA" "$DOORS/lookups" threads
	echo "$output"
	[ "$status" -eq 0 ]
	[[ "$output" == *"all: cuota"* ]]
	[[ "$output" == *"second: called"* ]]
}

@test "another library that hooks dlsym, loaded after" {
	run env SECOND_TELLS=1 LD_PRELOAD="$CUOTA:$DOORS/lib_second.so" "$DOORS/lookups" threads
	echo "$output"
	[ "$status" -eq 0 ]
	[[ "$output" == *"all: cuota"* ]]
	[[ "$output" == *"second: called"* ]]
}

@test "a linked program without its driver is told that CUDA is not there" {
	run env LD_LIBRARY_PATH="$BATS_TEST_TMPDIR" "$DOORS/weak"
	[ "$status" -eq 0 ]
	[ "$output" = "no cuInit" ]
	run env LD_LIBRARY_PATH="$BATS_TEST_TMPDIR" LD_PRELOAD="$CUOTA" "$DOORS/weak"
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$output" = "cuInit 3" ]
}
