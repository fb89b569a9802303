# SPDX-License-Identifier: BSD-3-Clause
# The soft device, the headless node that is made of it, and the demonstration.

SIM_INCLUDES := -Ifirmware/include -Isim
SIM_LIB_SOURCES := sim/address.c sim/describe.c sim/port.c sim/soft.c
SIM_SOURCES := $(SIM_LIB_SOURCES) sim/node.c sim/options.c

SOURCES += $(SIM_SOURCES)
INCLUDES_ALL += -Isim

$(O)/sim/%.o: sim/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -pthread $(SIM_INCLUDES) -c -o $@ $<

$(O)/sim/libndsoft.a: $(SIM_LIB_SOURCES:%.c=$(O)/%.o)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/sim/netdam-node: $(O)/sim/node.o $(O)/sim/options.o $(O)/sim/libndsoft.a $(O)/firmware/libndfw.a
	$(Q)$(CC) $(LDFLAGS_ALL) -pthread -o $@ $^

-include $(SIM_SOURCES:%.c=$(O)/%.d)

ALL += $(O)/sim/libndsoft.a $(O)/sim/netdam-node

.PHONY: demo
demo: $(O)/sim/netdam-node $(O)/host-driver/netdam-mem ## two nodes on loopback: moves a file, reduces vectors, shows packets; no root
	$(Q)O='$(O)' sh sim/demo.sh
