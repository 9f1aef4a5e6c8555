#!/usr/bin/env bats
# The other architecture: look-ups, jumps and stubs are in assembly, so they run, under an emulator, against the
# simulated driver built for aarch64.

setup_file()
{
	: "${BUILD:?the build directory}"
	command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64-static >/dev/null || return 0
	export ARM=$BATS_FILE_TMPDIR/arm
	make -s WERROR= O="$ARM" CC=aarch64-linux-gnu-gcc "$ARM/libcuota.so" "$ARM/sim/libcuda.so.1" \
		"$ARM/doors/"{answers,door,door_linked,lookups,lifetimes,weak} \
		"$ARM/doors/"{lib_linked,lib_loads}.so "$ARM/doors/vendor-driver.so" >"$BATS_FILE_TMPDIR/log" 2>&1 ||
		{ grep -E 'error|undefined' "$BATS_FILE_TMPDIR/log" | head -5; return 1; }
}

setup()
{
	[ -n "${ARM:-}" ] || skip "no aarch64-linux-gnu-gcc or no qemu-aarch64-static"
	mkdir -p "$BATS_TEST_TMPDIR/ledger"
}

emulated()
{
	local preload=(-E LD_PRELOAD="$ARM/libcuota.so")
	[ -z "${BARE:-}" ] || preload=()
	run timeout 120 qemu-aarch64-static -L /usr/aarch64-linux-gnu "${preload[@]}" -E LD_LIBRARY_PATH="$ARM/sim" \
		-E CUOTA_MEM=2G -E CUOTA_DIR="$BATS_TEST_TMPDIR/ledger" -E CUOTA_SIM_STATE="$BATS_TEST_TMPDIR/sim" "$@"
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "aarch64: every name, version and flag" { emulated "$ARM/doors/answers"; }

@test "aarch64: dlerror, and the same look-up twice" {
	BARE=1 emulated "$ARM/doors/lookups" errors
	bare=$output
	emulated "$ARM/doors/lookups" errors
	[ "${output//: cuota/: driver}" = "$bare" ]
	emulated "$ARM/doors/lookups" twice
	[[ "$output" == "1 1 1"* ]]
}

@test "aarch64: without a driver no name of ours is found" {
	emulated "$ARM/doors/lookups" no-driver
	[[ "$output" != *cuota* ]]
}

@test "aarch64: a stub without a driver keeps its arguments and answers" {
	emulated "$ARM/doors/weak"
	[ "$output" = "cuInit 3" ]
}

@test "aarch64: the quota holds by every way" {
	emulated "$ARM/doors/door_linked"
	for way in handle default next program fetched-dlsym ask1 ask2-itself-ptds deep-handle; do
		emulated "$ARM/doors/door" $way
	done
	emulated "$ARM/doors/door" version "$ARM/doors/vendor-driver.so"
	emulated "$ARM/doors/door" library-deep-lazy "$ARM/doors/lib_linked.so"
	emulated "$ARM/doors/door" loading-library-deep "$ARM/doors/lib_loads.so"
}

@test "aarch64: constructors and exit" { emulated "$ARM/doors/lifetimes" ends; }
