#!/bin/sh
# TaskProlog= for clusters where no SPANK plugin can be installed. What it prints as "export K=V" gets
# into the task's environment; so it knows shards, but has no options, and what it cannot do (OCI
# containers, a ceiling that the job cannot raise) docs/slurm.md lists.
library=${CUOTA_LIBRARY:-/usr/lib/x86_64-linux-gnu/libcuota.so}
dir=${CUOTA_DIR:-/run/cuota}
shards_per_gpu=10

[ -n "$SLURM_SHARDS_ON_NODE" ] || exit 0
if [ ! -r "$library" ]; then
	# The only way for a TaskProlog to stop a task that would run uncapped.
	echo "print cuota: $library cannot be read: the job would run uncapped"
	exit 1
fi
percent=$((SLURM_SHARDS_ON_NODE * 100 / shards_per_gpu))
[ "$percent" -le 100 ] || percent=100
echo "export LD_PRELOAD=$library${LD_PRELOAD:+:$LD_PRELOAD}"
echo "export CUOTA_DIR=$dir"
echo "export CUOTA_GROUP=slurm-$SLURM_JOB_ID"
echo "export CUOTA_MEM=$percent%"
echo "export CUOTA_SM=$percent"
