#!/usr/bin/env bats
# Launching as HPC sites do: MPI ranks on one GPU, Lmod, and the scripts for Apptainer and Enroot.

load part.bash

setup_file()
{
	need hpc || return 0
	make_work hpc
}

teardown_file()
{
	[ -n "${work:-}" ] || return 0
	[ -n "${KEEP:-}" ] || rm -rf "$work"
}

setup()
{
	enter
	export CUOTA_LIBRARY=$work/libcuota.so
}

@test "mpirun.sh: the ranks share one cap, and none takes more than its own" {
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	CUOTA_MEM=5G CUOTA_MEM_PER_PROCESS=1500M "$examples/hpc/mpirun.sh" --oversubscribe -n 4 \
		sh -c './take -h 3 >rank.$OMPI_COMM_WORLD_RANK'
	for rank in 0 1 2 3; do
		within 0 974 "$(field got_mib rank.$rank)" # and its context
	done
	# 5 GiB less four contexts; whoever comes last finds what the others left.
	within 2900 3016 "$(cat rank.* | sed 's/.*got_mib=\([0-9]*\).*/\1/' | paste -sd+ | bc)"
	wait_for 5 ledger_clean
}

@test "mpirun.sh refuses to run ranks uncapped" {
	CUOTA_LIBRARY=/nowhere/libcuota.so run "$examples/hpc/mpirun.sh" -n 1 true
	[ "$status" -eq 1 ]
	[[ $output == *"would run uncapped"* ]]
}

@test "module load cuota gives the command its library, and takes it away again" {
	mkdir -p apps/bin apps/lib apps/share/man modules/cuota
	cp -L "$BUILD/cuota" apps/bin/
	cp libcuota.so apps/lib/
	sed "s|/opt/apps/cuota/0.1.0|$work/apps|" "$examples/hpc/cuota.lua" >modules/cuota/0.1.0.lua
	unset CUOTA_LIBRARY
	run env -u CUOTA_DIR bash -c '
		set -e
		. /usr/share/lmod/lmod/init/bash
		module use modules
		module load cuota
		echo "library $CUOTA_LIBRARY"
		echo "command $(command -v cuota)"
		echo "preload ${LD_PRELOAD:-none}"
		CUOTA_DIR='"$CUOTA_DIR"' cuota run --mem 2G -- ./take
		module unload cuota
		echo "after ${CUOTA_LIBRARY:-none}"'
	echo "$output"
	[ "$status" -eq 0 ]
	grep -qx "library $work/apps/lib/libcuota.so" <<<"$output"
	grep -qx "command $work/apps/bin/cuota" <<<"$output"
	grep -qx "preload none" <<<"$output"
	grep -qE "total_mib=2048 .*refused=2" <<<"$output"
	grep -qx "after none" <<<"$output"
}

# Apptainer is in no repository that this test may use; bubblewrap stands in for it: the binds, variables
# and command of the script, in namespaces of their own.
@test "apptainer.sh: what it binds and sets caps a container" {
	command -v bwrap >/dev/null || skip "no bwrap"
	cat >apptainer <<-'END'
	#!/bin/bash
	[ "$1" = exec ] || exit 2
	shift
	options=()
	while :; do
		case $1 in
		--nv) shift ;;
		--bind)
			IFS=: read -r from to mode <<<"$2"
			[ "$mode" = ro ] && kind=--ro-bind || kind=--bind
			options+=("$kind" "$from" "${to:-$from}")
			shift 2
			;;
		--env) options+=(--setenv "${2%%=*}" "${2#*=}"); shift 2 ;;
		*) break ;;
		esac
	done
	shift # the image
	exec bwrap --unshare-pid --unshare-ipc --ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64 \
		--symlink usr/bin /bin --proc /proc --dev /dev --tmpfs /opt --bind "$WORK" "$WORK" "${options[@]}" "$@"
	END
	chmod +x apptainer
	WORK=$work APPTAINER=$work/apptainer CUOTA_MEM=3G "$examples/hpc/apptainer.sh" image.sif "$work/take" -s 2 >out
	[ "$(field total_mib out)" -eq 3072 ]
	within 2000 3072 "$(field got_mib out)"
	within 25 35 "$(field busy_pct out)"
	wait_for 5 ledger_clean
}

@test "enroot.sh writes mounts that findmnt accepts, and variables that name what is mounted" {
	"$examples/hpc/enroot.sh" "$work/enroot"
	[ "$(findmnt --tab-file enroot/mounts.d/60-cuota.fstab -n -o TARGET | sort | paste -sd' ')" = "/opt/cuota/libcuota.so /run/cuota" ]
	grep -qx LD_PRELOAD=/opt/cuota/libcuota.so enroot/environ.d/60-cuota.env
	grep -qx CUOTA_DIR=/run/cuota enroot/environ.d/60-cuota.env
}
