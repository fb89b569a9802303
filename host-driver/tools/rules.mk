# SPDX-License-Identifier: BSD-3-Clause
# Tools that watch a device or carry its ordinary frames, and tools that measure, also linked statically for guests that have no libraries.

HOST_DRIVER_WATCHERS := netdam-stat netdam-regs netdam-tap
HOST_DRIVER_PERF_TOOLS := $(addprefix netdam_,$(addsuffix _lat,write read atomic reduce send) \
                            $(addsuffix _bw,write read reduce send))
HOST_DRIVER_PERF_OBJECTS := $(patsubst %,$(O)/host-driver/tools/%.o,perf perf_run perf_setup perf_serve perf_report \
                              samples common)

define HOST_DRIVER_LINK_PERF
$(Q)mkdir -p $(@D) && printf 'const char perf_commit[] = "%s";\n' "$$(GIT_OPTIONAL_LOCKS=0 \
  git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null || echo unknown)" | \
  $(CC) $(CFLAGS) -include host-driver/tools/perf.h -Ihost-driver/include -Ifirmware/include -x c -c -o $(O)/host-driver/tools/commit-$(notdir $(@D)).o - && \
  $(CC) $(LDFLAGS_ALL) $(1) -pthread -o $@ $(O)/host-driver/tools/commit-$(notdir $(@D)).o $^ -lm
endef

$(HOST_DRIVER_WATCHERS:%=$(O)/host-driver/%): $(O)/host-driver/netdam-%: $(O)/host-driver/tools/%.o \
    $(O)/host-driver/tools/common.o $(LIBNETDAM_STATIC)
	$(Q)$(CC) $(LDFLAGS_ALL) -pthread -o $@ $^ -lm

$(HOST_DRIVER_WATCHERS:%=$(O)/host-driver/static/%): $(O)/host-driver/static/netdam-%: $(O)/host-driver/tools/%.o \
    $(O)/host-driver/tools/common.o $(LIBNETDAM_STATIC)
	$(Q)mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -static -pthread -o $@ $^ -lm

# One program, whose name says what it measures. The commit is that of the link, so that a result names its sources.
$(O)/host-driver/netdam-perf: $(HOST_DRIVER_PERF_OBJECTS) $(LIBNETDAM_STATIC)
	$(call HOST_DRIVER_LINK_PERF)

$(O)/host-driver/static/netdam-perf: $(HOST_DRIVER_PERF_OBJECTS) $(LIBNETDAM_STATIC)
	$(call HOST_DRIVER_LINK_PERF,-static)

$(HOST_DRIVER_PERF_TOOLS:%=$(O)/host-driver/%): $(O)/host-driver/netdam-perf
	$(Q)ln -sf netdam-perf $@

ALL += $(HOST_DRIVER_WATCHERS:%=$(O)/host-driver/%) $(O)/host-driver/netdam-perf \
       $(HOST_DRIVER_PERF_TOOLS:%=$(O)/host-driver/%)
