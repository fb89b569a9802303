# SPDX-License-Identifier: BSD-3-Clause
# All-reduce among nodes in processes of their own: a measurement, and what happens when one is killed.

RING_MEMBER := $(O)/tests/ring/member

SOURCES += tests/ring/member.c

$(RING_MEMBER): tests/ring/member.c $(O)/host-driver/libnetdam.a $(O)/sim/libndsoft.a $(O)/firmware/libndfw.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -Ihost-driver/include -Ifirmware/include $(LDFLAGS_ALL) -pthread -MF $@.d -o $@ $< $(filter %.a,$^) -lm

-include $(RING_MEMBER).d

.PHONY: bench-nodes bench-nodes-fabric
bench-nodes: $(RING_MEMBER) $(if $(BENCH_MPICC),$(BENCH)/mpi_allreduce) ## all-reduce among 4 and 8 nodes on UDP, beside Open MPI over TCP; writes build/bench/nodes.json
	$(Q)mkdir -p $(O)/bench && export O='$(O)'; set -o pipefail; tests/ring/ring.py --mpi | tee $(O)/bench/nodes.json

bench-nodes-fabric: $(RING_MEMBER) $(O)/sim/netdam-fabric $(if $(BENCH_MPICC),$(BENCH)/mpi_allreduce) ## the same through netdam-fabric; JSON in build/bench/fabric.json
	$(Q)mkdir -p $(O)/bench && export O='$(O)'; set -o pipefail; \
	  tests/ring/ring.py --mpi --topology tests/ring/star.conf | tee $(O)/bench/nodes-fabric.json
	$(Q)tests/bench/figures.py $(O)/bench/fabric.json $(O)/bench/nodes-fabric.json

tests/ring/ring_test.py: $(RING_MEMBER) $(O)/sim/netdam-fabric
LONE_TESTS += tests/ring/ring_test.py
