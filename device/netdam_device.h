/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The device's state, and what its files ask of each other. */
#ifndef NETDAM_DEVICE_H
#define NETDAM_DEVICE_H

#include "compat.h"
#include "net/net.h"
#include "qemu/bitmap.h"
#include "qemu/main-loop.h"
#include "qemu/thread.h"
#include "qemu/timer.h"

#include "netdam/firmware.h"
#include "netdam/regs.h"
#include "netdam/wire.h"
#include "memif.h"
#include "share.h"
#include "turn.h"

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

/* A port to a memif peer. Its frames wait in the endpoint's ring, not in NetdamTxRing. */
typedef struct NetdamMemif {
    struct ndsim_memif *end; /* NULL: the port is a netdev's */
    uint64_t now_ns;         /* of the frames that are being delivered */
    unsigned unsent;         /* frames that the firmware has emitted since the last flush */
    bool up;                 /* what the guest has been told */
} NetdamMemif;

/* The thread that runs the firmware where the port is a memif peer's; netdam_thread.c tells who may touch what. */
typedef struct NetdamThread {
    struct ndsim_turn turn;
    struct ndsim_share share;
    QemuThread thread;
    int wake_fd;
    QEMUTimer *alarm; /* where the guest's clock does not go by itself */
    uint64_t doorbells;
    unsigned doorbell[NETDAM_QUEUE_PAIRS_MAX];
    bool kicked;
    bool asleep;
    bool parked;
    bool quit;
    bool running;
    unsigned rounds;
} NetdamThread;

/* Stores into on-board memory of the firmware call under way. */
#define NETDAM_TOUCHED_MAX 64

typedef struct NetdamTouched {
    struct {
        uint64_t begin;
        uint64_t end;
    } range[NETDAM_TOUCHED_MAX];
    unsigned count;
} NetdamTouched;

/*
 * With a netdev all of it is used under QEMU's big lock alone: by the main loop, and by vCPU threads in register
 * accesses. With memif the firmware, and what it calls, is used by whoever has the turn (netdam_enter); all the rest is
 * still the big lock's.
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
    char *memif_path;
    char *memif_role;
    char *memif_secret;
    NICConf nic_conf;
    uint16_t port;
    uint32_t mtu;
    uint32_t queue_pairs;
    uint32_t regions;
    uint32_t peers;
    uint32_t lanes;
    uint32_t lane_windows;
    uint32_t paths;
    uint32_t vectors;
    uint32_t memif_id;
    uint32_t spins;
    uint32_t yields;
    bool payload_crc;
    bool merge;
    bool scrub_on_reset;
    bool timeouts;

    const char *name; /* for messages: the device's id */
    MemoryRegion registers;
    NetdamImage image;
    bool firmware_stale; /* the last reset could not load the image; the one before it runs */
    bool fault_reported; /* an error of the firmware has been printed */
    bool in_use;         /* the guest has written a command since the last reset */
    struct netdam_fw_config config;
    struct netdam_fw_platform platform;
    NetdamNeighbour *neighbour_list;
    unsigned neighbour_count;

    /* netdam_migrate.c */
    NetdamMigrate migrate;
    NetdamTouched touched;

    /* netdam_run.c */
    QEMUBH *run_bh;
    QEMUTimer *run_timer;
    VMChangeStateEntry *vm_change;
    uint64_t last_ns;

    /* netdam_port.c */
    NICState *nic;
    NetdamTxRing tx;

    /* netdam_memif.c, netdam_thread.c */
    NetdamMemif memif;
    NetdamThread thread;

    /* netdam_irq.c */
    QEMUBH *irq_bh;
    unsigned long *irq_pending;  /* a bit per vector */
    MSITriggerFunc *msi_trigger; /* QEMU's own */
    uint64_t main_memory_bytes;
};

/* Whether the firmware runs in the device's own thread. */
static inline bool netdam_is_threaded(const NetdamState *s)
{
    return s->memif_path != NULL;
}

static inline const char *netdam_name(NetdamState *s)
{
    return s->name;
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
/* Runs the firmware at once: with a netdev here, for one slice. Never called from within the firmware, nor in a turn. */
void netdam_run_at_once(NetdamState *s);
/* Runs it soon, where it runs. */
void netdam_run_schedule(NetdamState *s);
/* Lets out what a firmware call has caused. Returns the number of frames that left. */
unsigned netdam_run_settle(NetdamState *s);

/* netdam_thread.c: the thread of a device with memif. Without memif these do nothing. */
void netdam_thread_init(NetdamState *s);
/* Ends it and waits for that. Called without the turn. */
void netdam_thread_exit(NetdamState *s);
/*
 * The turn to call the firmware. Taken by whoever holds the big lock, and given back before it lets that go; the thread
 * has it else, and never waits for the big lock.
 */
void netdam_enter(NetdamState *s);
void netdam_leave(NetdamState *s);
/* While the machine stands still. Called without the turn; when it returns the firmware does not run. */
void netdam_thread_park(NetdamState *s, bool park);
/* From any thread, with or without the turn. */
void netdam_thread_wake(NetdamState *s);
/* False if this is not a write to a doorbell. Waits for nobody: the message of an interrupt may be aimed here. */
bool netdam_thread_doorbell(NetdamState *s, uint64_t offset, unsigned bytes);
/* Whether the thread sleeps and nothing is about to wake it. */
bool netdam_thread_is_asleep(NetdamState *s);

/* netdam_memif.c: a port to a memif peer, with the turn. */
bool netdam_memif_open(NetdamState *s, Error **errp);
void netdam_memif_close(NetdamState *s);
uint8_t *netdam_memif_transmit_begin(NetdamState *s, size_t bytes);
void netdam_memif_transmit_end(NetdamState *s, size_t bytes);
unsigned netdam_memif_flush(NetdamState *s);
/* Gives frames that have come to the firmware. Returns how many. */
unsigned netdam_memif_receive(NetdamState *s, uint64_t now_ns);
/* The control channel. */
void netdam_memif_process(NetdamState *s);
/* Tells the guest if the link has gone up or down. */
void netdam_memif_tell(NetdamState *s);
void netdam_memif_add_properties(ObjectClass *klass);

/* netdam_platform.c: what the firmware calls. */
void netdam_platform_init(NetdamState *s);
/* After the firmware has stopped. */
void netdam_platform_finish(NetdamState *s);

/* netdam_port.c: the wire. */
bool netdam_port_init(NetdamState *s, Error **errp);
void netdam_port_exit(NetdamState *s);
bool netdam_port_link_up(NetdamState *s);
uint8_t *netdam_port_transmit_begin(NetdamState *s, size_t bytes);
void netdam_port_transmit_end(NetdamState *s, size_t bytes);
/* Hands frames over until there are none or the netdev holds one back. Returns how many it took. */
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
/* On-board memory is about to be stored into. Remembered until the store has been made. */
void netdam_migrate_touched(NetdamState *s, uint64_t offset, uint64_t bytes);
/* The stores have been made. */
void netdam_migrate_settle(NetdamState *s);

/* netdam_neighbour.c: static link-layer addresses. */
bool netdam_neighbour_fill(NetdamState *s, Error **errp);
/* Tells the firmware, which has just been started. */
bool netdam_neighbour_apply(NetdamState *s, Error **errp);

/* netdam_config.c: properties to firmware configuration. */
bool netdam_config_fill(NetdamState *s, Error **errp);

#endif
