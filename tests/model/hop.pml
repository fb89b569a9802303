/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hop of a chain: what it does with a packet, a confirmation, and how it loses lanes.
 * Part of chain.pml, which declares the state and says what is covered and within which bounds.
 */

inline clean()
{
    n = 0; f = 0; h = 0; v = 0; vec = 0; d = 0; fresh = 0; rep = 0; repg = 0; repe = 0; g = 0; k = 0;
    fl = 0; i = 0; j = 0
}

inline number_of(index)
{
    n = (index / VECTORS > 0 -> 1 : 0);
    f = (index / VECTORS > 1 -> 1 : 0)
}

/*
 * What node q can no longer act upon is taken out of the network: its generation is one that the requester has left,
 * so that no lane will have it again (claim_known_stale_is_late), or its number is below the floor of the lane it
 * belongs to.
 */
inline prune(c, q)
{
#ifndef KEEP_ALL
    CHECK(claim_generation_left_is_gone, lg[L(c, q)] == 0 || lg[L(c, q)] >= rgen[L(c, q)]);
    confs[L(c, q)] = confs[L(c, q)] & CONFS_FROM(rgen[L(c, q)]);
    j = 0;
    do
    :: j < 3 * VECTORS ->
        if
        :: NEEDS_LANE(q) && (GEN(j % VECTORS, q) < rgen[L(c, q)] ||
           (GEN(j % VECTORS, q) == lg[L(c, q)] && (j / VECTORS > 0 -> 1 : 0) < lf[L(c, q)])) ->
            pk[AT(c, q, 0)] = pk[AT(c, q, 0)] & ~BIT(j);
#if V > 1
            pk[AT(c, q, 1)] = pk[AT(c, q, 1)] & ~BIT(j)
#endif
        :: else
        fi;
        j++
    :: else -> break
    od;
#endif
    j = 0
}

#ifdef KEEP_ALL
#define DEAD_ECHO(c, q, echo) false
#else
#define DEAD_ECHO(c, q, echo) ((echo) < rgen[L(c, q)])
#endif
inline answer_stale(c, q, gen, echo)
{
#ifndef KEEP_ALL
    if
    :: lg[L(c, q)] != 0 -> CHECK(claim_known_stale_is_late, (echo) < rgen[L(c, q)])
    :: else
    fi;
#endif
    if
    :: !DEAD_ECHO(c, q, echo) -> stales[L(c, q)] = stales[L(c, q)] | STALEBIT(gen, echo)
    :: else
    fi;
    rep = A_STALE;
    repg = gen;
    repe = echo;
    if
    :: lg[L(c, q)] -> REACH(11)
    :: else -> REACH(10)
    fi
}

inline answer_ok(c)
{
    oks[c] = oks[c] | (st[I(c, n)] == OUT -> BIT(n) : 0);
    rep = A_OK
}

inline answer_refused(c, hop)
{
    refs[L(c, hop)] = refs[L(c, hop)] | (st[I(c, n)] == OUT -> BIT(n) : 0);
    rep = A_REFUSED
}

/* With payload v to the next hop; from the last one, the acknowledgement. */
inline pass_on(c, hop)
{
#ifdef BROKEN_MIDDLE_ACKNOWLEDGES
    if
    :: hop < H - 1 -> answer_ok(c)
    :: else
    fi;
#endif
    if
    :: hop == H - 1 -> answer_ok(c)
    :: else ->
        pk[AT(c, hop + 1, v)] = pk[AT(c, hop + 1, v)] | MODBIT(n, f, vec);
        prune(c, NODE(hop + 1));
        rep = A_FORWARD
    fi
}

inline acknowledge(c, q)
{
    if
    :: fence[L(c, q)] < f -> fence[L(c, q)] = f
    :: else
    fi
}

inline advance(c, q)
{
    d = (f > lf[L(c, q)] -> f - lf[L(c, q)] : 0);
    lf[L(c, q)] = lf[L(c, q)] + d;
    acknowledge(c, q);
    lb[L(c, q)] = lb[L(c, q)] >> d;
    lr[L(c, q)] = lr[L(c, q)] >> d
}

inline note_cell(q)
{
#if V > 1
    i = 0;
    do
    :: i < N0 ->
        if
        :: st[I(0, i)] == OUT -> held[i * H + q] = held[i * H + q] | BIT(cell[q])
        :: else
        fi;
        i++
    :: else -> break
    od;
#if NR > 0
    i = 0;
    do
    :: i < NR ->
        if
        :: rst[i] == OUT && q == TRACK -> rheld[i] = rheld[i] | BIT(cell[q])
        :: else
        fi;
        i++
    :: else -> break
    od;
#endif
#endif
    i = 0
}

/* What is stored was read there, or has been compared with what is there. */
#define FOLLOWED(hop) ((OP(hop) == LOAD && hop == TRACK) || OP(hop) == COMPARE)
inline store(c, hop, value)
{
#if V > 1
    k = 0;
    do
    :: k < hop -> CHECK(inv7_value, st[n] != OUT || !FOLLOWED(k) || (held[n * H + k] & BIT(value))); k++
    :: else -> break
    od;
    k = 0;
#endif
    CHECK(claim_one_value, stored[n] == 0 || c != 0 || stored[n] == value + 1);
    stored[n] = (c == 0 -> value + 1 : stored[n])
}

inline execute(c, hop, value)
{
    CHECK(inv2_exactly_once, (done[L(c, hop)] & BIT(n)) == 0);
    CHECK(inv5_copy_after_completion, OP(hop) == LOAD || st[I(c, n)] != OK);
    CHECK(inv3_refused_not_applied, OP(hop) == LOAD || st[I(c, n)] != REFUSED_AT(hop));
    CHECK(inv5_copy_after_completion, OP(hop) == LOAD || st[I(c, n)] % 8 != REFUSED);
    CHECK(inv3_fence, n >= fence[L(c, NODE(hop))]);
    CHECK(inv9_sent_before_reset, GEN(vec, hop) >= resetgen[NODE(hop)]);
    done[L(c, hop)] = done[L(c, hop)] | BIT(n);
    if
    :: OP(hop) == STORE -> store(c, hop, value)
    :: else
    fi;
    if
    :: st[I(c, n)] == TIMEOUT -> REACH(20)
    :: else
    fi
}

inline drop_lane(c, q)
{
    WINDOW_GONE(c, q)
    lg[L(c, q)] = 0;
    lf[L(c, q)] = 0;
    lb[L(c, q)] = 0;
    lr[L(c, q)] = 0
}

/* What the packet carries on from this hop. */
inline carry(hop, value)
{
    v = (OP(hop) == LOAD && hop == TRACK -> cell[NODE(hop)] : value)
}
#define UNEQUAL(hop, value) (OP(hop) == COMPARE && cell[NODE(hop)] != (value))

/* Once more at a hop that has executed it. */
inline again(c, hop, value)
{
    if
#ifdef BROKEN_REFUSED_AFTER_EXECUTION
    :: !key[NODE(hop)] && OP(hop) != LOAD -> answer_refused(c, hop)
#endif
#ifdef BROKEN_NOT_PASSED_ON
    :: OP(hop) == STORE && hop < H - 1 -> skip
#endif
    :: OP(hop) == LOAD ->
        if
        :: key[NODE(hop)] -> carry(hop, value); pass_on(c, hop); REACH(6)
#ifdef BROKEN_READ_AGAIN_REFUSES
        :: else -> answer_refused(c, hop)
#else
        :: else -> REACH(7)
#endif
        fi
#ifndef BROKEN_COMPARE_NOT_AGAIN
    /* The payload may be another one than that which was compared. */
    :: OP(hop) == COMPARE && READ_BEFORE(hop) && UNEQUAL(hop, value) -> REACH(7)
#endif
    :: else -> v = value; pass_on(c, hop); REACH(5)
    fi
}

/* A new number at a hop. */
inline anew(c, hop, value)
{
    WINDOW_TAKEN(c, NODE(hop))
    if
    :: busy -> rep = A_OTHER; REACH(14)
    :: !busy && (!key[NODE(hop)] || UNEQUAL(hop, value)) ->
#ifndef BROKEN_REFUSAL_NO_TRACE
        lb[L(c, NODE(hop))] = lb[L(c, NODE(hop))] | BIT(d);
        lr[L(c, NODE(hop))] = lr[L(c, NODE(hop))] | BIT(d);
#endif
        if
        :: UNEQUAL(hop, value) -> REACH(27)
        :: else
        fi;
        answer_refused(c, hop)
    :: else ->
        execute(c, hop, value);
        lb[L(c, NODE(hop))] = lb[L(c, NODE(hop))] | BIT(d);
        carry(hop, value); pass_on(c, hop)
    fi
}

/* Behind the last store nothing has to be remembered: the epoch is enough, as for a READ. */
inline without_lane(c, hop, value)
{
    if
    :: !SAMEEP(NODE(hop), g, cur[NODE(hop)]) &&
       (lg[L(c, NODE(hop))] == 0 || !SAMEEP(NODE(hop), g, lg[L(c, NODE(hop))])) ->
        repg = (lg[L(c, NODE(hop))] -> lg[L(c, NODE(hop))] : cur[NODE(hop)]);
        answer_stale(c, NODE(hop), repg, g)
    :: else ->
        CHECK(inv9_sent_before_reset, g >= resetgen[NODE(hop)]);
        if
        :: key[NODE(hop)] && !UNEQUAL(hop, value) -> carry(hop, value); pass_on(c, hop); REACH(29)
        :: else -> answer_refused(c, hop)
        fi
    fi
}

/* Number n, floor f, generations vec and payload `value` at a hop. */
inline handle(c, hop, value)
{
    rep = NONE;
    repg = 0;
    repeated = 0;
    v = 0;
    g = GEN(vec, hop);
    if
    :: !NEEDS_LANE(hop) -> without_lane(c, hop, value)
    :: NEEDS_LANE(hop) && lg[L(c, NODE(hop))] == 0 && g != cur[NODE(hop)] ->
        answer_stale(c, NODE(hop), cur[NODE(hop)], g)
    :: NEEDS_LANE(hop) && lg[L(c, NODE(hop))] != 0 && g != lg[L(c, NODE(hop))] ->
        answer_stale(c, NODE(hop), lg[L(c, NODE(hop))], g)
    :: NEEDS_LANE(hop) && lg[L(c, NODE(hop))] == 0 && g == cur[NODE(hop)] && busy ->
        rep = A_OTHER; REACH(14)
    :: else ->
        if
        :: lg[L(c, NODE(hop))] == 0 -> lg[L(c, NODE(hop))] = g; lf[L(c, NODE(hop))] = f
        :: else
        fi;
        advance(c, NODE(hop));
        d = (n >= lf[L(c, NODE(hop))] -> n - lf[L(c, NODE(hop))] : BELOW);
        if
        :: d == BELOW -> REACH(9)
        :: d != BELOW && (lb[L(c, NODE(hop))] & BIT(d)) ->
            WINDOW_TAKEN(c, NODE(hop))
            repeated = 1;
            if
            :: lr[L(c, NODE(hop))] & BIT(d) -> answer_refused(c, hop); REACH(8)
            :: else -> again(c, hop, value)
            fi
        :: else -> anew(c, hop, value)
        fi;
        prune(c, NODE(hop))
    fi
}

/* BUSY would change nothing here. */
inline handle_confirm(c, q, gen)
{
    rep = NONE;
    if
    :: lg[L(c, q)] == 0 && (gen) != cur[q] -> answer_stale(c, q, cur[q], gen)
    :: lg[L(c, q)] != 0 && (gen) != lg[L(c, q)] -> answer_stale(c, q, lg[L(c, q)], gen)
    :: else ->
        if
        :: lg[L(c, q)] == 0 -> lg[L(c, q)] = gen; lf[L(c, q)] = f; REACH(18)
        :: else
        fi;
        advance(c, q);
        WINDOW_LEFT(c, q)
#ifdef BROKEN_CONFIRM_NO_NODE
        acknowledge(c, 1 - q);          /* taken for the answer of the other node */
#endif
        REACH(19)
        rep = A_OTHER;
        prune(c, q)
    fi
}

/* A new generation at node q; what has no lane now may have been forgotten. */
inline next_generation(q, epoch)
{
    cur[q] = cur[q] + 1;
    budget--;
    newep[q] = newep[q] | (epoch -> BIT(cur[q]) : 0);
    lost[L(0, q)] = (lg[L(0, q)] == 0 -> 1 : lost[L(0, q)]);
    lost[L(1, q)] = (N1 > 0 && lg[L(1, q)] == 0 -> 1 : lost[L(1, q)])
}
