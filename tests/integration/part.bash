# What the parts have in common: packages, a place to work, the simulated GPU, waiting, stopping.
#
# A part is one system, started for real on the loopback interface by its setup_file and stopped by its
# teardown_file. Everything a part writes is under $work, readable by the test users.
# shellcheck shell=bash disable=SC2034,SC2119,SC2120 # used by the parts

root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
examples=$root/examples
BUILD=${BUILD:-$root/build}

# What keeps the whole part from running here: its tests skip with the reason. (bats 1.8 takes a skip in
# setup_file for a failure.)
cannot()
{
	export PART_CANNOT=$1
	return 1
}

# In each setup().
enter()
{
	[ -z "${PART_CANNOT:-}" ] || skip "$PART_CANNOT"
	cd "$work" || return 1
}

# The part's packages: a group of tests/install-deps.
need()
{
	local said
	said=$("$root/tests/install-deps" "$@" 2>&1) || cannot "$(tail -1 <<<"$said")"
}

# The npm packages of npm/package.json, once for all parts, under the build directory.
need_npm()
{
	npm_dir=$BUILD/integration
	export npm_dir
	if ! mkdir -p "$npm_dir" 2>/dev/null || [ ! -w "$npm_dir" ]; then
		cannot "$npm_dir cannot be written"
		return
	fi
	if ! cmp -s "$root/tests/integration/npm/package.json" "$npm_dir/package.json"; then
		cp "$root/tests/integration/npm/package.json" "$npm_dir/"
		if ! (cd "$npm_dir" && timeout 120 npm install --no-audit --no-fund --no-package-lock) >"$npm_dir/log" 2>&1; then
			rm "$npm_dir/package.json"
			cannot "npm packages cannot be installed: $(tail -1 "$npm_dir/log")"
		fi
	fi
}

need_root()
{
	[ "$(id -u)" -eq 0 ] || cannot "needs root"
}

# Not in /tmp: Slurm's job_container/tmpfs and other private mounts hide it.
make_work()
{
	work=$(mktemp -d "/var/tmp/cuota-it-$1.XXXXXX")
	chmod 755 "$work"
	export work
	cp -r "$BUILD/libcuota.so" "$BUILD/sim" "$BUILD/tests/take" "$work/"
	ln -sfn "$BUILD/cuota" "$work/cuota"
	mkdir "$work/ledgers"
	chmod 1777 "$work/ledgers"
	# Every process of the part sees the same simulated devices.
	export CUOTA_SIM_STATE=$work/gpu CUOTA_SIM_DEVICES=2 CUOTA_SIM_MEMORY=${CUOTA_SIM_MEMORY:-40G}
	install -m 666 /dev/null "$CUOTA_SIM_STATE"
	export CUOTA_DIR=$work/ledgers LD_LIBRARY_PATH=$work/sim
	unset CUOTA_MEM CUOTA_SM CUOTA_GROUP CUOTA_WEIGHT LD_PRELOAD
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for()
{
	local until=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		if [ "$SECONDS" -ge "$until" ]; then
			echo "waited in vain for: $*" >&2
			return 1
		fi
		sleep 0.1
	done
}

# stop PID...: TERM, then KILL; only processes that the part started.
stop()
{
	local pid
	for pid in "$@"; do
		[ -n "$pid" ] || continue
		kill "$pid" 2>/dev/null || continue
		wait_for 5 eval "! kill -0 $pid" || kill -9 "$pid" 2>/dev/null || true
	done
}

# make_rootfs DIR: a root file system of this machine's own shell, a few tools and the guest.
make_rootfs()
{
	local tool file
	mkdir -p "$1"/{bin,etc,proc,sys,dev,tmp,run} "$1$work"
	for tool in bash sh env cat sleep ls id; do
		cp -L "$(command -v $tool)" "$1/bin/$tool"
	done
	cp "$work/take" "$1/bin/take"
	for file in "$1"/bin/*; do
		ldd "$file" 2>/dev/null | grep -oE '/[^ ]+' | grep -v "^$work"
	done | sort -u | while read -r file; do
		mkdir -p "$1${file%/*}"
		cp -L "$file" "$1$file"
	done
}

test_user()
{
	id -u "$1" >/dev/null 2>&1 || useradd -m -s /bin/bash "$1"
}

drop_test_users()
{
	# shellcheck disable=SC2046 # one word each
	stop $(pgrep -u cuota-it-a 2>/dev/null) $(pgrep -u cuota-it-b 2>/dev/null)
	userdel -rf cuota-it-a 2>/dev/null || true
	userdel -rf cuota-it-b 2>/dev/null || true
}

status()
{
	"$work/cuota" status --json --processes "$@"
}

# group_field GROUP JQ-EXPRESSION: of the group in any ledger; "" when there is no such group.
group_field()
{
	status | jq -r --arg name "$1" "[.gpus[].groups[] | select(.name == \$name)][0] // empty | $2"
}

# No process and not a byte in any ledger.
ledger_clean()
{
	[ "$(status | jq '[.gpus[].groups[] | .memory.used_bytes] | add // 0')" -eq 0 ]
}

# field NAME FILE: of take's "name=value" output.
field()
{
	sed -n "s/.*\b$1=\([0-9.]*\).*/\1/p" "$2" | tail -1
}

# within LOW HIGH VALUE
within()
{
	awk -v low="$1" -v high="$2" -v value="$3" 'BEGIN { exit !(value != "" && value >= low && value <= high) }' ||
		{ echo "$3 is not within $1..$2" >&2; return 1; }
}
