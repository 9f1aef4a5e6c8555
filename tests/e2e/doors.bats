#!/usr/bin/env bats
# Every way by which a program reaches the driver, times every allocating ABI: the quota holds. Each test is one
# way; the program tests/doors/door.c goes through the ABIs and prints a row for each.

setup()
{
	: "${BUILD:?the build directory}"
	DIR=$BATS_TEST_TMPDIR
	export LD_LIBRARY_PATH=$BUILD/sim CUOTA_SIM_STATE=$DIR/sim CUOTA_DIR=$DIR/ledger
	export CUOTA_MEM=2G
	mkdir -p "$CUOTA_DIR"
	DOORS=$BUILD/doors
}

under_cuota()
{
	run env LD_PRELOAD="$BUILD/libcuota.so" timeout 60 "$@"
	echo "$output"
}

held()
{
	under_cuota "$DOORS/door" "$@"
	[ "$status" -eq 0 ]
	[[ "$output" == *"held: over 2"* ]]
	[[ "$output" != *"NOT HELD"* ]]
	[[ "$output" != *"not supported"* ]]
}

@test "without the library the same program is not held" {
	run "$DOORS/door" handle
	[ "$status" -eq 1 ]
	[[ "$output" == *"NOT HELD"* ]]
}

@test "a program linked to the driver" {
	under_cuota "$DOORS/door_linked"
	[ "$status" -eq 0 ]
}

@test "dlopen by soname and dlsym" { held handle; }
@test "dlopen by absolute path and dlsym" { held handle "$BUILD/sim/libcuda.so.1"; }

@test "dlopen by a relative path, from another directory afterwards" {
	cd "$BUILD/sim"
	held handle ./libcuda.so.1
}

@test "dlopen of a driver of another file name" {
	cp "$BUILD/sim/libcuda.so.1" "$DIR/copy.so"
	held handle "$DIR/copy.so"
}

@test "dlopen of a driver of another soname" {
	held handle "$DOORS/vendor-driver.so"
}

@test "dlsym on a handle opened with RTLD_DEEPBIND" { held deep-handle; }
@test "dlsym with RTLD_DEFAULT" { held default; }
@test "dlsym with RTLD_NEXT" { held next; }
@test "dlsym on the program's own handle" { held program; }
@test "dlsym fetched by dlsym" { held fetched-dlsym; }
@test "dlvsym of a driver with symbol versions" { held version "$DOORS/vendor-driver.so"; }

@test "cuGetProcAddress, default flags" { held ask1; }
@test "cuGetProcAddress, legacy stream" { held ask1-legacy; }
@test "cuGetProcAddress, per-thread stream" { held ask1-ptds; }
@test "cuGetProcAddress_v2, default flags" { held ask2; }
@test "cuGetProcAddress_v2, legacy stream" { held ask2-legacy; }
@test "cuGetProcAddress_v2, per-thread stream" { held ask2-ptds; }
@test "cuGetProcAddress fetched by itself" { held ask1-itself; }
@test "cuGetProcAddress_v2 fetched by itself" { held ask2-itself; }
@test "cuGetProcAddress_v2 fetched by itself, per-thread stream" { held ask2-itself-ptds; }

@test "a linked library bound at the first call" { held library-lazy "$DOORS/lib_linked.so"; }
@test "RTLD_DEFAULT in a library that alone is linked to the driver" {
	held library-default "$DOORS/lib_linked.so"
}
@test "a linked library opened with RTLD_DEEPBIND" { held library-deep "$DOORS/lib_linked.so"; }
@test "a linked library opened with RTLD_DEEPBIND and RTLD_LAZY" {
	held library-deep-lazy "$DOORS/lib_linked.so"
}
@test "RTLD_DEFAULT in a library opened with RTLD_DEEPBIND" {
	held library-deep-default "$DOORS/lib_linked.so"
}
@test "a linked library found by its bare name with RTLD_DEEPBIND" {
	export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$DOORS
	held library-deep lib_linked.so
}
@test "a library that loads the driver itself" { held loading-library "$DOORS/lib_loads.so"; }
@test "a library that loads the driver itself, opened with RTLD_DEEPBIND" {
	held loading-library-deep "$DOORS/lib_loads.so"
}

@test "every name, version and flag of the simulated driver" {
	under_cuota "$DOORS/answers"
	[ "$status" -eq 0 ]
}

@test "every name, version and flag of drivers older and newer than the headers" {
	for driver in 11.4 11.8 12.0 12.4 12.9 13.0 13.3; do
		export CUOTA_SIM_DRIVER=$driver CUOTA_SIM_STATE=$DIR/sim-$driver
		under_cuota "$DOORS/answers"
		[ "$status" -eq 0 ]
		held ask1
	done
}

# Without a GPU the real driver answers look-ups all the same. Debian's non-free libcuda1 does; a directory with
# libcuda.so.1 of any driver may be named by CUOTA_TEST_DRIVER.
@test "every name, version and flag of a real driver" {
	driver=${CUOTA_TEST_DRIVER:-}
	if [ -z "$driver" ]; then
		driver=$(tests/e2e/fetch-driver 2>"$DIR/why") || skip "$(tail -1 "$DIR/why")"
	fi
	LD_LIBRARY_PATH=$driver under_cuota "$DOORS/answers"
	[ "$status" -eq 0 ]
}
