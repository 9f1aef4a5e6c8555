#!/usr/bin/env bats
# The SPANK plugin under a real slurmctld, slurmd and munge: options, shards, two users on one card,
# what happens when jobs end badly.

load part.bash
load slurm.bash

setup_file()
{
	slurm_needs || return 0
	make_work slurm
	test_user cuota-it-a
	test_user cuota-it-b
	slurm_start
}

teardown_file()
{
	[ -n "${work:-}" ] || return 0
	slurm_stop
	drop_test_users
	[ -n "${KEEP:-}" ] || rm -rf "$work"
}

setup()
{
	enter
}

# The user's job script that runs a command line of take, from examples/slurm.
submit()
{
	local user=$1 script=$2
	shift 2
	as "$user" sbatch --parsable --output="$work/out/%j" "$script" "$@"
}

# bundle DIR with-library|without-library: an OCI bundle with the guest in it.
bundle()
{
	local mounts=''
	rm -rf "$1"
	mkdir -p "$1"
	make_rootfs "$1/rootfs"
	(cd "$1" && runc spec)
	[ "$2" != with-library ] || mounts="$work/libcuota.so"
	jq --arg library "$mounts" --arg work "$work" '.process.terminal = false | .process.rlimits = [] |
		.mounts += [([$library, "\($work)/sim", "\($work)/ledgers", "\($work)/policy", "\($work)/gpu"][] | select(. != "") |
			{destination: ., source: ., type: "bind", options: ["bind", "rw"]})]' \
		"$1/config.json" >"$1/new.json"
	mv "$1/new.json" "$1/config.json"
}

@test "srun, sbatch and salloc list the options" {
	for command in srun sbatch salloc; do
		run $command --help
		[[ $output == *--gpu-mem-cap=SIZE*--gpu-sm-cap=PERCENT*--gpu-weight=N* ]]
	done
}

@test "a cap that makes no sense is refused before anything is submitted" {
	for cap in 8 0 -1 8Q "" 8Gx; do
		run srun "--gpu-mem-cap=$cap" true
		[ "$status" -ne 0 ]
		[[ $output == *"--gpu-mem-cap=$cap: "* ]]
	done
	run sbatch --gpu-sm-cap=130 --wrap true
	[ "$status" -ne 0 ]
	[[ $output == *--gpu-sm-cap=130:* ]]
	[ -z "$(squeue -h)" ]
}

@test "the options become the job's environment" {
	run srun --gpu-mem-cap=8G --gpu-sm-cap=30 --gpu-weight=50 --gres=gpu:1 env
	[ "$status" -eq 0 ]
	grep -qx "LD_PRELOAD=$work/libcuota.so" <<<"$output"
	grep -qx "CUOTA_DIR=$CUOTA_DIR" <<<"$output"
	grep -qx CUOTA_MEM=8192M <<<"$output"
	grep -qx CUOTA_SM=30.00% <<<"$output"
	grep -qx CUOTA_WEIGHT=50 <<<"$output"
	grep -qE '^CUOTA_GROUP=slurm-[0-9]+$' <<<"$output"
}

@test "a job that asks for nothing is left alone" {
	run srun --gres=gpu:1 env
	[ "$status" -eq 0 ]
	! grep -qE '^(LD_PRELOAD|CUOTA_MEM|CUOTA_GROUP)=' <<<"$output"
}

@test "shards become bytes and percent of their GPU" {
	run srun --gres=shard:5 env
	grep -qx CUOTA_MEM=20480M <<<"$output"
	grep -qx CUOTA_SM=50.00% <<<"$output"
}

@test "of shards, option and the user's own variable the strictest holds" {
	run srun --gres=shard:5 --gpu-mem-cap=4G --gpu-sm-cap=80 env
	grep -qx CUOTA_MEM=4096M <<<"$output"
	grep -qx CUOTA_SM=50.00% <<<"$output"
	CUOTA_MEM=1G run srun --gres=shard:5 --gpu-mem-cap=4G env
	grep -qx CUOTA_MEM=1024M <<<"$output"
	CUOTA_MEM=39G run srun --gres=shard:5 env
	grep -qx CUOTA_MEM=20480M <<<"$output"
}

@test "the user's LD_PRELOAD is kept after ours, and ours is there once" {
	cp "$work/libcuota.so" "$work/other.so"
	LD_PRELOAD="/old/libcuota.so.0 $work/other.so" run srun --gpu-mem-cap=1G env
	grep -qx "LD_PRELOAD=$work/libcuota.so:$work/other.so" <<<"$output"
}

@test "#SBATCH options reach the batch script and its steps, all in one group" {
	cat >job <<-'END'
	#!/bin/bash
	#SBATCH --gpu-mem-cap=4G
	echo "batch $CUOTA_MEM $CUOTA_GROUP"
	srun bash -c 'echo "step $CUOTA_MEM $CUOTA_GROUP"'
	END
	run sbatch --wait -o out.batch job
	[ "$status" -eq 0 ]
	id=${output##* }
	grep -qx "batch 4096M slurm-$id" out.batch
	grep -qx "step 4096M slurm-$id" out.batch
}

@test "a step with fewer shards than its job is a group of its own" {
	cat >job <<-'END'
	#!/bin/bash
	#SBATCH --gres=shard:4
	echo "batch $CUOTA_MEM $CUOTA_GROUP"
	srun --gres=shard:1 bash -c 'echo "step $CUOTA_MEM $CUOTA_GROUP"'
	srun bash -c 'echo "all $CUOTA_MEM $CUOTA_GROUP"'
	END
	run sbatch --wait -o out.step job
	id=${output##* }
	grep -qx "batch 16384M slurm-$id" out.step
	grep -qx "step 4096M slurm-$id.0" out.step
	grep -qx "all 16384M slurm-$id" out.step
}

@test "a job submitted by a job is a group of its own, and its own option counts" {
	# Slurm passes a job's plugin options on to what it submits; shards it does not.
	cat >job <<-'END'
	#!/bin/bash
	#SBATCH --gres=shard:1
	sbatch --wait -o out.nested.1 --wrap 'echo "x $CUOTA_MEM $CUOTA_GROUP"'
	sbatch --wait -o out.nested.2 --gpu-mem-cap=6G --wrap 'echo "$CUOTA_MEM $CUOTA_GROUP"'
	END
	run sbatch --wait -o out.outer job
	id=${output##* }
	grep -qx "x  " out.nested.1
	grep -qE "^6144M slurm-[0-9]+$" out.nested.2
	! grep -q "slurm-$id\$" out.nested.2
}

@test "two users on one card by shard: each meets its own cap, and sees it as the card's size" {
	mkdir -p out && chmod 1777 out
	a=$(submit cuota-it-a "$examples/slurm/shards.sbatch" "$work/take" -h 20)
	b=$(as cuota-it-b sbatch --parsable --output="$work/out/%j" --gres=shard:5 --gpu-mem-cap=8G \
		"$examples/slurm/cap.sbatch" "$work/take" -h 20)
	wait_for 20 grep -q got_mib "out/$a"
	wait_for 20 grep -q got_mib "out/$b"
	# 3 of 10 shards of 40 GiB, and 8 GiB; what a bare context takes is the group's, too.
	[ "$(field total_mib "out/$a")" -eq 12288 ]
	within 11000 12288 "$(field got_mib "out/$a")"
	[ "$(field total_mib "out/$b")" -eq 8192 ]
	within 7000 8192 "$(field got_mib "out/$b")"
	[ "$(field refused "out/$a")" -eq 2 ]
	[ "$(field refused "out/$b")" -eq 2 ]
	[ "$(group_field "slurm-$a" .memory.cap_bytes)" -eq $((12288 << 20)) ]
	[ "$(group_field "slurm-$a" .owner_uid)" -eq "$(id -u cuota-it-a)" ]
	[ "$(group_field "slurm-$b" .memory.cap_bytes)" -eq $((8192 << 20)) ]
	[ "$(status | jq '[.gpus[] | select(.groups | length > 0)] | length')" -eq 1 ]
	as cuota-it-a scancel "$a"
	as cuota-it-b scancel "$b"
	wait_for 15 job_gone "$a"
	wait_for 15 job_gone "$b"
	wait_for 5 ledger_clean
}

@test "shards hold for the card's time, too" {
	mkdir -p out && chmod 1777 out
	a=$(submit cuota-it-a "$examples/slurm/shards.sbatch" "$work/take" -m 64 -s 4)
	b=$(as cuota-it-b sbatch --parsable --output="$work/out/%j" --gres=shard:4 --wrap "$work/take -m 64 -s 4")
	wait_for 30 job_gone "$a"
	wait_for 30 job_gone "$b"
	# Never more; somewhat less where the machine is too busy to launch that often.
	within 22 33 "$(field busy_pct "out/$a")"
	within 28 43 "$(field busy_pct "out/$b")"
	wait_for 5 ledger_clean
}

@test "a job that raises its own cap still meets the admin's file, which ends with the job" {
	cat >job <<-END
	#!/bin/bash
	#SBATCH --gpu-mem-cap=2G
	export CUOTA_MEM=none
	ls "$work/policy/conf.d"
	$work/take
	END
	run sbatch --wait -o out.raise job
	id=${output##* }
	grep -qx "slurm-$id.conf" out.raise
	within 1000 2048 "$(field got_mib out.raise)"
	wait_for 5 eval "[ ! -e $work/policy/conf.d/slurm-$id.conf ]"
}

@test "cuota usage bills by job" {
	mkdir -p out && chmod 1777 out
	a=$(submit cuota-it-a "$examples/slurm/cap.sbatch" "$work/take" -m 512 -s 2)
	wait_for 20 job_gone "$a"
	wait_for 10 eval '"$work/cuota" usage --by job --format csv | grep -q "slurm-'"$a"',"'
	"$work/cuota" usage --by job --format json | jq -e --arg job "slurm-$a" '
		.. | objects | select(.job? == $job) | .sm_seconds > 0.3 and .peak_bytes > 512 * 1048576'
}

@test "each task of an array is a group of its own" {
	mkdir -p out && chmod 1777 out
	id=$(as cuota-it-a sbatch --parsable --wait --output="$work/out/array-%a" \
		"$examples/slurm/array.sbatch" bash -c 'echo "$CUOTA_GROUP $CUOTA_MEM $0"')
	[ "$(cat out/array-* | cut -d' ' -f1 | sort -u | wc -l)" -eq 4 ]
	[ "$(cat out/array-* | cut -d' ' -f2 | sort -u)" = 8192M ]
}

@test "multi-gpu.sbatch: a job with two GPUs may ask for less on one of them" {
	mkdir -p out && chmod 1777 out
	id=$(as cuota-it-a sbatch --parsable --wait --output="$work/out/%j" "$examples/hpc/multi-gpu.sbatch" \
		bash -c "CUDA_VISIBLE_DEVICES=0,1 $work/take; CUDA_VISIBLE_DEVICES=0,1 $work/take -d 1")
	[ "$(grep -c got_mib "out/$id")" -eq 2 ]
	within 11000 12288 "$(sed -n 's/.*got_mib=\([0-9]*\).*/\1/p' "out/$id" | sed -n 1p)"
	within 3000 4096 "$(sed -n 's/.*got_mib=\([0-9]*\).*/\1/p' "out/$id" | sed -n 2p)"
}

@test "kill -9 of a task leaves nothing in the ledger" {
	mkdir -p out && chmod 1777 out
	a=$(submit cuota-it-a "$examples/slurm/cap.sbatch" "$work/take" -h 60)
	wait_for 20 grep -q got_mib "out/$a"
	pid=$(group_field "slurm-$a" '.members[] | select(.command == "take") | .pid')
	kill -9 "$pid"
	wait_for 15 job_gone "$a"
	wait_for 5 ledger_clean
}

@test "the end of a job whose slurmstepd was killed frees nothing of a task that lives" {
	mkdir -p out && chmod 1777 out
	a=$(submit cuota-it-a "$examples/slurm/cap.sbatch" "$work/take" -m 1024 -h 60)
	wait_for 20 grep -q got_mib "out/$a"
	pid=$(group_field "slurm-$a" '.members[] | select(.command == "take") | .pid')
	for step in $(pgrep -f "^slurmstepd: \[$a\."); do
		kill -9 "$step"
	done
	scancel "$a"
	wait_for 30 grep -q "job $a has ended, and its process $pid (take) lives and holds" slurmd.log
	kill -0 "$pid"
	[ "$(group_field "slurm-$a" .memory.used_bytes)" -ge $((1024 << 20)) ]
	[ -e "$work/policy/conf.d/survivor-slurm-$a.conf" ]
	kill -9 "$pid"
	wait_for 5 ledger_clean
	# The next job's end finds the process gone.
	srun true
	wait_for 10 eval "[ ! -e $work/policy/conf.d/survivor-slurm-$a.conf ]"
}

@test "without the library on the node the job fails, it does not run uncapped" {
	mv libcuota.so away.so
	run srun --gpu-mem-cap=1G bash -c 'echo ran'
	mv away.so libcuota.so
	[ "$status" -ne 0 ]
	[[ $output != *ran* ]]
	[[ $output == *"cuota: $work/libcuota.so: no such file or directory"* ]]
	# One mistake must not take a node away from everybody.
	wait_for 20 eval 'sinfo -h -o %t | grep -qE "idle|mix"'
}

@test "salloc: the shell here is left alone, what srun starts in it is capped" {
	run salloc --gpu-mem-cap=1G sh -c 'env; echo ---; srun env'
	[ "$status" -eq 0 ]
	[[ ${output%---*} != *LD_PRELOAD=* ]]
	grep -qx CUOTA_MEM=1024M <<<"${output#*---}"
	grep -qx "LD_PRELOAD=$work/libcuota.so" <<<"${output#*---}"
}

# with EXPRESSION COMMAND...: run with the plugin's line changed by sed.
with()
{
	local expression=$1
	shift
	cp plugstack.conf plugstack.saved
	sed -i "$expression" plugstack.conf
	run "$@"
	mv plugstack.saved plugstack.conf
}

@test "the admin's settings: weights of shards, percentages, every job with a GPU, strict" {
	with 's/$/ shard_sm=weight strict=1/' srun --gres=shard:5 env
	grep -qx CUOTA_WEIGHT=50 <<<"$output"
	grep -qx CUOTA_STRICT=1 <<<"$output"
	! grep -q ^CUOTA_SM= <<<"$output"
	with 's/ gpu_mem=[^ ]*//' srun --gres=shard:5 env
	grep -qx CUOTA_MEM=50.00% <<<"$output"
	with 's/$/ attach=gpu/' srun --gres=gpu:1 env
	grep -qx "LD_PRELOAD=$work/libcuota.so" <<<"$output"
	grep -qE '^CUOTA_GROUP=slurm-[0-9]+$' <<<"$output"
	! grep -q ^CUOTA_MEM= <<<"$output"
	with 's/$/ attach=gpu/' srun env
	! grep -q ^LD_PRELOAD= <<<"$output"
}

@test "bytes and a percentage of an unknown card: the policy carries one, and without it the job is refused" {
	with 's/ gpu_mem=[^ ]*//' srun --gres=shard:5 --gpu-mem-cap=39G "$work/take"
	[ "$status" -eq 0 ]
	echo "$output" >out.both
	within 18000 20480 "$(field got_mib out.both)"
	with 's/ gpu_mem=[^ ]*//; s/ policy_dir=[^ ]*//' srun --gres=shard:5 --gpu-mem-cap=39G bash -c 'echo ran'
	[ "$status" -ne 0 ]
	[[ $output == *"cannot be compared"* && $output != *ran* ]]
}

@test "a setting that does not exist stops the plugin, not silently" {
	with 's/$/ shards=10/' srun --gpu-mem-cap=1G true
	[ "$status" -ne 0 ]
	[[ $output == *"plugstack.conf: shards=10: no such argument"* ]]
}

@test "a job with more shards than a GPU is said to have is refused" {
	run srun --gres=shard:5 --export=ALL true
	[ "$status" -eq 0 ]
	sed -i 's/shards_per_gpu=10/shards_per_gpu=4/' plugstack.conf
	run srun --gres=shard:5 bash -c 'echo ran'
	sed -i 's/shards_per_gpu=4/shards_per_gpu=10/' plugstack.conf
	[ "$status" -ne 0 ]
	[[ $output != *ran* ]]
	[[ $output == *"5 shards"* ]]
}

@test "srun --container: the cap reaches the container and holds there" {
	bundle bundle with-library
	run srun --gres=gpu:1 --gpu-mem-cap=2G --container="$work/bundle" /bin/take
	[ "$status" -eq 0 ]
	echo "$output" >out.oci
	[ "$(field total_mib out.oci)" -eq 2048 ]
	within 1000 2048 "$(field got_mib out.oci)"
	wait_for 5 ledger_clean
}

@test "srun --container of a batch job: its shards, and its group" {
	bundle bundle with-library
	cat >job <<-END
	#!/bin/bash
	#SBATCH --gres=shard:2
	srun --container="$work/bundle" /bin/env
	END
	run sbatch --wait -o out.oci.batch job
	[ "$status" -eq 0 ]
	id=${output##* }
	grep -qx CUOTA_MEM=8192M out.oci.batch
	grep -qx "CUOTA_GROUP=slurm-$id" out.oci.batch
}

@test "srun --container: what would run uncapped is refused" {
	bundle bundle without-library
	run srun --gpu-mem-cap=2G --container="$work/bundle" /bin/env
	[ "$status" -ne 0 ]
	[[ $output == *"has no $work/libcuota.so"* ]]
	# Slurm does not tell a container of a direct srun what its shards are.
	bundle bundle with-library
	run srun --gres=shard:2 --container="$work/bundle" /bin/env
	[ "$status" -ne 0 ]
	[[ $output == *"cannot be passed on to a container"* ]]
}
