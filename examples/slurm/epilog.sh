#!/bin/sh
# Epilog= for clusters without the plugin: books what the job's dead processes left, logs what the job
# used, and says so if a process of it still lives. No memory is taken from a process that lives.
cuota usage --by job --since 30d --format csv | grep "slurm-$SLURM_JOB_ID" | logger -t cuota
cuota status --json --processes |
	jq -r --arg job "slurm-$SLURM_JOB_ID" '.gpus[].groups[] | select(.name == $job) | .members[] |
		"\($job) has ended, and its process \(.pid) (\(.command)) lives"' |
	logger -t cuota
exit 0
