#!/usr/bin/env bash
# Two tenants in namespaces of their own (user, PID, mount, IPC, with a /dev/shm of their own), as a container engine would
# start them, share one ledger directory on the real card: caps of memory and SM time hold, each is seen from
# outside, a killed one leaves nothing.
#
#   tests/gpu/containers.sh [O]        exit 77: no namespaces here
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
O=$(realpath "${1:-build}")
work=$(mktemp -d)
trap 'kill "${pids[@]}" 2>/dev/null; rm -rf "$work"' EXIT
pids=()
chmod 755 "$work"
mkdir -m 1777 "$work/ledgers"
export CUOTA_DIR=$work/ledgers
# shellcheck source-path=SCRIPTDIR source=tenants.bash
. tests/gpu/tenants.bash

namespaces=(--user --map-root-user --pid --fork --ipc --mount --mount-proc)
if ! unshare "${namespaces[@]}" true 2>/dev/null; then
	namespaces=(--pid --fork --ipc --mount --mount-proc)
	if ! unshare "${namespaces[@]}" true 2>/dev/null; then
		echo "unshare makes no namespaces here"
		exit 77
	fi
	echo "no user namespaces here: PID, IPC and mount only"
fi

# container NAME VARIABLES... -- COMMAND: output in NAME.log; its PID outside in $!.
container()
{
	local name=$1 variables=()
	shift
	while [ "$1" != -- ]; do
		variables+=("$1")
		shift
	done
	shift
	env "${variables[@]}" CUOTA_GROUP="$name" LD_PRELOAD="$O/libcuota.so" unshare "${namespaces[@]}" --kill-child \
		sh -c "mount -t tmpfs tmpfs /dev/shm; echo pid=\$\$ >&2; exec $*" \
		>"$work/$name.log" 2>"$work/$name.err" &
	pids+=($!)
}

echo "guest for memory: $guest; namespaces: ${namespaces[*]}"

container a CUOTA_MEM=8G -- "$(hoard 60)"
container b CUOTA_MEM=16G -- "$(hoard 60)"
wait_for 30 grep -q got_mib "$work/a.log"
wait_for 30 grep -q got_mib "$work/b.log"
cat "$work"/[ab].log
check "a is PID 1 of its own namespace" grep -qx pid=1 "$work/a.err"
check "a sees 8 GiB" [ "$(field total_mib "$work/a.log")" = 8192 ]
check "a got what its cap allows, and no more" within 6500 8192 "$(field got_mib "$work/a.log")"
check "a was refused with out of memory" [ "$(field refused "$work/a.log")" = 2 ]
check "b sees 16 GiB" [ "$(field total_mib "$work/b.log")" = 16384 ]
check "b got what its cap allows, and no more" within 14500 16384 "$(field got_mib "$work/b.log")"
check "one ledger, both groups, from outside" test "$(group_used a)" -gt $((6500 << 20)) -a "$(group_used b)" -gt $((14500 << 20))
"$O/cuota" status

# The ledger against the driver, for each by what it holds.
if command -v nvidia-smi >/dev/null; then
	driver=$(nvidia-smi --query-compute-apps=used_memory --format=csv,noheader,nounits | paste -sd+ | bc 2>/dev/null)
	ledger=$((($(group_used a) + $(group_used b)) >> 20))
	echo "the driver says ${driver:-nothing} MiB for all processes, the ledger $ledger"
fi

kill -9 "$(pgrep -P "${pids[0]}" | head -1)" || finish
check "a killed: its charge is gone" wait_for 5 [ "$(group_used a)" -eq 0 ]
check "a killed: b goes on" test "$(group_used b)" -gt $((14500 << 20))
kill -9 "$(pgrep -P "${pids[1]}" | head -1)"
wait_for 5 ledger_clean
check "both killed: the ledger is clean" ledger_clean

if [ "$guest" = PyTorch ]; then
	container f CUOTA_MEM=8G -- "$(hoard 0) 0.5"
	wait "${pids[-1]}"
	cat "$work/f.log"
	check "set_per_process_memory_fraction(0.5) of 8 GiB is 4 GiB" within 3800 4096 "$(field got_mib "$work/f.log")"
fi

container solo -- "$(busy)"
wait "${pids[-1]}"
solo=$(field rate "$work/solo.log")
container c CUOTA_SM=30 -- "$(busy)"
container d CUOTA_SM=50 -- "$(busy)"
wait "${pids[-1]}" "${pids[-2]}"
for name in c d; do
	share=$(awk -v rate="$(field rate "$work/$name.log")" -v solo="$solo" 'BEGIN { print 100 * rate / solo }')
	echo "$name: $share % of solo speed"
	if [ $name = c ]; then
		check "30 % of SM time" within 27 31.5 "$share"
	else
		check "50 % of SM time, at the same time" within 46 51.5 "$share"
	fi
done
finish
