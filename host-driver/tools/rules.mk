# SPDX-License-Identifier: BSD-3-Clause
# Tools that watch a device (netdam-stat, netdam-regs), and their manual pages.

HOST_DRIVER_WATCHERS := netdam-stat netdam-regs

$(HOST_DRIVER_WATCHERS:%=$(O)/host-driver/%): $(O)/host-driver/netdam-%: $(O)/host-driver/tools/%.o \
    $(O)/host-driver/tools/common.o $(LIBNETDAM_STATIC)
	$(Q)$(CC) $(LDFLAGS_ALL) -pthread -o $@ $^ -lm

ALL += $(HOST_DRIVER_WATCHERS:%=$(O)/host-driver/%)
