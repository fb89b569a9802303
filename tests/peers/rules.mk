# SPDX-License-Identifier: BSD-3-Clause
# make bench-guests: NetDAM between two guests beside SoftRoCE and TCP between the same two.

PEERS_DIR := $(O)/tests/peers
# Programs of the host, with their libraries.
PEERS_HOST_PROGRAMS := ib_read_lat ib_write_lat ib_read_bw ib_write_bw rdma qperf
PEERS_PROVIDERS := /usr/lib/x86_64-linux-gnu/libibverbs
PEERS_FILES := $(PEERS_DIR)/peers.cpio $(GUEST_BOOT) $(BUILD)/firmware/netdam-fw.so $(FABRIC)

$(PEERS_DIR)/peers.cpio: tests/guest/mkinitramfs.sh tests/peers/peers-inside.sh $(O)/host-driver/static/netdam-perf \
    $(GUEST)/init $(GUEST)/vmlinux
	$(Q)provider=$$(ls $(PEERS_PROVIDERS)/librxe-*.so) && bash tests/guest/mkinitramfs.sh \
	  -m crc32_generic,virtio_pci,virtio_net,rdma_rxe,ib_uverbs $(PEERS_HOST_PROGRAMS:%=-p %) $@ tests/peers/peers-inside.sh \
	  $(O)/host-driver/static/netdam-perf $$provider:$$provider /etc/libibverbs.d/rxe.driver:/etc/libibverbs.d/rxe.driver

.PHONY: bench-guests
bench-guests: $(PEERS_FILES) | qemu ## two guests by memif, fabric and netdev, beside SoftRoCE and TCP; JSON in build/bench/fabric.json
	$(Q)O='$(O)' $(PYTHON) tests/peers/peers.py

ifeq ($(SAN),)
LONE_TESTS += tests/peers/peers_test.py
tests/peers/peers_test.py: $(PEERS_FILES) | qemu
endif
