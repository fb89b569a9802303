/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MSI-X: the device's only way to the guest's main memory, and the count of bytes that took it. */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "netdam_device.h"
#include "trace.h"

/* Where x86 has its interrupt controllers; a message to any other address is a store into memory. */
#define NETDAM_MSI_FIRST 0xfee00000u
#define NETDAM_MSI_LAST  0xfeefffffu

#define NETDAM_MSI_BYTES 4

/*
 * Each message passes here: those of raised vectors, and those that were pending and are let go when software unmasks
 * the vector. No other code of this device can write to main memory, and none can read it.
 */
static void netdam_irq_message(PCIDevice *pci, MSIMessage message)
{
    NetdamState *s = NETDAM(pci);

    if (!(pci_get_word(pci->config + PCI_COMMAND) & PCI_COMMAND_MASTER)) {
        trace_netdam_irq_err_bus_master(netdam_name(s), message.address);
        return;
    }
    if (message.address < NETDAM_MSI_FIRST || message.address > NETDAM_MSI_LAST) {
        s->main_memory_bytes += NETDAM_MSI_BYTES;
        trace_netdam_irq_main_memory(netdam_name(s), message.address, message.data, s->main_memory_bytes);
    }
    s->msi_trigger(pci, message);
}

/*
 * The message may be aimed at the device's own registers, reset included: nothing is carried over from before
 * msix_notify to after it. An interrupt that software has no MSI-X for is lost; rings tell all that it would tell.
 */
static void netdam_irq_raise(NetdamState *s, unsigned vector)
{
    PCIDevice *pci = PCI_DEVICE(s);

    if (!msix_enabled(pci)) {
        trace_netdam_irq_err_disabled(netdam_name(s), vector);
        return;
    }
    trace_netdam_irq_raise(netdam_name(s), vector, msix_is_masked(pci, vector));
    msix_notify(pci, vector);
}

static void netdam_irq_bh(void *opaque)
{
    NetdamState *s = opaque;
    unsigned vector;

    /* A machine that stands still gets no messages; it is asked again when it goes on. */
    if (!runstate_is_running()) {
        return;
    }
    for (vector = 0; vector < s->vectors; vector++) {
        if (bitmap_test_and_clear_atomic(s->irq_pending, vector, 1)) {
            netdam_irq_raise(s, vector);
        }
    }
}

void netdam_irq_event(NetdamState *s)
{
    if (s->vectors > 0) {
        trace_netdam_irq_event(netdam_name(s), s->vectors - 1);
        netdam_irq_set(s, s->vectors - 1);
    }
}

void netdam_irq_set(NetdamState *s, unsigned vector)
{
    if (vector >= s->vectors) {
        trace_netdam_irq_err_vector(netdam_name(s), vector, s->vectors);
        return;
    }
    set_bit_atomic(vector, s->irq_pending);
}

void netdam_irq_schedule(NetdamState *s)
{
    if (find_first_bit(s->irq_pending, s->vectors) < s->vectors) {
        qemu_bh_schedule(s->irq_bh);
    }
}

void netdam_irq_clear(NetdamState *s)
{
    bitmap_zero(s->irq_pending, s->vectors);
    qemu_bh_cancel(s->irq_bh);
}

void netdam_irq_hook(NetdamState *s)
{
    PCIDevice *pci = PCI_DEVICE(s);

    s->msi_trigger = pci->msi_trigger;
    pci->msi_trigger = netdam_irq_message;
}

bool netdam_irq_init(NetdamState *s, Error **errp)
{
    PCIDevice *pci = PCI_DEVICE(s);
    unsigned vector;

    if (s->vectors > 0) {
        if (msix_init_exclusive_bar(pci, s->vectors, NETDAM_BAR_MSIX, errp) < 0) {
            return false;
        }
        for (vector = 0; vector < s->vectors; vector++) {
            msix_vector_use(pci, vector);
        }
    }
    /* One bit at least, so that the bitmap exists. */
    s->irq_pending = bitmap_new(MAX(s->vectors, 1));
    s->irq_bh = qemu_bh_new(netdam_irq_bh, s);
    return true;
}

void netdam_irq_exit(NetdamState *s)
{
    qemu_bh_delete(s->irq_bh);
    g_free(s->irq_pending);
    if (s->vectors > 0) {
        msix_unuse_all_vectors(PCI_DEVICE(s));
        msix_uninit_exclusive_bar(PCI_DEVICE(s));
    }
}
