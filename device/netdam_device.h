/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The device's state, and what its files ask of each other. */
#ifndef NETDAM_DEVICE_H
#define NETDAM_DEVICE_H

#include "compat.h"
#include "net/net.h"
#include "qemu/bitmap.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"

#include "netdam/firmware.h"
#include "netdam/regs.h"
#include "netdam/wire.h"

#define TYPE_NETDAM "netdam"
OBJECT_DECLARE_SIMPLE_TYPE(NetdamState, NETDAM)

#define NETDAM_VECTORS_MAX (PCI_MSIX_FLAGS_QSIZE + 1)

/* A loaded firmware image with its state. */
typedef struct NetdamImage {
    const struct netdam_fw_ops *ops;
    void *state;
    void *handle; /* of dlopen */
    int fd;       /* the copy that is mapped */
} NetdamImage;

typedef struct NetdamNeighbour NetdamNeighbour;

/* Registers that have to be the same at both ends of a migration. */
#define NETDAM_MIGRATE_IDENTITY 14

/* What goes over in a migration and is nothing else's state. */
typedef struct NetdamMigrate {
    uint64_t identity[NETDAM_MIGRATE_IDENTITY];
    uint64_t arguments[NETDAM_ADMIN_ARGS];
} NetdamMigrate;

/* Frames that the firmware has emitted and the netdev has not taken yet. */
#define NETDAM_TX_SLOTS 128

typedef struct NetdamTxRing {
    uint8_t *frames;   /* NETDAM_TX_SLOTS slots of slot_bytes bytes */
    size_t slot_bytes; /* an Ethernet frame of the MTU */
    size_t bytes[NETDAM_TX_SLOTS];
    unsigned head; /* free-running: frames put in */
    unsigned tail; /* free-running: frames taken out */
    bool waiting;  /* the netdev holds our last frame back; its callback goes on */
    bool flushing;
} NetdamTxRing;

/*
 * All of it is used under QEMU's big lock alone: by the main loop, and by vCPU threads in register accesses.
 *
 * No call of the firmware is entered while another one is under way. Nothing that the firmware can cause runs before
 * its call has returned: frames wait in the ring, interrupts in a bitmap. Sending a frame may deliver one to this
 * device within the same call chain (two devices on one hub), and an interrupt's message may be aimed at its own
 * registers.
 */
struct NetdamState {
    PCIDevice parent_obj;

    /* Properties. */
    HostMemoryBackend *memdev;
    char *firmware;
    char *ip;
    char *ip6;
    char *gateway;
    char *neighbours;
    char *forward;
    NICConf nic_conf;
    uint16_t port;
    uint32_t mtu;
    uint32_t queue_pairs;
    uint32_t regions;
    uint32_t peers;
    uint32_t lanes;
    uint32_t lane_windows;
    uint32_t vectors;
    bool payload_crc;
    bool merge;
    bool scrub_on_reset;
    bool timeouts;

    MemoryRegion registers;
    NetdamImage image;
    bool firmware_stale; /* the last reset could not load the image; the one before it runs */
    bool fault_reported; /* an error of the firmware has been printed */
    bool in_use;         /* the guest has written a command since the last reset */
    struct netdam_fw_config config;
    struct netdam_fw_platform platform;
    NetdamNeighbour *neighbour_list;
    unsigned neighbour_count;
    NetdamMigrate migrate;

    /* netdam_run.c */
    QEMUBH *run_bh;
    QEMUTimer *run_timer;
    VMChangeStateEntry *vm_change;
    uint64_t last_ns;

    /* netdam_port.c */
    NICState *nic;
    NetdamTxRing tx;

    /* netdam_irq.c */
    QEMUBH *irq_bh;
    unsigned long *irq_pending;  /* a bit per vector */
    MSITriggerFunc *msi_trigger; /* QEMU's own */
    uint64_t main_memory_bytes;
};

static inline const char *netdam_name(NetdamState *s)
{
    return DEVICE(s)->id ?: TYPE_NETDAM;
}

/* netdam_pci.c */
/* Starts the firmware, or starts it again, with everything forgotten. */
bool netdam_start(NetdamState *s, Error **errp);

/* netdam_image.c: the firmware's file. `image` is written only on success; unload may be called for a zeroed one. */
bool netdam_image_load(NetdamImage *image, const char *path, const struct netdam_fw_config *config, const char *name,
                       Error **errp);
void netdam_image_unload(NetdamImage *image);

/* netdam_run.c: when the firmware runs. */
void netdam_run_init(NetdamState *s);
void netdam_run_exit(NetdamState *s);
/* The firmware's clock; never runs backwards. */
uint64_t netdam_run_now(NetdamState *s);
/* Runs the firmware now, for one slice. Never called from within the firmware. */
void netdam_run_slice(NetdamState *s);
/* Runs it soon, from the main loop. */
void netdam_run_schedule(NetdamState *s);
/* Lets out what a firmware call has caused. Returns the number of frames that left. */
unsigned netdam_run_settle(NetdamState *s);

/* netdam_platform.c: what the firmware calls. */
void netdam_platform_init(NetdamState *s);
/* After the firmware has stopped. */
void netdam_platform_finish(NetdamState *s);

/* netdam_port.c: the wire. */
void netdam_port_init(NetdamState *s);
void netdam_port_exit(NetdamState *s);
bool netdam_port_link_up(NetdamState *s);
uint8_t *netdam_port_transmit_begin(NetdamState *s, size_t bytes);
void netdam_port_transmit_end(NetdamState *s, size_t bytes);
/* Hands frames to the netdev until there are none or it holds one back. Returns how many it took. */
unsigned netdam_port_flush(NetdamState *s);
/* Throws away what has not left. */
void netdam_port_discard(NetdamState *s);

/* netdam_irq.c: MSI-X. */
bool netdam_irq_init(NetdamState *s, Error **errp);
void netdam_irq_exit(NetdamState *s);
/* Puts the device's own function in front of QEMU's: after PCIDevice's realize, which sets that one last. */
void netdam_irq_hook(NetdamState *s);
/* Remembers that the last vector, which is for events, wants to be raised. May be called from within the firmware. */
void netdam_irq_event(NetdamState *s);
/* Remembers that the vector wants to be raised. May be called from within the firmware. */
void netdam_irq_set(NetdamState *s, unsigned vector);
/* Raises what is remembered, soon, from the main loop. */
void netdam_irq_schedule(NetdamState *s);
void netdam_irq_clear(NetdamState *s);

/* netdam_migrate.c */
extern const struct VMStateDescription netdam_vmstate;
/* On-board memory is about to be stored into. */
void netdam_migrate_touched(NetdamState *s, uint64_t offset, uint64_t bytes);

/* netdam_neighbour.c: static link-layer addresses. */
bool netdam_neighbour_fill(NetdamState *s, Error **errp);
/* Tells the firmware, which has just been started. */
bool netdam_neighbour_apply(NetdamState *s, Error **errp);

/* netdam_config.c: properties to firmware configuration. */
bool netdam_config_fill(NetdamState *s, Error **errp);

#endif
