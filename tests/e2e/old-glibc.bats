#!/usr/bin/env bats
# The file built here, in a root with glibc 2.31 (Ubuntu 20.04, Debian 11, RHEL 8 have 2.28 to 2.31): it loads, keeps
# out of the way of programs without CUDA, and holds the quota by every way that differs with the C library.

setup_file()
{
	: "${BUILD:?the build directory}"
	ROOT=$(tests/e2e/old-root "$BUILD" 2>"$BATS_FILE_TMPDIR/why") || ROOT=
	export ROOT
}

setup()
{
	[ -n "$ROOT" ] || skip "$(tail -1 "$BATS_FILE_TMPDIR/why")"
}

# A command in the root, under the library and a quota, with a /proc and a /dev/shm of its own.
inside()
{
	run unshare -m -- bash -c '
		mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/dev/shm" && mount -t tmpfs tmpfs "$0/tmp" || exit 99
		exec chroot "$0" /usr/bin/env LD_LIBRARY_PATH=/cuota/sim CUOTA_MEM=2G CUOTA_SIM_STATE=/tmp/sim \
			LD_PRELOAD=/cuota/libcuota.so "$@"' "$ROOT" "$@"
	[ "$status" -ne 99 ] || skip "mounting is not allowed here"
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "glibc 2.31: it is that" {
	inside /usr/bin/getconf GNU_LIBC_VERSION
	[ "$output" = "glibc 2.31" ]
}

@test "glibc 2.31: true, bash and perl are unchanged" {
	inside /bin/true
	[ -z "$output" ]
	inside /bin/bash -c 'echo hello'
	[ "$output" = hello ]
	inside /usr/bin/perl -e 'use POSIX; print POSIX::floor(3.7), "\n"'
	[ "$output" = 3 ]
}

@test "glibc 2.31: a linked program" { inside /cuota/doors/door_linked; }
@test "glibc 2.31: dlopen and dlsym" { inside /cuota/doors/door handle; }
@test "glibc 2.31: our own handle" { inside /cuota/doors/door handle /cuota/libcuota.so; }
@test "glibc 2.31: RTLD_DEFAULT" { inside /cuota/doors/door default; }
@test "glibc 2.31: RTLD_NEXT" { inside /cuota/doors/door next; }
@test "glibc 2.31: dlsym fetched from libdl" { inside /cuota/doors/door fetched-dlsym; }
@test "glibc 2.31: dlvsym" { inside /cuota/doors/door version /cuota/doors/vendor-driver.so; }
@test "glibc 2.31: cuGetProcAddress_v2" { inside /cuota/doors/door ask2-itself; }

@test "glibc 2.31: RTLD_DEEPBIND" {
	inside /cuota/doors/door library-deep /cuota/doors/lib_linked.so
	inside /cuota/doors/door loading-library-deep /cuota/doors/lib_loads.so
}

@test "glibc 2.31: every name, version and flag" { inside /cuota/doors/answers; }
@test "glibc 2.31: dlerror" {
	inside /cuota/doors/lookups errors
	[[ "$output" == *"good after bad: cuota, error: none"* ]]
}
@test "glibc 2.31: constructors and exit" { inside /cuota/doors/lifetimes ends; }
@test "glibc 2.31: fork" { inside /cuota/doors/lifetimes first-in-child; }
