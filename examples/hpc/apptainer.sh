#!/bin/bash
# Apptainer (or Singularity) on a GPU node: the host's library and ledger directory in the container.
#
#   examples/hpc/apptainer.sh pytorch.sif python train.py
#
# Apptainer drops LD_PRELOAD on its way in; a variable of the container must be given as --env.
set -euo pipefail

library=${CUOTA_LIBRARY:-/usr/lib/x86_64-linux-gnu/libcuota.so}
dir=${CUOTA_DIR:-/run/cuota}
[ -r "$library" ] || {
	echo "$0: $library cannot be read: the container would run uncapped" >&2
	exit 1
}

exec "${APPTAINER:-apptainer}" exec --nv \
	--bind "$library:/opt/cuota/libcuota.so:ro" --bind "$dir" \
	--env "LD_PRELOAD=/opt/cuota/libcuota.so" --env "CUOTA_DIR=$dir" \
	--env "CUOTA_GROUP=${CUOTA_GROUP:-auto}" \
	--env "CUOTA_MEM=${CUOTA_MEM:-8G}" --env "CUOTA_SM=${CUOTA_SM:-30}" \
	"$@"
