#!/bin/sh
# Epilog= for clusters without the plugin: frees what dead processes left, and says so if a process of
# the job still lives. It never takes memory away from one that lives.
cuota reap
cuota status --json --processes "slurm-$SLURM_JOB_ID" |
	jq -r '.gpus[].groups[].members[]? | "cuota: \(.pid) (\(.command)) of job has survived it"' |
	logger -t cuota
exit 0
