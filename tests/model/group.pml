/*
 * Entering, making and recycling named groups (src/ledger/group.c), step by step, with a crash before any
 * write. Joiners find their group and enter it without the join lock, or make it under the lock; then they
 * stay a while and leave or crash. Checked, in every state:
 *   - the group of a joined member bears its name and its cap is at most what the member brought:
 *     nobody resets or renames a group under a member's feet, nobody's cap is lost;
 *   - no two entries of one name have joined members;
 *   - no process waits for one that is dead: no invalid end state.
 * One that waits for a stopped lock holder gives up in the code; here it may do so at any time.
 *
 * MUTANT_x removes one rule each and must be found out.
 */
#ifndef JOINERS
#define JOINERS 3
#endif
#ifndef ENTRIES
#define ENTRIES 1
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef LIVES
#define LIVES 1
#endif

#define NOBODY 255
#define DIED 254
#define NO_CAP 9

byte key[ENTRIES], epoch[ENTRIES], cap[ENTRIES];
bit open[ENTRIES];
byte in[JOINERS]; /* slot.group: entry + 1 */
bit begun[JOINERS], alive[JOINERS];
byte lock = NOBODY, crashes = CRASHES;

/* For checking only. */
bit joined[JOINERS];
byte name[JOINERS], brought[JOINERS];

#define GOOD(i) (!joined[i] || (in[i] != 0 && key[in[i] - 1] == name[i] && cap[in[i] - 1] <= brought[i]))
#define TWINS(i, j) (joined[i] && joined[j] && name[i] == name[j] && in[i] != in[j])
#define CHECK assert(GOOD(0) && GOOD(1) && GOOD(2)); \
	assert(!TWINS(0, 1) && !TWINS(0, 2) && !TWINS(1, 2))

#define WRITE(statement) \
	atomic { \
		if \
		:: statement; CHECK \
		:: crashes > 0 -> crashes--; goto crash \
		fi \
	}

/* has_member(): into yes; j scratch. */
inline has_member(g, self)
{
	yes = 0; j = 0;
	do
	:: j < JOINERS ->
		if
		:: j != self && alive[j] ->
			if
			:: in[j] == g + 1 ->
				if
				:: begun[j] -> yes = 1; break
				:: else
				fi
			:: else
			fi
		:: else
		fi;
		j++
	:: else -> break
	od;
	j = 0
}

/* close_if_empty(): yes = closed and empty. */
inline close_if_empty(g)
{
#ifndef MUTANT_NO_CLOSE
	WRITE(open[g] = 0);
#endif
	yes = 1; j = 0;
	do
	:: j < JOINERS ->
		if
		:: in[j] == g + 1 ->
			if
			:: begun[j] && alive[j] -> yes = 0
			:: begun[j] && !alive[j] -> WRITE(begun[j] = 0)
			:: else
			fi
		:: else
		fi;
		j++
	:: else -> break
	od;
	j = 0;
	if
	:: yes
	:: !yes -> WRITE(open[g] = 1)
	fi
}

inline bring_caps(g)
{
	WRITE(cap[g] = (cap[g] < brought[me] -> cap[g] : brought[me]); joined[me] = 1)
}

proctype joiner(byte me; byte my_name; byte my_cap)
{
	byte g, j, seen_epoch, lives = LIVES, tries;
	bit yes, was, fresh, got;

	do
	:: lives > 0 ->
		lives--;
		tries = 2; got = 0;
		atomic { alive[me] = 1; name[me] = my_name; brought[me] = my_cap }
		do /* without the lock */
		:: tries > 0 && !got ->
			tries--;
			g = 0;
			do
			:: g < ENTRIES ->
				if
				:: key[g] == my_name ->
					atomic { seen_epoch = epoch[g]; was = open[g] };
					if
					:: was -> break
					:: else
					fi
				:: else
				fi;
				g++
			:: else -> break
			od;
			was = 0;
			if
			:: g == ENTRIES -> tries = 0
			:: else ->
				WRITE(in[me] = g + 1);
				has_member(g, me);
				if
				:: yes ->
					WRITE(begun[me] = 1);
#ifdef MUTANT_NO_SECOND_LOOK
					got = 1
#else
					atomic {
						if
						:: open[g] && epoch[g] == seen_epoch && key[g] == my_name -> got = 1
						:: else
						fi
					}
#endif
				:: else
				fi;
				if
				:: got -> bring_caps(g)
				:: else ->
					WRITE(begun[me] = 0);
					WRITE(in[me] = 0)
				fi
			fi;
			yes = 0; seen_epoch = 0; g = 0
		:: else -> break
		od;
		if
		:: got
		:: else ->
			atomic {
				if
				:: lock == NOBODY || lock == DIED -> lock = me
				:: goto gave_up
				fi
			};
			g = 0;
			do
			:: g < ENTRIES && key[g] != my_name -> g++
			:: else -> break
			od;
			if
			:: g < ENTRIES -> close_if_empty(g); fresh = yes
			:: else ->
				g = 0; fresh = 0;
				do
				:: g < ENTRIES ->
					has_member(g, me);
					if
					:: !yes ->
						close_if_empty(g);
						if
						:: yes -> fresh = 1; break
						:: else
						fi
					:: else
					fi;
					g++
				:: else -> break
				od
			fi;
			yes = 0;
			if
			:: g < ENTRIES ->
				if
				:: fresh ->
					WRITE(key[g] = my_name);
					WRITE(cap[g] = NO_CAP)
				:: else
				fi;
				WRITE(in[me] = g + 1);
				WRITE(begun[me] = 1);
				bring_caps(g);
				if
				:: fresh -> WRITE(epoch[g]++; open[g] = 1)
				:: else
				fi;
				got = 1
			:: else
			fi;
			WRITE(lock = NOBODY);
			fresh = 0; g = 0
		fi;
		if
		:: got ->
			WRITE(joined[me] = 0; begun[me] = 0);
			WRITE(in[me] = 0)
		:: else
		fi;
gave_up:
		atomic { alive[me] = 0; begun[me] = 0; g = 0; got = 0; tries = 0 }
	:: else -> break
	od;
	goto end;
crash:
	atomic {
		alive[me] = 0; joined[me] = 0;
		if
		:: lock == me -> lock = DIED
		:: else
		fi;
		g = 0; j = 0; seen_epoch = 0; yes = 0; was = 0; fresh = 0; got = 0; tries = 0;
		if
		:: lives > 0 -> lives = 0
		:: else
		fi
	}
end:
	skip
}

init
{
	atomic {
		run joiner(0, 1, 3);
		run joiner(1, 1, 5);
		run joiner(2, 2, 4)
	}
}
