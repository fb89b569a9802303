/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes: the far-end state that makes every modification happen exactly once, and its forgetting. */
#include "ndfw.h"

/* With fewer windows than this there is no reserve. */
#define RESERVE_FROM 16u

static uint64_t lane_floor(const struct ndfw_lane *lane)
{
    netdam_be48 floor;

    memcpy(&floor, lane->floor, sizeof(floor));
    return netdam_be48_get(floor);
}

static void set_lane_floor(struct ndfw_lane *lane, uint64_t floor)
{
    netdam_be48 be = netdam_be48_make(floor);

    memcpy(lane->floor, &be, sizeof(be));
}

static uint32_t lane_home(const struct ndfw *fw, uint64_t context)
{
    return (uint32_t)((context * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & fw->lane_mask;
}

static struct ndfw_lane *find_lane(const struct ndfw *fw, uint64_t context)
{
    for (uint32_t at = lane_home(fw, context); fw->lanes[at].generation != 0; at = (at + 1) & fw->lane_mask) {
        if (fw->lanes[at].context == context) {
            return &fw->lanes[at];
        }
    }
    return NULL;
}

static void count_lanes(struct ndfw *fw)
{
    fw->counters[NETDAM_COUNTER_LANES] = fw->lane_count;
    fw->counters[NETDAM_COUNTER_LANE_WINDOWS] = fw->window_count;
    fw->counters[NETDAM_COUNTER_LANE_BYTES] = fw->lane_count * sizeof(struct ndfw_lane) +
                                              fw->window_count * sizeof(struct ndfw_window) +
                                              fw->reply_count * sizeof(struct ndfw_reply);
}

static struct ndfw_window *take_window(struct ndfw *fw, struct ndfw_lane *lane)
{
    struct ndfw_window *window;
    uint32_t index = fw->window_free;

    if (index == NDFW_NONE) {
        return NULL;
    }
    window = &fw->windows[index];
    fw->window_free = window->next_free;
    fw->window_count++;
    window->in_use = true;
    window->context = lane->context;
    window->seen_ns = fw->now_ns;
    window->above = 0;
    window->replies = 0;
    memset(window->replied, 0, sizeof(window->replied));
    memset(window->bits, 0, sizeof(window->bits));
    lane->window = (uint16_t)(index + 1);
    if (fw->window_count == 1) {
        fw->give_up_check_ns = fw->now_ns + fw->config.lane_give_up_ns / 4;
    }
    return window;
}

static void release_window(struct ndfw *fw, struct ndfw_lane *lane)
{
    uint32_t index = lane->window - 1u;

    ndfw_replies_free(fw, &fw->windows[index], 0, NETDAM_WINDOW_MAX);
    fw->windows[index].in_use = false;
    fw->windows[index].next_free = fw->window_free;
    fw->window_free = index;
    fw->window_count--;
    lane->window = 0;
}

/* Takes a lane out and closes the gap, so that searches never meet a hole (Knuth, algorithm R). */
static void remove_lane(struct ndfw *fw, uint32_t at)
{
    uint32_t gap = at;

    for (uint32_t next = (at + 1) & fw->lane_mask; fw->lanes[next].generation != 0; next = (next + 1) & fw->lane_mask) {
        uint32_t home = lane_home(fw, fw->lanes[next].context);

        if (((next - home) & fw->lane_mask) >= ((next - gap) & fw->lane_mask)) {
            fw->lanes[gap] = fw->lanes[next];
            gap = next;
        }
    }
    memset(&fw->lanes[gap], 0, sizeof(fw->lanes[gap]));
    fw->lane_count--;
}

void ndfw_lane_new_epoch(struct ndfw *fw)
{
    uint32_t before = netdam_generation_epoch(fw->generation);
    uint32_t epoch;

    do {
        epoch = (uint32_t)ndfw_random(fw);
    } while (epoch == 0 || epoch == before);
    fw->generation = (uint64_t)epoch << 32 | 1;
    ndfw_trace(fw, NETDAM_FW_TRACE_GENERATION, fw->generation, 0, 0);
}

/* Forgets all lanes that have nothing unfinished. Only those: what was executed and can still be asked for, stays. */
static void forget_confirmed(struct ndfw *fw)
{
    uint32_t before = fw->lane_count;

    if (fw->now_ns < fw->generation_next_ns) {
        return;
    }
    for (uint32_t at = 0; at <= fw->lane_mask; at++) {
        while (fw->lanes[at].generation != 0 && fw->lanes[at].window == 0) {
            remove_lane(fw, at);
        }
    }
    if (fw->lane_count == before) {
        return;
    }
    ndfw_count(fw, NETDAM_COUNTER_LANES_FORGOTTEN, before - fw->lane_count);
    fw->generation_next_ns = fw->now_ns + fw->config.generation_interval_ns;
    if ((uint32_t)fw->generation == UINT32_MAX) {
        ndfw_lane_new_epoch(fw);
    } else {
        fw->generation++;
        ndfw_trace(fw, NETDAM_FW_TRACE_GENERATION, fw->generation, 0, 0);
    }
}

void ndfw_lane_start(struct ndfw *fw)
{
    memset(fw->lanes, 0, ((size_t)fw->lane_mask + 1) * sizeof(fw->lanes[0]));
    for (uint32_t i = 0; i < fw->config.lane_windows; i++) {
        fw->windows[i].in_use = false;
        fw->windows[i].next_free = i + 1 < fw->config.lane_windows ? i + 1 : NDFW_NONE;
    }
    ndfw_replies_start(fw);
    fw->lane_count = 0;
    fw->window_count = 0;
    fw->window_free = 0;
    fw->generation_next_ns = fw->now_ns;
    ndfw_lane_new_epoch(fw);
}

static void advance_floor(struct ndfw *fw, struct ndfw_lane *lane, uint64_t claim)
{
    uint64_t floor = lane_floor(lane);

    if (claim <= floor) {
        return;
    }
    if (lane->window != 0) {
        struct ndfw_window *window = &fw->windows[lane->window - 1u];

        ndfw_replies_free(fw, window, floor, claim);
        if (claim - floor >= NETDAM_WINDOW_MAX) {
            memset(window->bits, 0, sizeof(window->bits));
        } else {
            for (uint64_t n = floor; n < claim; n++) {
                window->bits[n % NETDAM_WINDOW_MAX / 64] &= ~(UINT64_C(1) << n % 64);
            }
        }
    }
    set_lane_floor(lane, claim);
}

/* A lane for a context that has none; the generation may change on the way, if room has to be made. */
static struct ndfw_lane *create_lane(struct ndfw *fw, const struct ndfw_packet *packet, uint64_t floor,
                                     enum ndfw_lane_verdict *verdict)
{
    struct ndfw_lane *lane;
    uint32_t at;

    *verdict = NDFW_LANE_BUSY;
    if (fw->lane_count == fw->config.lanes) {
        forget_confirmed(fw);
        if (packet->generation != fw->generation) {
            *verdict = NDFW_LANE_STALE;
            return NULL;
        }
    }
    if (fw->lane_count == fw->config.lanes) {
        return NULL;
    }
    at = lane_home(fw, ndfw_lane_id(packet));
    while (fw->lanes[at].generation != 0) {
        at = (at + 1) & fw->lane_mask;
    }
    lane = &fw->lanes[at];
    lane->context = ndfw_lane_id(packet);
    lane->generation = fw->generation;
    lane->window = 0;
    set_lane_floor(lane, floor);
    fw->lane_count++;
    count_lanes(fw);
    return lane;
}

/* A quarter of the windows is kept for those who know a key, or strangers could stop everybody by being refused. */
static bool only_reserve_is_left(const struct ndfw *fw)
{
    return fw->config.lane_windows >= RESERVE_FROM &&
           fw->window_count >= fw->config.lane_windows - fw->config.lane_windows / 4;
}

enum ndfw_lane_verdict ndfw_lane_admit(struct ndfw *fw, const struct ndfw_packet *packet, bool stranger,
                                       struct ndfw_lane_result *result)
{
    struct ndfw_lane *lane = find_lane(fw, ndfw_lane_id(packet));
    struct ndfw_window *window;
    enum ndfw_lane_verdict verdict = NDFW_LANE_EXECUTE;
    uint64_t place = packet->number % NETDAM_WINDOW_MAX;

    result->floor = 0;
    if (packet->distance >= NETDAM_WINDOW_MAX || packet->distance > packet->number) {
        ndfw_count(fw, NETDAM_COUNTER_REQUESTS_BEYOND_WINDOW, 1);
        return NDFW_LANE_DROP;
    }
    if (packet->generation != (lane != NULL ? lane->generation : fw->generation)) {
        result->generation = lane != NULL ? lane->generation : fw->generation;
        return NDFW_LANE_STALE;
    }
    if (stranger && (lane == NULL || lane->window == 0) && only_reserve_is_left(fw)) {
        result->generation = packet->generation;
        return NDFW_LANE_BUSY;
    }
    if (lane == NULL && fw->window_free == NDFW_NONE) {
        result->generation = fw->generation;
        return NDFW_LANE_BUSY;
    }
    if (lane == NULL) {
        lane = create_lane(fw, packet, packet->number - packet->distance, &verdict);
        result->generation = fw->generation;
        if (lane == NULL) {
            return verdict;
        }
    }
    result->generation = lane->generation;
    advance_floor(fw, lane, packet->number - packet->distance);
    result->floor = lane_floor(lane);
    if (packet->number < result->floor) {
        ndfw_count(fw, NETDAM_COUNTER_REQUESTS_BELOW_FLOOR, 1);
        return NDFW_LANE_DROP;
    }
    window = lane->window != 0 ? &fw->windows[lane->window - 1u] : take_window(fw, lane);
    count_lanes(fw);
    if (window == NULL) {
        return NDFW_LANE_BUSY;
    }
    window->seen_ns = fw->now_ns;
    if ((window->bits[place / 64] >> place % 64 & 1) != 0) {
        result->status = window->statuses[place];
        result->value = window->values[place];
        return NDFW_LANE_REPEATED;
    }
    result->window = window;
    return NDFW_LANE_EXECUTE;
}

void ndfw_lane_consume(struct ndfw_window *window, uint64_t number, uint8_t status, uint64_t value)
{
    uint64_t place = number % NETDAM_WINDOW_MAX;

    window->bits[place / 64] |= UINT64_C(1) << place % 64;
    window->statuses[place] = status;
    window->values[place] = value;
    if (window->above <= number) {
        window->above = number + 1;
    }
}

/*
 * An acknowledged confirmation is a fence: no earlier number is executed after it. So the floor is remembered even
 * where there was no lane; when that lane is forgotten, the change of generation takes its place.
 */
enum ndfw_lane_verdict ndfw_lane_confirm(struct ndfw *fw, const struct ndfw_packet *packet,
                                         struct ndfw_lane_result *result)
{
    struct ndfw_lane *lane = find_lane(fw, ndfw_lane_id(packet));
    enum ndfw_lane_verdict verdict;

    result->floor = 0;
    result->generation = lane != NULL ? lane->generation : fw->generation;
    if (packet->generation != result->generation) {
        return NDFW_LANE_STALE;
    }
    if (lane == NULL) {
        lane = create_lane(fw, packet, packet->number, &verdict);
        result->generation = fw->generation;
        if (lane == NULL) {
            return verdict;
        }
    }
    advance_floor(fw, lane, packet->number);
    result->floor = lane_floor(lane);
    if (lane->window != 0) {
        struct ndfw_window *window = &fw->windows[lane->window - 1u];

        window->seen_ns = fw->now_ns;
        if (window->above <= result->floor) {
            release_window(fw, lane);
            count_lanes(fw);
        }
    }
    return NDFW_LANE_EXECUTE;
}

bool ndfw_lane_proves(const struct ndfw *fw, uint64_t context, uint64_t generation, uint64_t *right)
{
    const struct ndfw_lane *lane = find_lane(fw, context);

    *right = lane != NULL ? lane->generation : fw->generation;
    return netdam_generation_epoch(generation) == netdam_generation_epoch(*right);
}

unsigned ndfw_lane_wish(const struct ndfw *fw)
{
    bool is_short = 4 * fw->window_count >= 3 * fw->config.lane_windows || 4 * fw->lane_count >= 3 * fw->config.lanes;

    return is_short ? NETDAM_FLAG_CONFIRM_WANTED : 0u;
}

void ndfw_lane_timer(struct ndfw *fw)
{
    uint32_t given_up = 0;

    if (fw->window_count == 0 || fw->now_ns < fw->give_up_check_ns) {
        return;
    }
    fw->give_up_check_ns = fw->now_ns + fw->config.lane_give_up_ns / 4;
    for (uint32_t i = 0; i < fw->config.lane_windows; i++) {
        struct ndfw_window *window = &fw->windows[i];

        if (window->in_use && fw->now_ns - window->seen_ns > fw->config.lane_give_up_ns) {
            struct ndfw_lane *lane = find_lane(fw, window->context);

            release_window(fw, lane);
            remove_lane(fw, (uint32_t)(lane - fw->lanes));
            given_up++;
        }
    }
    if (given_up != 0) {
        ndfw_count(fw, NETDAM_COUNTER_LANES_GIVEN_UP, given_up);
        ndfw_lane_new_epoch(fw);
    }
    count_lanes(fw);
}

uint64_t ndfw_lane_next_ns(const struct ndfw *fw)
{
    return fw->window_count == 0 ? NETDAM_FW_NEVER : fw->give_up_check_ns;
}
