# podman with runc and a storage of its own; the image "guest" is a tar of this machine's shell and the
# guest program. The limits and the runtime are what a virtual machine with hybrid cgroups needs. Docker
# (docker.bats) runs the same examples.
# shellcheck shell=bash disable=SC2154 # part.bash sets work and examples

engine()
{
	podman --root "$work/storage" --runroot "$work/runroot" --storage-driver vfs --runtime runc \
		--cgroup-manager cgroupfs --log-level error "$@"
}

containers_setup()
{
	# What stands in for the examples' engine: podman with the simulated GPU instead of NVIDIA's.
	cat >"$work/engine" <<-END
	#!/bin/bash
	exec podman --root "$work/storage" --runroot "$work/runroot" --storage-driver vfs --runtime runc \
		--cgroup-manager cgroupfs --log-level error "\$@"
	END
	chmod +x "$work/engine"
	guest_options
	make_guest_image podman
}

make_guest_image()
{
	make_rootfs "$work/rootfs"
	mkdir -p "$work/rootfs/usr/lib/x86_64-linux-gnu"
	cp "$work/sim/libcuda.so.1" "$work/rootfs/usr/lib/x86_64-linux-gnu/"
	rm -rf "$work/rootfs/var"
	tar -C "$work/rootfs" -c . | "$work/engine" import - guest >/dev/null
}

# KEEP_OPTIONS: what every container of a test needs. OPTIONS: the same, for a test to add to.
guest_options()
{
	export CUOTA_LIBRARY=$work/libcuota.so ENGINE=$work/engine GPUS='' GPU=''
	KEEP_OPTIONS="--network=none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024"
	KEEP_OPTIONS+=" --volume $work/gpu:$work/gpu --env CUOTA_SIM_STATE=$work/gpu"
	KEEP_OPTIONS+=" --env CUOTA_SIM_MEMORY=$CUOTA_SIM_MEMORY --env CUOTA_SIM_DEVICES=$CUOTA_SIM_DEVICES"
	OPTIONS=$KEEP_OPTIONS
	export KEEP_OPTIONS OPTIONS
}

containers_stop()
{
	engine rm -fa -t 0 >/dev/null 2>&1 || true
	[ ! -e "$work/own-cdi" ] || rm -f /etc/cdi/cuota-it.json
	rootless_stop
	umount -R "$work/storage" 2>/dev/null || true
}

# example SCRIPT ARG...: a script of examples/containers with the host's ledger directory replaced.
example()
{
	local script=$1
	shift
	sed "s|/run/cuota:/run/cuota|$CUOTA_DIR:/run/cuota${ledgers_mode:+:$ledgers_mode}|" \
		"$examples/containers/$script" >"$work/$script"
	env -u LD_LIBRARY_PATH sh "$work/$script" "$@"
}

# The same without --rm, for a container that is started again.
example_kept()
{
	local script=$1
	shift
	sed -e "s|/run/cuota:/run/cuota|$CUOTA_DIR:/run/cuota|" -e 's/run --rm/run/' \
		"$examples/containers/$script" >"$work/$script"
	env -u LD_LIBRARY_PATH sh "$work/$script" "$@"
}

# The same without the group of its own.
example_group()
{
	local script=$1
	shift
	sed -e "s|/run/cuota:/run/cuota|$CUOTA_DIR:/run/cuota|" -e '/CUOTA_GROUP=auto/d' \
		"$examples/containers/$script" >"$work/$script"
	env -u LD_LIBRARY_PATH sh "$work/$script" "$@"
}

engine_run()
{
	# shellcheck disable=SC2086 # several options
	engine run --rm $OPTIONS "$@"
}

# The kind is the product's; the file is the test's, and removed after it.
cdi_file()
{
	mkdir -p /etc/cdi
	touch "$work/own-cdi"
	"$work/cuota" cdi generate --library "$work/libcuota.so" --dir "$CUOTA_DIR" \
		--output /etc/cdi/cuota-it.json "$@"
}

rootless_ready()
{
	command -v newuidmap >/dev/null || skip "uidmap is not installed"
	test_user cuota-it-a
	grep -q ^cuota-it-a: /etc/subuid || echo cuota-it-a:600000:65536 | tee -a /etc/subuid >>/etc/subgid
	mkdir -p "$work/home" "$work/xdg"
	cp "$work/libcuota.so" "$work/home/"
	tar -C "$work/rootfs" -cf "$work/guest.tar" .
	chown -R cuota-it-a: "$work/home" "$work/xdg"
}

rootless()
{
	(cd "$work/home" && setpriv --reuid cuota-it-a --regid cuota-it-a --clear-groups env -i PATH="$PATH" \
		HOME="$work/home" XDG_RUNTIME_DIR="$work/xdg" \
		podman --storage-driver vfs --runtime runc --cgroup-manager cgroupfs --log-level error "$@")
}

# rootless_run COMMAND...: by run.sh, as the user.
rootless_run()
{
	rootless import - guest <"$work/guest.tar" >/dev/null
	cat >"$work/home/engine" <<-END
	#!/bin/sh
	exec podman --storage-driver vfs --runtime runc --cgroup-manager cgroupfs --log-level error "\$@"
	END
	chmod +x "$work/home/engine"
	sed "s|/run/cuota:/run/cuota|$CUOTA_DIR:/run/cuota|" "$examples/containers/run.sh" >"$work/home/run.sh"
	(cd "$work/home" && setpriv --reuid cuota-it-a --regid cuota-it-a --clear-groups env -i PATH="$PATH" \
		HOME="$work/home" XDG_RUNTIME_DIR="$work/xdg" OPTIONS="$KEEP_OPTIONS" GPUS= CUOTA_MEM=2G \
		ENGINE="$work/home/engine" CUOTA_LIBRARY="$work/libcuota.so" sh "$work/home/run.sh" guest "$@")
}

rootless_stop()
{
	[ -d "$work/home" ] || return 0
	rootless rm -fa -t 0 >/dev/null 2>&1 || true
	rootless unshare rm -rf "$work/home/.local" >/dev/null 2>&1 || true
}
