#!/usr/bin/env bats
# What the library exports and needs, and that no ABI twin of a wrapped function is forgotten.

setup()
{
	: "${BUILD:?the build directory}"
	CUOTA=$BUILD/libcuota.so
}

exported()
{
	nm -D --defined-only "$1" | awk '{ print $NF }' | sed 's/@.*//' | sort -u
}

# Names of the driver that share the base name of a wrapped one (_v2, _v3, _ptds, _ptsz) and are not wrapped.
forgotten()
{
	exported "$1" | grep '^cu[A-Z]' >"$BATS_TEST_TMPDIR/driver"
	exported "$CUOTA" | grep '^cu[A-Z]' >"$BATS_TEST_TMPDIR/wrapped"
	base='s/(_v[0-9]+)?(_ptsz|_ptds)?$//'
	sed -E "$base" "$BATS_TEST_TMPDIR/wrapped" | sort -u >"$BATS_TEST_TMPDIR/bases"
	while read -r name; do
		sed -E "$base" <<<"$name" | grep -qxFf "$BATS_TEST_TMPDIR/bases" || continue
		grep -qxF "$name" "$BATS_TEST_TMPDIR/wrapped" || echo "$name"
	done <"$BATS_TEST_TMPDIR/driver"
}

none_forgotten()
{
	run forgotten "$1"
	echo "forgotten: $output"
	[ -z "$output" ]
	[ "$(wc -l <"$BATS_TEST_TMPDIR/driver")" -gt 100 ]
}

@test "every twin of a wrapped function is wrapped: simulated driver" {
	none_forgotten "$BUILD/sim/libcuda.so.1"
}

@test "every twin of a wrapped function is wrapped: the toolkit's stub" {
	stub=$(find -L /usr/local/cuda /usr/lib/cuda /opt/cuda -path '*stubs/libcuda.so' 2>/dev/null | head -1)
	[ -n "$stub" ] || skip "no CUDA toolkit with stubs"
	none_forgotten "$stub"
}

@test "every twin of a wrapped function is wrapped: a real driver" {
	driver=$(tests/e2e/fetch-driver 2>"$BATS_TEST_TMPDIR/why") || skip "$(tail -1 "$BATS_TEST_TMPDIR/why")"
	none_forgotten "$driver/libcuda.so.1"
}

@test "it exports the wrappers, the look-ups and cuota_* and nothing else" {
	run bash -c "nm -D --defined-only '$CUOTA' | awk '{ print \$NF }' | grep -vE '^(cu[A-Z]|nvml[A-Z]|cuota_)' | sort | tr '\n' ' '"
	[ "$output" = "dlopen dlsym dlvsym " ]
	for name in $(exported "$CUOTA" | grep -E '^(cu[A-Z]|nvml)'); do
		grep -qE "^(NVML_)?HOOK\\($name," src/hooks/hooks.def src/hooks/nvml.def
	done
}

@test "it needs the C library and nothing else" {
	run bash -c "readelf -d '$CUOTA' | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'"
	[ "$output" = "libc.so.6" ]
}

@test "it asks for no symbol newer than GLIBC_2.28" {
	newest=$(objdump -T "$CUOTA" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1)
	echo "newest: $newest"
	[ "$(printf '%s\n' "$newest" GLIBC_2.28 | sort -V | tail -1)" = GLIBC_2.28 ]
}

@test "it builds for aarch64, with the same needs and the same exports" {
	command -v aarch64-linux-gnu-gcc >/dev/null || skip "no aarch64-linux-gnu-gcc"
	run make -s O="$BATS_TEST_TMPDIR/arm" CC=aarch64-linux-gnu-gcc "$BATS_TEST_TMPDIR/arm/libcuota.so"
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(exported "$BATS_TEST_TMPDIR/arm/libcuota.so")" = "$(exported "$CUOTA")" ]
	run bash -c "readelf -d '$BATS_TEST_TMPDIR/arm/libcuota.so' | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'"
	[ "$output" = "libc.so.6" ]
	newest=$(aarch64-linux-gnu-objdump -T "$BATS_TEST_TMPDIR/arm/libcuota.so" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1)
	[ "$(printf '%s\n' "$newest" GLIBC_2.28 | sort -V | tail -1)" = GLIBC_2.28 ]
}
