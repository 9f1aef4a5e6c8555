#!/bin/bash
# Enroot (and pyxis, which uses it): files that give every container of this host or user the library, the
# ledger directory and what the job's environment has. As root for /etc/enroot, or for oneself:
#
#   examples/hpc/enroot.sh ~/.config/enroot
set -euo pipefail

target=${1:-/etc/enroot}
library=${CUOTA_LIBRARY:-/usr/lib/x86_64-linux-gnu/libcuota.so}
mkdir -p "$target/mounts.d" "$target/environ.d"
cat >"$target/mounts.d/60-cuota.fstab" <<-END
	$library /opt/cuota/libcuota.so none x-create=file,bind,ro,nosuid,nodev
	/run/cuota /run/cuota none x-create=dir,bind,rw,nosuid,nodev
END
cat >"$target/environ.d/60-cuota.env" <<-'END'
	LD_PRELOAD=/opt/cuota/libcuota.so
	CUOTA_DIR=/run/cuota
END
