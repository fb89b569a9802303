/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the firmware calls. Each function is called from within a firmware call, so it only records or reports. */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/guest-random.h"
#include "qemu/log.h"
#include "netdam_device.h"
#include "crypto.h"
#include "trace.h"

static uint8_t *netdam_platform_transmit_begin(void *opaque, size_t bytes)
{
    return netdam_port_transmit_begin(opaque, bytes);
}

static void netdam_platform_transmit_end(void *opaque, size_t bytes)
{
    netdam_port_transmit_end(opaque, bytes);
}

static void netdam_platform_memory_access(void *opaque, uint64_t offset, uint64_t bytes, enum netdam_fw_access access)
{
    if (access != NETDAM_FW_ACCESS_READ) {
        netdam_migrate_touched(opaque, offset, bytes);
    }
}

static void netdam_platform_interrupt(void *opaque, unsigned vector)
{
    netdam_irq_set(opaque, vector);
}

static void netdam_platform_entropy(void *opaque, void *buffer, size_t bytes)
{
    qemu_guest_getrandom_nofail(buffer, bytes);
}

static void netdam_platform_log(void *opaque, enum netdam_fw_log_level level, const char *text, uint64_t a, uint64_t b)
{
    NetdamState *s = opaque;

    switch (level) {
    case NETDAM_FW_LOG_ERROR:
        trace_netdam_log_err_firmware(netdam_name(s), text, a, b);
        if (!s->fault_reported) {
            s->fault_reported = true;
            warn_report("netdam: %s: firmware: %s (%" PRIu64 ", %" PRIu64 "); further ones are only traced",
                        netdam_name(s), text, a, b);
        }
        break;
    case NETDAM_FW_LOG_GUEST:
        trace_netdam_log_err_guest(netdam_name(s), text, a, b);
        qemu_log_mask(LOG_GUEST_ERROR, "netdam: %s: %s (%" PRIu64 ", %" PRIu64 ")\n", netdam_name(s), text, a, b);
        break;
    case NETDAM_FW_LOG_PEER:
        trace_netdam_log_err_peer(netdam_name(s), text, a, b);
        break;
    default:
        trace_netdam_log_info(netdam_name(s), text, a, b);
        break;
    }
}

static void netdam_platform_trace(void *opaque, enum netdam_fw_trace event, uint64_t a, uint64_t b, uint64_t c)
{
    const char *id = netdam_name(opaque);

    switch (event) {
    case NETDAM_FW_TRACE_RX_REQUEST:
        trace_netdam_fw_rx_request(id, a, b, c);
        break;
    case NETDAM_FW_TRACE_RX_RESPONSE:
        trace_netdam_fw_rx_response(id, a, b, c);
        break;
    case NETDAM_FW_TRACE_RX_ERR_DROP:
        trace_netdam_fw_rx_err_drop(id, a, b);
        break;
    case NETDAM_FW_TRACE_TX_REQUEST:
        trace_netdam_fw_tx_request(id, a, b, c);
        break;
    case NETDAM_FW_TRACE_TX_RESPONSE:
        trace_netdam_fw_tx_response(id, a, b, c);
        break;
    case NETDAM_FW_TRACE_RETRANSMIT:
        trace_netdam_fw_retransmit(id, a, b, c);
        break;
    case NETDAM_FW_TRACE_ERR_REFUSED:
        trace_netdam_fw_err_refused(id, a, b, c);
        break;
    case NETDAM_FW_TRACE_DESCRIPTOR:
        trace_netdam_fw_descriptor(id, a, b, c);
        break;
    case NETDAM_FW_TRACE_COMPLETION:
        trace_netdam_fw_completion(id, a, b, c);
        break;
    case NETDAM_FW_TRACE_ERR_RING:
        trace_netdam_fw_err_ring(id, a, b, c);
        /* The queue pair is in state ERROR, which the interface tells in no other way. */
        netdam_irq_event(opaque);
        break;
    case NETDAM_FW_TRACE_ADMIN:
        trace_netdam_fw_admin(id, a, b, c);
        break;
    case NETDAM_FW_TRACE_ERR_REGISTER:
        trace_netdam_fw_err_register(id, a, b, c ? "write" : "read");
        break;
    case NETDAM_FW_TRACE_GENERATION:
        trace_netdam_fw_generation(id, a);
        break;
    case NETDAM_FW_TRACE_FORWARD:
        trace_netdam_fw_forward(id, a, b, c);
        break;
    case NETDAM_FW_TRACE_ERR_FORWARD:
        trace_netdam_fw_err_forward(id, a, b, c);
        break;
    case NETDAM_FW_TRACE_PATH:
        trace_netdam_fw_path(id, a ? "retired" : "restored", b, c);
        break;
    case NETDAM_FW_TRACE_COUNT:
        break;
    }
}

static uint64_t netdam_platform_main_memory_bytes(void *opaque)
{
    NetdamState *s = opaque;

    return s->main_memory_bytes;
}

static uint32_t netdam_platform_device_status(void *opaque)
{
    NetdamState *s = opaque;

    return (netdam_port_link_up(s) ? NETDAM_DEVICE_LINK_UP : 0) |
           (s->firmware_stale ? NETDAM_DEVICE_FIRMWARE_STALE : 0);
}

void netdam_platform_init(NetdamState *s)
{
    s->platform = (struct netdam_fw_platform){
        .opaque = s,
        .transmit_begin = netdam_platform_transmit_begin,
        .transmit_end = netdam_platform_transmit_end,
        .memory_access = netdam_platform_memory_access,
        .interrupt = netdam_platform_interrupt,
        .entropy = netdam_platform_entropy,
        .crypto = ndsim_crypto_open(),
        .log = netdam_platform_log,
        .trace = netdam_platform_trace,
        .main_memory_bytes = netdam_platform_main_memory_bytes,
        .device_status = netdam_platform_device_status,
    };
}

void netdam_platform_finish(NetdamState *s)
{
    ndsim_crypto_close(s->platform.crypto);
    s->platform.crypto = NULL;
}
