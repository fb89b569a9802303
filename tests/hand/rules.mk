# SPDX-License-Identifier: BSD-3-Clause
# Guests to work in by hand: `make guest`, `make pair`, and their test.

HAND := $(BUILD)/hand
HAND_STATIC := $(HAND)/static
PCAP ?=
FILES ?=
QEMU_ARGS ?=
MEMIF ?=
SOURCES += tests/hand/share.c

# All tools of the driver, once more without shared libraries: the guests have none.
.PHONY: hand-tools hand-files hand-prepared guest pair
hand-tools: $(filter $(O)/host-driver/netdam%,$(ALL)) $(O)/tests/hand/netdam-share

$(O)/tests/hand/netdam-share: tests/hand/share.c $(LIBNETDAM_STATIC)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -pthread -Ihost-driver/include -Ifirmware/include -o $@ $^ $(LDFLAGS_ALL)

# FILES: programs of your own, linked statically, and whatever else is to be in the guests.
hand-files: $(GUEST_BOOT) $(BUILD)/firmware/netdam-fw.so $(BUILD)/run/pair | qemu
	$(Q)$(MAKE) --no-print-directory O=$(HAND_STATIC) SAN= LDFLAGS=-static hand-tools
	$(Q)bash tests/guest/mkinitramfs.sh -m tun $(HAND)/hand.cpio $(HAND_STATIC)/tests/hand/netdam-share \
	  $$(find -L $(HAND_STATIC)/host-driver -maxdepth 1 -type f -name 'netdam*' -perm -u+x) $(BUILD)/run/pair \
	  tests/hand/shell-inside.sh $(FILES)

hand-prepared:
	$(Q)$(MAKE) --no-print-directory setup && $(MAKE) --no-print-directory hand-files

guest: hand-prepared ## one guest with a card, its shell on this terminal; PCAP=1 FILES='...' QEMU_ARGS='...'
	$(Q)tests/hand/hand.py guest $(if $(PCAP),--pcap) --qemu-args='$(QEMU_ARGS)'

pair: hand-prepared ## two guests on one wire, in tmux or on sockets; PCAP=1 MEMIF=A,B FILES='...' QEMU_ARGS='...'
	$(Q)tests/hand/hand.py pair $(if $(PCAP),--pcap) $(if $(MEMIF),--memif $(MEMIF)) --qemu-args='$(QEMU_ARGS)'

-include $(O)/tests/hand/netdam-share.d

SLOW_TESTS += tests/hand/opcode_test.sh
LONE_TESTS += tests/hand/hand_test.py tests/hand/tutorial_test.py
tests/hand/hand_test.py tests/hand/tutorial_test.py: hand-files
tests/hand/tutorial_test.py: $(O)/sim/netdam-fabric
