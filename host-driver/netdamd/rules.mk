# SPDX-License-Identifier: BSD-3-Clause
# netdamd, the broker.

NETDAMD_SOURCES := $(wildcard host-driver/netdamd/*.c)
NETDAMD_OBJECTS := $(NETDAMD_SOURCES:host-driver/netdamd/%.c=$(O)/host-driver/netdamd-objects/%.o)

SOURCES += $(NETDAMD_SOURCES)

$(NETDAMD_OBJECTS): $(O)/host-driver/netdamd-objects/%.o: host-driver/netdamd/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -pthread $(HOST_DRIVER_INCLUDES) -Ihost-driver/src -c -o $@ $<

$(O)/host-driver/netdamd: $(NETDAMD_OBJECTS) $(LIBNETDAM_STATIC)
	$(Q)$(CC) $(LDFLAGS_ALL) -pthread -o $@ $^

-include $(NETDAMD_OBJECTS:.o=.d)

ALL += $(O)/host-driver/netdamd
