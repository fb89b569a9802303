# SPDX-License-Identifier: GPL-2.0-or-later
# QEMU with the device in it. Tests that start QEMU name the target qemu as an order-only prerequisite.

QEMU := $(BUILD)/qemu/qemu-system-x86_64

.PHONY: qemu
qemu: ## QEMU with the device: fetch and build once, then what changed
	$(Q)bash device/qemu/build.sh

CHECKS += device/qemu/integrate_test.sh .ci/deb-src-test
