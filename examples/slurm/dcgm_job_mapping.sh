#!/bin/sh
# Prolog= and Epilog= (the same file for both): tells dcgm-exporter which jobs are on which GPU, so that
# its metrics carry hpc_job. Start it with --hpc-job-mapping-dir=/run/dcgm-job-mapping. A file for each
# GPU's index, a line for each job: with shards there may be several.
dir=${DCGM_JOB_MAPPING_DIR:-/run/dcgm-job-mapping}

mkdir -p "$dir"
exec 9>"$dir/.lock"
flock 9
for gpu in $(echo "$SLURM_JOB_GPUS" | tr , ' '); do
	file=$dir/$gpu
	[ ! -e "$file" ] || sed -i "/^$SLURM_JOB_ID\$/d" "$file"
	[ "$SLURM_SCRIPT_CONTEXT" != prolog_slurmd ] || echo "$SLURM_JOB_ID" >>"$file"
	[ -s "$file" ] || rm -f "$file"
done
