#!/usr/bin/env bats
# A good guest: programs that never use CUDA run as if the library were not there, and those that do find their
# process as they left it.

setup()
{
	: "${BUILD:?the build directory}"
	CUOTA=$BUILD/libcuota.so
	DOORS=$BUILD/doors
	DIR=$BATS_TEST_TMPDIR
	export CUOTA_MEM=2G CUOTA_DIR=$DIR/ledger CUOTA_SIM_STATE=$DIR/sim
	mkdir -p "$CUOTA_DIR"
}

# Standard output, standard error and exit status, bare and under the library, byte by byte.
unchanged()
{
	local bare=0 under=0
	"$@" >"$DIR/bare.out" 2>"$DIR/bare.err" </dev/null || bare=$?
	LD_PRELOAD=$CUOTA "$@" >"$DIR/under.out" 2>"$DIR/under.err" </dev/null || under=$?
	[ "$bare" -eq "$under" ] || { echo "exit $bare, under cuota $under"; cat "$DIR/under.err"; }
	[ "$bare" -eq "$under" ]
	cmp "$DIR/bare.out" "$DIR/under.out"
	cmp "$DIR/bare.err" "$DIR/under.err"
	[ -z "$(ls -A "$CUOTA_DIR")" ]
}

have()
{
	command -v "$1" >/dev/null || skip "no $1 here"
}

@test "true" { unchanged true; }

@test "bash" {
	unchanged bash -c 'set -o pipefail; seq 100 | sort -r | head -3; echo error >&2; exit 7'
}

@test "python3" {
	have python3
	unchanged python3 -c 'import sys, json, ctypes, socket, subprocess, threading
print(json.dumps(sorted(sys.builtin_module_names))[:200])
print(subprocess.run(["echo", "child"], capture_output=True).stdout)
sys.exit(3)'
}

@test "git" {
	have git
	unchanged git -c core.pager=cat log -3 --stat
	unchanged git --version
}

@test "perl" {
	have perl
	unchanged perl -e 'use POSIX; use Socket; print "perl ", POSIX::floor(3.7), "\n"; warn "told\n"; exit 4'
}

@test "node" {
	have node
	unchanged node -e 'require("fs"); require("crypto"); console.log([3,1,2].sort()); console.error("told"); process.exit(5)'
}

@test "java" {
	have java
	unchanged java -version
}

@test "gcc" {
	have gcc
	echo 'int main(void) { return 6; }' >"$DIR/six.c"
	unchanged gcc -Wall -o "$DIR/six" "$DIR/six.c"
	unchanged "$DIR/six"
	unchanged gcc -Wall -o "$DIR/six" "$DIR/none.c"
}

@test "sshd -t" {
	sshd=$(command -v sshd || ls /usr/sbin/sshd 2>/dev/null) || skip "no sshd here"
	unchanged "$sshd" -t
}

@test "programs under the sanitizers" {
	have gcc
	cat >"$DIR/asan.c" <<-'END'
		#include <dlfcn.h>
		#include <stdio.h>
		#include <stdlib.h>
		int main(void)
		{
			char *p = malloc(10);
			void *h = dlopen("libm.so.6", RTLD_NOW);
			printf("%d %d\n", p != NULL, h && dlsym(h, "cos") != NULL);
			free(p);
			return 0;
		}
	END
	for sanitizer in address undefined thread; do
		gcc -fsanitize=$sanitizer -o "$DIR/$sanitizer" "$DIR/asan.c" 2>/dev/null || skip "no $sanitizer sanitizer"
		# ASan wants to come first in the list of libraries; that is its rule, not a fault of either.
		ASAN_OPTIONS=verify_asan_link_order=0 unchanged "$DIR/$sanitizer"
	done
}

@test "another preload library that replaces malloc" {
	jemalloc=$(ldconfig -p | sed -n 's/.*libjemalloc.so.2 .*=> //p' | head -1)
	[ -n "$jemalloc" ] || skip "no jemalloc here"
	for order in "$jemalloc:$CUOTA" "$CUOTA:$jemalloc"; do
		run env LD_PRELOAD="$order" python3 -c 'print(sum(range(1000)))'
		[ "$output" = 499500 ]
	done
}

@test "libfaketime, which hooks dlsym's neighbours, in both orders" {
	fake=$(find /usr/lib -name 'libfaketime.so.1' 2>/dev/null | head -1)
	[ -n "$fake" ] || skip "no libfaketime here"
	for order in "$fake:$CUOTA" "$CUOTA:$fake"; do
		run env LD_PRELOAD="$order" FAKETIME='2001-02-03 04:05:06' date +%Y
		[ "$output" = 2001 ]
	done
}

@test "a program without CUDA: no thread, no open file" {
	for what in task fd; do
		unchanged bash -c "ls /proc/self/$what | wc -l"
	done
}

# Beyond mapping the library itself, a start under it makes the very calls that a bare one makes.
@test "a program without CUDA: strace sees nothing of ours but the library's own mapping" {
	have strace
	calls()
	{
		sed -E 's/^[0-9]+ +//; s/\(.*//' "$1" | grep -vE '^(mmap|munmap|openat|open|read|pread64|fstat|newfstatat|close|mprotect|brk|access|execve|---|\+\+\+)' |
			grep -E '^[a-z0-9_]+$' | sort | uniq -c
	}
	strace -f -o "$DIR/bare" true || skip "strace is not allowed here"
	strace -f -o "$DIR/under" -E LD_PRELOAD="$CUOTA" true
	diff <(calls "$DIR/bare") <(calls "$DIR/under")
	run grep -cE 'open(at)?\(' "$DIR/under"
	under=$output
	run grep -cE 'open(at)?\(' "$DIR/bare"
	[ "$under" -eq $((output + 1)) ]
	run grep -E 'cuota' "$DIR/under"
	[ "$(grep -cE 'openat\(.*cuota' <<<"$output")" -eq 1 ]
}

@test "a missing driver changes nothing for a program that needs none" {
	LD_LIBRARY_PATH='' unchanged "$DOORS/lookups" other-names 2>/dev/null || true
	LD_LIBRARY_PATH='' unchanged bash -c 'exit 0'
}

under_sim()
{
	run env LD_LIBRARY_PATH="$BUILD/sim" LD_PRELOAD="$CUOTA" timeout 60 "$@"
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "CUDA in a static constructor, in main, at exit and in a destructor" {
	under_sim "$DOORS/lifetimes" ends
	[ "$output" = "$(printf 'constructor\nmain\natexit\ndestructor')" ]
}

@test "before cuInit there is no thread and no file, and CUDA is not initialised" {
	under_sim "$DOORS/lifetimes" before-init
	[[ "$output" == *"count before cuInit: 3"* ]]
	[[ "$output" == *"alloc before cuInit: 3"* ]]
	[[ "$output" == *"threads: 1"* ]]
	[[ "$output" == *"files: 0"* ]]
}

@test "a parent that only looks up, and a child that is the first to use CUDA" {
	under_sim "$DOORS/lifetimes" first-in-child
	[[ "$output" == *"child: 0"* ]]
}

@test "children of a process that uses CUDA neither crash nor hurt it" {
	under_sim "$DOORS/lifetimes" fork
	[[ "$output" == *"parent again"* ]]
}

@test "signal handlers, umask, environment and the signal mask stay the program's" {
	under_sim "$DOORS/lifetimes" handlers
	ours=$(grep handlers <<<"$output")
	CUOTA_MEM=2G run env LD_LIBRARY_PATH="$BUILD/sim" LD_PRELOAD= "$DOORS/lifetimes" handlers
	[[ "$ours" == "handlers: 0, umask: "* ]]
	[[ "$ours" == *"blocked: 0" ]]
}
