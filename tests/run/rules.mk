# SPDX-License-Identifier: BSD-3-Clause
# The two-guest run: `make run`, and the same as a test.

RUN := $(BUILD)/run
RUN_FILES := $(RUN)/pair.cpio $(GUEST_BOOT) $(BUILD)/firmware/netdam-fw.so

$(RUN)/pair: tests/run/pair.c $(BUILD)/host-driver/libnetdam.a $(BUILD)/sim/libndsoft.a $(BUILD)/firmware/libndfw.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(OPT) $(WARNINGS) -Ihost-driver/include -Ifirmware/include -static -pthread -o $@ $^

# The kernel image is the file that travels.
$(RUN)/pair.cpio: tests/guest/mkinitramfs.sh tests/run/pair-inside.sh $(RUN)/pair $(GUEST)/init $(GUEST)/vmlinux
	$(Q)bash tests/guest/mkinitramfs.sh -m irqbypass,vfio,vfio_virqfd,vfio_iommu_type1,vfio-pci-core,vfio-pci $@ \
	  $(RUN)/pair tests/run/pair-inside.sh $(GUEST)/vmlinuz:/payload

.PHONY: run run-files
run: ## two guests, one wire: remote write, read and reduce into on-board memory (WIRE=netdev: over QEMU's sockets; TOPOLOGY=FILE: through netdam-fabric)
	$(Q)start=$$(date +%s%N); $(MAKE) --no-print-directory setup && $(MAKE) --no-print-directory run-files && \
	  tests/run/run.py --started $$start $(if $(WIRE),--wire $(WIRE)) $(if $(TOPOLOGY),--topology $(TOPOLOGY))

RUN_FABRIC := $(BUILD)/sim/netdam-fabric $(BUILD)/sim/netdam-node
run-files: $(RUN_FILES) $(if $(TOPOLOGY),$(RUN_FABRIC)) | qemu

LONE_TESTS += tests/run/run_test.py
tests/run/run_test.py: $(RUN_FILES) tests/run/run.py | qemu
LONE_TESTS += tests/run/fabric_run_test.py tests/run/killed_test.py
tests/run/fabric_run_test.py tests/run/killed_test.py: $(RUN_FILES) $(RUN_FABRIC) tests/run/run.py tests/run/faulty.conf | qemu
