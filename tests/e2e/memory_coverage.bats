#!/usr/bin/env bats
# Every function of cuda.h that may take or give device memory is intercepted, or listed with a reason.

setup()
{
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	header=
	for include in ${CUDA:+"$CUDA/include"} /usr/local/cuda/include /usr/lib/cuda/include /opt/cuda/include /usr/include; do
		[ -f "$include/cuda.h" ] && grep -q CUDA_VERSION "$include/cuda.h" && header=$include && break
	done
	[ -n "$header" ] || skip "no cuda.h"
	work=$BATS_TEST_TMPDIR
	listed
}

# all: every function the header declares, each ABI by its own name. speaking: those whose name may mean memory.
listed()
{
	echo '#include <cuda.h>' | ${CC:-gcc} -E -P -x c -D__CUDA_API_VERSION_INTERNAL=1 -I"$header" - |
		tr '\n' ' ' | grep -oE '\bcu[A-Z][A-Za-z0-9_]* *\(' | tr -d ' (' | sort -u >"$work/all"
	grep -E 'Alloc|Free|Create|Destroy|Load|Import|Export|Open|Close|Map|map|Retain|Release|Reset|SetLimit|Trim|Pool|GetInfo|TotalMem|Instantiate|Upload|Reserve|Bind|bind|Prefetch|Discard|egister|Attach|Detach|GraphAdd|GraphMem|Managed|GetGlobal|Decompress|Checkpoint|Launch|Link|FromGreen|ExportTable' \
		"$work/all" | grep -vE 'Coredump|GetTexRef|GetSurfRef|TexRef[GS]et|Semaphores|Dependencies|MipmappedArrayGet|SetParams|GetParams' >"$work/speaking"
	sed -n 's/^HOOK(\([A-Za-z0-9_]*\),.*/\1/p' src/hooks/hooks.def | sort -u >"$work/hooked"
	grep -v '^#' tests/e2e/not-hooked.txt | awk 'NF { print $1 }' | sort >"$work/excused"
}

@test "each is intercepted or listed with a reason" {
	[ "$(wc -l <"$work/speaking")" -gt 150 ]
	run comm -23 "$work/speaking" <(sort -u "$work/hooked" "$work/excused")
	echo "neither in hooks.def nor in tests/e2e/not-hooked.txt: $output"
	[ -z "$output" ]
}

@test "what is listed exists, is not intercepted, is listed once and has a reason" {
	run comm -12 "$work/hooked" "$work/excused"
	[ -z "$output" ]
	run uniq -d "$work/excused"
	[ -z "$output" ]
	run grep -vE '^#|^$|^cu[A-Za-z0-9_]+ [^ ].{3,}' tests/e2e/not-hooked.txt
	[ -z "$output" ]
	# Older headers have fewer functions: then only what exists can be compared.
	if grep -q 'define CUDA_VERSION 13' "$header/cuda.h"; then
		run comm -13 "$work/all" "$work/excused"
		echo "not in cuda.h: $output"
		[ -z "$output" ]
	fi
}

@test "a function that is neither would be found" {
	sed -i '/^cuMemAlloc_v2$/d' "$work/hooked"
	run comm -23 "$work/speaking" <(sort -u "$work/hooked" "$work/excused")
	[ "$output" = cuMemAlloc_v2 ]
}
