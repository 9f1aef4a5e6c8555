# For the SM-time tests: programs on the simulated driver, several at once, and what share of the device each got.
#
#	machine M			what follows runs on a simulated machine (and ledger) of its own
#	tenant A CUOTA_SM=25 steady 1000 8 3	a program named A with that environment, under cuota, in the background
#	ended A B			waits for them; each must exit with 0 and say nothing on stderr
#	share A FROM TO			percent of the device that A's kernels took between these times (ms; `now_ms`)
#	pause_of A FROM TO		the longest time in which A completed nothing
#	between VALUE LOW HIGH WHAT	fails, and says so, when it is not
#
# The simulator runs in real time on machines that do other work: bounds here are wide, and the exact ones are in
# check_sched_model. PRELOAD= runs everything without the library: what must fail then is said at each test.

sm_setup()
{
	: "${BUILD:?the build directory}"
	DIR=$BATS_TEST_TMPDIR
	PRELOAD=${PRELOAD-$BUILD/libcuota.so}
	export LD_LIBRARY_PATH=$BUILD/sim
	unset "${!CUOTA_@}" "${!CUDA_DEVICE_@}" GPU_MEMORY_LIMIT LD_PRELOAD
	declare -gA pid_of=()
	rm -rf "${DIR:?}"/* # of a try before
	machine one
}

sm_teardown()
{
	local name
	for name in "${!pid_of[@]}"; do
		kill -9 "${pid_of[$name]}" 2>/dev/null || true
		wait "${pid_of[$name]}" 2>/dev/null || true
	done
}

machine()
{
	export CUOTA_DIR=$DIR/$1/ledger CUOTA_SIM_STATE=$DIR/$1/sim
	mkdir -p "$CUOTA_DIR"
	chmod 1777 "$CUOTA_DIR"
}

tenant()
{
	local name=$1 variables=()
	shift
	while [[ $1 == *=* ]]; do
		variables+=("$1")
		shift
	done
	env "${variables[@]}" LD_PRELOAD="$PRELOAD" "$BUILD/tests/$1" "${@:2}" \
		>"$DIR/$name.out" 2>"$DIR/$name.err" 3>&- &
	pid_of[$name]=$!
}

ended()
{
	local name rc
	for name; do
		rc=0
		wait "${pid_of[$name]}" || rc=$?
		unset "pid_of[$name]"
		if [ "$rc" -ne 0 ] || [ -s "$DIR/$name.err" ]; then
			echo "$name: exit $rc"
			cat "$DIR/$name.err"
			return 1
		fi
	done
}

# The clock of the programs' reports.
now_ms() { awk '{ print int($1 * 1000) }' /proc/uptime; }

sleep_ms() { sleep "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"; }

# Waits until it has reported for the first time; says when that was.
began()
{
	local i
	for ((i = 0; i < 200; i++)); do
		[ ! -s "$DIR/$1.out" ] || break
		sleep 0.02
	done
	awk '{ print $1; exit }' "$DIR/$1.out"
}

share()
{
	awk -v from="$2" -v to="$3" '$1 > from && $1 <= to { done += $2 * ($1 - last); time += $1 - last } { last = $1 }
		END { printf "%.1f\n", time ? done / time : 0 }' "$DIR/$1.out"
}

pause_of()
{
	awk -v from="$2" -v to="$3" '$1 > from && $1 <= to && $3 > most { most = $3 } $1 <= to { last = $1 }
		END { print (last < to - 1000 && to - last > most) ? to - last : most + 0 }' "$DIR/$1.out"
}

between()
{
	awk -v value="$1" -v low="$2" -v high="$3" 'BEGIN { exit !(value != "" && value + 0 >= low && value + 0 <= high) }' || {
		echo "$4: $1, not $2..$3"
		return 1
	}
}

turn_switches()
{
	"$BUILD/cuota" metrics | awk '/^cuota_turn_switches_total/ { print $2 }'
}
