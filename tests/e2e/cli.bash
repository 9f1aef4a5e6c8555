# What the tests of the command share: a place of their own, and tenants that hold memory on the
# simulated GPU until they are told to go on.

cli_setup()
{
	: "${BUILD:?the build directory}"
	CUOTA=$BUILD/cuota
	TENANT=$BUILD/tests/tenant
	DIR=$BATS_TEST_TMPDIR
	export LD_LIBRARY_PATH=$BUILD/sim CUOTA_DIR=$DIR/ledgers CUOTA_SIM_STATE=$DIR/sim
	unset CUOTA_MEM CUOTA_SM CUOTA_GROUP CUOTA_LIBRARY LD_PRELOAD NO_COLOR COLUMNS
	mkdir -p "$CUOTA_DIR"
	chmod 1777 "$CUOTA_DIR"
	HOLDERS=()
}

# Everything a test left running, with what `cuota run` started beside it.
cli_teardown()
{
	local pid
	for pid in "${HOLDERS[@]}"; do
		kill -9 "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
}

# hold NAME MIB [OPTION OF RUN...]: a tenant of group NAME that holds MIB MiB (and its context) and is idle;
# `touch $DIR/NAME.go` lets it work and end. Its pid is in $HELD.
hold()
{
	local name=$1 mib=$2
	shift 2
	"$CUOTA" run --group "$name" "$@" -- \
		"$TENANT" run 1000000 1 "$mib" "$DIR/$name.ready" "$DIR/$name.go" \
		>"$DIR/$name.out" 2>"$DIR/$name.err" 3>&- &
	HELD=$!
	HOLDERS+=("$HELD")
	wait_for "$DIR/$name.ready"
	rm "$DIR/$name.ready"
}

wait_for()
{

	for _ in $(seq 200); do
		[ ! -e "$1" ] || return 0
		sleep 0.05
	done
	echo "never came: $1"
	cat "$DIR"/*.err 2>/dev/null
	return 1
}

# wait_until COMMAND...: until it succeeds, 10 s at most
wait_until()
{

	for _ in $(seq 100); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	"$@"
}

# One line on stderr that matches, nothing on stdout, and this status.
refuses()
{
	local want=$1 pattern=$2 rc=0
	shift 2
	"$@" >"$DIR/refuse.out" 2>"$DIR/refuse.err" </dev/null || rc=$?
	[ "$rc" -eq "$want" ] || { echo "exit $rc, not $want: $*"; cat "$DIR/refuse.err"; return 1; }
	[ ! -s "$DIR/refuse.out" ] || { echo "on stdout:"; cat "$DIR/refuse.out"; return 1; }
	grep -v '^Try ' "$DIR/refuse.err" >"$DIR/refuse.line"
	[ "$(wc -l <"$DIR/refuse.line")" -eq 1 ] || { echo "not one line:"; cat "$DIR/refuse.err"; return 1; }
	grep -Eq -- "$pattern" "$DIR/refuse.line" || { cat "$DIR/refuse.line"; return 1; }
}

# As an ordinary user; needs root. The temporary directory must let others through.
as_nobody()
{
	[ "$(id -u)" -eq 0 ] || skip "needs root to become somebody else"
	chmod a+rx "$DIR" "$BATS_TMPDIR" "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR" "$(dirname "$BATS_TEST_TMPDIR")" 2>/dev/null || true
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}
