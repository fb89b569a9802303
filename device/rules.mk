# SPDX-License-Identifier: GPL-2.0-or-later
# QEMU with the device in it. Tests that start QEMU name the target qemu as an order-only prerequisite.

.PHONY: qemu
qemu: ## QEMU with the device: fetch and build once, then what changed (QEMU=10: another release, beside it)
	$(Q)bash device/qemu/build.sh $(if $(filter command%,$(origin QEMU)),$(QEMU))

CHECKS += device/qemu/integrate_test.sh .ci/deb-src-test
