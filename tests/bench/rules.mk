# SPDX-License-Identifier: BSD-3-Clause
# make bench-firmware: the firmware beside what a host does by itself, and Open MPI's all-reduce.

BENCH := $(O)/tests/bench
BENCH_SOURCES := $(filter-out tests/bench/mpi_allreduce.c,$(wildcard tests/bench/*.c))
BENCH_OBJECTS := $(BENCH_SOURCES:tests/bench/%.c=$(BENCH)/%.o)
BENCH_LIBRARIES := $(O)/tests/lib/libndtest.a $(O)/firmware/libndfw.a

SOURCES += $(BENCH_SOURCES)
INCLUDES_ALL += -Itests/bench

# The loops that a program on the host would have, for the machine at hand.
$(BENCH)/host_loops.o: CFLAGS_ALL += -O3 -march=native

$(BENCH)/%.o: tests/bench/%.c
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS_ALL) -Ifirmware -Ifirmware/include -Isim $(PLATFORM_INCLUDES) -Itests/lib -Itests/bench -c $< -o $@

$(BENCH)/bench-firmware: $(filter-out $(BENCH)/allreduce.o,$(BENCH_OBJECTS)) $(BENCH_LIBRARIES) $(O)/sim/ndcrypto.o
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^

$(BENCH)/allreduce: $(BENCH)/allreduce.o $(BENCH)/memory.o $(BENCH_LIBRARIES)
	$(Q)$(CC) $(LDFLAGS_ALL) -pthread -o $@ $^

-include $(BENCH_OBJECTS:.o=.d)

# Open MPI is for comparison only: without it the rest is measured.
BENCH_MPICC := $(shell command -v mpicc)
BENCH_PROGRAMS := $(BENCH)/bench-firmware $(BENCH)/allreduce $(if $(BENCH_MPICC),$(BENCH)/mpi_allreduce)

$(BENCH)/mpi_allreduce: tests/bench/mpi_allreduce.c
	$(Q)mkdir -p $(@D) && mpicc -std=c11 $(OPT) -o $@ $<

.PHONY: bench-firmware
bench-firmware: $(BENCH_PROGRAMS) ## the firmware beside plain host loops, memcpy, UDP, Open MPI; writes build/bench/firmware.json
	$(Q)export O='$(O)' CC='$(CC)'; tests/bench/bench.py

# One after the other, each with the machine for itself.
.PHONY: bench-fabric
bench-fabric: ## the network: virtual time, a switch, nodes, guests beside SoftRoCE and TCP; writes build/bench/fabric.json
	$(Q)for part in virtual switch nodes-fabric guests; do $(MAKE) --no-print-directory bench-$$part || exit; done

SLOW_TESTS += tests/bench/bench_test.py
tests/bench/bench_test.py: $(BENCH_PROGRAMS)
