/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chains: one packet that visits several nodes, over a network that loses, doubles and delays.
 *
 * What is modelled
 *   Chains        H hops; the instruction of hop h is OPh: STORE (WRITE, REDUCE), LOAD (and LOAD_REDUCE), COMPARE.
 *                 One requester context has one sequence of numbers for all its modifying chains; the lane is
 *                 (context, node), so numbers are sparse at a node that not all of them visit (SPARSE).
 *   Hops          each checks its own segment's generation against its lane, then floor, bit, BUSY, refusal, in the
 *                 order of lane.pml.  STALE and refusals go to the requester and name the hop; only the last hop
 *                 acknowledges.  A hop that has executed a STORE or COMPARE passes on without executing; one that has
 *                 read reads again, and drops the packet where it would have to refuse it.  Behind the last STORE no
 *                 lane is needed.
 *   Payload       the value that the LOAD at hop TRACK saw (0 before), of V values; others write the cells that are
 *                 read or compared at any time.
 *   Tours         NR chains that only read and come home as the response: no lane, no bits, the epochs of their
 *                 generations only.  The second one uses the buffer of the first.
 *   Others        context 1 (N1 chains, the same hops); OTHERS: whatever else a second requester may cause: its lanes
 *                 are given up or forgotten, so that a node's generation changes though these lanes are kept.
 *   Generations   one for each node: forgotten, given up, reset as in lane.pml; at most BUDGET changes in all.
 *
 * The network, the sending at once of whatever changes nothing at its sender, and the posting are those of lane.pml; a
 * packet on its way from hop to hop is in the set like any other, so each hop may see any copy at any time.  What
 * nobody can act upon any more is taken out of the set (prune, prune_tours) unless KEEP_ALL is set.
 *
 * Bounds (knobs, set by check-model.sh): H, N0, N1, window W = 2, G generations for each node, BUDGET, V, NR.
 * Timeouts, key changes, BUSY, writes by others: unbounded.
 */

#ifndef H
#define H 2             /* hops */
#endif
#ifndef N0
#define N0 2            /* modifying chains of context 0 */
#endif
#ifndef N1
#define N1 0            /* of context 1; 0: there is none */
#endif
#ifndef G
#define G 2             /* generations 1..G of each node; 0 is none */
#endif
#ifndef BUDGET
#define BUDGET 2        /* changes of generation in all nodes together */
#endif
#ifndef V
#define V 1             /* values of payload and cells */
#endif
#ifndef NR
#define NR 0            /* tours of context 0 */
#endif
#ifndef KEYS
#define KEYS 0          /* bit k: the key at node k is withdrawn and given back */
#endif
#ifndef OTHERS
#define OTHERS 0        /* 1: a node's generation changes while the lanes modelled here are kept */
#endif
#ifndef FIRST
#define FIRST 0         /* 1: from the first contact on; 0: each node's first generation is known */
#endif
#ifndef SPARSE
#define SPARSE 0        /* 1: number 1 does not visit hop 0 */
#endif
#ifndef CALM
#define CALM 0          /* K > 0: once calm, the oldest chain completes within K exchanges */
#endif
#ifndef OP0
#define OP0 STORE
#endif
#ifndef OP1
#define OP1 STORE
#endif
#ifndef OP2
#define OP2 STORE
#endif
#ifndef TRACK
#define TRACK 0         /* the hop whose LOAD is followed */
#endif

#if defined(BROKEN_NO_ECHO) || defined(BROKEN_CONFIRM_NO_NODE) || defined(BROKEN_TOUR_NODE_EPOCH) || \
    defined(BROKEN_ONE_GENERATION)
#define KEEP_ALL                /* also what nobody could act upon if the rules held; as a knob, shows that they hold */
#endif

#define STORE 1
#define LOAD 2
#define COMPARE 3
#define OP(h) ((h) == 0 -> OP0 : ((h) == 1 -> OP1 : OP2))
#define READ_BEFORE(h) ((h) > TRACK && OP(TRACK) == LOAD)

/* The chain stores at this hop or behind it. */
#define STORES_FROM(h) (OP(h) == STORE || ((h) < 1 && OP1 == STORE) || (H == 3 && (h) < 2 && OP2 == STORE))
#ifdef BROKEN_READ_NO_LANE
#define NEEDS_LANE(h) (STORES_FROM(h) && OP(h) != LOAD) /* what is only read needs no lane, whatever is stored later */
#else
#define NEEDS_LANE(h) STORES_FROM(h)
#endif

#ifdef BROKEN_SAME_NODE
#define NODE(h) ((h) == 2 -> 0 : (h))   /* the last hop is the first node again */
#else
#define NODE(h) (h)
#endif

#define W 2
#define NM 2
#define NC (N1 > 0 -> 2 : 1)
#define CONTEXTS 2
#define BELOW 99
#define NOWHERE 9
#define BIT(i) (1 << (i))
#define I(c, n) ((c) * NM + (n))        /* of a number */
#define L(c, k) ((c) * H + (k))         /* of a lane */
#define N(c) ((c) -> N1 : N0)
#define FIRST_HOP(n) (SPARSE && (n) == 1 -> 1 : 0)
#define VISITS(n, k) ((k) >= FIRST_HOP(n))
#define AT(c, h, v) (((c) * H + (h)) * V + (v))

/* The generations in a packet, one digit for each hop. */
#if H == 2
#define VECTORS (G * G)
#else
#define VECTORS (G * G * G)
#endif
#define DIGIT(h) ((h) == 0 -> 1 : ((h) == 1 -> G : G * G))
#define GEN(vec, h) ((vec) / DIGIT(h) % G + 1)

/* Packets in the set of a hop: number and floor, and the generations. */
#define MODBIT(n, f, vec) BIT(((n) * ((n) + 1) / 2 + (f)) * VECTORS + (vec))
#define CONFBIT(f, g) BIT((g) * 3 + (f))
#define CONFS_FROM(g) ~(BIT((g) * 3) - 1)
#define STALEBIT(g, echo) BIT((echo) * G + (g) - 1)
#define STALES_FROM(echo) ~(BIT((echo) * G) - 1)

#define FREE 0
#define OUT 1
#define OK 2
#define REFUSED 3
#define TIMEOUT 4
#define UNKNOWN 5
#define REFUSED_AT(hop) (REFUSED + 8 * (hop))

/* Kinds of answers, for the exchange of the calm phase. */
#define NONE 0
#define A_OK 1
#define A_REFUSED 2
#define A_STALE 3
#define A_OTHER 4
#define A_FORWARD 5

#ifndef TRACE
/* Not part of the state: what the search has met, printed once each, so that a run which proves nothing shows. */
c_decl {
    static unsigned long reach_seen;
    static const char *const reach_name[] = {
        "ok", "refused", "refused-later-hop", "timeout", "unknown", "passed-on-again", "read-again", "dropped-again",
        "refused-again", "below-floor", "stale-unknown-lane", "stale-known-lane", "stale-same-epoch",
        "stale-new-epoch", "busy", "forgotten", "given-up", "node-reset", "confirm-created-lane",
        "confirm-acknowledged", "executed-after-timeout", "tour-home", "tour-refused", "tour-by-lane", "tour-stale",
        "tour-late-dropped", "calm-done", "unequal", "first-contact",
        "without-lane",
    };
    static void reach(int i)
    {
        if (!(reach_seen >> i & 1)) {
            reach_seen |= 1ul << i;
            printf("reached: %s\n", reach_name[i]);
        }
    }
}
#endif

/* Requesters. */
byte st[CONTEXTS * NM]; /* status of each chain */
byte sent[CONTEXTS];    /* chains sent and outstanding */
byte nxt[CONTEXTS];     /* next number: those before it are posted */
byte rgen[CONTEXTS * H];
/* The nodes. */
byte cur[H] = 1;        /* generation */
byte newep[H] = 2;      /* bit g: generation g began a new epoch */
bit key[H] = 1;
byte cell[H];
byte lg[CONTEXTS * H];  /* generation of the lane, 0: lane unknown */
byte lf[CONTEXTS * H];  /* floor */
byte lb[CONTEXTS * H];  /* bit i: number floor + i was executed or refused */
byte lr[CONTEXTS * H];  /* bit i: it was refused */
byte budget = BUDGET;
/* The network. */
int pk[CONTEXTS * H * V];       /* chains to each hop */
int confs[CONTEXTS * H];
int stales[CONTEXTS * H];
byte oks[CONTEXTS];
byte refs[CONTEXTS * H];
/* What only the assertions know. */
byte done[CONTEXTS * H];        /* numbers executed at each hop */
byte fence[CONTEXTS * H];       /* highest floor that the node has acknowledged */
bit lost[CONTEXTS * H];         /* the lane was not kept over a change of generation not yet seen by the requester */
byte resetgen[H];               /* generation since the node's last reset */
byte held[NM * H];              /* values of each hop's cell since the chain was posted, as a set */
byte stored[NM];                /* value + 1 that the chain has stored somewhere */
#if NR > 0
byte rst[NR];                   /* status of each tour */
int tk[H * V];                  /* tours to each hop */
byte trefs;                     /* refusals of tours, as a set */
byte rresp[NR];                 /* values in responses on the network, as a set */
byte rheld[NR];                 /* values that the cell of hop TRACK has held since the tour was posted, as a set */
#endif
#if CALM
bit calm;
byte target;                    /* the chain that has to complete */
byte exchanges;
byte pos = NOWHERE;             /* hop that the running exchange has come to */
byte posv, posp;                /* its generations and payload */
byte pend, pendg, pende, pendh; /* its answer: kind, generation, echo, hop */
#define STORMY (!calm)
#else
#define STORMY 1
#endif


/*
 * Scratch, only within a step.  The first three are chosen before a d_step, which must not change them: the search
 * would not take that back.
 */
hidden byte at, m, busy;
hidden byte fl, d, i, j, n, f, g, h, v, k, vec, fresh;
hidden byte rep, repg, repe, repeated;  /* the answer just given; whether to a number that had its verdict before */
hidden byte inv1_one_completion, inv2_exactly_once, inv3_refused_not_applied, inv3_fence, inv5_copy_after_completion;
hidden byte inv6_own_buffer, inv7_value, inv9_sent_before_reset, claim_unknown_only_if_lane_lost, claim_progress;
hidden byte claim_generation_rises, claim_known_stale_is_late, claim_refusal_stops_the_chain, claim_one_value,
    claim_generation_left_is_gone;

/*
 * claim_refusal_stops_the_chain: refused at a hop, the chain was executed at all before it and at none behind it.
 * claim_one_value: a chain stores the same payload wherever it stores.
 * claim_generation_left_is_gone: no node has a lane under a generation that the requester has left.
 * The others: see lane.pml.
 */
#define CHECK(name, cond) name = (cond); assert(name)

#define SPAN(a, b) (((BIT((b) + 1) - 1) & ~(BIT((a) + 1) - 1)))
#define SAMEEP(k, a, b) (((a) <= (b) && (newep[k] & SPAN(a, b)) == 0) || ((a) > (b) && (newep[k] & SPAN(b, a)) == 0))

inline floor_of(c)
{
    fl = 0;
    do
    :: fl < nxt[c] && st[I(c, fl)] != OUT -> fl++
    :: else -> break
    od
}

#ifdef BROKEN_ONE_GENERATION
#define GENERATION(c, k) rgen[L(c, 0)]  /* one for the whole chain: that of its first node */
#else
#define GENERATION(c, k) rgen[L(c, k)]
#endif

/* The generations that the requester knows; where a chain does not go, the digit is 0. */
inline vector(c, first)
{
    vec = 0;
    k = first;
    do
    :: k < H -> vec = vec + (GENERATION(c, NODE(k)) - 1) * DIGIT(k); k++
    :: else -> break
    od;
    k = 0
}
#if H == 2
#define KNOWN(c) (rgen[L(c, 0)] != 0 && rgen[L(c, 1)] != 0)
#else
#define KNOWN(c) (rgen[L(c, 0)] != 0 && rgen[L(c, 1)] != 0 && rgen[L(c, 2)] != 0)
#endif

inline post(c, n)
{
    st[I(c, n)] = OUT;
#if V > 1
    if
    :: c == 0 ->
        k = 0;
        do
        :: k < H -> held[(n) * H + k] = BIT(cell[k]); k++
        :: else -> break
        od;
        k = 0
    :: else
    fi
#endif
}

/* Post what the window has room for and send what may be sent at once. */
inline refresh(c)
{
    floor_of(c);
    do
    :: nxt[c] < N(c) && nxt[c] - fl < W -> post(c, nxt[c]); nxt[c]++
    :: else -> break
    od;
    k = 0;
    do
    :: k < H -> confs[L(c, k)] = confs[L(c, k)] | CONFBIT(fl, rgen[L(c, k)]); k++
    :: else -> break
    od;
    k = 0;
    i = fl;
    do
    :: i < nxt[c] ->
        if
        :: sent[c] & BIT(i) ->
            vector(c, FIRST_HOP(i));
            pk[AT(c, FIRST_HOP(i), 0)] = pk[AT(c, FIRST_HOP(i), 0)] | MODBIT(i, fl, vec)
        :: else
        fi;
        i++
    :: else -> break
    od;
#if NR > 0
    if
    :: c == 0 && KNOWN(0) ->
        vector(0, 0);
        i = 0;
        do
        :: i < NR ->
            if
            :: rst[i] == OUT -> tk[0] = tk[0] | BIT(i * VECTORS + vec)
            :: else
            fi;
            i++
        :: else -> break
        od
    :: else
    fi;
#endif
    i = 0;
    vec = 0;
    fl = 0
}
#include "trace-chain.pml"

inline complete(c, n, s)
{
    CHECK(inv1_one_completion, st[I(c, n)] == OUT);
    st[I(c, n)] = s;
    sent[c] = sent[c] & ~BIT(n);
    oks[c] = oks[c] & ~BIT(n);
    k = 0;
    do
    :: k < H ->
        refs[L(c, k)] = refs[L(c, k)] & ~BIT(n);
        held[(n) * H + k] = (c == 0 -> 0 : held[(n) * H + k]);
        k++
    :: else -> break
    od;
    k = 0
}

inline complete_ok(c, n)
{
    h = FIRST_HOP(n);
    do
    :: h < H -> CHECK(inv2_exactly_once, !NEEDS_LANE(h) || (done[L(c, h)] & BIT(n)) != 0); h++
    :: else -> break
    od;
    h = 0;
    complete(c, n, OK);
    refresh(c);
    REACH(0)
}

inline complete_refused(c, n, hop)
{
    CHECK(inv3_refused_not_applied, OP(hop) == LOAD || (done[L(c, hop)] & BIT(n)) == 0);
    h = FIRST_HOP(n);
    do
    :: h < H ->
        CHECK(claim_refusal_stops_the_chain,
              OP(h) == LOAD || !NEEDS_LANE(h) || ((done[L(c, h)] & BIT(n)) != 0) == (h < hop));
        h++
    :: else -> break
    od;
    h = 0;
    complete(c, n, REFUSED_AT(hop));
    refresh(c);
    if
    :: hop > FIRST_HOP(n) -> REACH(2)
    :: else -> REACH(1)
    fi
}

#if defined(BROKEN_RESEND_ACROSS_EPOCH)
#define STALE_HITS(n, k) false          /* a WRITE is idempotent, so it is sent again */
#elif defined(BROKEN_STALE_FIRST_HOP)
#define STALE_HITS(n, k) ((k) == FIRST_HOP(n))  /* only the first hop's epoch is taken to heart */
#else
#define STALE_HITS(n, k) (VISITS(n, k) && STORES_FROM(k))
#endif

/* The requester has taken a STALE from node q that names generation gen. */
inline accept_stale(c, q, gen)
{
    floor_of(c);
#ifndef KEEP_ALL
    if
    :: rgen[L(c, q)] != 0 && fence[L(c, q)] < fl -> fence[L(c, q)] = fl
    :: else
    fi;
#endif
    if
    :: rgen[L(c, q)] != 0 && !SAMEEP(q, rgen[L(c, q)], gen) ->
        REACH(13)
        i = 0;
        do
        :: i < nxt[c] ->
            if
            :: st[I(c, i)] == OUT && (sent[c] & BIT(i)) && STALE_HITS(i, q) ->
                CHECK(claim_unknown_only_if_lane_lost, lost[L(c, q)]);
                complete(c, i, UNKNOWN);
                REACH(4)
            :: else
            fi;
            i++
        :: else -> break
        od
    :: rgen[L(c, q)] != 0 && SAMEEP(q, rgen[L(c, q)], gen) -> REACH(12)
    :: else -> REACH(28)
    fi;
#ifndef KEEP_ALL
    CHECK(claim_generation_rises, (gen) > rgen[L(c, q)]);
    stales[L(c, q)] = stales[L(c, q)] & STALES_FROM(gen);
#endif
    rgen[L(c, q)] = gen;
    lost[L(c, q)] = (gen == cur[q] -> 0 : lost[L(c, q)]);
    refresh(c);
    prune(c, q)
#if NR > 0
    ; prune_tours()
#endif
}

#include "hop.pml"
#include "tour.pml"

#ifdef BROKEN_NO_ECHO
#define ECHOES(c, k, echo) true         /* whatever it echoes */
#else
#define ECHOES(c, k, echo) (rgen[L(c, k)] == (echo))
#endif
#ifdef BROKEN_CONFIRM_NO_NODE
#define FROM_NODE(c, k, g, echo) \
    ((stales[L(c, k)] & STALEBIT(g, echo)) || ((echo) == 0 && (stales[L(c, 1 - (k))] & STALEBIT(g, 0))))
#else
#define FROM_NODE(c, k, g, echo) (stales[L(c, k)] & STALEBIT(g, echo))
#endif
#define STALE(c, k, g, echo) \
    :: d_step { FROM_NODE(c, k, g, echo) && rgen[L(c, k)] != (g) && ECHOES(c, k, echo) -> \
                printf("context %d: accepts STALE from node %d, generation %d\n", c, k, g); accept_stale(c, k, g) }
#define STALES_1(c, k) STALE(c, k, 1, 0)
#define STALES_2(c, k) STALES_1(c, k) STALE(c, k, 2, 0) STALE(c, k, 2, 1) STALE(c, k, 1, 2)
#define STALES_3(c, k) STALES_2(c, k) STALE(c, k, 3, 0) STALE(c, k, 3, 1) STALE(c, k, 3, 2) STALE(c, k, 1, 3) \
    STALE(c, k, 2, 3)
#define STALES_(c, k, g) STALES_##g(c, k)
#define STALES(c, k, g) STALES_(c, k, g)

/* A node loses lanes or is reset, and its generation changes. */
#define CHANGES(k) (cur[k] < G && budget > 0 && MAY_LOSE && STORMY)
#define LANE_LOST(c, k) \
    :: d_step { lg[L(c, k)] && lb[L(c, k)] == 0 && FORGETS_SINGLY(c, k) && CHANGES(k) -> \
                drop_lane(c, k); next_generation(k, 0); REACH(15) \
                TELL_LOST(1, "node %d forgets lane %d, generation %d\n", k, c) } \
    :: d_step { lg[L(c, k)] && lb[L(c, k)] != 0 && CHANGES(k) && MAY_GIVE_UP -> \
                drop_lane(c, k); next_generation(k, 1); REACH(16) \
                TELL_LOST(2, "node %d gives up lane %d, generation %d\n", k, c) }
#define RESET(k) \
    :: d_step { CHANGES(k) && MAY_RESET -> \
                drop_lane(0, k); drop_lane(1, k); next_generation(k, 1); resetgen[k] = cur[k]; REACH(17) \
                TELL_LOST(3, "node %d is reset and forgets lane %d, generation %d\n", k, 2) }
#if OTHERS
#define OTHER_LANES(k) \
    :: d_step { CHANGES(k) && MAY_RESET -> next_generation(k, 1); \
                TELL_LOST(4, "node %d gives up another lane than %d, generation %d\n", k, 2) } \
    :: d_step { CHANGES(k) && MAY_RESET && NONE_AT_REST(k) -> next_generation(k, 0); \
                TELL_LOST(5, "node %d forgets another lane than %d, generation %d\n", k, 2) }
#else
#define OTHER_LANES(k)
#endif
#define KEY(k) \
    :: d_step { (KEYS & BIT(k)) && MAY_TURN_KEY && STORMY -> key[k] = 1 - key[k]; TELL_KEY(k) }
/* Another requester's WRITE executes. */
#define WRITTEN(k) \
    :: d_step { V > 1 && FOLLOWED(k) && MAY_WRITE && STORMY -> cell[k] = (cell[k] + 1) % V; note_cell(k); \
                TELL_WRITTEN(k) }
#define NODE_EVENTS(k) LANE_LOST(0, k) RESET(k) OTHER_LANES(k) KEY(k) WRITTEN(k)

#define REFUSAL(c, n, k) \
    :: d_step { st[I(c, n)] == OUT && (refs[L(c, k)] & BIT(n)) -> \
                printf("context %d: %d REFUSED at hop %d\n", c, n, k); complete_refused(c, n, k) }
#if H == 3
#define THIRD(x) x
#else
#define THIRD(x)
#endif
/* First sending, timeout, answers. */
#define PER_NUMBER(c, n) \
    :: d_step { st[I(c, n)] == OUT && !(sent[c] & BIT(n)) && KNOWN(c) && STORMY -> \
                sent[c] = sent[c] | BIT(n); refresh(c); printf("context %d: sends %d first\n", c, n) } \
    :: d_step { st[I(c, n)] == OUT && MAY_TIME_OUT && STORMY -> complete(c, n, TIMEOUT); refresh(c); REACH(3) \
                printf("context %d: %d TIMEOUT\n", c, n) } \
    :: d_step { st[I(c, n)] == OUT && (oks[c] & BIT(n)) -> \
                printf("context %d: %d OK\n", c, n); complete_ok(c, n) } \
    REFUSAL(c, n, 0) REFUSAL(c, n, 1) THIRD(REFUSAL(c, n, 2))

/* One copy of a chain arrives at a hop. */
#define PICK_AT(a) :: pk[a] -> at = a
#define PICK(i) :: (pk[at] & BIT(i)) -> m = i
#define PICK8(i) PICK(i) PICK(i + 1) PICK(i + 2) PICK(i + 3) PICK(i + 4) PICK(i + 5) PICK(i + 6) PICK(i + 7)
#define ARRIVES(c, hop, value) \
    :: atomic { pk[AT(c, hop, value)] -> at = AT(c, hop, value); if PICK8(0) PICK8(8) PICK8(16) PICK8(24) fi; \
                if :: busy = 0 :: MAY_BE_BUSY(c, NODE(hop)) -> busy = 1 fi; \
                d_step { number_of(m); vec = m % VECTORS; handle(c, hop, value); TELL_HOP(c, hop, value); clean() } }
#if V == 1
#define ARRIVALS(c, hop) ARRIVES(c, hop, 0)
#else
#define ARRIVALS(c, hop) ARRIVES(c, hop, 0) ARRIVES(c, hop, 1)
#endif
#define CONFIRMS(c, k) \
    :: atomic { confs[L(c, k)] && MAY_CONFIRM(c, k) -> at = L(c, k); \
                if CONF(0) CONF(1) CONF(2) CONF(3) CONF(4) CONF(5) CONF(6) CONF(7) CONF(8) CONF(9) CONF(10) CONF(11) \
                fi; \
                d_step { f = m % 3; handle_confirm(c, k, m / 3); TELL_CONFIRM(c, k, m / 3); clean() } }
#define CONF(i) :: (confs[at] & BIT(i)) -> m = i

#define CONTEXT_AT(c, k) ARRIVALS(c, k) CONFIRMS(c, k) STALES(c, k, G)

active proctype world()
{
    d_step {
#if !FIRST
        k = 0;
        do
        :: k < H -> rgen[L(0, k)] = 1; rgen[L(1, k)] = 1; k++
        :: else -> break
        od;
#endif
        refresh(0);
        refresh(1)
    };
end:
    do
    CHOOSE
    PER_NUMBER(0, 0)
#if N0 > 1
    PER_NUMBER(0, 1)
#endif
    CONTEXT_AT(0, 0) CONTEXT_AT(0, 1) THIRD(CONTEXT_AT(0, 2))
    NODE_EVENTS(0) NODE_EVENTS(1) THIRD(NODE_EVENTS(2))
#if N1 > 0
    PER_NUMBER(1, 0)
    CONTEXT_AT(1, 0) CONTEXT_AT(1, 1) THIRD(CONTEXT_AT(1, 2))
    LANE_LOST(1, 0) LANE_LOST(1, 1) THIRD(LANE_LOST(1, 2))
#endif
#if NR > 0
    TOURS
#endif
#if CALM
    /*
     * From here on nothing is lost, timed out, reset or given up.  Old copies still arrive at will, at any hop and
     * between the steps of an exchange, which sends the oldest chain hop by hop and has its answer delivered.
     */
    :: d_step { !calm && st[0] == OUT && sent[0] & 1 -> calm = 1; printf("calm\n") }
    :: d_step { calm && pos == NOWHERE && pend == NONE && st[0] == OUT ->
        CHECK(claim_progress, exchanges < CALM);
        exchanges++;
        vector(0, 0);
        pos = 0;
        posv = vec;
        vec = 0;
        printf("exchange %d\n", exchanges) }
    :: d_step { calm && pos != NOWHERE ->
        n = 0; f = 0; vec = posv; busy = 0;
        printf("it is at hop %d under generation %d\n", pos, GEN(vec, pos));
        h = pos;
        rep = NONE;
        if
        :: h == 0 -> handle(0, 0, 0)
        :: h == 1 -> handle(0, 1, posp)
#if H == 3
        :: h == 2 -> handle(0, 2, posp)
#endif
        fi;
        if
        :: rep == A_FORWARD -> pos++; posp = v
        :: else ->
            pend = (rep == NONE -> A_OTHER : rep);
            pendg = (rep == A_STALE -> repg : 0);
            pende = (rep == A_STALE -> repe : 0);
            pendh = pos;
            pos = NOWHERE;
            posv = 0;
            posp = 0
        fi;
        clean() }
    :: d_step { calm && pend != NONE ->
        printf("its answer: kind %d, generation %d, echo %d\n", pend, pendg, pende);
        if
        :: pend == A_OK && st[0] == OUT -> complete_ok(0, 0); REACH(26)
        :: pend == A_REFUSED && st[0] == OUT -> complete_refused(0, 0, pendh); REACH(26)
        :: pend == A_STALE && rgen[L(0, pendh)] != pendg && ECHOES(0, pendh, pende) -> accept_stale(0, pendh, pendg)
        :: else
        fi;
        pend = NONE; pendg = 0; pende = 0; pendh = 0; clean() }
#endif
    CHOSEN
    od
}
