# SPDX-License-Identifier: BSD-3-Clause
# The firmware: a static library for everything that links it, and the image that the QEMU device loads.

FW_SOURCES := $(wildcard firmware/*.c)
FW_INCLUDES := -Ifirmware/include
FW_CFLAGS = $(CFLAGS_ALL) -O3 -Wconversion -ffreestanding -fbuiltin -fPIC -fno-math-errno $(FW_INCLUDES)
FW_OBJECTS := $(FW_SOURCES:firmware/%.c=$(O)/firmware/%.o)

# gcc would clear structures of some hundred bytes with an instruction that takes longer to start than to do its work.
FW_CLEARING := -mmemset-strategy=vector_loop:512:noalign,libcall:-1:noalign
FW_TUNING := $(shell $(CC) $(FW_CLEARING) -E -x c /dev/null >/dev/null 2>&1 && echo $(FW_CLEARING))

LIBNDFW := $(O)/firmware/libndfw.a
FW_IMAGE := $(O)/firmware/netdam-fw.so

ALL += $(LIBNDFW) $(FW_IMAGE)
SOURCES += $(FW_SOURCES)
INCLUDES_ALL += -Ifirmware -Ifirmware/include

$(O)/firmware/%.o: firmware/%.c
	$(Q)mkdir -p $(@D) && $(CC) $(FW_CFLAGS) $(FW_TUNING) -c $< -o $@

$(LIBNDFW): $(FW_OBJECTS)
	$(Q)rm -f $@ && ar rcs $@ $^

# Written beside and moved: a running device may have the old file mapped.
$(FW_IMAGE): $(FW_OBJECTS)
	$(Q)$(CC) $(LDFLAGS_ALL) -shared -nostdlib -Wl,-z,defs,-z,relro,-z,now,-soname,netdam-fw.so $^ \
	  $(if $(SAN),-lubsan -lasan,-Wl,--unresolved-symbols=ignore-all) -o $@.new && mv $@.new $@

-include $(FW_OBJECTS:.o=.d)
