# SPDX-License-Identifier: BSD-3-Clause
# libnetdam, static and shared, and the tools.

HOST_DRIVER_INCLUDES := -Ihost-driver/include -Ifirmware/include -Isim
HOST_DRIVER_SOURCES := $(wildcard host-driver/src/*.c)
HOST_DRIVER_TOOLS := netdam-info netdam-mem
HOST_DRIVER_TOOL_SOURCES := $(wildcard host-driver/tools/*.c)
HOST_DRIVER_TOOL_SHARED := host-driver/tools/common.c

# A sanitizer's functions come from the program.
ifeq ($(SAN),)
HOST_DRIVER_NO_UNDEFINED := -Wl,--no-undefined
endif

# What a program links with after its own objects, statically or not.
LIBNETDAM_STATIC := $(O)/host-driver/libnetdam.a $(O)/sim/libndsoft.a $(O)/firmware/libndfw.a

SOURCES += $(HOST_DRIVER_SOURCES) $(HOST_DRIVER_TOOL_SOURCES)
INCLUDES_ALL += -Ihost-driver/include -Ihost-driver/src -Ifirmware/include

# The objects serve both libraries.
$(O)/host-driver/src/%.o: host-driver/src/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -fPIC -pthread $(HOST_DRIVER_INCLUDES) -c -o $@ $<

$(O)/host-driver/tools/%.o: host-driver/tools/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -pthread -Ihost-driver/include -Ihost-driver/src -Ifirmware/include -c -o $@ $<

$(O)/host-driver/libnetdam.a: $(HOST_DRIVER_SOURCES:%.c=$(O)/%.o)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/host-driver/libnetdam.so.0: $(HOST_DRIVER_SOURCES:%.c=$(O)/%.o) $(O)/sim/libndsoft.a $(O)/firmware/libndfw.a \
                                 host-driver/netdam.map
	$(Q)$(CC) -shared $(LDFLAGS_ALL) $(HOST_DRIVER_NO_UNDEFINED) -pthread -Wl,-soname,libnetdam.so.0 \
	  -Wl,--version-script=host-driver/netdam.map -o $@ $(filter %.o %.a,$^)

$(HOST_DRIVER_TOOLS:%=$(O)/host-driver/%): $(O)/host-driver/%: $(O)/host-driver/tools/%.o \
    $(HOST_DRIVER_TOOL_SHARED:%.c=$(O)/%.o) $(LIBNETDAM_STATIC)
	$(Q)$(CC) $(LDFLAGS_ALL) -pthread -o $@ $^

# Objects that only one tool needs.
$(O)/host-driver/netdam-mem: $(O)/host-driver/tools/transfer.o

-include $(HOST_DRIVER_SOURCES:%.c=$(O)/%.d) $(HOST_DRIVER_TOOL_SOURCES:%.c=$(O)/%.d)

include host-driver/netdamd/rules.mk

ALL += $(O)/host-driver/libnetdam.a $(O)/host-driver/libnetdam.so.0 $(HOST_DRIVER_TOOLS:%=$(O)/host-driver/%)

include host-driver/tools/rules.mk

PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: install
install: all ## library, headers, programs, manual pages: PREFIX=/usr/local, DESTDIR=, LIBDIR= and the like
	$(Q)PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' AR='$(AR)' PYTHON='$(PYTHON)' $(foreach dir,LIBDIR INCLUDEDIR BINDIR MANDIR,\
	  $(if $($(dir)),$(dir)='$($(dir))')) sh host-driver/install.sh $(O) $(filter $(O)/host-driver/netdam%,$(ALL)) \
	  $(O)/sim/netdam-node
