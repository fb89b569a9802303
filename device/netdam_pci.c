/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The PCI function: configuration space, BAR0 registers, BAR2 on-board memory given by a memory backend. */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "hw/pci/pci.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "sysemu/hostmem.h"
#include "trace.h"

#include "netdam/regs.h"

#define TYPE_NETDAM "netdam"
OBJECT_DECLARE_SIMPLE_TYPE(NetdamState, NETDAM)

#define NETDAM_BAR_REGS   0
#define NETDAM_BAR_MEMORY 2

struct NetdamState {
    PCIDevice parent_obj;

    MemoryRegion regs;
    HostMemoryBackend *memdev;
};

static uint64_t netdam_regs_read(void *opaque, hwaddr addr, unsigned size)
{
    NetdamState *s = opaque;
    uint64_t value = 0;

    if (addr == 0) {
        value = NETDAM_PCI_DEVICE_ID;
    }
    trace_netdam_reg_read(DEVICE(s)->id ?: "", addr, size, value);
    return value;
}

static void netdam_regs_write(void *opaque, hwaddr addr, uint64_t value, unsigned size)
{
    NetdamState *s = opaque;

    trace_netdam_reg_err_write(DEVICE(s)->id ?: "", addr, size, value);
    qemu_log_mask(LOG_GUEST_ERROR, "netdam: write to read-only register 0x%" HWADDR_PRIx "\n", addr);
}

static const MemoryRegionOps netdam_regs_ops = {
    .read = netdam_regs_read,
    .write = netdam_regs_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 8 },
    .impl = { .min_access_size = 4, .max_access_size = 8 },
};

static void netdam_realize(PCIDevice *pci, Error **errp)
{
    NetdamState *s = NETDAM(pci);
    MemoryRegion *memory;

    if (!s->memdev) {
        error_setg(errp, "netdam: memdev=ID of a memory-backend object is required");
        return;
    }
    if (host_memory_backend_is_mapped(s->memdev)) {
        error_setg(errp, "netdam: memdev %s is in use already",
                   object_get_canonical_path_component(OBJECT(s->memdev)));
        return;
    }
    memory = host_memory_backend_get_memory(s->memdev);
    if (!is_power_of_2(memory_region_size(memory))) {
        error_setg(errp, "netdam: the size of memdev must be a power of two");
        return;
    }

    memory_region_init_io(&s->regs, OBJECT(s), &netdam_regs_ops, s, "netdam-regs", 64 * KiB);
    pci_register_bar(pci, NETDAM_BAR_REGS, PCI_BASE_ADDRESS_SPACE_MEMORY, &s->regs);

    host_memory_backend_set_mapped(s->memdev, true);
    vmstate_register_ram(memory, DEVICE(s));
    pci_register_bar(pci, NETDAM_BAR_MEMORY,
                     PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH,
                     memory);
}

static void netdam_exit(PCIDevice *pci)
{
    NetdamState *s = NETDAM(pci);

    vmstate_unregister_ram(host_memory_backend_get_memory(s->memdev), DEVICE(s));
    host_memory_backend_set_mapped(s->memdev, false);
}

static Property netdam_properties[] = {
    DEFINE_PROP_LINK("memdev", NetdamState, memdev, TYPE_MEMORY_BACKEND, HostMemoryBackend *),
    DEFINE_PROP_END_OF_LIST(),
};

static const VMStateDescription netdam_vmstate = {
    .name = TYPE_NETDAM,
    .unmigratable = 1,
};

static void netdam_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);

    pc->realize = netdam_realize;
    pc->exit = netdam_exit;
    pc->vendor_id = NETDAM_PCI_VENDOR_ID;
    pc->device_id = NETDAM_PCI_DEVICE_ID;
    pc->revision = NETDAM_PCI_REVISION;
    pc->class_id = NETDAM_PCI_CLASS;
    dc->desc = "NetDAM: memory and an ALU on a network card";
    dc->vmsd = &netdam_vmstate;
    device_class_set_props(dc, netdam_properties);
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    object_class_property_set_description(klass, "memdev", "memory backend that becomes the on-board memory (BAR2)");
}

static const TypeInfo netdam_type = {
    .name = TYPE_NETDAM,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(NetdamState),
    .class_init = netdam_class_init,
    .interfaces = (InterfaceInfo[]) {
        { INTERFACE_CONVENTIONAL_PCI_DEVICE },
        { }
    },
};

static void netdam_register_types(void)
{
    type_register_static(&netdam_type);
}

type_init(netdam_register_types)
