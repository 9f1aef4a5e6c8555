#!/usr/bin/env bats
# Containers with PID, mount, IPC and network namespaces of their own, on one simulated GPU and one
# ledger directory: podman with runc, started by the scripts under examples/containers.

load part.bash
load containers.bash

setup_file()
{
	need containers || return 0
	need_root || return 0
	make_work containers
	containers_setup
}

teardown_file()
{
	[ -n "${work:-}" ] || return 0
	containers_stop
	drop_test_users
	[ -n "${KEEP:-}" ] || rm -rf "$work"
}

setup()
{
	enter
}

teardown()
{
	engine rm -fa -t 0 >/dev/null 2>&1 || true
}

@test "run.sh: the container meets its caps, and sees the memory cap as the card's size" {
	CUOTA_MEM=2G example run.sh guest take -s 2 >out
	[ "$(field total_mib out)" -eq 2048 ]
	within 1000 2048 "$(field got_mib out)"
	[ "$(field refused out)" -eq 2 ]
	within 25 35 "$(field busy_pct out)"
	wait_for 5 ledger_clean
}

@test "two containers are two groups in one ledger, each seen from the host" {
	CUOTA_MEM=2G OPTIONS="$OPTIONS -d --name a" example run.sh guest take -h 30
	CUOTA_MEM=3G OPTIONS="$OPTIONS -d --name b" example run.sh guest take -h 30
	wait_for 10 eval '[ "$(status | jq "[.gpus[].groups[]] | length")" -eq 2 ]'
	for name in a b; do
		id=$(engine inspect --format '{{.Id}}' $name)
		wait_for 10 eval 'engine logs '$name' | grep -q got_mib'
		engine logs $name >out.$name
		[ "$(group_field "ctr-${id:0:12}" .memory.cap_bytes)" -eq $(($(field total_mib out.$name) << 20)) ]
		[ "$(group_field "ctr-${id:0:12}" '.members[0].pid')" -eq 1 ]
	done
	within 1000 2048 "$(field got_mib out.a)"
	within 2000 3072 "$(field got_mib out.b)"
}

@test "a killed container leaves nothing behind, and can be started again" {
	CUOTA_MEM=2G OPTIONS="$KEEP_OPTIONS -d --name a" example_kept run.sh guest take -h 30
	wait_for 10 eval 'engine logs a | grep -q got_mib'
	engine kill -s KILL a
	wait_for 5 ledger_clean
	engine start a
	wait_for 10 eval '[ "$(engine logs a | grep -c got_mib)" -eq 2 ]'
	engine logs a >out
	[ "$(sed -n 1p out)" = "$(sed -n 2p out)" ]
}

@test "a crashing container that is always restarted finds its whole cap each time" {
	CUOTA_MEM=2G OPTIONS="$KEEP_OPTIONS -d --name a --restart=on-failure:3" \
		example_kept run.sh guest sh -c 'take -m 1200 -h 60 & sleep 1; kill -9 $!; wait; exit 1'
	wait_for 20 eval '[ "$(engine logs a | grep -c got_mib=1200)" -ge 3 ]'
}

@test "containers that name one group share one cap" {
	OPTIONS="$OPTIONS -d --name a --env CUOTA_GROUP=team" CUOTA_MEM=3G example_group run.sh guest take -m 1200 -h 30
	wait_for 10 eval 'engine logs a | grep -q got_mib=1200'
	OPTIONS="$OPTIONS --env CUOTA_GROUP=team" CUOTA_MEM=3G example_group run.sh guest take >out
	# 3 GiB less the first one's 1200 MiB and less two contexts.
	within 300 1400 "$(field got_mib out)"
	[ "$(field total_mib out)" -eq 3072 ]
}

@test "read-only root, no capabilities, not root: the cap holds" {
	OPTIONS="$OPTIONS --read-only --user 1000:1000 --cap-drop=all --security-opt=no-new-privileges" \
		CUOTA_MEM=2G example run.sh guest take >out
	within 1000 2048 "$(field got_mib out)"
}

@test "a ledger directory that cannot be written: the cap still holds, in this container alone" {
	ledgers_mode=ro CUOTA_MEM=2G example run.sh guest take >out
	within 1000 2048 "$(field got_mib out)"
}

@test "a ledger directory that is not there: the cap still holds; with CUOTA_STRICT=1 CUDA does not start" {
	CUOTA_MEM=2G OPTIONS="$OPTIONS --env CUOTA_DIR=/nowhere" example run.sh guest take >out
	within 1000 2048 "$(field got_mib out)"
	CUOTA_MEM=2G OPTIONS="$OPTIONS --env CUOTA_DIR=/nowhere --env CUOTA_STRICT=1" \
		run example run.sh guest take
	[ "$status" -ne 0 ]
	[[ $output != *got_mib* ]]
}

@test "the host's PID and IPC namespaces make no difference" {
	OPTIONS="$OPTIONS --pid=host --ipc=host" CUOTA_MEM=2G example run.sh guest take >out
	within 1000 2048 "$(field got_mib out)"
	wait_for 5 ledger_clean
}

@test "run-cdi.sh: a quota is a device" {
	cdi_file
	example run-cdi.sh guest take -s 2 >out
	[ "$(field total_mib out)" -eq 8192 ]
	within 25 35 "$(field busy_pct out)"
	example run-cdi.sh guest env >out
	grep -qx CUOTA_MEM=8G out
	grep -qx CUOTA_SM=30 out
	grep -qx LD_PRELOAD=/usr/lib/cuota/libcuota.so out
}

@test "CDI by ld.so.preload: holds without the environment's LD_PRELOAD, and keeps the image's own" {
	echo /usr/lib/cuota/libcuota.so >preload
	cdi_file --ld-so-preload "$work/preload"
	example run-cdi.sh guest sh -c 'unset LD_PRELOAD; exec take' >out
	[ "$(field total_mib out)" -eq 8192 ]
	OPTIONS="$OPTIONS --env LD_PRELOAD=/lib/other.so" example run-cdi.sh guest env >out
	grep -qx LD_PRELOAD=/lib/other.so out
}

@test "CDI: quotas of one's own, and what is no quota" {
	cdi_file --quota alice:mem=3G,weight=200,group=alice
	OPTIONS="$OPTIONS --device cuota.dev/quota=alice" engine_run guest env >out
	grep -qx CUOTA_MEM=3G out
	grep -qx CUOTA_GROUP=alice out
	grep -qx CUOTA_WEIGHT=200 out
	run "$work/cuota" cdi generate --quota alice:mem=3
	[ "$status" -eq 1 ]
	[[ $output == *"mem=3: no unit"* ]]
	run "$work/cuota" cdi generate --ld-so-preload /dev/null
	[ "$status" -eq 1 ]
}

@test "Dockerfile: the image caps whatever runs in it, also with a cleaned environment" {
	engine build --isolation=chroot --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 --network=host \
		--build-arg BASE=localhost/guest -t baked -f "$examples/containers/Dockerfile" "$work" >out.build 2>&1 ||
		{ cat out.build; return 1; }
	OPTIONS="$OPTIONS -v $work/ledgers:/run/cuota --env CUOTA_MEM=2G" engine_run baked take >out
	[ "$(field total_mib out)" -eq 2048 ]
	# ... and a program that never uses CUDA is left in peace.
	OPTIONS="$OPTIONS" run engine_run baked sh -c 'ls / >/dev/null && echo fine'
	[ "$output" = fine ]
}

@test "rootless podman: a user's own containers are capped" {
	rootless_ready
	rootless_run take >out
	[ "$(field total_mib out)" -eq 2048 ]
	within 1000 2048 "$(field got_mib out)"
}
