#!/usr/bin/env bash
# Under an MPS daemon of the user's own: memory and SM caps hold, and views show the cap (MPS's own limit leaves the total as
# it is). The daemon and everything of it is in a directory of this test.
#
#   tests/gpu/mps.sh [O]        exit 77: no MPS here
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
O=$(realpath "${1:-build}")
if ! command -v nvidia-cuda-mps-control >/dev/null; then
	echo "nvidia-cuda-mps-control is not installed"
	exit 77
fi
work=$(mktemp -d)
pids=()
mkdir -p "$work/pipe" "$work/log" "$work/ledgers"
chmod 1777 "$work/ledgers"
export CUDA_MPS_PIPE_DIRECTORY=$work/pipe CUDA_MPS_LOG_DIRECTORY=$work/log CUOTA_DIR=$work/ledgers
# shellcheck source-path=SCRIPTDIR source=tenants.bash
. tests/gpu/tenants.bash

# shellcheck disable=SC2317 # by the trap
end()
{
	kill "${pids[@]}" 2>/dev/null
	echo quit -t 5 | timeout 15 nvidia-cuda-mps-control >/dev/null 2>&1
	rm -rf "$work"
}
trap end EXIT

if ! nvidia-cuda-mps-control -d; then
	echo "the MPS daemon does not start"
	exit 77
fi

# client NAME VARIABLES... -- COMMAND
client()
{
	local name=$1 variables=()
	shift
	while [ "$1" != -- ]; do
		variables+=("$1")
		shift
	done
	shift
	# shellcheck disable=SC2048,SC2086 # a command line
	env "${variables[@]}" CUOTA_GROUP="$name" LD_PRELOAD="$O/libcuota.so" $* >"$work/$name.log" 2>"$work/$name.err" &
	pids+=($!)
}

client a CUOTA_MEM=8G -- "$(hoard 20)"
client b CUOTA_MEM=16G -- "$(hoard 20)"
wait_for 30 grep -q got_mib "$work/a.log"
wait_for 30 grep -q got_mib "$work/b.log"
cat "$work"/[ab].log
check "an MPS server serves them" wait_for 5 eval 'echo get_server_list | nvidia-cuda-mps-control | grep -q "[0-9]"'
check "a sees 8 GiB" [ "$(field total_mib "$work/a.log")" = 8192 ]
check "a got what its cap allows, and no more" within 6500 8192 "$(field got_mib "$work/a.log")"
check "a was refused with out of memory" [ "$(field refused "$work/a.log")" = 2 ]
check "b sees 16 GiB" [ "$(field total_mib "$work/b.log")" = 16384 ]
check "b got what its cap allows, and no more" within 14500 16384 "$(field got_mib "$work/b.log")"
"$O/cuota" status
kill "${pids[@]}" 2>/dev/null
wait "${pids[@]}" 2>/dev/null
check "both ended: the ledger is clean" wait_for 5 ledger_clean

pids=()
client solo -- "$(busy)"
wait "${pids[-1]}"
solo=$(field rate "$work/solo.log")
client c CUOTA_SM=30 -- "$(busy)"
client d CUOTA_SM=50 -- "$(busy)"
wait "${pids[-1]}" "${pids[-2]}"
for name in c d; do
	share=$(awk -v rate="$(field rate "$work/$name.log")" -v solo="$solo" 'BEGIN { print 100 * rate / solo }')
	echo "$name: $share % of solo speed"
	# Kernels of two clients run side by side here: each may be slower than alone by itself, never faster than its cap.
	if [ $name = c ]; then
		check "30 % of SM time is not passed" within 20 32 "$share"
	else
		check "50 % of SM time is not passed" within 35 52 "$share"
	fi
done
finish
