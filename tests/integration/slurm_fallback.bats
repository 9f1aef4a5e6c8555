#!/usr/bin/env bats
# Slurm without the plugin (TaskProlog), and with private /tmp and /dev/shm for each job
# (job_container/tmpfs), where a ledger in /dev/shm would be a private one.

load part.bash
load slurm.bash

setup_file()
{
	slurm_needs || return 0
	make_work slurm-fallback
	test_user cuota-it-a
	mkdir "$work/private" "$work/out"
	chmod 1777 "$work/out"
	sed -e "s|\${CUOTA_LIBRARY:-[^}]*}|$work/libcuota.so|" -e "s|\${CUOTA_DIR:-[^}]*}|$CUOTA_DIR|" \
		"$examples/slurm/task_prolog.sh" >"$work/task_prolog.sh"
	sed -e "s|^cuota |$work/cuota |" -e "s|/bin/sh|&\nexport CUOTA_DIR=$CUOTA_DIR|" -e "s|logger -t cuota|cat >>$work/out/epilog|" \
		"$examples/slurm/epilog.sh" >"$work/epilog.sh"
	chmod +x "$work/task_prolog.sh" "$work/epilog.sh"
	slurm_start_without_plugin
}

slurm_start_without_plugin()
{
	slurm_munge
	slurm_configure "TaskProlog=$work/task_prolog.sh" "Epilog=$work/epilog.sh" \
		JobContainerType=job_container/tmpfs
	sed -i 's/^PrologFlags=.*/PrologFlags=Contain/' "$SLURM_CONF"
	: >"$work/plugstack.conf"
	printf 'AutoBasePath=true\nBasePath=%s\n' "$work/private" >"$work/job_container.conf"
	slurmctld -f "$SLURM_CONF" -c
	slurm_node_start
}

teardown_file()
{
	[ -n "${work:-}" ] || return 0
	slurm_stop
	umount -R "$work/private" 2>/dev/null || true
	drop_test_users
	[ -n "${KEEP:-}" ] || rm -rf "$work"
}

setup()
{
	enter
}

@test "a job sees an empty /dev/shm of its own, as this cluster is set up" {
	touch "/dev/shm/cuota-it-$$"
	run srun ls -A /dev/shm
	rm -f "/dev/shm/cuota-it-$$"
	[ "$status" -eq 0 ]
	[[ $output != *cuota-it* ]]
}

@test "TaskProlog makes a cap of a job's shards" {
	run as cuota-it-a srun --gres=shard:3 env
	[ "$status" -eq 0 ]
	grep -qx "LD_PRELOAD=$work/libcuota.so" <<<"$output"
	grep -qx CUOTA_MEM=30% <<<"$output"
	grep -qx CUOTA_SM=30 <<<"$output"
	grep -qE '^CUOTA_GROUP=slurm-[0-9]+$' <<<"$output"
}

@test "TaskProlog leaves a job without shards alone" {
	run srun env
	! grep -q ^CUOTA_MEM= <<<"$output"
}

@test "TaskProlog stops a task that would run uncapped" {
	mv libcuota.so away.so
	run srun --gres=shard:3 bash -c 'echo ran'
	mv away.so libcuota.so
	[ "$status" -ne 0 ]
	[[ $output != *ran* ]]
}

@test "two jobs in private mounts share one ledger, and each meets its cap" {
	a=$(as cuota-it-a sbatch --parsable -o "$work/out/%j" --gres=shard:3 --wrap "srun $work/take -h 15")
	b=$(as cuota-it-a sbatch --parsable -o "$work/out/%j" --gres=shard:5 --wrap "srun $work/take -h 15")
	wait_for 20 grep -q got_mib "out/$a"
	wait_for 20 grep -q got_mib "out/$b"
	within 11000 12288 "$(field got_mib "out/$a")"
	within 19000 20480 "$(field got_mib "out/$b")"
	[ "$(status | jq '[.gpus[0].groups[].name] | length')" -eq 2 ]
	scancel "$a" "$b"
	wait_for 20 job_gone "$a"
	wait_for 20 job_gone "$b"
	wait_for 5 ledger_clean
	wait_for 5 grep -q "slurm-$a" out/epilog
}
