/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tours: chains that only read, come home as the response and are stored there by who sent them.
 * Part of chain.pml.  Tour r + 1 is posted into the buffer of tour r when that has completed.
 */
#if NR > 0

#ifdef BROKEN_TOUR_TAG
#define TAG(r) 0                        /* a tour is named by its buffer, which is used again */
#else
#define TAG(r) (r)
#endif
#ifdef BROKEN_TOUR_NODE_EPOCH
#define TOUR_BY_LANE(q) false
#define TOUR_STALE(q) cur[q]
#else
#define TOUR_BY_LANE(q) (lg[L(0, q)] != 0 && SAMEEP(q, g, lg[L(0, q)]))
#define TOUR_STALE(q) (lg[L(0, q)] -> lg[L(0, q)] : cur[q])
#endif

/* Tour n at a hop. */
inline handle_tour(hop, value)
{
    g = GEN(vec, hop);
    if
    :: SAMEEP(NODE(hop), g, cur[NODE(hop)]) || TOUR_BY_LANE(NODE(hop)) ->
        if
        :: !SAMEEP(NODE(hop), g, cur[NODE(hop)]) -> REACH(23)
        :: else
        fi;
        CHECK(inv9_sent_before_reset, g >= resetgen[NODE(hop)]);
        d = (hop == TRACK -> cell[hop] : value);
        if
        :: !key[NODE(hop)] ->
#ifdef BROKEN_ONE_NAME
            refs[L(0, hop)] = refs[L(0, hop)] | (st[n] == OUT -> BIT(n) : 0);
#endif
            trefs = trefs | (rst[n] == OUT -> BIT(n) : 0)
        :: key[NODE(hop)] && hop < H - 1 -> tk[(hop + 1) * V + d] = tk[(hop + 1) * V + d] | BIT(m); prune_tours()
        :: else ->
            if
            :: rst[n] == OUT || TAG(0) == TAG(1) -> rresp[n] = rresp[n] | BIT(d)
            :: else -> REACH(25)        /* it would match nothing */
            fi
        fi
    :: else ->
        REACH(24)
        repg = TOUR_STALE(NODE(hop));
        answer_stale(0, NODE(hop), repg, g)
    fi
}

/* Neither served nor answered with a STALE that the requester would look at, now or later. */
#define DEAD_AT(q, gen) \
    (gen < rgen[L(0, q)] && !SAMEEP(q, gen, cur[q]) && (lg[L(0, q)] == 0 || !SAMEEP(q, gen, lg[L(0, q)])))

/*
 * Copies of a tour that has ended are taken out of the network: they change nothing, their responses match nothing, and
 * a CONFIRM of the same generation brings about the same STALE.
 */
inline prune_tours()
{
#if !defined(KEEP_ALL) && !defined(BROKEN_TOUR_TAG)
    j = 0;
    do
    :: j < NR * VECTORS ->
        if
        :: rst[j / VECTORS] > OUT ->
            k = 0;
            do
            :: k < H * V -> tk[k] = tk[k] & ~BIT(j); k++
            :: else -> break
            od
        :: else ->
            k = 0;
            do
            :: k < H ->
                if
                :: DEAD_AT(NODE(k), GEN(j % VECTORS, k)) ->
                    tk[k * V] = tk[k * V] & ~BIT(j);
                    tk[k * V + V - 1] = tk[k * V + V - 1] & ~BIT(j)
                :: else
                fi;
                k++
            :: else -> break
            od
        fi;
        j++
    :: else -> break
    od;
    j = 0;
    k = 0
#else
    skip
#endif
}
inline tour_ends(r, s)
{
    rst[r] = s;
    rheld[r] = 0;
    trefs = trefs & ~BIT(r);
#ifndef BROKEN_TOUR_TAG
    rresp[r] = 0;
#endif
    prune_tours()
}

#define TPICK(i) :: (tk[at] & BIT(i)) -> m = i
#define TPICK4(i) TPICK(i) TPICK(i + 1) TPICK(i + 2) TPICK(i + 3)
#define TOUR_ARRIVES(hop, v) \
    :: atomic { tk[(hop) * V + (v)] -> at = (hop) * V + (v); \
                if TPICK4(0) TPICK4(4) TPICK4(8) TPICK4(12) fi; \
                d_step { n = m / VECTORS; vec = m % VECTORS; \
                printf("hop %d gets tour %d, generation %d, payload %d\n", hop, n, GEN(vec, hop), v); \
                handle_tour(hop, v); clean() } }
#define TOUR_ARRIVALS(hop) TOUR_ARRIVES(hop, 0) TOUR_ARRIVES(hop, 1)
#define TOUR_RESPONSE(r, s) \
    :: d_step { rst[r] == OUT && rresp[s] && TAG(r) == TAG(s) -> \
                printf("tour %d takes the response to tour %d\n", r, s); \
                CHECK(inv6_own_buffer, (r) == (s)); \
                CHECK(inv7_value, (rresp[r] & ~rheld[r]) == 0); \
                tour_ends(r, OK); REACH(21) }
#define TOUR(r, before) \
    :: d_step { rst[r] == FREE && (before) && KNOWN(0) && STORMY -> \
                rst[r] = OUT; rheld[r] = BIT(cell[TRACK]); refresh(0); printf("tour %d posted\n", r) } \
    :: d_step { rst[r] == OUT && STORMY -> tour_ends(r, TIMEOUT); printf("tour %d TIMEOUT\n", r) } \
    :: d_step { rst[r] == OUT && (trefs & BIT(r)) -> tour_ends(r, REFUSED); REACH(22) \
                printf("tour %d REFUSED\n", r) } \
    TOUR_RESPONSE(r, r)
#if NR > 1
#define TOUR_SECOND TOUR(1, rst[0] > OUT) TOUR_RESPONSE(0, 1) TOUR_RESPONSE(1, 0)
#else
#define TOUR_SECOND
#endif
#define TOURS TOUR(0, true) TOUR_SECOND TOUR_ARRIVALS(0) TOUR_ARRIVALS(1) THIRD(TOUR_ARRIVALS(2))

#endif
