/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every difference between QEMU 7.2 and newer releases, so that no other file asks for a version. Included by
 * netdam_device.h, right behind qemu/osdep.h. 7.2 means a 7.2 with its stable fixes (qemu_new_nic takes a guard), as
 * distributions ship it.
 */
#ifndef NETDAM_COMPAT_H
#define NETDAM_COMPAT_H

/* pci.h comes first: others of 7.2 do not compile without it. */
#include "hw/pci/pci.h"
#if __has_include("hw/pci/pci_device.h")
#include "hw/pci/pci_device.h" /* 8.0 */
#endif
#include "hw/pci/msi.h"
#include "hw/pci/msix.h"
#include "hw/pci/pcie.h"

#if __has_include("hw/core/qdev-properties.h")
#include "hw/core/qdev-properties.h" /* 11.0 */
#else
#include "hw/qdev-properties.h"
#endif

#if __has_include("system/hostmem.h")
#include "system/hostmem.h" /* 10.0 */
#include "system/qtest.h"
#include "system/runstate.h"
#else
#include "sysemu/hostmem.h"
#include "sysemu/qtest.h"
#include "sysemu/runstate.h"
#endif

#if __has_include("system/memory.h")
#include "system/memory.h" /* 10.1 */
#else
#include "exec/memory.h"
#endif

#if __has_include("exec/icount.h")
#include "exec/icount.h" /* 10.1 */
#elif __has_include("system/cpu-timers.h")
#include "system/cpu-timers.h" /* 10.0 */
#else
#include "sysemu/cpu-timers.h"
#endif

/* 10.0 wants property arrays constant and without terminator, older releases the opposite. */
#if QEMU_VERSION_MAJOR >= 10
#define NETDAM_PROPERTIES const Property
#define NETDAM_PROPERTIES_END
#else
#define NETDAM_PROPERTIES     Property
#define NETDAM_PROPERTIES_END DEFINE_PROP_END_OF_LIST(),
#endif

/* What class_init is given: constant since 10.1. */
#if QEMU_VERSION_MAJOR > 10 || (QEMU_VERSION_MAJOR == 10 && QEMU_VERSION_MINOR >= 1)
typedef const void NetdamClassData;
#else
typedef void NetdamClassData;
#endif

/* 9.2 renamed the old reset method when it took the member away. */
#if QEMU_VERSION_MAJOR > 9 || (QEMU_VERSION_MAJOR == 9 && QEMU_VERSION_MINOR >= 2)
#define netdam_class_set_reset(dc, function) device_class_set_legacy_reset(dc, function)
#else
#define netdam_class_set_reset(dc, function) ((dc)->reset = (function))
#endif

#endif
