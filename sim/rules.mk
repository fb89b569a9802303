# SPDX-License-Identifier: BSD-3-Clause
# The soft device, the headless node that is made of it, the demonstration; the network in virtual time; and, in
# platform/, what every home of the firmware may use, QEMU included.

PLATFORM_INCLUDES := -Isim/platform
SIM_INCLUDES := -Ifirmware/include -Ifirmware -Isim $(PLATFORM_INCLUDES)
PLATFORM_SOURCES := sim/platform/memif.c sim/platform/memif_control.c sim/platform/memif_kick.c \
                    sim/platform/memif_memory.c sim/platform/memif_rings.c sim/platform/share.c
SIM_LIB_SOURCES := sim/address.c sim/describe.c sim/port.c sim/refusals.c sim/soft.c $(PLATFORM_SOURCES)
SIM_VT_SOURCES := $(wildcard sim/vt/*.c)
SIM_TOPOLOGY_SOURCES := $(wildcard sim/topology*.c)
SIM_SOURCES := $(SIM_LIB_SOURCES) sim/platform/crypto.c sim/node.c sim/nodes.c sim/options.c sim/options_topology.c sim/status_file.c sim/units.c sim/values.c sim/demo_vectors.c $(SIM_VT_SOURCES) \
               $(SIM_TOPOLOGY_SOURCES)

SOURCES += $(SIM_SOURCES)
INCLUDES_ALL += -Isim $(PLATFORM_INCLUDES)

$(O)/sim/%.o: sim/%.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -fPIC -pthread $(SIM_INCLUDES) -c -o $@ $<

# One object with what it needs of mbed TLS and nothing else to be seen: nobody has to link with that library, and a
# program may use its own. Without the library there are no tenants, and everything else works.
MBEDCRYPTO = $(shell printf '\#include <mbedtls/gcm.h>\n\#include <mbedtls/hkdf.h>\n' | $(CC) -E - >/dev/null 2>&1 && \
               $(CC) -print-file-name=libmbedcrypto.a)
NDCRYPTO := $(O)/sim/ndcrypto.o

$(NDCRYPTO): sim/platform/crypto.c sim/platform/crypto.h firmware/include/netdam/firmware.h
	$(Q)mkdir -p $(@D)/platform
	$(Q)library='$(MBEDCRYPTO)'; [ -n "$$library" ] || echo 'sim: libmbedtls-dev is not installed: without tenants'; \
	  $(CC) $(CFLAGS_ALL) $$([ -n "$$library" ] || echo -DNDSIM_NO_CRYPTO) -fPIC $(SIM_INCLUDES) -c -o $(O)/sim/platform/crypto.o $< && \
	  $(CC) -r -nostdlib -o $@ $(O)/sim/platform/crypto.o $$library && \
	  objcopy --keep-global-symbol=ndsim_crypto_open --keep-global-symbol=ndsim_crypto_close $@

$(O)/sim/libndsoft.a: $(SIM_LIB_SOURCES:%.c=$(O)/%.o) $(NDCRYPTO)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# Virtual time: no clock, no thread, no randomness but from a seed.
$(O)/sim/libndvt.a: $(SIM_VT_SOURCES:%.c=$(O)/%.o)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# What reads topology files; whoever links with it needs libndvt.a, libndfw.a and -lconfig (libconfig-dev) behind it.
$(O)/sim/libndtopology.a: $(SIM_TOPOLOGY_SOURCES:%.c=$(O)/%.o) $(O)/sim/units.o $(O)/sim/values.o $(O)/sim/address.o
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# Without libconfig a node takes no topology files, and everything else works.
LIBCONFIG := $(shell echo '\#include <libconfig.h>' | $(CC) -E - >/dev/null 2>&1 && echo -lconfig)
NODE_OBJECTS := $(patsubst %,$(O)/sim/%.o,node nodes options options_topology status_file units values)

$(O)/sim/options_topology.o: CFLAGS_ALL += $(if $(LIBCONFIG),,-DNDSIM_NO_TOPOLOGY)

$(O)/sim/netdam-node: $(NODE_OBJECTS) $(O)/sim/libndsoft.a $(if $(LIBCONFIG),$(O)/sim/libndtopology.a $(O)/sim/libndvt.a) \
                      $(O)/firmware/libndfw.a
	$(Q)$(if $(LIBCONFIG),:,echo 'sim: libconfig-dev is not installed: netdam-node without --topology')
	$(Q)$(CC) $(LDFLAGS_ALL) -pthread -o $@ $^ $(LIBCONFIG)

$(O)/sim/demo-vectors: $(O)/sim/demo_vectors.o
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^

-include $(SIM_SOURCES:%.c=$(O)/%.d)

ALL += $(O)/sim/libndsoft.a $(O)/sim/libndvt.a $(O)/sim/netdam-node

.PHONY: demo
demo: $(O)/sim/netdam-node $(O)/sim/demo-vectors $(O)/host-driver/netdam-mem ## two nodes on loopback: a file, two vectors, packets by name; no root, no QEMU
	$(Q)O='$(O)' sh sim/demo.sh

# The fabric: the only part that needs DPDK, so nothing but `make fabric` and its tests asks for it.
FABRIC_SOURCES := $(wildcard sim/fabric/*.c)
FABRIC := $(O)/sim/netdam-fabric
NETDAM_TOP := $(O)/sim/netdam-top
FABRIC_MAN := sim/man/netdam-fabric.1 sim/man/netdam-top.1 sim/man/netdam-plot.1
# DPDK's headers keep neither to our warnings nor to C11.
DPDK_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(patsubst -I%,-isystem %,$(shell pkg-config --cflags libdpdk))
DPDK_LIBS := -lrte_ethdev -lrte_hash -lrte_mbuf -lrte_mempool -lrte_eal -lrte_kvargs

SOURCES += $(FABRIC_SOURCES) sim/top.c
LINT_INCLUDES = $(patsubst -I%,-isystem %,$(shell pkg-config --cflags-only-I libdpdk))

.PHONY: fabric fabric-needs install-fabric
fabric: $(FABRIC) $(NETDAM_TOP) ## netdam-fabric, the network between guests and nodes in real time; needs DPDK

fabric-needs:
	$(Q)for need in libdpdk:libdpdk-dev jansson:libjansson-dev libconfig:libconfig-dev; do \
	  pkg-config --exists $${need%:*} || { echo "fabric: $${need%:*} is missing: apt-get install $${need#*:}"; exit 1; }; done

$(O)/sim/fabric/%.o: sim/fabric/%.c | fabric-needs
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -pthread $(SIM_INCLUDES) $(DPDK_CFLAGS) -c -o $@ $<

$(FABRIC): $(FABRIC_SOURCES:%.c=$(O)/%.o) $(O)/sim/libndtopology.a $(O)/sim/libndsoft.a $(O)/sim/libndvt.a $(O)/firmware/libndfw.a
	$(Q)$(CC) $(LDFLAGS_ALL) -pthread -o $@ $^ $(DPDK_LIBS) -ljansson -lconfig

$(O)/sim/top.o: | fabric-needs

$(NETDAM_TOP): $(O)/sim/top.o $(O)/sim/fabric/request.o
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ -ljansson

-include $(FABRIC_SOURCES:%.c=$(O)/%.d) $(O)/sim/top.d

install-fabric: fabric ## netdam-fabric, netdam-top, netdam-plot and their manual pages; PREFIX=, DESTDIR=
	$(Q)install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/share/man/man1'
	$(Q)install $(FABRIC) $(NETDAM_TOP) sim/plot/netdam-plot '$(DESTDIR)$(PREFIX)/bin'
	$(Q)install -m 644 $(FABRIC_MAN) '$(DESTDIR)$(PREFIX)/share/man/man1'
