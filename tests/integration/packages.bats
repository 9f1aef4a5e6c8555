#!/usr/bin/env bats
# The Debian packages, built from the committed sources, judged by lintian, installed into a clean system of
# its own, used there on the simulated GPU, and removed without a trace.

setup_file()
{
	local missing=''
	root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	: "${BUILD:?the build directory}"
	export root
	for tool in dh:debhelper lintian:lintian debootstrap:debootstrap fakeroot:fakeroot; do
		command -v "${tool%:*}" >/dev/null || missing+=" ${tool#*:}"
	done
	[ -e /usr/include/slurm/spank.h ] || missing+=' libslurm-dev'
	if [ -n "$missing" ] && [ "$(id -u)" -eq 0 ]; then
		# shellcheck disable=SC2086 # a list of words
		apt-get -qq install -y --no-install-recommends $missing >/dev/null 2>&1 && missing=''
	fi
	[ -z "$missing" ] || skip "apt-get install$missing"
	[ "$(id -u)" -eq 0 ] || skip "needs root for a system of its own"
	[ -d "$root/.git" ] || [ -f "$root/.git" ] || skip "packages are built from a checkout"
	export debs=$BUILD-deb clean=/var/tmp/cuota-clean-system
	make -C "$root" --no-print-directory O="$BUILD" deb >"$BATS_FILE_TMPDIR/build.log" 2>&1 ||
		{ tail -40 "$BATS_FILE_TMPDIR/build.log" >&2; return 1; }
	if [ ! -e "$clean/ready" ]; then
		rm -rf "$clean"
		debootstrap --variant=minbase --include=libjansson4,libncursesw6,libmicrohttpd12 \
			bookworm "$clean" >"$BATS_FILE_TMPDIR/debootstrap.log" 2>&1 ||
			{ rm -rf "$clean"; skip "no Debian mirror in reach: $(tail -1 "$BATS_FILE_TMPDIR/debootstrap.log")"; }
		touch "$clean/ready"
	fi
	rm -rf "$clean/test"
	mkdir "$clean/test"
	cp -r "$BUILD/sim" "$BUILD/tests/tenant" "$debs"/*.deb "$clean/test/"
	rm -f "$clean/test/"*dbgsym*
}

# inside COMMAND: in the clean system, with a /proc and a /dev/shm that go away again
inside()
{
	unshare -m sh -c 'mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/dev/shm" && exec chroot "$0" sh -c "$1"' "$clean" "$1"
}

# Every name in the clean system but those that a package manager and a linker keep for themselves.
names()
{
	(cd "$clean" && find . -path ./test -prune -o -path ./proc -prune -o -path ./var/lib/dpkg -prune -o \
		-path ./var/cache -prune -o -path ./var/log -prune -o -print | grep -vx './etc/ld.so.cache' | sort)
}

@test "lintian has nothing to say" {
	run lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$debs"/*.changes
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "each package has its files and no other" {
	dpkg -c "$debs"/libcuota0_*.deb | grep -q 'usr/lib/[^/]*/libcuota.so.0$'
	dpkg -c "$debs"/libcuota0_*.deb | grep -q 'libcuota.so -> libcuota.so.0$'
	! dpkg -c "$debs"/libcuota0_*.deb | grep -Eq ' ./(usr/bin|etc)/.'
	dpkg -c "$debs"/cuota_*.deb | grep -q ' ./usr/bin/cuota$'
	dpkg -c "$debs"/cuota_*.deb | grep -q ' ./usr/lib/tmpfiles.d/cuota.conf$'
	dpkg -c "$debs"/cuota-exporter_*.deb | grep -q 'systemd/system/cuota-exporter.service$'
	dpkg -c "$debs"/slurm-spank-cuota_*.deb | grep -q 'slurm-wlm/cuota_spank.so$'
	dpkg -c "$debs"/slurm-spank-cuota_*.deb | grep -q ' ./etc/slurm/plugstack.conf.d/cuota.conf$'
}

@test "installed into a clean system, a quota holds there" {
	names >"$BATS_FILE_TMPDIR/before"
	inside 'cd /test && dpkg -i libcuota0_*.deb libcuota-dev_*.deb cuota_*.deb cuota-exporter_*.deb'
	run inside 'touch /test/go; LD_LIBRARY_PATH=/test/sim cuota run --mem 2G -- /test/tenant run 1000000 1 100000 /test/ready /test/go'
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *refusal=2* ]]
	taken=$(sed -n 's/.*taken_bytes=\([0-9]*\).*/\1/p' <<<"$output")
	[ "$taken" -gt $((1 << 30)) ] && [ "$taken" -lt $((2 << 30)) ]
	# By the bare name, as an image's ENV has it.
	run inside 'touch /test/go; LD_PRELOAD=libcuota.so CUOTA_MEM=2G LD_LIBRARY_PATH=/test/sim /test/tenant run 1000000 1 100000 /test/ready /test/go'
	[[ $output == *refusal=2* ]]
}

@test "the installed command works there: doctor, usage, exporter" {
	inside 'LD_LIBRARY_PATH=/test/sim cuota doctor --json' | grep -q '"the caps hold, by dlsym and cuGetProcAddress'
	inside 'cuota config check'
	inside 'cuota usage --since 1h --by command' | grep -q tenant
	inside 'cuota exporter --listen 127.0.0.1:29459 2>/dev/null & sleep 3; kill $!; wait $!' 3>&- &
	sleep 1
	curl -sf http://127.0.0.1:29459/metrics | grep -q '^cuota_build_info'
	wait $!
}

@test "removed, nothing is left" {
	inside 'dpkg --purge cuota-exporter cuota libcuota-dev libcuota0'
	names >"$BATS_FILE_TMPDIR/after"
	diff "$BATS_FILE_TMPDIR/before" "$BATS_FILE_TMPDIR/after"
}
