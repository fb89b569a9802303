/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lane protocol: exactly-once modification of one memory cell over a network that loses, doubles and delays.
 *
 * What is modelled
 *   Contexts      random id, never used again; a requester's reset takes a new one and flushes (SUCCESSOR).
 *   Lanes         one per context; numbers that never wrap; each request carries its floor; the node advances its
 *                 floor, then drops below it, answers a set bit as before, or executes (refuses) and sets the bit.
 *   Refusals      the key is withdrawn and given back at any time; a refusal consumes its number.  BUSY does not.
 *   Cached reply  fetch-and-add returns the same old value to every copy (VALUES).
 *   Generations   an epoch and a count.  Confirmed lanes are forgotten, singly or together (count + 1); unconfirmed
 *                 ones are given up (new epoch); the node is reset (new epoch).  0 means none and never executes.
 *   STALE         with echo; for a known lane it names the lane's generation, else the node's; it concerns the whole
 *                 lane: same epoch, same numbers again; another epoch, whatever was ever sent completes as UNKNOWN.
 *   First contact is a CONFIRM without generation.  A CONFIRM that may execute creates the lane as a request would.
 *   READ          no lane state; carries the generation; served when its epoch is the node's, or that of its own
 *                 context's lane if the node knows it (NR reads, with VALUES).
 *
 * The network is the set of all messages ever sent.  Any of them may be delivered at any time, any number of times,
 * or never, so loss, doubling, reordering and arbitrarily late copies need no events of their own, and sending the
 * same message again changes nothing.  Three things follow and keep the search small.  What changes nothing at its
 * sender is sent at once, since it need not be delivered: every confirmation, and every repetition of a request that
 * was sent before; only a first sending is a step.  Requests are posted as soon as the window has room: posted and
 * not yet sent is the same as not yet posted.  Answers that can match nothing any more are taken out of the set.
 * Each step below is atomic; what a real machine does in between touches no shared state.
 *
 * Bounds (knobs, set by check-model.sh): N0 and N1 modifications in the two contexts, window W = 2, G generations
 * (so G - 1 resets, forgettings and givings-up together), NR reads.  Timeouts, key changes, BUSY: unbounded.
 *
 * With TRACE the model is not searched but run at random, and tells everything that the node does: see trace.pml.
 *
 * Invariants 2, 3, 5, 6, 7 and 9 are the assertions inv*; the claim_* ones are described where they stand.  The
 * memory cell changes only where a request executes, so an operation is linearizable when it executes exactly once
 * between post and completion and returns what it found there.
 */

#ifndef N0
#define N0 2            /* modifications in context 0 */
#endif
#ifndef N1
#define N1 0            /* modifications in context 1; 0: there is none */
#endif
#ifndef G
#define G 3             /* generations 1..G; 0 is none */
#endif
#ifndef NR
#define NR 0            /* reads in context 0 */
#endif
#ifndef KEYS
#define KEYS 0          /* 1: the key is withdrawn and given back */
#endif
#ifndef SUCCESSOR
#define SUCCESSOR 0     /* 1: context 1 is what requester 0 takes after its reset, else it is another requester */
#endif
#ifndef VALUES
#define VALUES 0        /* 1: a value; number 0 is a fetch-and-add, others are WRITEs; 2: context 1 only WRITEs */
#endif
#ifndef CALM
#define CALM 0          /* K > 0: once calm, the oldest request completes within K exchanges */
#endif

#if defined(BROKEN_NO_ECHO) || defined(BROKEN_SAME_CONTEXT) || defined(BROKEN_READ_NODE_EPOCH)
#define ALL_STALES                      /* keep those that could match nothing if the rules held */
#endif

#define W 2
#define IS_FETCH_ADD(c, n) ((n) == 0 && ((c) == 0 || VALUES == 1))
#define NM 4                            /* numbers per context in the arrays */
#define NC 2
#define BELOW 99
#define BIT(i) (1 << (i))
#define I(c, n) ((c) * NM + (n))
#define N(c) ((c) -> N1 : N0)

/* Requests in the set: modifications (number, floor, generation), confirmations (floor, generation). */
#define MODBIT(n, f, g) BIT(((g) - 1) * 10 + (n) * ((n) + 1) / 2 + (f))
#define CONFBIT(f, g) BIT((g) * 5 + (f))
#define STALEBIT(g, echo) BIT((echo) * G + (g) - 1)
#define STALES_FROM(echo) ~(BIT((echo) * G) - 1)
#define READBIT(r, g) BIT((r) * G + (g) - 1)

#define FREE 0
#define OUT 1
#define OK 2
#define REFUSED 3
#define TIMEOUT 4
#define UNKNOWN 5
#define FLUSHED 6

/* Kinds of answers, for the exchange of the calm phase. */
#define NONE 0
#define A_OK 1
#define A_REFUSED 2
#define A_STALE 3
#define A_OTHER 4

/* Broken variants that change how something is looked up. */
#ifdef BROKEN_SAME_CONTEXT
#define L(c) 0                          /* the successor keeps the id of the context before it */
#else
#define L(c) (c)
#endif
#ifdef BROKEN_READ_TAG
#define TAG(r) 0                        /* a read is named by its slot, which is used again */
#else
#define TAG(r) (r)
#endif
#ifdef BROKEN_WRAP
#define WRAP(x) ((x) % 4)
#else
#define WRAP(x) (x)
#endif

#ifdef TRACE
#define REACH(i) skip;
#else
/* Not part of the state: what the search has met, printed once each, so that a run which proves nothing shows. */
c_decl {
    static unsigned long reach_seen;
    static const char *const reach_name[] = {
        "ok", "refused", "timeout", "unknown", "flushed", "duplicate-answered", "below-floor", "stale-unknown-lane",
        "stale-known-lane", "stale-same-epoch", "stale-new-epoch", "busy", "forgotten", "forgotten-together",
        "given-up", "node-reset", "confirm-created-lane", "confirm-acknowledged", "read-done", "read-by-lane",
        "read-stale", "read-late-dropped", "calm-done", "executed-after-timeout", "executed-after-flush",
    };
    static void reach(int i)
    {
        if (!(reach_seen >> i & 1)) {
            reach_seen |= 1ul << i;
            printf("reached: %s\n", reach_name[i]);
        }
    }
}
#define REACH(i) c_code { reach(i); };
#endif

/* Requesters. */
byte st[NC * NM];       /* status of each modification */
byte sent[NC];          /* numbers sent under a generation of the present epoch and outstanding */
byte nxt[NC];           /* next number: those before it are posted */
byte rgen[NC];          /* generation known for the lane */
bit alive[NC];
/* The node. */
byte cur = 1;           /* its generation */
byte newep = 2;         /* bit g: generation g began a new epoch */
bit key = 1;
byte lg[NC];            /* generation of the lane, 0: lane unknown */
byte lf[NC];            /* floor */
byte lb[NC];            /* bit i: number floor + i was executed or refused */
byte lr[NC];            /* bit i: it was refused */
/* The network. */
int mods[NC];
int confs[NC];
int stales[NC];
byte oks[NC];
byte refs[NC];
#ifdef BROKEN_BUSY_IS_REFUSAL
byte busies[NC];
#endif
/* What only the assertions know. */
byte done[NC];          /* numbers executed */
byte fence[NC];         /* highest floor that the node has acknowledged */
bit lost[NC];           /* the lane was not kept over a change of generation that the requester has not seen yet */
byte resetgen;          /* generation since the node's last reset */
#if VALUES
byte cell;
byte lv[NC * NM];       /* cached replies of unfinished fetch-and-adds */
byte vals[NC * NM];     /* values in answers on the network, as a set */
byte found[NC * NM];    /* value found at execution */
#endif
#if NR > 0
byte rst[NR];           /* status of each read */
int reads;              /* read requests on the network */
byte rresp[NR];         /* values in responses on the network, as a set */
byte rheld[NR];         /* values the cell has held since the read was posted, as a set */
byte other = 5;         /* value that somebody else stores next */
#endif
#if CALM
bit calm;
byte target;            /* the number (or read) that has to complete */
byte exchanges;
byte pend;              /* answer of the running exchange: kind, generation, echo */
byte pendg, pende;
#define STORMY (!calm)
#else
#define STORMY 1
#endif

/* Scratch, only within a step. */
hidden byte fl, d, i, one, fresh;
hidden byte rep, repg, repe, again;     /* the answer just given; whether it had been given before */
hidden byte inv1_one_completion, inv2_exactly_once, inv3_refused_not_applied, inv3_fence, inv5_copy_after_completion;
hidden byte inv6_own_buffer, inv7_value, inv9_sent_before_reset, claim_unknown_only_if_lane_lost, claim_progress;
hidden byte claim_generation_rises, claim_known_stale_is_late;

/*
 * claim_unknown_only_if_lane_lost: nothing completes as UNKNOWN while the node keeps its lane.
 * claim_progress: once calm, the oldest request completes within CALM exchanges.
 * claim_generation_rises: a requester never goes back to an earlier generation; so a STALE that echoes one it has left
 *   matches nothing any more and is taken out of the network.
 * claim_known_stale_is_late: a known lane answers STALE only to copies whose generation the requester has left.
 */
#define CHECK(name, cond) name = (cond); assert(name)

/* Generations a <= b belong to one epoch when none of a+1..b began a new one. */
#define SPAN(a, b) (((BIT((b) + 1) - 1) & ~(BIT((a) + 1) - 1)))
#define SAMEEP(a, b) (((a) <= (b) && (newep & SPAN(a, b)) == 0) || ((a) > (b) && (newep & SPAN(b, a)) == 0))

inline floor_of(c)
{
    fl = 0;
    do
    :: fl < nxt[c] && st[I(c, fl)] != OUT -> fl++
    :: else -> break
    od
}

/* Post what the window has room for and send what may be sent at once. */
inline refresh(c)
{
    floor_of(c);
    do
    :: alive[c] && nxt[c] < N(c) && nxt[c] - fl < W -> st[I(c, nxt[c])] = OUT; nxt[c]++
    :: else -> break
    od;
    if
    :: alive[c] -> confs[c] = confs[c] | CONFBIT(fl, rgen[c])
    :: else
    fi;
    i = fl;
    do
    :: i < nxt[c] ->
        if
        :: sent[c] & BIT(i) -> mods[c] = mods[c] | MODBIT(i, fl, rgen[c])
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    fl = 0
}

inline complete(c, n, s)
{
    CHECK(inv1_one_completion, st[I(c, n)] == OUT);
    st[I(c, n)] = s;
    sent[c] = sent[c] & ~BIT(n);
#if !defined(BROKEN_WRAP) && !defined(BROKEN_SAME_CONTEXT)
    oks[c] = oks[c] & ~BIT(n);
    refs[c] = refs[c] & ~BIT(n);
#endif
#if VALUES
    vals[I(c, n)] = 0;
#endif
}

inline complete_ok(c, n)
{
    CHECK(inv2_exactly_once, (done[c] & BIT(n)) != 0);
#if VALUES
    if
    :: IS_FETCH_ADD(c, n) -> CHECK(inv7_value, vals[I(c, n)] == BIT(found[I(c, n)]))
    :: else
    fi;
#endif
    complete(c, n, OK);
    refresh(c);
    REACH(0)
}

inline complete_refused(c, n)
{
    CHECK(inv3_refused_not_applied, (done[c] & BIT(n)) == 0);
    complete(c, n, REFUSED);
    refresh(c);
    REACH(1)
}

#if defined(BROKEN_RESEND_ACROSS_EPOCH)
#define STALE_HITS(i) && false          /* a WRITE is idempotent, so it is sent again */
#elif defined(BROKEN_STALE_ONE)
#define STALE_HITS(i) && BIT(i) == one  /* the oldest that was sent stands for the answered one */
#else
#define STALE_HITS(i)
#endif

/* The requester has taken a STALE that names generation g. */
inline accept_stale(c, g)
{
    floor_of(c);
#ifndef ALL_STALES
    if
    :: rgen[c] != 0 && fence[c] < fl -> fence[c] = fl       /* an accepted STALE is a fence as well */
    :: else
    fi;
#endif
    if
    :: rgen[c] != 0 && !SAMEEP(rgen[c], g) ->
        REACH(10)
        one = sent[c] & ~(sent[c] - 1);
        i = 0;
        do
        :: i < nxt[c] ->
            if
            :: st[I(c, i)] == OUT && (sent[c] & BIT(i)) STALE_HITS(i) ->
                CHECK(claim_unknown_only_if_lane_lost, lost[c]);
                complete(c, i, UNKNOWN);
                REACH(3)
            :: else
            fi;
            i++
        :: else -> break
        od
    :: rgen[c] != 0 && SAMEEP(rgen[c], g) -> REACH(9)
    :: else
    fi;
#ifndef ALL_STALES
    CHECK(claim_generation_rises, (g) > rgen[c]);
    stales[c] = stales[c] & STALES_FROM(g);
#endif
    rgen[c] = g;
    lost[c] = (g == cur -> 0 : lost[c]);
    refresh(c)
}

#include "trace.pml"
#include "node.pml"

/* ---- steps, one macro for each kind of message ---- */

#define MOD(c, n, f, g) \
    :: d_step { (mods[c] & MODBIT(n, f, g)) && MAY_ARRIVE(c, g) -> \
                handle_mod(c, n, f, g, 0); TELL_MOD(c, n, f, g, 0) } \
    :: d_step { (mods[c] & MODBIT(n, f, g)) && MAY_ARRIVE(c, g) && MAY_BE_BUSY(c) -> \
                handle_mod(c, n, f, g, 1); TELL_MOD(c, n, f, g, 1) }
#define CONF(c, f, g) \
    :: d_step { (confs[c] & CONFBIT(f, g)) && MAY_CONFIRM(c, g) -> handle_confirm(c, f, g); TELL_CONFIRM(c, f, g) }
#ifdef BROKEN_NO_ECHO
#define ECHOES(c, echo) true            /* whatever it echoes */
#else
#define ECHOES(c, echo) (rgen[c] == (echo))
#endif
#define STALE(c, g, echo) \
    :: d_step { alive[c] && (stales[L(c)] & STALEBIT(g, echo)) && rgen[c] != (g) && ECHOES(c, echo) -> \
                accept_stale(c, g); fl = 0; printf("context %d: accepts STALE, generation %d\n", c, g) }

#define MODS_0(c, g)
#define MODS_1(c, g) MOD(c, 0, 0, g)
#define MODS_2(c, g) MODS_1(c, g) MOD(c, 1, 0, g) MOD(c, 1, 1, g)
#define MODS_3(c, g) MODS_2(c, g) MOD(c, 2, 1, g) MOD(c, 2, 2, g)
#define CONFS_0(c, g)
#define CONFS_1(c, g) CONF(c, 0, g) CONF(c, 1, g)
#define CONFS_2(c, g) CONFS_1(c, g) CONF(c, 2, g)
#define CONFS_3(c, g) CONFS_2(c, g) CONF(c, 3, g)
#define GENS_1(c, n) MODS_##n(c, 1) CONFS_##n(c, 1) CONF(c, 0, 0) STALE(c, 1, 0)
#define GENS_2(c, n) GENS_1(c, n) MODS_##n(c, 2) CONFS_##n(c, 2) STALE(c, 2, 0) STALE(c, 2, 1) STALE(c, 1, 2)
#define GENS_3(c, n) GENS_2(c, n) MODS_##n(c, 3) CONFS_##n(c, 3) STALE(c, 3, 0) STALE(c, 3, 1) STALE(c, 3, 2) \
    STALE(c, 1, 3) STALE(c, 2, 3)
#define NETWORK_(c, n, g) GENS_##g(c, n)
#define NETWORK(c, n, g) NETWORK_(c, n, g)

#ifdef BROKEN_BUSY_IS_REFUSAL
#define BUSY_REFUSES(c, n) :: d_step { st[I(c, n)] == OUT && (busies[L(c)] & BIT(n)) -> \
                printf("context %d: %d REFUSED\n", c, n); complete_refused(c, n) }
#else
#define BUSY_REFUSES(c, n)
#endif

/* First sending, timeout, answers. */
#define PER_NUMBER(c, n) \
    :: d_step { st[I(c, n)] == OUT && !(sent[c] & BIT(n)) && rgen[c] != 0 && STORMY -> \
                sent[c] = sent[c] | BIT(n); refresh(c); printf("context %d: sends %d first\n", c, n) } \
    :: d_step { st[I(c, n)] == OUT && MAY_TIME_OUT && STORMY -> complete(c, n, TIMEOUT); refresh(c); REACH(2) \
                printf("context %d: %d TIMEOUT\n", c, n) } \
    BUSY_REFUSES(c, n) \
    :: d_step { st[I(c, n)] == OUT && (oks[L(c)] & BIT(WRAP(n))) -> \
                printf("context %d: %d OK\n", c, n); complete_ok(c, n) } \
    :: d_step { st[I(c, n)] == OUT && (refs[L(c)] & BIT(WRAP(n))) -> \
                printf("context %d: %d REFUSED\n", c, n); complete_refused(c, n) }
#define NUMBERS_1(c) PER_NUMBER(c, 0)
#define NUMBERS_2(c) PER_NUMBER(c, 0) PER_NUMBER(c, 1)
#define NUMBERS_3(c) PER_NUMBER(c, 0) PER_NUMBER(c, 1) PER_NUMBER(c, 2)
#define REQUESTER_(c, n) NUMBERS_##n(c)
#define REQUESTER(c, n) REQUESTER_(c, n)

#define CHANGES (cur < G && MAY_LOSE && STORMY)
#define LANE_LOST(c) \
    :: d_step { lg[c] && lb[c] == 0 && FORGETS_SINGLY(c) && CHANGES -> \
                drop_lane(c); next_generation(0); REACH(12) TELL_LOST(1, "node forgets lane %d, generation %d\n", c) } \
    :: d_step { lg[c] && lb[c] != 0 && CHANGES && MAY_GIVE_UP -> \
                drop_lane(c); next_generation(1); REACH(14) TELL_LOST(2, "node gives up lane %d, generation %d\n", c) }

#define READ_REQ(r, g) :: d_step { (reads & READBIT(r, g)) -> handle_read(r, g); TELL_READ(r, g) }
#define READ_REQS(r) READ_REQ(r, 1) READ_REQ(r, 2) READ_REQ(r, 3)
#define READ_RESP(r, s) \
    :: d_step { rst[r] == OUT && rresp[s] && TAG(r) == TAG(s) -> \
                printf("READ %d takes the response to READ %d\n", r, s); \
                CHECK(inv6_own_buffer, (r) == (s)); \
                CHECK(inv7_value, (rresp[r] & ~rheld[r]) == 0); \
                rst[r] = OK; rheld[r] = 0; rresp[r] = 0; REACH(18) }
#define READ(r) \
    :: d_step { rst[r] == FREE && STORMY -> rst[r] = OUT; rheld[r] = BIT(cell); \
                printf("READ %d posted, generation %d\n", r, rgen[0]) } \
    :: d_step { rst[r] == OUT && rgen[0] && STORMY -> reads = reads | READBIT(r, rgen[0]); \
                printf("READ %d sent, generation %d\n", r, rgen[0]) } \
    :: d_step { rst[r] == OUT && STORMY -> rst[r] = TIMEOUT; rheld[r] = 0; RESP_DEAD(r); \
                printf("READ %d TIMEOUT, generation %d\n", r, rgen[0]) } \
    READ_REQS(r)
#ifdef BROKEN_READ_TAG
#define RESP_DEAD(r) skip
#else
#define RESP_DEAD(r) rresp[r] = 0
#endif

#if CALM && NR > 0 && !defined(CALM_WRITE)
#define TARGET_FIND rst[0] == OUT
#define TARGET_INIT 0
#define TARGET_OUT rst[0] == OUT
#define TARGET_SEND handle_read(0, rgen[0])
#define TARGET_DONE rst[0] = OK
#elif CALM
#define TARGET_FIND (st[0] == OUT || st[1] == OUT || st[2] == OUT)
#define TARGET_INIT fl
#define TARGET_OUT st[I(0, target)] == OUT
#define TARGET_SEND sent[0] = sent[0] | BIT(target); refresh(0); handle_mod(0, target, target, rgen[0], 0)
#define TARGET_DONE complete_ok(0, target)
#endif

active proctype world()
{
    d_step {
        alive[0] = 1;
        alive[1] = (N1 > 0 && !SUCCESSOR);
        refresh(0);
        refresh(1)
    };
end:
    do
    CHOOSE
    REQUESTER(0, N0)
    NETWORK(0, N0, G)
    LANE_LOST(0)
#if N1 > 0
    REQUESTER(1, N1)
    NETWORK(1, N1, G)
    LANE_LOST(1)
    /* A batch: both at once, one step of the count. */
    :: d_step { lg[0] && lb[0] == 0 && lg[1] && lb[1] == 0 && FORGETS_TOGETHER && CHANGES ->
                drop_lane(0); drop_lane(1); next_generation(0); REACH(13)
                TELL_LOST(1, "node forgets lane %d, generation %d\n", 2) }
#endif
    /* The node is reset. */
    :: d_step { CHANGES && MAY_RESET -> drop_lane(0); drop_lane(1); next_generation(1); resetgen = cur; REACH(15)
                TELL_LOST(3, "node is reset and forgets lane %d, generation %d\n", 2) }
#if KEYS
    :: d_step { MAY_TURN_KEY && STORMY -> key = 1 - key; TELL_KEY }
#endif
#if SUCCESSOR
    /* The requester is reset: a new context; what was outstanding is flushed. */
    :: d_step { alive[0] && STORMY ->
        printf("requester is reset\n");
        alive[0] = 0;
        stales[0] = 0;
        lost[0] = 0;
        i = 0;
        do
        :: i < nxt[0] ->
            if
            :: st[I(0, i)] == OUT -> complete(0, i, FLUSHED); REACH(4)
            :: else
            fi;
            i++
        :: else -> break
        od;
        i = 0;
        alive[1] = 1;
        refresh(1) }
#endif
#if NR > 0
    READ(0)
    READ_RESP(0, 0)
#if NR > 1
    READ(1)
    READ_RESP(1, 1)
    READ_RESP(1, 0)
    READ_RESP(0, 1)
#endif
    /* Another requester's WRITE executes. */
    :: d_step { other < 7 && STORMY -> cell = other; other++; note_cell(); TELL_WRITTEN }
    /* Another requester's lane is given up: a new epoch, and this lane is kept. */
    :: d_step { CHANGES && MAY_RESET -> next_generation(1);
                TELL_LOST(4, "node gives up another lane than %d, generation %d\n", 2) }
#endif
#if CALM
    /*
     * From here on nothing is lost, timed out, reset or given up.  Old copies still arrive at will.  An exchange
     * sends the oldest request and has its answer delivered.
     */
    :: d_step { !calm && TARGET_FIND -> calm = 1; floor_of(0); target = TARGET_INIT; fl = 0;
                printf("calm, target %d\n", target) }
    :: d_step { calm && pend == NONE && TARGET_OUT ->
        CHECK(claim_progress, exchanges < CALM);
        exchanges++;
        printf("exchange %d under generation %d\n", exchanges, rgen[0]);
        rep = NONE;
        floor_of(0);
        if
        :: rgen[0] == 0 -> handle_confirm(0, fl, 0)
        :: else -> TARGET_SEND
        fi;
        fl = 0;
        pend = (rep == NONE -> A_OTHER : rep);
        pendg = (rep == A_STALE -> repg : 0);
        pende = (rep == A_STALE -> repe : 0) }
    :: d_step { calm && pend != NONE ->
        printf("its answer: kind %d, generation %d, echo %d\n", pend, pendg, pende);
        if
        :: pend == A_OK && TARGET_OUT -> TARGET_DONE; REACH(22)
        :: pend == A_REFUSED && TARGET_OUT -> complete_refused(0, target); REACH(22)
        :: pend == A_STALE && rgen[0] != pendg && ECHOES(0, pende) -> accept_stale(0, pendg); fl = 0
        :: else
        fi;
        pend = NONE; pendg = 0; pende = 0 }
#endif
    CHOSEN
    od
}
