/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A firmware image that does on command what a device has to bear: floods, interrupts, resets. The macros make images
 * that a device has to refuse.
 */
#include <string.h>

#include "image.h"
#include "netdam/firmware.h"

#ifndef IMAGE_ABI
#define IMAGE_ABI NETDAM_FW_ABI_VERSION
#endif
#ifndef IMAGE_OPS_BYTES
#define IMAGE_OPS_BYTES sizeof(struct netdam_fw_ops)
#endif
#ifndef IMAGE_VERSION
#define IMAGE_VERSION 0x00010000u
#endif
#ifndef IMAGE_STATE_BYTES
#define IMAGE_STATE_BYTES sizeof(struct image_state)
#endif
#ifndef IMAGE_ENTRY
#define IMAGE_ENTRY netdam_fw_entry
#endif

struct image_state {
    struct netdam_fw_config config;
    struct netdam_fw_platform platform;
    uint64_t starts; /* survives a restart of the same image, to tell it from a new one */
    uint64_t now_ns;
    uint64_t alarm_ns;
    uint64_t alarms;
    uint64_t runs;
    uint64_t received;
    uint64_t last_received; /* first 8 bytes of its payload */
    uint64_t to_send;
    uint64_t frame_bytes;
    uint64_t sequence;
    uint64_t full;
    uint64_t sleeps;
    uint64_t offset; /* of the last access to a register without a meaning */
    uint64_t bytes;
};

static size_t image_state_bytes(const struct netdam_fw_config *config, const char **error)
{
    (void)config;
    *error = "the test image refuses everything";
    return IMAGE_STATE_BYTES;
}

static void image_start(void *opaque, const struct netdam_fw_config *config, const struct netdam_fw_platform *platform,
                        uint64_t now_ns)
{
    struct image_state *s = opaque;
    uint64_t starts = s->starts;

    memset(s, 0, sizeof(*s));
    s->config = *config;
    s->platform = *platform;
    s->starts = starts + 1;
    s->now_ns = now_ns;
    s->alarm_ns = NETDAM_FW_NEVER;
    s->frame_bytes = 64;
}

/* Sends and raises, as a firmware does that flushes what is outstanding. */
static void image_stop(void *opaque, uint64_t now_ns)
{
    struct image_state *s = opaque;
    uint8_t *frame = s->platform.transmit_begin(s->platform.opaque, 64);

    s->now_ns = now_ns;
    if (frame != NULL) {
        memset(frame, 0xee, 64);
        s->platform.transmit_end(s->platform.opaque, 64);
    }
    s->platform.interrupt(s->platform.opaque, IMAGE_STOP_VECTOR);
}

static void image_receive(void *opaque, const uint8_t *frame, size_t bytes, uint64_t now_ns)
{
    struct image_state *s = opaque;

    s->now_ns = now_ns;
    s->received++;
    if (bytes >= IMAGE_HEADER_BYTES + sizeof(s->last_received)) {
        memcpy(&s->last_received, frame + IMAGE_HEADER_BYTES, sizeof(s->last_received));
    }
}

static void image_run(void *opaque, uint64_t now_ns, uint64_t budget_bytes, struct netdam_fw_run_result *result)
{
    static const uint8_t header[IMAGE_HEADER_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,
                                                       0,    0,    0,    0,    1,    0x88, 0xb5};
    struct image_state *s = opaque;

    memset(result, 0, sizeof(*result));
    s->now_ns = now_ns;
    s->runs++;
    while (s->to_send > 0 && result->work_bytes < budget_bytes) {
        uint8_t *frame = s->platform.transmit_begin(s->platform.opaque, s->frame_bytes);

        if (frame == NULL) {
            s->full++;
            result->port_full = true;
            break;
        }
        memset(frame, 0, s->frame_bytes);
        memcpy(frame, header, sizeof(header));
        memcpy(frame + IMAGE_HEADER_BYTES, &s->sequence, sizeof(s->sequence));
        s->platform.transmit_end(s->platform.opaque, s->frame_bytes);
        s->sequence++;
        s->to_send--;
        result->work_bytes += s->frame_bytes;
    }
    if (now_ns >= s->alarm_ns) {
        s->alarm_ns = NETDAM_FW_NEVER;
        s->alarms++;
    }
    result->more = s->to_send > 0;
    result->next_ns = s->alarm_ns;
}

static bool image_prepare_sleep(void *opaque)
{
    struct image_state *s = opaque;

    s->sleeps++;
    return true;
}

static uint64_t image_register_read(void *opaque, uint32_t offset, unsigned bytes)
{
    struct image_state *s = opaque;

    switch (offset) {
    case NETDAM_REG_FIRMWARE_VERSION:
        return IMAGE_VERSION;
    case NETDAM_REG_STATUS:
        return NETDAM_DEVICE_READY | s->platform.device_status(s->platform.opaque);
    case NETDAM_REG_MAIN_MEMORY_BYTES:
        return s->platform.main_memory_bytes(s->platform.opaque);
    case IMAGE_STARTS:
        return s->starts;
    case IMAGE_RUNS:
        return s->runs;
    case IMAGE_SLEEPS:
        return s->sleeps;
    case IMAGE_RECEIVED:
        return s->received;
    case IMAGE_LAST_RECEIVED:
        return s->last_received;
    case IMAGE_SEND:
        return s->to_send;
    case IMAGE_FULL:
        return s->full;
    case IMAGE_ALARM:
        return s->alarms;
    case IMAGE_OFFSET:
        return s->offset;
    case IMAGE_BYTES:
        return s->bytes;
    default:
        s->offset = offset;
        s->bytes = bytes;
        return UINT64_MAX;
    }
}

static unsigned image_register_write(void *opaque, uint32_t offset, unsigned bytes, uint64_t value, uint64_t now_ns)
{
    struct image_state *s = opaque;

    s->now_ns = now_ns;
    switch (offset) {
    case NETDAM_REG_CONTROL:
        return NETDAM_FW_ACTION_RESET;
    case IMAGE_RAISE:
        s->platform.interrupt(s->platform.opaque, (unsigned)value);
        return 0;
    case IMAGE_FRAME_BYTES:
        s->frame_bytes = value;
        return 0;
    case IMAGE_SEND:
        s->to_send += value;
        return NETDAM_FW_ACTION_RUN;
    case IMAGE_ALARM:
        s->alarm_ns = now_ns + value;
        return NETDAM_FW_ACTION_RUN;
    case IMAGE_LOG:
        s->platform.log(s->platform.opaque, (enum netdam_fw_log_level)value, "said by the test image", 1, 2);
        return 0;
    default:
        s->offset = offset;
        s->bytes = bytes;
        return 0;
    }
}

static const struct netdam_fw_ops image_ops = {
    .abi_version = IMAGE_ABI,
    .ops_bytes = IMAGE_OPS_BYTES,
    .firmware_version = IMAGE_VERSION,
    .name = "test image",
    .state_bytes = image_state_bytes,
    .start = image_start,
    .stop = image_stop,
    .receive = image_receive,
    .run = image_run,
    .prepare_sleep = image_prepare_sleep,
    .register_read = image_register_read,
    .register_write = image_register_write,
};

const struct netdam_fw_ops *IMAGE_ENTRY(void);

__attribute__((visibility("default"))) const struct netdam_fw_ops *IMAGE_ENTRY(void)
{
    return &image_ops;
}
