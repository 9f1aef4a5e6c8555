/*
 * The charging protocol of src/ledger (charge.c, recover.c, and the claiming of a slot in join.c), step
 * by step: every access to shared memory is a step of its own, and a process may crash before any write.
 * Being stopped is the same as not being scheduled, which Spin tries at every step anyway.
 *
 * Workers claim a slot, enter a group, charge and refund, and leave or crash; whoever is refused reaps the
 * dead. Reapers do nothing else, and crash too. Checked:
 *   - in every state the total of each group is exactly the sum of what its slots count for, so nothing
 *     is lost or counted twice, and never above the cap;
 *   - when all is over and whoever is left has reaped, everything is zero;
 *   - no process ever blocks (no invalid end state), and with -DNP, no run is endless.
 *
 * Not modelled: the wrap of the 17-bit sequence in the total's tag (docs/ledger.md bounds it), weak memory
 * (every swap in the code is acquire-release), hostile bytes.
 *
 * Sizes are macros; tests/model/run has the configurations. MUTANT_x removes one rule each; Spin must then
 * find the error, or the model proves nothing.
 */
#ifndef SLOTS
#define SLOTS 3
#endif
#ifndef WORKERS
#define WORKERS 3
#endif
#ifndef REAPERS
#define REAPERS 0
#endif
#ifndef GROUPS
#define GROUPS 1
#endif
#ifndef OPS
#define OPS 1
#endif
#ifndef LIVES
#define LIVES 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef CAP
#define CAP 3
#endif
#ifndef MOST
#define MOST 2
#endif

#define NO_SLOT 3
#define FREE 0
#define HELD 1
#define DEAD 2

#define PENDING 1
#define SECOND 2
#define ACTIVE 4
#define SEQ(o) ((o) >> 3)
#define INDEX(o) (((o) >> 1) & 1)
#define IS_ZERO(o) (((o) & (ACTIVE | PENDING)) == 0)

/* granules:6 | slot:2 | sequence:6, of which TAG_MASK are used: 3 makes it wrap soon */
#ifndef TAG_MASK
#define TAG_MASK 63
#endif
#define TOTAL(g, s, q) (((g) << 8) | ((s) << 6) | ((q) & TAG_MASK))
#define GRANULES(t) ((t) >> 8)
#define SLOT(t) (((t) >> 6) & 3)
#define TAG_SEQ(t) ((t) & 63)

short total[GROUPS + 1]; /* [0] is of no group */
short op[SLOTS];
byte used[2 * SLOTS];
byte done[SLOTS];
byte group[SLOTS]; /* 0 = none */
byte live[SLOTS];
byte crashes = CRASHES;
byte running = WORKERS + REAPERS;

#define IN_TOTAL(i, t, q) ((SLOT(t) == (i) && TAG_SEQ(t) == ((q) & TAG_MASK)) || done[i] >= (q))
#define COUNTS(i) (IS_ZERO(op[i]) -> 0 : (!(op[i] & PENDING) -> used[2 * (i) + INDEX(op[i])] : \
	(!IN_TOTAL(i, total[group[i]], SEQ(op[i])) -> used[2 * (i) + INDEX(op[i])] : \
	((op[i] & ACTIVE) -> used[2 * (i) + 1 - INDEX(op[i])] : 0))))
#define COUNTS_IN(i, g) (group[i] == (g) -> COUNTS(i) : 0)
#if SLOTS == 3
#define SUM(g) (COUNTS_IN(0, g) + COUNTS_IN(1, g) + COUNTS_IN(2, g))
#elif SLOTS == 2
#define SUM(g) (COUNTS_IN(0, g) + COUNTS_IN(1, g))
#else
#define SUM(g) COUNTS_IN(0, g)
#endif
#if GROUPS == 2
#define CHECK assert(GRANULES(total[1]) == SUM(1) && GRANULES(total[1]) <= CAP); \
	assert(GRANULES(total[2]) == SUM(2) && GRANULES(total[2]) <= CAP)
#else
#define CHECK assert(GRANULES(total[1]) == SUM(1) && GRANULES(total[1]) <= CAP)
#endif

/* A write to shared memory, or a crash before it. */
#define WRITE(statement) \
	atomic { \
		if \
		:: statement; CHECK \
		:: crashes > 0 -> crashes--; goto crash \
		fi \
	}

/* total_help(): g and t are the caller's; q, o2 scratch, as is behind. */
inline help(g, t)
{
#ifdef MUTANT_NO_HELP
	skip
#else
	q = SLOT(t);
	if
	:: q < SLOTS ->
		if
		:: group[q] == g ->
			o2 = SEQ(op[q]);
			behind = (o2 - TAG_SEQ(t)) & TAG_MASK;
			if
			:: behind <= 1 && behind <= o2 ->
				if
				:: group[q] == g ->
					if
					:: total[g] == t ->
						WRITE(done[q] = (done[q] > o2 - behind -> done[q] : o2 - behind))
					:: else
					fi
				:: else
				fi
			:: else
			fi
		:: else
		fi
	:: else
	fi;
	behind = 0;
	q = 0; o2 = 0
#endif
}

/* slot_retire(): i is the slot; o, next, t, u, g scratch. */
inline retire(i, by_owner)
{
	do
	:: o = op[i];
		if
		:: IS_ZERO(o) -> break
		:: else
		fi;
#ifndef MUTANT_NO_DEATH_CHECK
		if
		:: !by_owner && live[i] == HELD -> break
		:: else
		fi;
#endif
		g = group[i];
		if
		:: g == 0 -> next = ((SEQ(o) + 1) << 3)
		:: g != 0 && (o & ACTIVE) && (o & PENDING) ->
			t = total[g];
			if
			:: IN_TOTAL(i, t, SEQ(o)) -> next = (o ^ PENDING) ^ SECOND
			:: else -> next = o ^ PENDING
			fi
		:: g != 0 && (o & ACTIVE) && !(o & PENDING) ->
			next = (((o - (o & 7)) | (o & SECOND)) | PENDING) + 8
		:: else ->
			u = used[2 * i + INDEX(o)];
			t = total[g];
#ifndef MUTANT_NO_RECHECK
			if
			:: op[i] != o -> next = -1
			:: else -> next = 0
			fi;
#else
			next = 0;
#endif
			if
			:: next == -1
			:: next != -1 && IN_TOTAL(i, t, SEQ(o)) -> next = SEQ(o) << 3
			:: else ->
				help(g, t);
				WRITE(if
				:: total[g] == t ->
					total[g] = TOTAL((GRANULES(t) > u -> GRANULES(t) - u : 0), i, SEQ(o));
					next = SEQ(o) << 3
				:: else -> next = -1
				fi)
			fi
		fi;
		if
		:: next != -1 ->
			WRITE(if
			:: op[i] == o -> op[i] = next
			:: else
			fi)
		:: else
		fi
	od;
	o = 0; next = 0; t = 0; u = 0; g = 0
}

inline reap()
{
	r = 0;
	do
	:: r < SLOTS ->
		if
		:: live[r] == DEAD -> retire(r, false)
		:: else
		fi;
		r++
	:: else -> break
	od;
	r = 0
}

/* move(): from `mine` to `to`; refused is set when it does not fit. */
inline move(to)
{
	t = total[home];
	refused = 0;
	if
	:: to > mine && GRANULES(t) + to - mine > CAP -> refused = 1
	:: else ->
		/* One step: nobody reads that half of `used` before `op` says so. */
		WRITE(assert(op[s] == myop); used[2 * s + 1 - INDEX(myop)] = to;
			op[s] = myop + 8 + PENDING);
		do
		:: if
			:: SLOT(t) != s -> help(home, t)
			:: else
			fi;
			WRITE(if
			:: total[home] == t ->
				total[home] = TOTAL(GRANULES(t) + to - mine, s, SEQ(myop) + 1); ok = 1
			:: else -> t = total[home]; ok = 0
			fi);
			if
			:: ok -> myop = (myop + 8) ^ SECOND; break
			:: !ok && to > mine && GRANULES(t) + to - mine > CAP ->
				refused = 1; myop = myop + 8; break
			:: else
			fi
		od;
		ok = 0;
		WRITE(op[s] = myop);
		if
		:: !refused -> mine = to
		:: else
		fi
	fi;
	t = 0
}

/* Claims a slot (claim_slot) and enters group `home` (appear, activate). */
inline join()
{
	WRITE(if
	:: live[0] != HELD -> live[0] = HELD; s = 0
#if SLOTS > 1
	:: live[1] != HELD -> live[1] = HELD; s = 1
#endif
#if SLOTS == 3
	:: live[2] != HELD -> live[2] = HELD; s = 2
#endif
#if SLOTS < WORKERS
	:: else -> goto end
#endif
	fi);
	retire(s, true);
	WRITE(group[s] = 0);
	/* A tag that somebody writes again after this is one of our operations. */
#ifndef MUTANT_NO_WASH
	do
	:: t = total[home];
		if
		:: SLOT(t) == s ->
			WRITE(if
			:: total[home] == t -> total[home] = TOTAL(GRANULES(t), NO_SLOT, TAG_SEQ(t))
			:: else
			fi)
		:: else -> break
		fi
	od;
#endif
	WRITE(used[2 * s] = 0; used[2 * s + 1] = 0);
	WRITE(group[s] = home);
	o = op[s];
	myop = ((SEQ(o) + 1) << 3) | ACTIVE;
	o = 0;
	WRITE(op[s] = myop)
}

proctype worker()
{
	short t, o, o2, next, myop;
	byte s = NO_SLOT, q, u, g, r, behind, mine, want, home, ops, lives = LIVES;
	bit ok, refused;

	do
	:: lives > 0 ->
		lives--;
		if
		:: home = 1
#if GROUPS == 2
		:: home = 2
#endif
		fi;
#ifdef SEATED
		atomic {
			s = _pid - 1; home = 1; live[s] = HELD; group[s] = home;
			myop = 8 | ACTIVE; op[s] = myop
		}
#else
		join();
#endif
		ops = OPS;
		do
		:: ops > 0 ->
			ops--;
			if
			:: mine > 0 -> move(0)
			:: mine < MOST -> want = mine + 1; move(want);
				if
				:: refused -> reap(); move(want)
				:: else
				fi
			:: mine + 1 < MOST -> want = mine + 2; move(want);
				if
				:: refused -> reap(); move(want)
				:: else
				fi
			fi;
			want = 0; refused = 0
		:: break
		od;
		ops = 0;
#ifdef SEATED
		break; /* stays, or crashes when it likes */
#endif
		retire(s, true);
		WRITE(live[s] = FREE);
		s = NO_SLOT; myop = 0; mine = 0; home = 0
	:: else -> break
	od;
#ifdef SEATED
	goto crash; /* ends here, as by a crash after the last step */
#endif
	goto end;
crash:
	atomic {
		if
		:: s != NO_SLOT && live[s] == HELD -> live[s] = DEAD
		:: else
		fi;
	}
end:
	skip;
	d_step {
		t = 0; o = 0; o2 = 0; next = 0; myop = 0; s = 0; q = 0; u = 0; g = 0; r = 0; behind = 0;
		mine = 0; want = 0; home = 0; ops = 0; lives = 0; ok = 0; refused = 0;
		running--
	}
}

proctype reaper()
{
	short t, o, o2, next;
	byte q, u, g, r, behind;

	reap();
	goto end;
crash:
	skip;
end:
	skip;
	d_step {
		t = 0; o = 0; o2 = 0; next = 0; q = 0; u = 0; g = 0; r = 0; behind = 0;
		running--
	}
}

init
{
	short t, o, o2, next;
	byte q, u, g, r, behind;

	atomic {
		total[1] = TOTAL(0, NO_SLOT, 0);
#if GROUPS == 2
		total[2] = TOTAL(0, NO_SLOT, 0);
#endif
		for (r : 1 .. WORKERS) {
			run worker()
		}
#if REAPERS
		for (r : 1 .. REAPERS) {
			run reaper()
		}
#endif
		r = 0
	}
	running == 0;
	crashes = 0;
	reap();
	assert(GRANULES(total[1]) == 0 && IS_ZERO(op[0]) && IS_ZERO(op[SLOTS / 2]) && IS_ZERO(op[SLOTS - 1]));
#if GROUPS == 2
	assert(GRANULES(total[2]) == 0);
#endif
	goto end;
crash:
	assert(false);
end:
	skip
}
