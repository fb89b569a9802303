/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the node does, told: for people who read a counterexample (spin -t), and with TRACE for the test that has the
 * firmware do the same (tests/trace).  The search ignores it.
 *
 * With TRACE, the node forgets lanes and is busy only when the firmware could be: it forgets all lanes at rest
 * together, a lane is at rest when a CONFIRM found nothing unfinished in it, and only a lane without a window finds it
 * busy.  After TRACE events everything begins anew, so that one run yields many traces.  An event is a line of numbers:
 *
 *   @trace VALUES                    a new trace: a node that was just started, the cell is 0
 *   @mod CONTEXT NUMBER FLOOR GENERATION BUSY ADD ANSWER AGAIN GENERATION LANE-FLOOR VALUE CELL
 *   @confirm CONTEXT FLOOR GENERATION ANSWER GENERATION LANE-FLOOR
 *   @read GENERATION ANSWER GENERATION CELL
 *   @lost WHAT CONTEXT GENERATION    1 forgets, 2 gives up, 3 reset, 4 gives up another's; context 2: both
 *   @key VALID
 *   @written CELL                    by somebody else
 *
 * The answers are those of lane.pml: NONE, A_OK, A_REFUSED, A_STALE, A_OTHER (BUSY; of a CONFIRM: acknowledged).
 */
#ifdef TRACE

byte told = TRACE;      /* events of this trace */
bit rest[NC];           /* the lane is at rest: it has no window */

#if VALUES
#define CELL cell
#define CACHED(c, n) lv[I(c, n)]
#define ADDS(c, n) IS_FETCH_ADD(c, n)
#else
#define CELL 0
#define CACHED(c, n) 0
#define ADDS(c, n) 0
#endif

#define WINDOW_TAKEN(c, busy) rest[L(c)] = ((busy) -> rest[L(c)] : 0);
#define WINDOW_LEFT(c) rest[L(c)] = (lb[L(c)] == 0 -> 1 : rest[L(c)]);
#define WINDOW_GONE(c) rest[c] = 0;
#define MAY_BE_BUSY(c) (lg[c] == 0 || rest[c])
#define FORGETS_SINGLY(c) (rest[c] && (lg[1 - (c)] == 0 || !rest[1 - (c)]))
#define FORGETS_TOGETHER (rest[0] && rest[1])

/* What would crowd out the rest is rarer than chance has it. */
#define MAY_LOSE (told > 12 * cur)
#define MAY_GIVE_UP (told % 4 == 2)
#define MAY_RESET (told > 18 * cur)
#define MAY_TIME_OUT (told % 5 == 4)
#define MAY_CONFIRM(c, g) \
    ((g) == 0 -> (alive[c] && rgen[c] == 0 && stales[c] == 0) || told % 16 == 7 : told % 4 == 3)
#define MAY_ARRIVE(c, g) ((g) >= rgen[c] || told % 4 == 1)
#define MAY_TURN_KEY (told % 6 > 3)

#define TELL_MOD(c, n, f, g, busy) told++; \
    printf("@mod %d %d %d %d %d %d %d %d %d %d ", c, n, f, g, busy, ADDS(c, n), rep, again, repg, lf[c]); \
    printf("%d %d\n", CACHED(c, n), CELL)
#define TELL_CONFIRM(c, f, g) told++; printf("@confirm %d %d %d %d %d %d\n", c, f, g, rep, repg, lf[c])
#define TELL_READ(r, g) told++; printf("@read %d %d %d %d\n", g, rep, repg, CELL)
#define TELL_LOST(what, text, c) told++; printf("@lost %d %d %d\n", what, c, cur)
#define TELL_KEY told++; printf("@key %d\n", key)
#define TELL_WRITTEN told++; printf("@written %d\n", CELL)

inline start_over()
{
    i = 0;
    do
    :: i < NC ->
        sent[i] = 0; nxt[i] = 0; rgen[i] = 0; lg[i] = 0; lf[i] = 0; lb[i] = 0; lr[i] = 0; rest[i] = 0;
        mods[i] = 0; confs[i] = 0; stales[i] = 0; oks[i] = 0; refs[i] = 0; done[i] = 0; fence[i] = 0; lost[i] = 0;
        i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < NC * NM ->
        st[i] = FREE;
#if VALUES
        lv[i] = 0; vals[i] = 0; found[i] = 0;
#endif
        i++
    :: else -> break
    od;
    cur = 1;
    newep = 2;
    key = 1;
    resetgen = 0;
#if VALUES
    cell = 0;
#endif
#if NR > 0
    i = 0;
    do
    :: i < NR -> rst[i] = FREE; rresp[i] = 0; rheld[i] = 0; i++
    :: else -> break
    od;
    reads = 0;
    other = 5;
#endif
    alive[0] = 1;
    alive[1] = (N1 > 0 && !SUCCESSOR);
    refresh(0);
    refresh(1);
    told = 0;
    printf("@trace %d\n", VALUES)
}
#define CHOOSE \
    :: d_step { told >= TRACE -> start_over() } \
    :: told < TRACE -> if
#define CHOSEN \
    :: else -> told++ \
    fi

#else
#define WINDOW_TAKEN(c, busy)
#define WINDOW_LEFT(c)
#define WINDOW_GONE(c)
#define MAY_BE_BUSY(c) true
#define FORGETS_SINGLY(c) true
#define FORGETS_TOGETHER true
#define MAY_LOSE true
#define MAY_GIVE_UP true
#define MAY_RESET true
#define MAY_TIME_OUT true
#define MAY_CONFIRM(c, g) true
#define MAY_ARRIVE(c, g) true
#define MAY_TURN_KEY true
#define CHOOSE
#define CHOSEN

#define TELL_MOD(c, n, f, g, busy) \
    printf("node gets context %d number %d, floor %d, generation %d, busy %d\n", c, n, f, g, busy)
#define TELL_CONFIRM(c, f, g) printf("node gets context %d CONFIRM, floor %d, generation %d\n", c, f, g)
#define TELL_READ(r, g) printf("node gets READ %d, generation %d\n", r, g)
#define TELL_LOST(what, text, c) printf(text, c, cur)
#define TELL_KEY printf("key valid: %d\n", key)
#define TELL_WRITTEN printf("somebody else writes %d\n", cell)
#endif
