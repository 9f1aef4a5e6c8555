#!/bin/sh
# Puts the library where pods mount it from, and makes the ledger directory; HOST is the node's root.
# The new file is renamed over the old one: programs that have the old one mapped keep it, a copy in
# place would crash them.
set -eu
host=${HOST:-/host}

mkdir -p "$host/opt/cuota" "$host/run/cuota"
chmod 755 "$host/opt/cuota"
chmod 1777 "$host/run/cuota"
cp /opt/cuota/libcuota.so "$host/opt/cuota/.libcuota.so.new"
chmod 755 "$host/opt/cuota/.libcuota.so.new"
mv -f "$host/opt/cuota/.libcuota.so.new" "$host/opt/cuota/libcuota.so"
echo /opt/cuota/libcuota.so >"$host/opt/cuota/ld.so.preload"
