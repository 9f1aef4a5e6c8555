#!/usr/bin/env bats
# The NVML view: memory, process lists, utilisation and accounting of the own group, in a process with a seat and in
# one without, such as nvidia-smi.

setup()
{
	: "${BUILD:?the build directory}"
	DIR=$BATS_TEST_TMPDIR
	export LD_LIBRARY_PATH=$BUILD/sim CUOTA_SIM_STATE=$DIR/sim CUOTA_DIR=$DIR/ledger
	mkdir -p "$CUOTA_DIR"
	SHOW=$BUILD/doors/nvml
	holders=()
}

teardown()
{
	local fd
	for fd in "${holders[@]:-}"; do
		[ -z "$fd" ] || eval "exec $fd>&-"
	done
	wait
}

bare() { run timeout 60 "$SHOW" "$@"; echo "$output"; }
under() { run env LD_PRELOAD="$BUILD/libcuota.so" timeout 60 "$SHOW" "$@"; echo "$output"; }

# A process that holds $1 MiB, with the further settings as its environment, until the test ends.
hold()
{
	local mib=$1 fd fifo=$DIR/fifo.${#holders[@]}
	shift
	mkfifo "$fifo"
	env LD_PRELOAD="$BUILD/libcuota.so" "$@" "$SHOW" use "$mib" wait memory <"$fifo" >"$fifo.out" 3>&- &
	held=$!
	exec {fd}>"$fifo"
	holders+=("$fd")
	for _ in $(seq 100); do
		[ ! -s "$fifo.out" ] || return 0
		sleep 0.1
	done
	return 1
}

@test "without a quota everything is NVML's own" {
	for what in memory processes sizes errors accounting; do
		bare use 100 "$what"
		[ "$status" -eq 0 ]
		expected=$output
		under use 100 "$what"
		[ "$output" = "$expected" ]
	done
}

@test "errors stay NVML's own under a quota" {
	bare errors
	expected=$output
	CUOTA_MEM=8G under errors
	[ "$output" = "$expected" ]
	[[ "$output" == *"before init: memory 1, list 1, rates 1"* ]]
}

@test "total is the cap, used and free add up, CUDA says the same" {
	for cap in 1G 8G 50% 3333M; do
		CUOTA_MEM=$cap under use 100 memory
		[ "$status" -eq 0 ]
		[[ "$output" == *"sum 1"*"agree: 1"* ]]
	done
	[[ "$output" == *"v1: total 3333 free 2707 used 626"* ]]
}

@test "a process that never uses CUDA sees the cap" {
	CUOTA_MEM=8G under memory
	[[ "$output" == *"v1: total 8192 free 8192 used 0"*"reserved 0 sum 1"* ]]
	[ -z "$(ls -A "$CUOTA_DIR")" ]
}

@test "a process that never uses CUDA sees what its group uses, and joins nothing" {
	hold 1000 CUOTA_MEM=8G CUOTA_GROUP=team
	CUOTA_MEM=8G CUOTA_GROUP=team under memory processes
	[[ "$output" == *"v1: total 8192 free 6666 used 1526"* ]]
	[[ "$output" == *"ComputeRunningProcesses_v3: 0 $held:1526"* ]]
	[[ "$output" == *"detail: 0 $held:1526"* ]]
	[[ "$output" == *"GraphicsRunningProcesses_v3: 0"$'\n'* ]]
}

@test "other groups' memory and processes are not shown" {
	hold 1000 CUOTA_MEM=8G CUOTA_GROUP=team
	CUOTA_MEM=8G CUOTA_GROUP=rest under memory processes
	[[ "$output" == *"v1: total 8192 free 8192 used 0"* ]]
	[[ "$output" != *"$held"* ]]
	CUOTA_MEM=8G CUOTA_GROUP=rest under use 10 memory processes
	[[ "$output" == *"v1: total 8192 free 7656 used 536"* ]]
	[[ "$output" == *"ComputeRunningProcesses: 0 me:536"$'\n'* ]]
}

@test "the group's cap counts though this process names none" {
	hold 1000 CUOTA_MEM=8G CUOTA_GROUP=team
	CUOTA_GROUP=team under memory
	[[ "$output" == *"v1: total 8192 free 6666 used 1526"* ]]
}

@test "a card that others have filled: free is what is left, the figures still add up" {
	export CUOTA_SIM_MEMORY=4G
	hold 2600 CUOTA_GROUP=big
	CUOTA_MEM=2G CUOTA_GROUP=small under use 10 memory
	[[ "$output" == *"v1: total 2048 free "*" used 536"* ]]
	[[ "$output" == *"sum 1"*"agree: 1"* ]]
	[[ "$output" != *"free 1512"* ]]
}

@test "too little room is told, with the count, and nothing is touched" {
	hold 100 CUOTA_MEM=8G CUOTA_GROUP=team
	hold 100 CUOTA_MEM=8G CUOTA_GROUP=team
	CUOTA_MEM=8G CUOTA_GROUP=team under use 100 sizes
	[[ "$output" == *"no room: 7, count 3"*"too little: 7, count 3, touched 0"*"enough: 0, count 3"*"no count: 2"* ]]
}

@test "under MPS the group's processes stand in the list of MPS clients" {
	export CUOTA_SIM_MPS=1
	CUOTA_MEM=8G under use 100 processes
	[[ "$output" == *"MPSComputeRunningProcesses_v3: 0 me:626"* ]]
	[[ "$output" == *$'\n'"ComputeRunningProcesses_v3: 0"$'\n'* ]]
}

@test "utilisation is the group's own device time, under its cap" {
	CUOTA_SM=30 under use 10 utilization busy 1500 utilization
	[ "$status" -eq 0 ]
	gpu=$(sed -n 's/^rates: 0, gpu //p' <<<"$output" | tail -1)
	me=$(sed -n 's/^processes: 0 me://p' <<<"$output" | tail -1)
	[ "$gpu" -ge 25 ] && [ "$gpu" -le 35 ]
	[ "$me" -ge 25 ] && [ "$me" -le 35 ]
	CUOTA_SM=30 under utilization
	[[ "$output" == *"rates: 0, gpu 0"* ]]
}

@test "accounting is of the group's living processes" {
	hold 100 CUOTA_MEM=8G CUOTA_GROUP=team
	hold 100 CUOTA_MEM=8G CUOTA_GROUP=rest
	CUOTA_MEM=8G CUOTA_GROUP=team under use 200 accounting
	[[ "$output" == *"pids: 0"*"me:0:726"* ]]
	[ "$(grep -o other <<<"$output" | wc -l)" -eq 1 ]
	[[ "$output" == *"of init: 6"* ]]
}

@test "functions that NVML does not support stay unsupported" {
	export CUOTA_SIM_NVML_FAIL=nvmlDeviceGetUtilizationRates=3,nvmlDeviceGetProcessUtilization=3,nvmlDeviceGetComputeRunningProcesses_v3=3,nvmlDeviceGetMemoryInfo=3
	CUOTA_MEM=8G under utilization
	[[ "$output" == *"rates: 3, gpu 777"*"processes: 3"* ]]
	CUOTA_MEM=8G under processes
	[[ "$output" == *$'\n'"ComputeRunningProcesses_v3: 3"$'\n'* ]]
	[[ "$output" == *$'\n'"ComputeRunningProcesses_v2: 0"* ]]
}

@test "a process in a PID namespace below is listed by the PID that it has here" {
	unshare -pf --mount-proc true 2>/dev/null || skip "no PID namespaces here"
	mkfifo "$DIR/inner"
	env LD_PRELOAD="$BUILD/libcuota.so" CUOTA_MEM=8G CUOTA_GROUP=team \
		unshare -pf --mount-proc "$SHOW" use 100 wait processes <"$DIR/inner" >"$DIR/inner.out" 3>&- &
	exec {fd}>"$DIR/inner"
	holders+=("$fd")
	for _ in $(seq 100); do [ ! -s "$DIR/inner.out" ] || break; sleep 0.1; done
	grep -q 'ComputeRunningProcesses_v3: 0 me:626' "$DIR/inner.out"
	inner=$(pgrep -f "$SHOW use 100 wait processes" | tail -1)
	CUOTA_MEM=8G CUOTA_GROUP=team under processes
	[[ "$output" == *"ComputeRunningProcesses_v3: 0 $inner:626"* ]]
	# And from a namespace beside it there is no PID for it, but its memory counts.
	run env LD_PRELOAD="$BUILD/libcuota.so" CUOTA_MEM=8G CUOTA_GROUP=team \
		unshare -pf --mount-proc "$SHOW" memory processes
	[[ "$output" == *"used 626"* ]]
	[[ "$output" == *$'\n'"ComputeRunningProcesses_v3: 0"$'\n'* ]]
}

@test "a program linked to NVML sees the view as well" {
	cat >"$DIR/linked.c" <<-'END'
		#include <stdio.h>
		#include "hooks/nvml_abi.h"
		int nvmlInit_v2(void);
		int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device);
		int main(void)
		{
			nvmlDevice_t device;
			nvmlMemory_t memory;
			int before = nvmlDeviceGetMemoryInfo((nvmlDevice_t)0, &memory);
			nvmlInit_v2();
			nvmlDeviceGetHandleByIndex_v2(0, &device);
			nvmlDeviceGetMemoryInfo(device, &memory);
			printf("%d %llu\n", before, memory.total >> 20);
			return 0;
		}
	END
	gcc -Isrc -o "$DIR/linked" "$DIR/linked.c" -L"$BUILD/sim" -l:libnvidia-ml.so.1
	run env CUOTA_MEM=8G LD_PRELOAD="$BUILD/libcuota.so" "$DIR/linked"
	[ "$output" = "1 8192" ]
}

@test "our declarations are laid out as the vendor's" {
	header=
	for dir in /usr/include /usr/local/cuda/include "$(tests/e2e/fetch-driver 2>/dev/null)/../../../../include"; do
		[ ! -e "$dir/nvml.h" ] || header=$dir
	done
	[ -n "$header" ] || skip "no nvml.h here"
	gcc -DVENDOR -I"$header" -o "$DIR/vendor" tests/doors/nvml_layout.c
	gcc -Isrc -o "$DIR/own" tests/doors/nvml_layout.c
	diff <("$DIR/vendor") <("$DIR/own")
}

@test "a real NVML without a card answers as it does bare" {
	driver=$(tests/e2e/fetch-driver 2>"$DIR/why") || skip "$(tail -1 "$DIR/why")"
	[ -e "$driver/libnvidia-ml.so.1" ] || skip "no libnvidia-ml.so.1"
	smi=$(command -v nvidia-smi || ls "$driver"/../../../nvidia/current/nvidia-smi 2>/dev/null) || skip "no nvidia-smi"
	run env LD_LIBRARY_PATH="$driver" "$smi"
	bare_status=$status
	expected=$output
	run env LD_LIBRARY_PATH="$driver" CUOTA_MEM=8G LD_PRELOAD="$BUILD/libcuota.so" "$smi"
	[ "$status" -eq "$bare_status" ]
	[ "$bare_status" -eq 0 ] || [ "$output" = "$expected" ]
}
