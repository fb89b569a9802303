/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The node of the lane protocol: what it does with a request, a confirmation, a READ, and how it loses lanes.
 * Part of lane.pml, which declares the state and says what is covered and within which bounds.
 *
 * The order of its decisions is what the protocol rests on: generation first (STALE), then the floor, then the number
 * (dropped below the floor, answered as before when its bit is set), then BUSY, then the key (refused, with the bit
 * set), then execution, with the bit set in the same step.
 */

#ifdef ALL_STALES
#define DEAD_ECHO(c, echo) false
#else
#define DEAD_ECHO(c, echo) ((echo) < rgen[c])
#endif
inline answer_stale(c, g, echo)
{
#ifndef ALL_STALES
    if
    :: lg[L(c)] != 0 -> CHECK(claim_known_stale_is_late, !alive[c] || (echo) < rgen[c])
    :: else
    fi;
#endif
    if
    :: alive[c] && !DEAD_ECHO(c, echo) -> stales[L(c)] = stales[L(c)] | STALEBIT(g, echo)
    :: else
    fi;
    rep = A_STALE;
    repg = g;
    repe = echo;
    if
    :: lg[L(c)] -> REACH(8)
    :: else -> REACH(7)
    fi
}

inline answer_busy(c, n)
{
#ifdef BROKEN_BUSY_IS_REFUSAL
    busies[L(c)] = busies[L(c)] | BIT(n);
#endif
    rep = A_OTHER;
    REACH(11)
}

inline answer_ok(c, n)
{
    oks[L(c)] = oks[L(c)] | BIT(n);
#if VALUES
#ifdef BROKEN_NO_CACHED_REPLY
    vals[I(c, n)] = vals[I(c, n)] | BIT(cell);
#else
    vals[I(c, n)] = vals[I(c, n)] | BIT(lv[I(c, n)]);
#endif
#endif
#if !defined(BROKEN_WRAP) && !defined(BROKEN_SAME_CONTEXT)
    if
    :: st[I(c, n)] != OUT ->            /* it would match nothing */
        oks[c] = oks[c] & ~BIT(n);
#if VALUES
        vals[I(c, n)] = 0
#endif
    :: else
    fi;
#endif
    rep = A_OK
}

inline answer_refused(c, n)
{
    refs[L(c)] = refs[L(c)] | BIT(n);
#if !defined(BROKEN_WRAP) && !defined(BROKEN_SAME_CONTEXT)
    if
    :: st[I(c, n)] != OUT -> refs[c] = refs[c] & ~BIT(n)
    :: else
    fi;
#endif
    rep = A_REFUSED
}

inline acknowledge(c, f)
{
    if
    :: fence[c] < (f) -> fence[c] = f
    :: else
    fi
}

/* Raise the lane's floor to f; d is left as the distance it moved. */
inline advance(c, f)
{
#ifdef BROKEN_WRAP
    d = (WRAP(f) + 4 - lf[L(c)]) % 4;
    d = (d < 2 -> d : 0);
#else
    d = ((f) > lf[L(c)] -> (f) - lf[L(c)] : 0);
#endif
    lf[L(c)] = WRAP(lf[L(c)] + d);
    acknowledge(c, f);
    lb[L(c)] = lb[L(c)] >> d;
    lr[L(c)] = lr[L(c)] >> d;
#if VALUES
    if
    :: (f) > 0 -> lv[I(c, 0)] = 0
    :: else
    fi
#endif
}

#if NR > 0
inline note_cell()
{
    i = 0;
    do
    :: i < NR ->
        if
        :: rst[i] == OUT -> rheld[i] = rheld[i] | BIT(cell)
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0
}
#endif

inline execute(c, n, g)
{
    CHECK(inv2_exactly_once, (done[c] & BIT(n)) == 0);
    CHECK(inv5_copy_after_completion, st[I(c, n)] != OK);
    CHECK(inv3_refused_not_applied, st[I(c, n)] != REFUSED);
    CHECK(inv3_fence, (n) >= fence[c]);
    CHECK(inv9_sent_before_reset, (g) >= resetgen);
    done[c] = done[c] | BIT(n);
    if
    :: st[I(c, n)] == TIMEOUT -> REACH(23)
    :: st[I(c, n)] == FLUSHED -> REACH(24)
    :: else
    fi;
#if VALUES
    found[I(c, n)] = cell;
    if
    :: IS_FETCH_ADD(c, n) -> lv[I(c, n)] = cell; cell = cell + 1
    :: else -> cell = 2 + 2 * (c) + (n)                       /* WRITE */
    fi;
#if NR > 0
    note_cell();
#endif
#endif
}

inline drop_lane(c)
{
    WINDOW_GONE(c)
    lg[c] = 0;
    lf[c] = 0;
    lb[c] = 0;
    lr[c] = 0;
#if VALUES
    lv[I(c, 0)] = 0
#endif
}

/* May a request of generation g proceed? */
#ifdef BROKEN_ANY_GENERATION
#define LANE_TAKES(c, g) (lg[L(c)] != 0)
#else
#define LANE_TAKES(c, g) (lg[L(c)] == (g))
#endif
#ifdef KNOWN_STALE_NAMES_NODE
#define KNOWN_GEN(c) cur                /* examined: the node's generation although the lane is known */
#else
#define KNOWN_GEN(c) lg[L(c)]
#endif

inline handle_mod(c, n, f, g, busy)
{
    rep = NONE;
    again = 0;
    if
    :: lg[L(c)] == 0 && (g) != cur -> answer_stale(c, cur, g)
    :: lg[L(c)] != 0 && !LANE_TAKES(c, g) -> answer_stale(c, KNOWN_GEN(c), g)
    :: lg[L(c)] == 0 && (g) == cur && (busy) -> answer_busy(c, n)
    :: else ->
        fresh = (lg[L(c)] == 0);
        if
        :: fresh -> lg[L(c)] = g; lf[L(c)] = WRAP(f)
        :: else
        fi;
        advance(c, f);
#ifdef BROKEN_WRAP
        d = (WRAP(n) + 4 - lf[L(c)]) % 4;
        d = (d < 2 -> d : BELOW);
#else
        d = ((n) >= lf[L(c)] -> (n) - lf[L(c)] : BELOW);
#endif
        if
        :: d == BELOW -> REACH(6)
#ifndef BROKEN_NO_BITMAP
        :: d != BELOW && (lb[L(c)] & BIT(d)) ->
            REACH(5)
            again = 1;
            if
            :: lr[L(c)] & BIT(d) -> answer_refused(c, n)
            :: else -> answer_ok(c, n)
            fi
#endif
        :: else ->
            WINDOW_TAKEN(c, busy)
            if
            :: busy -> answer_busy(c, n)
            :: !(busy) && !key ->
#ifdef BROKEN_REFUSAL_NO_LANE
                if
                :: fresh -> drop_lane(L(c))
                :: else -> lb[L(c)] = lb[L(c)] | BIT(d); lr[L(c)] = lr[L(c)] | BIT(d)
                fi;
#elif !defined(BROKEN_REFUSAL_NO_TRACE)
                lb[L(c)] = lb[L(c)] | BIT(d);
                lr[L(c)] = lr[L(c)] | BIT(d);
#endif
                answer_refused(c, n)
            :: else ->
                execute(c, n, g);
#ifndef BROKEN_NO_BITMAP
                lb[L(c)] = lb[L(c)] | BIT(d);
#endif
                answer_ok(c, n)
            fi
        fi
    fi;
    d = 0
}

/* BUSY would change nothing here. */
inline handle_confirm(c, f, g)
{
    rep = NONE;
    if
    :: lg[L(c)] == 0 && (g) != cur -> answer_stale(c, cur, g)
    :: lg[L(c)] != 0 && !LANE_TAKES(c, g) -> answer_stale(c, KNOWN_GEN(c), g)
    :: else ->
#ifdef BROKEN_CONFIRM_NO_LANE
        if
        :: lg[L(c)] != 0 -> advance(c, f)
        :: else -> acknowledge(c, f)
        fi;
#else
        if
        :: lg[L(c)] == 0 -> lg[L(c)] = g; lf[L(c)] = WRAP(f); REACH(16)
        :: else
        fi;
        advance(c, f);
#endif
        WINDOW_LEFT(c)
        REACH(17)
        rep = A_OTHER
    fi;
    d = 0
}

/* A new generation; what has no lane now may have been forgotten. */
inline next_generation(epoch)
{
    cur++;
    if
    :: epoch -> newep = newep | BIT(cur)
    :: else
    fi;
    lost[0] = (alive[0] && lg[L(0)] == 0 -> 1 : lost[0]);
    lost[1] = (alive[1] && lg[L(1)] == 0 -> 1 : lost[1])
}

#if NR > 0
#ifdef BROKEN_READ_NODE_EPOCH
#define READ_BY_LANE(g) false
#define READ_STALE_GEN cur
#else
#define READ_BY_LANE(g) (lg[0] != 0 && SAMEEP(g, lg[0]))
#define READ_STALE_GEN (lg[0] -> lg[0] : cur)
#endif
inline handle_read(r, g)
{
    if
    :: SAMEEP(g, cur) || READ_BY_LANE(g) ->
        if
        :: !SAMEEP(g, cur) -> REACH(19)
        :: else
        fi;
        CHECK(inv9_sent_before_reset, (g) >= resetgen);
        if
        :: rst[r] == OUT || TAG(0) == TAG(1) -> rresp[r] = rresp[r] | BIT(cell)
        :: else -> REACH(21)        /* it would match nothing */
        fi;
        rep = A_OK
    :: else ->
        REACH(20)
        repg = READ_STALE_GEN;
        answer_stale(0, repg, g)
    fi
}
#endif
