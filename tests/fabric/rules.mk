# SPDX-License-Identifier: BSD-3-Clause
# Tests of the fabric, with DPDK.

FABRIC_ENDPOINTS := $(O)/tests/fabric/endpoints

SOURCES += tests/fabric/endpoints.c

$(FABRIC_ENDPOINTS).o: tests/fabric/endpoints.c
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS_ALL) -Isim $(PLATFORM_INCLUDES) -c $< -o $@

$(FABRIC_ENDPOINTS): $(FABRIC_ENDPOINTS).o $(O)/sim/libndsoft.a $(O)/firmware/libndfw.a
	$(Q)$(CC) $(LDFLAGS_ALL) -pthread -o $@ $^

-include $(FABRIC_ENDPOINTS).d

FABRIC_TESTS := tests/fabric/fabric_test.py tests/fabric/control_test.py tests/fabric/top_test.py \
                tests/fabric/nodes_test.py

$(FABRIC_TESTS): $(FABRIC) $(NETDAM_TOP) $(FABRIC_ENDPOINTS) $(O)/sim/netdam-node $(O)/host-driver/netdam_write_bw
LONE_TESTS += $(FABRIC_TESTS)

.PHONY: bench-switch
bench-switch: $(FABRIC) $(FABRIC_ENDPOINTS) ## frames a second of one core of the fabric; writes build/bench/switch.json
	$(Q)mkdir -p $(O)/bench && O='$(O)' $(PYTHON) tests/fabric/bench.py $(O)/bench/switch.json
	$(Q)tests/bench/figures.py $(O)/bench/fabric.json $(O)/bench/switch.json

.PHONY: soak
soak: $(FABRIC) $(O)/sim/netdam-node $(O)/host-driver/netdam_write_bw ## 20 minutes of writes over four planes with every fault; SOAK_SECONDS=, SOAK_SEED=
	$(Q)O='$(O)' $(PYTHON) tests/fabric/soak.py
