#!/usr/bin/env bats
# A quota belongs to a card, whatever index it has for a program: four cards of different sizes and speeds, every
# form of CUDA_VISIBLE_DEVICES, both orders.

setup()
{
	: "${BUILD:?the build directory}"
	DIR=$BATS_TEST_TMPDIR
	export LD_LIBRARY_PATH=$BUILD/sim CUOTA_SIM_STATE=$DIR/sim CUOTA_DIR=$DIR/ledger
	export CUOTA_SIM_DEVICES=4 CUOTA_SIM_MEMORY=16G,24G,32G,48G CUOTA_SIM_SMS=46,132,108,132
	mkdir -p "$CUOTA_DIR"
	mapfile -t uuid < <(CUDA_DEVICE_ORDER=PCI_BUS_ID "$BUILD/doors/devices" | awk '{ print $2 }')
	[ ${#uuid[@]} -eq 4 ]
	all=${uuid[0]}=2G,${uuid[1]}=3G,${uuid[2]}=4G,${uuid[3]}=5G
}

lists=(unset 0 1 2,3 3,1 1,0 '' -1 0,9 0,-1,1 0,0 NoDevFiles GPU GPU2 prefix prefix,prefix mixed MIG-0)

# The list that a word stands for.
list()
{
	case $1 in
	GPU) echo "${uuid[2]}" ;;
	GPU2) echo "${uuid[3]},${uuid[0]}" ;;
	prefix) echo "${uuid[1]:0:12}" ;;
	prefix,prefix) echo "${uuid[1]:0:12},${uuid[2]:0:12}" ;;
	mixed) echo "0,${uuid[1]}" ;;
	*) echo "$1" ;;
	esac
}

# $1: order, $2: list; fills bare and under.
see()
{
	local setting=(CUDA_DEVICE_ORDER="$1" CUDA_VISIBLE_DEVICES="$(list "$2")")
	[ "$2" != unset ] || setting=(-u CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER="$1")
	rm -rf "$CUOTA_DIR"/*
	bare=$(env "${setting[@]}" "$BUILD/doors/devices")
	under=$(env "${setting[@]}" LD_PRELOAD="$BUILD/libcuota.so" "$BUILD/doors/devices")
}

total_of()
{
	local i
	for i in 0 1 2 3; do
		[ "$1" != "${uuid[$i]}" ] || echo $(((i + 2) * 1024))
	done
}

@test "quotas by UUID follow the card through every list and order" {
	export CUOTA_MEM=$all
	for order in FASTEST_FIRST PCI_BUS_ID; do
		for word in "${lists[@]}"; do
			see "$order" "$word"
			echo "$order, '$word': ${under//$'\n'/; }"
			# The same cards in the same places, or the same error.
			[ "$(awk '{ print $1, $2 }' <<<"$bare")" = "$(awk '{ print $1, $2 }' <<<"$under")" ]
			while read -r ordinal card total; do
				[[ "$card" == GPU-* ]] || continue
				[ "$total" -eq "$(total_of "$card")" ]
				[ -e "$CUOTA_DIR/$card.ledger" ]
			done <<<"$under"
			# And no ledger of a card that the program does not see.
			[ "$(find "$CUOTA_DIR" -name '*.ledger' | wc -l)" -eq "$(grep -c GPU- <<<"$under")" ]
		done
	done
}

@test "quotas by index are by CUDA's own index" {
	export CUOTA_MEM=0=2G,1=3G,2=4G,3=5G
	for order in FASTEST_FIRST PCI_BUS_ID; do
		for word in unset 2,3 3,1 1,0 GPU2; do
			see "$order" "$word"
			echo "$order, '$word': ${under//$'\n'/; }"
			while read -r ordinal card total; do
				[ "$total" -eq $(((ordinal + 2) * 1024)) ]
			done <<<"$under"
		done
	done
}

@test "two programs that each see one card as their first are on two ledgers" {
	export CUOTA_MEM=2G CUOTA_GROUP=both
	CUDA_VISIBLE_DEVICES=1 LD_PRELOAD=$BUILD/libcuota.so "$BUILD/doors/devices"
	CUDA_VISIBLE_DEVICES=2 LD_PRELOAD=$BUILD/libcuota.so "$BUILD/doors/devices"
	[ "$(find "$CUOTA_DIR" -name '*.ledger' | wc -l)" -eq 2 ]
}

@test "a MIG instance is a device of its own" {
	export CUOTA_SIM_DEVICES=1 CUOTA_SIM_MEMORY=18G CUOTA_SIM_SMS=16 CUOTA_SIM_MIG=1 CUOTA_SIM_STATE=$DIR/mig
	mig=$("$BUILD/doors/devices" | awk '{ print $2 }')
	[[ "$mig" == MIG-* ]]
	CUOTA_MEM=$mig=4G LD_PRELOAD=$BUILD/libcuota.so run "$BUILD/doors/devices"
	echo "$output"
	[ "$output" = "0 $mig 4096" ]
	[ -e "$CUOTA_DIR/$mig.ledger" ]
	CUOTA_MEM=$mig=4G LD_PRELOAD=$BUILD/libcuota.so run "$BUILD/doors/nvml" use 10 memory processes
	echo "$output"
	[[ "$output" == *"v1: total 4096 "*"agree: 1"*"ComputeRunningProcesses: 0 me:536"* ]]
}

@test "more than sixteen devices" {
	export CUOTA_SIM_DEVICES=20 CUOTA_SIM_MEMORY=16G CUOTA_SIM_SMS=132 CUOTA_MEM=2G CUOTA_SIM_STATE=$DIR/sim20
	LD_PRELOAD=$BUILD/libcuota.so run "$BUILD/doors/devices"
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(grep -c ' 2048$' <<<"$output")" -eq 20 ]
}
