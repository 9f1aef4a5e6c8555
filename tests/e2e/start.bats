#!/usr/bin/env bats
# What stops CUDA's start-up: a quota that cannot be understood, and under CUOTA_STRICT=1 one that cannot be enforced.

setup()
{
	: "${BUILD:?the build directory}"
	DIR=$BATS_TEST_TMPDIR
	export LD_LIBRARY_PATH=$BUILD/sim CUOTA_DIR=$DIR/ledger CUOTA_SIM_STATE=$DIR/sim CUOTA_SIM_DEVICES=2
	unset CUOTA_MEM CUOTA_SM CUOTA_GROUP CUOTA_STRICT CUOTA_LOG CUOTA_LOG_FILE LD_PRELOAD
	mkdir -p "$CUOTA_DIR"
}

# starts CODE LINES [VARIABLE=VALUE...]: what cuInit returns, and how much is said on standard error
starts()
{
	local code=$1 lines=$2
	shift 2
	env "$@" LD_PRELOAD="$BUILD/libcuota.so" "$BUILD/doors/start" >"$DIR/out" 2>"$DIR/err"
	[ "$(cat "$DIR/out")" = "cuInit $code" ] && [ "$(wc -l <"$DIR/err")" -eq "$lines" ] && return
	echo "$*: $(cat "$DIR/out" "$DIR/err")"
	return 1
}

# The ledgers of both devices, as a process that used them leaves them.
both_ledgers()
{
	printf 'ctx %s\n' 0 1 | env CUOTA_MEM=1G LD_PRELOAD="$BUILD/libcuota.so" "$BUILD/tests/escape" script >/dev/null
	ls "$CUOTA_DIR"/*.ledger
}

@test "a quota that cannot be understood: one line, and CUDA does not start" {
	local bad
	for bad in CUOTA_MEM= CUOTA_MEM=8 CUOTA_MEM=-1 CUOTA_SM=0 CUOTA_WEIGHT=none CUOTA_GROUP=a/b CUOTA_STRICT=yes \
		CUOTA_CONFIG="$DIR/none" CUDA_DEVICE_MEMORY_LIMIT_1=lots; do
		starts 800 1 "$bad"
		grep -qFe "${bad#*=}" "$DIR/err"
	done
}

@test "a quota that cannot be enforced: said once; under CUOTA_STRICT=1 CUDA does not start" {
	local where
	touch "$DIR/file"
	for where in "$DIR/none" "$DIR/file" /proc; do
		starts 0 0 CUOTA_MEM=1G CUOTA_STRICT=0 CUOTA_DIR="$where"
		starts 800 "$CUOTA_SIM_DEVICES" CUOTA_MEM=1G CUOTA_STRICT=1 CUOTA_DIR="$where"
		grep -q "CUOTA_STRICT is set: .*$where" "$DIR/err"
	done
}

@test "under CUOTA_STRICT=1 one ledger that is damaged, of another version or foreign stops CUDA" {
	local ledger
	ledger=$(both_ledgers | tail -1)
	starts 0 0 CUOTA_MEM=1G CUOTA_STRICT=1
	for damage in "truncate -s 4096" "truncate -s 0" "ln -sf /dev/zero"; do
		$damage "$ledger"
		starts 800 1 CUOTA_MEM=1G CUOTA_STRICT=1
		grep -q "${ledger##*/}" "$DIR/err"
		starts 0 0 CUOTA_MEM=1G
		rm "$ledger"
	done
}

@test "under CUOTA_STRICT=1 a device that is not seen, and a program without a quota, are no matter" {
	local ledgers good bad
	mapfile -t ledgers < <(both_ledgers)
	truncate -s 0 "${ledgers[0]}"
	bad=$(basename "${ledgers[0]}" .ledger)
	good=$(basename "${ledgers[1]}" .ledger)
	starts 800 1 CUOTA_MEM=1G CUOTA_STRICT=1 CUDA_VISIBLE_DEVICES="$bad"
	starts 0 0 CUOTA_MEM=1G CUOTA_STRICT=1 CUDA_VISIBLE_DEVICES="$good"
	starts 0 0 CUOTA_STRICT=1 CUOTA_DIR="$DIR/none"
}

@test "a program that goes on after a refused start gets no memory" {
	printf '%s\n' "ctx 0" "alloc x 1M" "create h 2M" "ctx 1" |
		env CUOTA_MEM=1G CUOTA_STRICT=1 CUOTA_DIR="$DIR/none" LD_PRELOAD="$BUILD/libcuota.so" \
			"$BUILD/tests/escape" script >"$DIR/out" 2>"$DIR/err"
	! grep -q ' 0' "$DIR/out"
	[ "$(wc -l <"$DIR/err")" -eq 2 ]
}

@test "under CUOTA_STRICT=1 a start with good ledgers takes no seat" {
	starts 0 0 CUOTA_MEM=1G CUOTA_STRICT=1 CUOTA_LOG=info
}

# Every slot looks taken, by somebody who is alive.
fill_ledger()
{
	python3 -c '
import sys
with open(sys.argv[1], "r+b") as ledger:
    size = ledger.seek(0, 2)
    ledger.seek(192)
    ledger.write(b"\x01\0\0\0" * ((size - 192) // 4))' "$1"
}

@test "a ledger without room for one more: each is capped on its own, or refused under CUOTA_STRICT=1" {
	local ledger
	for ledger in $(both_ledgers); do fill_ledger "$ledger"; done
	printf '%s\n' "ctx 0" "alloc x 300M" "alloc y 300M" |
		env CUOTA_MEM=1G LD_PRELOAD="$BUILD/libcuota.so" "$BUILD/tests/escape" script >"$DIR/out" 2>"$DIR/err"
	[ "$(cat "$DIR/out")" = $'ctx 0\nalloc 0\nalloc 2' ]
	[ "$(wc -l <"$DIR/err")" -eq 1 ]
	grep -q "caps hold within this process alone: .* all 1024 slots are taken" "$DIR/err"
	echo "ctx 0" | env CUOTA_MEM=1G CUOTA_STRICT=1 LD_PRELOAD="$BUILD/libcuota.so" \
		"$BUILD/tests/escape" script >"$DIR/out" 2>"$DIR/err"
	[ "$(cat "$DIR/out")" = "ctx 2" ]
	grep -q "CUOTA_STRICT is set: .* all 1024 slots are taken" "$DIR/err"
}
