/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the hops do, told: as trace.pml for chains.  With TRACE, the lines are
 *
 *   @trace H V OP0 OP1 OP2 TRACK     a new trace: nodes that were just started; operations as chain.pml numbers them
 *   @hop CONTEXT HOP NUMBER FLOOR GENERATION0 GENERATION1 GENERATION2 PAYLOAD BUSY ANSWER AGAIN GENERATION LANE-FLOOR
 *        PAYLOAD                     the payload that goes on
 *   @confirm CONTEXT NODE FLOOR GENERATION ANSWER GENERATION LANE-FLOOR
 *   @lost WHAT NODE CONTEXT GENERATION
 *   @key NODE VALID
 *   @written NODE CELL
 *
 * WHAT and ANSWER are those of trace.pml; an answer may also be A_FORWARD, which goes to the next hop.
 */
#ifdef TRACE

#define REACH(i) skip;

byte told = TRACE;              /* events of this trace */
bit rest[CONTEXTS * H];         /* the lane is at rest: it has no window */

#define WINDOW_TAKEN(c, q) rest[L(c, q)] = (busy -> rest[L(c, q)] : 0);
#define WINDOW_LEFT(c, q) rest[L(c, q)] = (lb[L(c, q)] == 0 -> 1 : rest[L(c, q)]);
#define WINDOW_GONE(c, q) rest[L(c, q)] = 0;
#define MAY_BE_BUSY(c, q) (lg[L(c, q)] == 0 || rest[L(c, q)])
#define FORGETS_SINGLY(c, q) (rest[L(c, q)] && !rest[L(1 - (c), q)])
#define NONE_AT_REST(q) (!rest[L(0, q)] && !rest[L(1, q)])

/* What would crowd out the rest is rarer than chance has it. */
#define MAY_LOSE (told > 12 * (1 + BUDGET - budget))
#define MAY_GIVE_UP (told % 4 == 2)
#define MAY_RESET (told > 18 * (1 + BUDGET - budget))
#define MAY_TIME_OUT (told % 7 == 4)
#define MAY_CONFIRM(c, k) (told % 5 == 3 || (rgen[L(c, k)] == 0 && stales[L(c, k)] == 0))
#define MAY_TURN_KEY (told % 6 == 5)
#define MAY_WRITE (told % 4 == 1)

#define TELL_HOP(c, hop, value) told++; \
    printf("@hop %d %d %d %d %d %d ", c, hop, n, f, GEN(vec, 0), GEN(vec, 1)); \
    printf("%d %d %d ", (H == 3 -> GEN(vec, 2) : 0), value, busy); \
    printf("%d %d %d %d %d\n", rep, repeated, repg, lf[L(c, NODE(hop))], v)
#define TELL_CONFIRM(c, k, gen) told++; \
    printf("@confirm %d %d %d %d %d %d %d\n", c, k, f, gen, rep, repg, lf[L(c, k)])
#define TELL_LOST(what, text, k, c) told++; printf("@lost %d %d %d %d\n", what, k, c, cur[k])
#define TELL_KEY(k) told++; printf("@key %d %d\n", k, key[k])
#define TELL_WRITTEN(k) told++; printf("@written %d %d\n", k, cell[k])

inline start_over()
{
    i = 0;
    do
    :: i < CONTEXTS * H ->
        lg[i] = 0; lf[i] = 0; lb[i] = 0; lr[i] = 0; rest[i] = 0; confs[i] = 0; stales[i] = 0; refs[i] = 0;
        done[i] = 0; fence[i] = 0; lost[i] = 0; rgen[i] = 1 - FIRST;
        i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < CONTEXTS * H * V -> pk[i] = 0; i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < H -> cur[i] = 1; newep[i] = 2; key[i] = 1; cell[i] = 0; resetgen[i] = 0; i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < NM * H -> held[i] = 0; i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < CONTEXTS -> sent[i] = 0; nxt[i] = 0; oks[i] = 0; st[I(i, 0)] = FREE; st[I(i, 1)] = FREE; i++
    :: else -> break
    od;
    stored[0] = 0;
    stored[1] = 0;
    budget = BUDGET;
    refresh(0);
    refresh(1);
    told = 0;
    printf("@trace %d %d %d %d %d %d\n", H, V, OP0, OP1, OP2, TRACK)
}
#define CHOOSE \
    :: d_step { told >= TRACE -> start_over() } \
    :: told < TRACE -> if
#define CHOSEN \
    :: else -> told++ \
    fi

#else
#define REACH(i) c_code { reach(i); };

#define WINDOW_TAKEN(c, q)
#define WINDOW_LEFT(c, q)
#define WINDOW_GONE(c, q)
#define MAY_BE_BUSY(c, q) true
#define FORGETS_SINGLY(c, q) true
#define NONE_AT_REST(q) true
#define MAY_LOSE true
#define MAY_GIVE_UP true
#define MAY_RESET true
#define MAY_TIME_OUT true
#define MAY_CONFIRM(c, k) true
#define MAY_TURN_KEY true
#define MAY_WRITE true
#define CHOOSE
#define CHOSEN

#define TELL_HOP(c, hop, value) \
    printf("hop %d gets context %d number %d, floor %d, generation %d, payload %d, busy %d\n", hop, c, n, f, \
           GEN(vec, hop), value, busy)
#define TELL_CONFIRM(c, k, gen) printf("node %d gets context %d CONFIRM, floor %d, generation %d\n", k, c, f, gen)
#define TELL_LOST(what, text, k, c) printf(text, k, c, cur[k])
#define TELL_KEY(k) printf("key at node %d valid: %d\n", k, key[k])
#define TELL_WRITTEN(k) printf("somebody else writes %d at node %d\n", cell[k], k)
#endif
