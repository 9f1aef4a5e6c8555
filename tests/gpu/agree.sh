#!/usr/bin/env bash
# Ledger against driver for real frameworks: tests/gpu/agree.py with the first Python that has one.
#
#   tests/gpu/agree.sh [O] [OPTION OF agree.py...]
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
O=$(realpath "${1:-build}")
shift || true
if [ ! -x "$O/cuota" ] || [ ! -f "$O/libcuota.so" ]; then
	echo "not built: make"
	exit 77
fi
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
exec python3 tests/gpu/agree.py "$O" "$@"
