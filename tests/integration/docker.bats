#!/usr/bin/env bats
# The examples under a real Docker daemon of the test's own, with docker-compose: no bridge, no iptables.
# (What containers share whatever the engine is in containers.bats.)

load part.bash
load containers.bash

setup_file()
{
	need docker || return 0
	need_root || return 0
	make_work docker
	docker_start
	guest_options
	make_guest_image docker
}

teardown_file()
{
	[ -n "${work:-}" ] || return 0
	# shellcheck disable=SC2046 # one word each
	"$work/engine" rm -f $("$work/engine" ps -aq) >/dev/null 2>&1 || true
	stop "$(cat "$work/docker.pid" 2>/dev/null)"
	awk -v work="$work/" 'index($2, work) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r umount 2>/dev/null || true
	[ -n "${KEEP:-}" ] || rm -rf "$work"
}

setup()
{
	enter
}

docker_start()
{
	export DOCKER_HOST=unix://$work/docker.sock
	dockerd --host "$DOCKER_HOST" --data-root "$work/docker" --exec-root "$work/exec" --pidfile "$work/docker.pid" \
		--iptables=false --bridge=none --storage-driver vfs --default-ulimit nofile=1024:1024 \
		--containerd-namespace cuota-it --containerd-plugins-namespace cuota-it-plugins \
		>"$work/docker.log" 2>&1 3>&- </dev/null &
	cat >"$work/engine" <<-'END'
	#!/bin/sh
	exec /usr/bin/docker "$@"
	END
	chmod +x "$work/engine"
	wait_for 30 "$work/engine" info
}

teardown()
{
	# shellcheck disable=SC2046 # one word each
	"$work/engine" rm -f $("$work/engine" ps -aq) >/dev/null 2>&1 || true
}

@test "docker run by run.sh: the container meets its caps" {
	CUOTA_MEM=2G example run.sh guest take -s 2 >out
	[ "$(field total_mib out)" -eq 2048 ]
	within 1000 2048 "$(field got_mib out)"
	within 22 33 "$(field busy_pct out)"
	wait_for 5 ledger_clean
}

@test "two containers are two groups of one ledger, by their IDs" {
	for name in one two; do
		CUOTA_MEM=2G OPTIONS="$OPTIONS -d --name $name" example run.sh guest take -h 30
	done
	wait_for 20 eval '[ "$(status | jq "[.gpus[].groups[]] | length")" -eq 2 ]'
	for name in one two; do
		id=$(./engine inspect --format '{{.Id}}' $name)
		[ "$(group_field "ctr-${id:0:12}" .memory.cap_bytes)" -eq $((2 << 30)) ]
	done
	./engine kill one two
	wait_for 5 ledger_clean
}

@test "--restart: a container that crashes finds its whole cap each time" {
	CUOTA_MEM=2G OPTIONS="$OPTIONS -d --name one --restart=on-failure:3" \
		example_kept run.sh guest sh -c 'take -m 1200 -h 60 & sleep 1; kill -9 $!; wait; exit 1'
	wait_for 30 eval '[ "$(./engine logs one | grep -c got_mib=1200)" -ge 3 ]'
}

@test "docker build of the Dockerfile: the image caps what runs in it" {
	mkdir context && cp libcuota.so context/
	DOCKER_BUILDKIT=0 ./engine build --network=none --build-arg BASE=guest -t baked -f "$examples/containers/Dockerfile" context
	# shellcheck disable=SC2086 # several options
	./engine run --rm $OPTIONS -v "$work/ledgers:/run/cuota" -e CUOTA_MEM=2G baked sh -c 'unset LD_PRELOAD; exec take' >out
	[ "$(field total_mib out)" -eq 2048 ]
}

@test "docker-compose up: both services with the quotas that the file says" {
	sed -e "s|/usr/lib/x86_64-linux-gnu/libcuota.so|$work/libcuota.so|" -e "s|/run/cuota:/run/cuota|$CUOTA_DIR:/run/cuota|" \
		-e '/reservations:/,/capabilities:/d; /^  deploy:/d; /^    resources:/d' -e 's/^  restart:.*/&\n  network_mode: none/' \
		-e "s|^    environment:|&\n      CUOTA_SIM_STATE: $work/gpu\n      CUOTA_SIM_MEMORY: $CUOTA_SIM_MEMORY|" \
		-e "s|^    - /usr/lib|    - $work/gpu:$work/gpu\n&|" -e "s|^    - $work/libcuota|    - $work/gpu:$work/gpu\n&|" \
		"$examples/containers/compose.yaml" | sed '1,/^services:/s/^x-cuota/x-cuota/; 1i version: "2.4"' >compose.yaml
	INFERENCE_IMAGE=guest NOTEBOOK_IMAGE=guest INFERENCE_COMMAND="take -m 64 -h 60" NOTEBOOK_COMMAND="take -m 64 -h 60" \
		docker-compose -f compose.yaml -p cuota-it up -d
	wait_for 20 eval '[ "$(status | jq "[.gpus[].groups[]] | length")" -eq 2 ]'
	[ "$(group_field inference .memory.cap_bytes)" -eq $((24 << 30)) ]
	[ "$(group_field inference .priority)" = high ]
	[ "$(group_field notebook .memory.cap_bytes)" -eq $((8 << 30)) ]
	[ "$(group_field notebook .priority)" = low ]
}
