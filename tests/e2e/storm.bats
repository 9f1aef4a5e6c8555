#!/usr/bin/env bats
# Kill storms through the library and the simulated driver: guests that allocate, free, launch and fork are killed at random
# instants. The ledger must equal the driver while they live and be zero when they are gone.

load cli

setup() { cli_setup; }
teardown() { cli_teardown; }

STORM_GUESTS=${STORM_GUESTS:-64}
STORM_KILLS=${STORM_KILLS:-2000}

used_by_driver() { "$CUOTA" status --json | jq '.gpus[0].memory.used_bytes'; }
used_by_ledger() { "$CUOTA" status --json | jq '[.gpus[0].groups[].memory.used_bytes] | add // 0'; }

# Neither context nor block of a dead guest may be left: asking reaps.
settled() { echo "driver $(used_by_driver) ledger $(used_by_ledger)" >"$DIR/left"; [ "$(used_by_driver)" = "$1" ] && [ "$(used_by_ledger)" = "$1" ]; }

@test "2,000 kills among 64 guests: the cap holds, and driver and ledger are at zero after" {
	local cap=$((20 << 30)) most=0 charged=0 used
	export CUOTA_MEM=20G CUOTA_SM=90 CUOTA_SIM_MEMORY=64G
	LD_PRELOAD=$BUILD/libcuota.so "$BUILD/tests/storm" "$STORM_GUESTS" "$STORM_KILLS" 1 >"$DIR/storm.out" 2>"$DIR/storm.err" &
	HOLDERS+=("$!")
	while kill -0 "${HOLDERS[-1]}" 2>/dev/null; do
		used=$(used_by_driver)
		[ "$used" -le "$most" ] || most=$used
		used=$(used_by_ledger)
		[ "$used" -le "$charged" ] || charged=$used
		sleep 0.5
	done
	wait "${HOLDERS[-1]}" || { cat "$DIR/storm.out" "$DIR/storm.err"; false; }
	cat "$DIR/storm.out"
	grep "ended_by_themselves 0$" "$DIR/storm.out"
	echo "at most $charged charged, $most on the device, of $cap bytes"
	[ "$charged" -gt $((1 << 30)) ]
	[ "$charged" -le "$cap" ]
	# A killed process gives back its charge a moment before the driver has taken its memory away: 782 MiB a guest.
	[ "$most" -le $((cap + (1 << 30))) ]
	wait_until settled 0 || { cat "$DIR/left"; "$CUOTA" status; false; }
}

@test "stopped and continued at random, guests lose nothing and hold nobody up" {
	local i pid
	export CUOTA_MEM=20G CUOTA_SIM_MEMORY=64G
	LD_PRELOAD=$BUILD/libcuota.so "$BUILD/tests/storm" 16 150 1 >"$DIR/storm.out" 2>"$DIR/storm.err" &
	pid=$!
	HOLDERS+=("$pid")
	for i in $(seq 60); do
		for guest in $(pgrep -P "$pid" | shuf -n 4); do
			kill -STOP "$guest" 2>/dev/null || true
		done
		sleep 0.02
		timeout 10 "$CUOTA" status --json >/dev/null
		for guest in $(pgrep -P "$pid"); do
			kill -CONT "$guest" 2>/dev/null || true
		done
	done
	wait "$pid" || { cat "$DIR/storm.out" "$DIR/storm.err"; false; }
	grep "ended_by_themselves 0$" "$DIR/storm.out"
	wait_until settled 0 || { cat "$DIR/left"; "$CUOTA" status; false; }
}
