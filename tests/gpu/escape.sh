#!/usr/bin/env bash
# The escape table on a real card: every way to take device memory, 8 GiB asked for under a cap of 2 GiB, by one
# process and by four of one group. The judge is not under cuota and reads NVML. Alone on the card: what others
# take meanwhile would count.
#
#   tests/gpu/escape.sh [O]
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
O=$(realpath "${1:-build}")
[ -x "$O/tests/escape" ] || { echo "not built: make gpu-test"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export CUOTA_DIR=$dir
unset CUOTA_MEM CUOTA_GROUP CUOTA_LOG LD_PRELOAD

rc=0
for processes in 1 4; do
	"$O/tests/escape" table "$O/libcuota.so" 2048 "$processes" || rc=1
done
exit "$rc"
