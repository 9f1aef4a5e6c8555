#!/usr/bin/env bats
# What docs/with-other-sharing.md says, on the simulated GPU: MPS, MIG, CUDA_VISIBLE_DEVICES, cgroups, users of
# a directory service. (MPS and PyTorch on a real card: tests/gpu/mps.sh, tests/gpu/containers.sh.)

load part.bash

setup_file()
{
	make_work sharing
}

teardown_file()
{
	[ -n "${work:-}" ] || return 0
	[ -n "${KEEP:-}" ] || rm -rf "$work"
}

setup()
{
	enter
	rm -rf ledgers/*
	: >"$CUOTA_SIM_STATE"
}

# under VARIABLES... -- COMMAND...: with the library.
under()
{
	local variables=()
	while [ "$1" != -- ]; do
		variables+=("$1")
		shift
	done
	shift
	env "${variables[@]}" LD_PRELOAD="$work/libcuota.so" "$@"
}

@test "MPS: kernels of two groups overlap, and each keeps to its cap of time" {
	export CUOTA_SIM_MPS=1
	under CUOTA_GROUP=a CUOTA_SM=30 CUOTA_MEM=4G -- ./take -s 4 -m 512 >a.log 2>&1 3>&- &
	under CUOTA_GROUP=b CUOTA_SM=60 CUOTA_MEM=8G -- ./take -s 4 -m 512 >b.log 2>&1 3>&- &
	wait
	within 22 33 "$(field busy_pct a.log)"
	within 45 63 "$(field busy_pct b.log)"
	[ "$(field total_mib a.log)" -eq 4096 ]
}

@test "MIG: a slice is a device of its own; a percentage is of the slice, and its processes are under a quota" {
	export CUOTA_SIM_MIG=1
	under CUOTA_GROUP=m CUOTA_MEM=50% -- ./take -h 5 >m.log 2>&1 3>&- &
	wait_for 10 grep -q got_mib m.log
	[ "$(field total_mib m.log)" -eq $((40 * 1024 / 2)) ]
	[ "$(status | jq '[.gpus[].unattached[]?] | length')" -eq 0 ]
	[ "$(status | jq -r '[.gpus[] | select(.groups | length > 0)][0].uuid')" = \
		"$(status | jq -r '.gpus[0].uuid')" ]
	wait
}

@test "CUDA_VISIBLE_DEVICES: caps follow the card, not its place in the list" {
	first=$(status | jq -r '.gpus[0].uuid')
	second=$(status | jq -r '.gpus[1].uuid')
	for visible in 1 "$second" 1,0; do
		CUDA_VISIBLE_DEVICES=$visible under CUOTA_MEM="$first=2G,$second=3G" -- ./take >out
		[ "$(field total_mib out)" -eq 3072 ]
	done
	CUDA_VISIBLE_DEVICES=1 under CUOTA_GROUP=v CUOTA_MEM=0=3G -- ./take -h 3 >by-index 3>&- &
	wait_for 10 grep -q got_mib by-index
	[ "$(status | jq -r '.gpus[] | select(.groups | length > 0) | .uuid')" = "$second" ]
	wait
}

@test "cgroups: CUOTA_GROUP=auto is the container's, the pod's or the job's name" {
	SLURM_JOB_ID=77 under CUOTA_GROUP=auto CUOTA_MEM=2G -- ./take -m 64 -h 3 >out 3>&- &
	wait_for 10 eval '[ "$(group_field slurm-77 .memory.cap_bytes)" = $((2 << 30)) ]'
	wait
	# Outside of any of those: the user.
	under CUOTA_GROUP=auto CUOTA_MEM=2G -- ./take -m 64 -h 3 >out 3>&- &
	wait_for 10 eval 'status | jq -e ".gpus[].groups[] | select(.name | test(\"^(uid-|cgns-|ctr-|slurm-|pod-)\"))"'
	wait
}

@test "LDAP: a user that only a directory service knows is in the policy by number" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	mkdir -p policy
	printf '[default]\nmem = 8G\n[user 31415]\nmem = 2G\n[unix-group 2718]\nmem = 3G\n' >policy/cuota.conf
	chmod 1777 ledgers
	export CUOTA_CONFIG=$work/policy/cuota.conf
	setpriv --reuid 31415 --regid 31415 --clear-groups env LD_PRELOAD="$work/libcuota.so" CUOTA_MEM=none ./take >out
	[ "$(field total_mib out)" -eq 2048 ]
	setpriv --reuid 27182 --regid 27182 --groups 2718 env LD_PRELOAD="$work/libcuota.so" CUOTA_MEM=none ./take >out
	[ "$(field total_mib out)" -eq 3072 ]
	setpriv --reuid 27182 --regid 27182 --clear-groups env LD_PRELOAD="$work/libcuota.so" CUOTA_MEM=none ./take >out
	[ "$(field total_mib out)" -eq 8192 ]
}

@test "other tools' variables are caps: HAMi's, KAI's" {
	under CUDA_DEVICE_MEMORY_LIMIT=2g CUDA_DEVICE_SM_LIMIT=30 -- ./take -s 2 >out
	[ "$(field total_mib out)" -eq 2048 ]
	within 22 33 "$(field busy_pct out)"
	under GPU_MEMORY_LIMIT=3221225472 -- ./take >out
	[ "$(field total_mib out)" -eq 3072 ]
	CUDA_VISIBLE_DEVICES=1 under CUDA_DEVICE_MEMORY_LIMIT_0=2g -- ./take >out
	[ "$(field total_mib out)" -eq 2048 ]
}
