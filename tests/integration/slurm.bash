# A Slurm cluster of one node on the loopback interface: munged, slurmctld, slurmd, two GPUs (device
# nodes that stand for them) with ten shards each, and the plugin as examples/slurm/plugstack.conf has
# it, paths replaced.
# shellcheck shell=bash disable=SC2154,SC2016 # part.bash sets work and examples; wait_for evaluates

slurm_needs()
{
	need slurm && need_root || return 1
	[ -e "$BUILD/cuota_spank.so" ] || cannot "cuota_spank.so was not built: slurm/spank.h was missing then"
}

# slurm_start [LINE-OF-slurm.conf...]
slurm_start()
{
	slurm_munge
	slurm_configure "$@"
	slurmctld -f "$SLURM_CONF" -c
	slurm_node_start
}

slurm_munge()
{
	mkdir -p /run/munge
	chown munge: /run/munge
	if ! munge -n >/dev/null 2>&1; then
		setpriv --reuid munge --regid munge --clear-groups munged --pid-file "/run/munge/cuota-it.pid"
		touch "$work/own-munge"
		wait_for 10 munge -n
	fi
}

slurm_configure()
{
	local host i
	host=$(hostname -s)
	export SLURM_CONF=$work/slurm.conf
	mkdir -p "$work/state" "$work/spool" "$work/policy" "$work/policy/conf.d"
	for i in 0 1; do
		[ -e "$work/gpu$i" ] || mknod "$work/gpu$i" c 1 $((5 + 2 * i))
	done
	sed "s|/dev/nvidia|$work/gpu|" "$examples/slurm/gres.conf" >"$work/gres.conf"
	sed -e "s|cuota_spank.so|$BUILD/cuota_spank.so|" -e "s|library=[^ ]*|library=$work/libcuota.so|" \
		-e "s|dir=/run/cuota|dir=$CUOTA_DIR|" -e "s|gpu_mem=[^ ]*|gpu_mem=$CUOTA_SIM_MEMORY|" \
		-e "s|policy_dir=[^ ]*|policy_dir=$work/policy/conf.d|" \
		"$examples/slurm/plugstack.conf" >"$work/plugstack.conf"
	cp "$examples/slurm/oci.conf" "$work/oci.conf"
	printf '[default]\n' >"$work/policy/cuota.conf"
	cat >"$SLURM_CONF" <<-END
	ClusterName=cuota
	SlurmctldHost=$host(127.0.0.1)
	SlurmctldPort=16817
	SlurmdPort=16818
	AuthType=auth/munge
	CredType=cred/munge
	SlurmUser=root
	SlurmdUser=root
	StateSaveLocation=$work/state
	SlurmdSpoolDir=$work/spool
	SlurmctldLogFile=$work/slurmctld.log
	SlurmdLogFile=$work/slurmd.log
	SlurmctldPidFile=$work/slurmctld.pid
	SlurmdPidFile=$work/slurmd.pid
	ProctrackType=proctrack/linuxproc
	TaskPlugin=task/none
	SlurmdParameters=config_overrides
	MpiDefault=none
	ReturnToService=2
	KillWait=2
	UnkillableStepTimeout=10
	SelectType=select/cons_tres
	SelectTypeParameters=CR_Core
	AccountingStorageType=accounting_storage/none
	JobCompType=jobcomp/none
	SchedulerParameters=sched_min_interval=50000,bf_interval=2,batch_sched_delay=0
	GresTypes=gpu,shard
	PrologFlags=Alloc
	PlugStackConfig=$work/plugstack.conf
	NodeName=$host NodeAddr=127.0.0.1 CPUs=16 RealMemory=1000 Gres=gpu:h200:2,shard:20
	PartitionName=debug Nodes=ALL Default=YES State=UP OverSubscribe=YES
	END
	printf '%s\n' "$@" >>"$SLURM_CONF"
	# A job's environment is the submitter's; these stand for what nodes have system-wide.
	export CUOTA_CONFIG=$work/policy/cuota.conf
}

slurm_node_start()
{
	slurmd -f "$SLURM_CONF" -c
	wait_for 20 eval 'sinfo -h -o %t | grep -qx idle'
}

slurm_node_stop()
{
	local pid
	pid=$(cat "$work/slurmd.pid" 2>/dev/null)
	stop "$pid"
}

slurm_stop()
{
	local step pid
	[ -n "${SLURM_CONF:-}" ] || return 0
	scancel -u root -u cuota-it-a -u cuota-it-b 2>/dev/null || scancel --state=RUNNING 2>/dev/null || true
	wait_for 10 eval '[ -z "$(squeue -h)" ]' || true
	slurm_node_stop
	stop "$(cat "$work/slurmctld.pid" 2>/dev/null)"
	for step in "$work"/spool/*_*.*; do
		pid=$(fuser "$step" 2>/dev/null) && stop "$pid"
	done
	if [ -e "$work/own-munge" ]; then
		stop "$(cat /run/munge/cuota-it.pid)"
	fi
}

# as USER COMMAND...
as()
{
	local user=$1
	shift
	setpriv --reuid "$user" --regid "$user" --clear-groups env USER="$user" HOME=/ "$@"
}

job_gone()
{
	! squeue -h -j "$1" 2>/dev/null | grep -q .
}
