/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The PCI function: properties, BARs, reset. What registers mean is the firmware's business. */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/module.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "migration/vmstate.h"
#include "netdam_device.h"
#include "trace.h"

/* Where the PCI Express capability stands in configuration space: the first free byte. */
#define NETDAM_PCIE_CAP 0x40

bool netdam_start(NetdamState *s, Error **errp)
{
    bool good;

    s->in_use = false;
    s->image.ops->start(s->image.state, &s->config, &s->platform, netdam_run_now(s));
    good = netdam_neighbour_apply(s, errp);
    netdam_run_settle(s);
    netdam_run_schedule(s);
    return good;
}

/*
 * Never called from within the firmware: it comes from a register write after the firmware's part has returned, from
 * configuration space, or from the machine. It has ended when the write returns, so that a driver can go on at once.
 */
static void netdam_restart(NetdamState *s)
{
    bool was_stale = s->firmware_stale;
    NetdamImage loaded;
    Error *error = NULL;

    s->image.ops->stop(s->image.state, netdam_run_now(s));
    netdam_port_discard(s);
    if (s->scrub_on_reset) {
        netdam_migrate_touched(s, 0, s->config.memory_bytes);
        memset(s->config.memory, 0, s->config.memory_bytes);
    }

    if (netdam_image_load(&loaded, s->firmware, &s->config, netdam_name(s), &error)) {
        netdam_image_unload(&s->image);
        s->image = loaded;
        s->firmware_stale = false;
    } else {
        trace_netdam_image_err_load(netdam_name(s), error_get_pretty(error));
        /* A driver that tries again and again does not fill the log. */
        if (!s->firmware_stale) {
            warn_report("%s; the previous image runs on", error_get_pretty(error));
        }
        error_free(error);
        s->firmware_stale = true;
    }
    trace_netdam_reset(netdam_name(s), s->firmware_stale);
    if (s->firmware_stale != was_stale) {
        netdam_irq_event(s);
    }
    error = NULL;
    if (!netdam_start(s, &error)) {
        warn_report_err(error);
    }
}

static uint64_t netdam_registers_read(void *opaque, hwaddr offset, unsigned bytes)
{
    NetdamState *s = opaque;
    uint64_t value;

    netdam_enter(s);
    value = s->image.ops->register_read(s->image.state, offset, bytes);
    netdam_leave(s);
    trace_netdam_register_read(netdam_name(s), offset, bytes, value);
    return value;
}

static void netdam_registers_write(void *opaque, hwaddr offset, uint64_t value, unsigned bytes)
{
    NetdamState *s = opaque;
    unsigned action;

    trace_netdam_register_write(netdam_name(s), offset, bytes, value);
    if (netdam_thread_doorbell(s, offset, bytes)) {
        return;
    }
    s->in_use |= offset == NETDAM_REG_ADMIN_COMMAND;
    netdam_enter(s);
    action = s->image.ops->register_write(s->image.state, offset, bytes, value, netdam_run_now(s));
    if (action & NETDAM_FW_ACTION_RESET) {
        netdam_restart(s);
    } else {
        netdam_run_settle(s);
    }
    netdam_leave(s);
    if ((action & NETDAM_FW_ACTION_RUN) && !(action & NETDAM_FW_ACTION_RESET)) {
        netdam_run_at_once(s);
    }
}

/* Every access reaches the firmware as the guest made it: refusing and counting wrong ones is the firmware's part. */
static const MemoryRegionOps netdam_registers_ops = {
    .read = netdam_registers_read,
    .write = netdam_registers_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = {.min_access_size = 1, .max_access_size = 8, .unaligned = true},
    .impl = {.min_access_size = 1, .max_access_size = 8, .unaligned = true},
};

static void netdam_config_write(PCIDevice *pci, uint32_t address, uint32_t value, int bytes)
{
    pci_default_write_config(pci, address, value, bytes);
    pcie_cap_flr_write_config(pci, address, value, bytes);
}

/* Of the machine, of the bus, or of the function (FLR). */
static void netdam_reset(DeviceState *dev)
{
    NetdamState *s = NETDAM(dev);

    netdam_enter(s);
    netdam_restart(s);
    netdam_irq_clear(s);
    netdam_leave(s);
}

static void netdam_exit(PCIDevice *pci)
{
    NetdamState *s = NETDAM(pci);
    MemoryRegion *memory = host_memory_backend_get_memory(s->memdev);

    netdam_thread_exit(s);
    s->image.ops->stop(s->image.state, netdam_run_now(s));
    netdam_port_flush(s);
    netdam_port_exit(s);
    netdam_run_exit(s);
    netdam_irq_exit(s);
    netdam_image_unload(&s->image);
    netdam_platform_finish(s);
    pcie_cap_exit(pci);
    vmstate_unregister_ram(memory, DEVICE(s));
    host_memory_backend_set_mapped(s->memdev, false);
}

static void netdam_realize(PCIDevice *pci, Error **errp)
{
    NetdamState *s = NETDAM(pci);
    MemoryRegion *memory;
    bool started;

    s->name = DEVICE(s)->id ?: TYPE_NETDAM;
    if (!netdam_config_fill(s, errp) || !netdam_image_load(&s->image, s->firmware, &s->config, netdam_name(s), errp)) {
        return;
    }
    /* It has its place before MSI-X takes the next free one. */
    if (pcie_endpoint_cap_init(pci, NETDAM_PCIE_CAP) < 0) {
        netdam_image_unload(&s->image);
        error_setg(errp, "netdam: no room for the PCI Express capability");
        return;
    }
    pcie_cap_flr_init(pci);
    if (!netdam_irq_init(s, errp)) {
        pcie_cap_exit(pci);
        netdam_image_unload(&s->image);
        return;
    }
    if (!netdam_port_init(s, errp)) {
        netdam_irq_exit(s);
        pcie_cap_exit(pci);
        netdam_image_unload(&s->image);
        return;
    }

    memory_region_init_io(&s->registers, OBJECT(s), &netdam_registers_ops, s, "netdam-registers", NETDAM_BAR0_BYTES);
    pci_register_bar(pci, NETDAM_BAR_REGISTERS, PCI_BASE_ADDRESS_SPACE_MEMORY, &s->registers);

    memory = host_memory_backend_get_memory(s->memdev);
    host_memory_backend_set_mapped(s->memdev, true);
    vmstate_register_ram(memory, DEVICE(s));
    pci_register_bar(pci, NETDAM_BAR_MEMORY,
                     PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH,
                     memory);

    netdam_platform_init(s);
    netdam_run_init(s);
    netdam_thread_init(s);
    netdam_enter(s);
    started = netdam_start(s, errp);
    netdam_leave(s);
    if (!started) {
        netdam_exit(pci);
        return;
    }
    netdam_thread_park(s, !runstate_is_running());
}

/* The class's own realize runs inside PCIDevice's, which sets the function that netdam_irq_hook replaces afterwards. */
static DeviceRealize netdam_parent_realize;

static void netdam_device_realize(DeviceState *dev, Error **errp)
{
    ERRP_GUARD();

    netdam_parent_realize(dev, errp);
    if (!*errp) {
        netdam_irq_hook(NETDAM(dev));
    }
}

static uint64_t netdam_register_value(NetdamState *s, uint32_t offset, unsigned bytes)
{
    uint64_t value;

    if (!DEVICE(s)->realized) {
        return 0;
    }
    netdam_enter(s);
    value = s->image.ops->register_read(s->image.state, offset, bytes);
    netdam_leave(s);
    return value;
}

static void netdam_get_counter(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
    uint64_t value = netdam_register_value(NETDAM(obj), NETDAM_PAGE_COUNTERS + 8 * (uint32_t)(uintptr_t)opaque, 8);

    visit_type_uint64(v, name, &value, errp);
}

static void netdam_get_main_memory_bytes(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
    uint64_t value = NETDAM(obj)->main_memory_bytes;

    visit_type_uint64(v, name, &value, errp);
}

static void netdam_get_firmware_version(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
    uint32_t value = netdam_register_value(NETDAM(obj), NETDAM_REG_FIRMWARE_VERSION, 4);

    visit_type_uint32(v, name, &value, errp);
}

static void netdam_add_counter(ObjectClass *klass, enum netdam_counter counter, const char *name, const char *text)
{
    g_autofree char *property = g_strdup_printf("counter-%s", name);
    g_autofree char *description = g_strdup_printf("%s (read only)", text);
    char *p;

    for (p = property; *p; p++) {
        *p = *p == '_' ? '-' : g_ascii_tolower(*p);
    }
    object_class_property_add(klass, property, "uint64", netdam_get_counter, NULL, NULL, (void *)(uintptr_t)counter);
    object_class_property_set_description(klass, property, description);
}

static void netdam_add_read_only(ObjectClass *klass)
{
#define NETDAM_ADD_COUNTER(name, text) netdam_add_counter(klass, NETDAM_COUNTER_##name, #name, text);
    NETDAM_COUNTER_LIST(NETDAM_ADD_COUNTER)
#undef NETDAM_ADD_COUNTER
    object_class_property_add(klass, "main-memory-bytes", "uint64", netdam_get_main_memory_bytes, NULL, NULL, NULL);
    object_class_property_set_description(klass, "main-memory-bytes",
                                          "bytes ever moved to or from the guest's main memory (read only)");
    netdam_memif_add_properties(klass);
    object_class_property_add(klass, "firmware-version", "uint32", netdam_get_firmware_version, NULL, NULL, NULL);
    object_class_property_set_description(klass, "firmware-version",
                                          "of the image that runs, major << 16 | minor (read only)");
}

static NETDAM_PROPERTIES netdam_properties[] = {
    DEFINE_PROP_LINK("memdev", NetdamState, memdev, TYPE_MEMORY_BACKEND, HostMemoryBackend *),
    DEFINE_PROP_STRING("firmware", NetdamState, firmware),
    DEFINE_PROP_STRING("ip", NetdamState, ip),
    DEFINE_PROP_STRING("ip6", NetdamState, ip6),
    DEFINE_PROP_STRING("gateway", NetdamState, gateway),
    DEFINE_PROP_STRING("neighbours", NetdamState, neighbours),
    DEFINE_PROP_STRING("forward", NetdamState, forward),
    DEFINE_PROP_UINT16("port", NetdamState, port, NETDAM_UDP_PORT),
    DEFINE_PROP_UINT32("mtu", NetdamState, mtu, NETDAM_MTU_MIN),
    DEFINE_PROP_UINT32("queue-pairs", NetdamState, queue_pairs, 16),
    DEFINE_PROP_UINT32("regions", NetdamState, regions, 0),
    DEFINE_PROP_UINT32("peers", NetdamState, peers, 0),
    DEFINE_PROP_UINT32("lanes", NetdamState, lanes, 0),
    DEFINE_PROP_UINT32("lane-windows", NetdamState, lane_windows, 0),
    DEFINE_PROP_UINT32("paths", NetdamState, paths, 0),
    DEFINE_PROP_UINT32("vectors", NetdamState, vectors, 17),
    DEFINE_PROP_BOOL("payload-crc", NetdamState, payload_crc, true),
    DEFINE_PROP_BOOL("merge", NetdamState, merge, true),
    DEFINE_PROP_BOOL("scrub-on-reset", NetdamState, scrub_on_reset, false),
    DEFINE_PROP_BOOL("x-timeouts", NetdamState, timeouts, true),
    DEFINE_PROP_STRING("memif", NetdamState, memif_path),
    DEFINE_PROP_STRING("role", NetdamState, memif_role),
    DEFINE_PROP_UINT32("memif-id", NetdamState, memif_id, 0),
    DEFINE_PROP_STRING("memif-secret", NetdamState, memif_secret),
    DEFINE_PROP_UINT32("x-spins", NetdamState, spins, 0),
    DEFINE_PROP_UINT32("x-yields", NetdamState, yields, 300),
    DEFINE_NIC_PROPERTIES(NetdamState, nic_conf),
    NETDAM_PROPERTIES_END};

static const struct {
    const char *name;
    const char *text;
} netdam_descriptions[] = {
    {"memdev", "memory backend that becomes the on-board memory, BAR2; a power of two, at least 4096 bytes"},
    {"firmware", "path of the firmware image; loaded anew at each reset"},
    {"ip", "own IPv4 address and prefix, such as 10.0.0.1/24"},
    {"ip6", "own IPv6 address and prefix, such as fd00::1/64"},
    {"gateway", "IPv4 address of the router to other networks"},
    {"neighbours", "static link-layer addresses: ADDRESS=MAC;ADDRESS=MAC"},
    {"forward", "networks besides the own to which chains are passed on: NETWORK/BITS;NETWORK/BITS"},
    {"port", "own UDP port"},
    {"mtu", "largest IP packet in bytes, 1500 to 9000"},
    {"queue-pairs", "queue pairs that can exist at once, 1 to 64"},
    {"regions", "memory regions that can exist at once (0: the firmware's choice)"},
    {"peers", "peers that can be open at once (0: the firmware's choice)"},
    {"lanes", "lanes of other requesters that are remembered (0: the firmware's choice)"},
    {"lane-windows", "lanes that can have something unfinished at once (0: the firmware's choice)"},
    {"paths", "source ports that requests vary, from the own port on, 1 to 64 (0: the firmware's choice)"},
    {"vectors", "MSI-X vectors (0: no interrupts); one per queue pair and one for events is enough"},
    {"payload-crc", "whether packets carry a CRC32C of their payload"},
    {"merge", "whether descriptors that wait in a ring and belong together share a packet"},
    {"scrub-on-reset", "whether a reset fills on-board memory with zeros"},
    {"x-timeouts", "off: time-outs of hours, for people at a breakpoint"},
    {"mac", "own Ethernet address"},
    {"netdev", "the wire: id of a network backend"},
    {"memif",
     "the wire instead of netdev: path of the unix socket of a memif link; the firmware has a thread of its own"},
    {"role", "this end of the memif link: server (binds the path) or client (connects to it); default client"},
    {"memif-id", "number of the memif link on its socket; both ends name the same"},
    {"memif-secret", "what a memif server asks its client for, at most 24 characters"},
    {"x-spins", "with memif: fruitless rounds of the firmware's thread before it yields"},
    {"x-yields", "with memif: fruitless rounds in which it yields the processor before it sleeps"},
};

static void netdam_class_init(ObjectClass *klass, NetdamClassData *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);
    size_t i;

    pc->realize = netdam_realize;
    pc->exit = netdam_exit;
    pc->config_write = netdam_config_write;
    pc->vendor_id = NETDAM_PCI_VENDOR_ID;
    pc->device_id = NETDAM_PCI_DEVICE_ID;
    pc->revision = NETDAM_PCI_REVISION;
    pc->class_id = NETDAM_PCI_CLASS;
    dc->desc = "NetDAM: memory and an ALU on a network card";
    dc->vmsd = &netdam_vmstate;
    netdam_class_set_reset(dc, netdam_reset);
    device_class_set_parent_realize(dc, netdam_device_realize, &netdam_parent_realize);
    device_class_set_props(dc, netdam_properties);
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    for (i = 0; i < ARRAY_SIZE(netdam_descriptions); i++) {
        object_class_property_set_description(klass, netdam_descriptions[i].name, netdam_descriptions[i].text);
    }
    netdam_add_read_only(klass);
}

static void netdam_finalize(Object *obj)
{
    g_free(NETDAM(obj)->neighbour_list);
}

static const TypeInfo netdam_type = {
    .name = TYPE_NETDAM,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(NetdamState),
    .instance_finalize = netdam_finalize,
    .class_init = netdam_class_init,
    .interfaces = (InterfaceInfo[]){{INTERFACE_PCIE_DEVICE}, {}},
};

static void netdam_register_types(void)
{
    type_register_static(&netdam_type);
}

type_init(netdam_register_types)
