# SPDX-License-Identifier: BSD-3-Clause
# Tests of the fabric, with DPDK.

FABRIC_ENDPOINTS := $(O)/tests/fabric/endpoints

SOURCES += tests/fabric/endpoints.c

$(FABRIC_ENDPOINTS).o: tests/fabric/endpoints.c
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS_ALL) -Isim $(PLATFORM_INCLUDES) -c $< -o $@

$(FABRIC_ENDPOINTS): $(FABRIC_ENDPOINTS).o $(O)/sim/libndsoft.a $(O)/firmware/libndfw.a
	$(Q)$(CC) $(LDFLAGS_ALL) -pthread -o $@ $^

-include $(FABRIC_ENDPOINTS).d

FABRIC_TESTS := tests/fabric/fabric_test.py tests/fabric/control_test.py tests/fabric/top_test.py

$(FABRIC_TESTS): $(FABRIC) $(NETDAM_TOP) $(FABRIC_ENDPOINTS)
SLOW_TESTS += $(FABRIC_TESTS)
