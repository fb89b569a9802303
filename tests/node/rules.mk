# SPDX-License-Identifier: BSD-3-Clause
# Tests of the soft device, of netdam-node, and of the demonstration.

NODE_TESTS := port_test soft_test garbage_test threads_test
NODE_TEST_BINARIES := $(NODE_TESTS:%=$(O)/tests/node/%)

SOURCES += tests/node/rig.c $(NODE_TESTS:%=tests/node/%.c)

$(O)/tests/node/%.o: tests/node/%.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -pthread -Ifirmware/include -Isim $(PLATFORM_INCLUDES) -Itests/node -c -o $@ $<

$(NODE_TEST_BINARIES): %: %.o $(O)/tests/node/rig.o $(O)/sim/libndsoft.a $(O)/firmware/libndfw.a
	$(Q)$(CC) $(LDFLAGS_ALL) -pthread -o $@ $^ -lcmocka

.SECONDARY: $(NODE_TEST_BINARIES:%=%.o)

-include $(NODE_TEST_BINARIES:%=%.d) $(O)/tests/node/rig.d

$(O)/tests/node/soft_test $(O)/tests/node/garbage_test: | $(O)/sim/netdam-node
tests/node/node_test.sh: $(O)/sim/netdam-node $(O)/host-driver/netdam-mem
tests/node/many_test.py: $(O)/sim/netdam-node $(O)/host-driver/netdam-mem
tests/node/across_test.py: $(O)/sim/netdam-node $(O)/host-driver/netdam-mem
tests/node/demo_test.sh: $(O)/sim/netdam-node $(O)/sim/demo-vectors $(O)/host-driver/netdam-mem

CHECKS += $(NODE_TEST_BINARIES) tests/node/node_test.sh tests/node/many_test.py tests/node/demo_test.sh
LONE_TESTS += tests/node/across_test.py tests/node/plain_test.py
tests/node/plain_test.py: $(O)/sim/netdam-fabric $(O)/sim/netdam-node $(O)/host-driver/netdam-mem $(O)/host-driver/netdam_write_lat
