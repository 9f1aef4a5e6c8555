#!/bin/bash
# MPI ranks on one GPU: one cap of 24 GiB for all of them together, of which none takes more than 8.
#
#   examples/hpc/mpirun.sh -n 4 ./simulation input.nml
#
# Open MPI passes LD_PRELOAD to ranks of other nodes only when told (-x); there the ledgers are that node's.
set -euo pipefail

export CUOTA_GROUP=mpi-${SLURM_JOB_ID:-$$}
export CUOTA_MEM=${CUOTA_MEM:-24G}
export CUOTA_MEM_PER_PROCESS=${CUOTA_MEM_PER_PROCESS:-8G}
library=${CUOTA_LIBRARY:-/usr/lib/x86_64-linux-gnu/libcuota.so}
[ -r "$library" ] || {
	echo "$0: $library cannot be read: the ranks would run uncapped" >&2
	exit 1
}

exec mpirun -x LD_PRELOAD="$library${LD_PRELOAD:+:$LD_PRELOAD}" -x CUOTA_GROUP -x CUOTA_MEM \
	-x CUOTA_MEM_PER_PROCESS ${CUOTA_DIR:+-x CUOTA_DIR} "$@"
