# SPDX-License-Identifier: BSD-3-Clause
# The firmware on a machine without an operating system: its tests in one RISC-V image, under QEMU.

RISCV_PREFIX := riscv64-unknown-elf-
RISCV_CC := $(RISCV_PREFIX)gcc
RISCV_MACHINE := -march=rv64gc -mabi=lp64d -mcmodel=medany -mstrict-align
RISCV_DIR := $(O)/tests/riscv
RISCV_IMAGE := $(RISCV_DIR)/image.elf
RISCV_FAULTS_IMAGE := $(RISCV_DIR)/faults.elf

# The firmware as it is compiled for its other homes, but for this machine. It gets no C library to look into.
RISCV_FW_CFLAGS = $(filter-out -fPIC,$(FW_CFLAGS)) $(RISCV_MACHINE)
RISCV_FW_OBJECTS := $(FW_SOURCES:%.c=$(RISCV_DIR)/%.o)

RISCV_CFLAGS = $(CFLAGS_ALL) $(RISCV_MACHINE) --specs=picolibc.specs -Itests/riscv -Itests/riscv/include -Ifirmware \
               -Ifirmware/include -Isim -Isim/platform -Itests/lib -Itests/golden -Itests/unit -Itests/vt
RISCV_BOARD_OBJECTS := $(patsubst %,$(RISCV_DIR)/tests/riscv/%.o,start board files cmocka main \
                         $(if $(wildcard sim/platform/crypto.h),crypto hkdf))
RISCV_HELPER_OBJECTS := $(patsubst %.c,$(RISCV_DIR)/%.o,$(NDTEST_SOURCES) $(SIM_VT_SOURCES) \
                          $(filter-out tests/unit/test_%,$(wildcard tests/unit/*.c)))

# All programs of tests/unit but those left out for a reason, those of tests/vt, and three more. Each becomes one
# object that shows nothing but its main function, renamed.
RISCV_LEFT_OUT := test_image
RISCV_REASON_test_image := reads the shared library; firmware.o is read instead
RISCV_UNIT_NAMES := $(filter-out $(RISCV_LEFT_OUT),$(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c)))
RISCV_VT_NAMES := $(patsubst tests/vt/test_%.c,vt_%,$(wildcard tests/vt/test_*.c))
RISCV_PROGRAMS := $(RISCV_UNIT_NAMES) $(RISCV_VT_NAMES) golden_test property oracle
RISCV_ARGUMENTS_property := --seed 1 --packets 200000
RISCV_ARGUMENTS_oracle := --seed 20036 --operations 60000 --no-shrink
RISCV_PARTS_golden_test := $(wildcard tests/golden/*.c)
RISCV_PARTS_property := $(PROPERTY_SOURCES)
RISCV_PARTS_oracle := $(ORACLE_SOURCES)
RISCV_PROGRAM_OBJECTS := $(RISCV_PROGRAMS:%=$(RISCV_DIR)/programs/%.o)
# The same programs at home, whose hashes are compared with those from there.
RISCV_HERE := $(PROPERTY) $(ORACLE) $(RISCV_VT_NAMES:vt_%=$(O)/tests/vt/test_%)
RISCV_FILES := $(wildcard tests/golden/manifest.txt tests/golden/tenant/manifest.txt) \
               $(sort $(wildcard tests/golden/*.hex tests/golden/tenant/*.hex))

$(RISCV_DIR)/tools:
	$(Q)$(RISCV_CC) --specs=picolibc.specs -E -x c /dev/null >/dev/null 2>&1 || \
	  { echo 'riscv: apt-get install gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf'; exit 1; }
	$(Q)mkdir -p $(@D) && touch $@

$(RISCV_DIR)/firmware/%.o: firmware/%.c | $(RISCV_DIR)/tools
	$(Q)mkdir -p $(@D) && $(RISCV_CC) $(RISCV_FW_CFLAGS) -c $< -o $@

$(RISCV_DIR)/tests/%.o: tests/%.c | $(RISCV_DIR)/tools
	$(Q)mkdir -p $(@D) && $(RISCV_CC) $(RISCV_CFLAGS) -c $< -o $@

$(RISCV_DIR)/sim/%.o: sim/%.c | $(RISCV_DIR)/tools
	$(Q)mkdir -p $(@D) && $(RISCV_CC) $(RISCV_CFLAGS) -c $< -o $@

$(RISCV_DIR)/tests/%.o: tests/%.S | $(RISCV_DIR)/tools
	$(Q)mkdir -p $(@D) && $(RISCV_CC) $(RISCV_MACHINE) -MMD -MP -c $< -o $@

# One object, so that the linker script and the test know what is firmware.
$(RISCV_DIR)/firmware.o: $(RISCV_FW_OBJECTS)
	$(Q)$(RISCV_CC) $(RISCV_MACHINE) -nostdlib -r $^ -o $@

# A library: what no program needs of it is not linked, whatever it would need in turn.
$(RISCV_DIR)/helpers.a: $(RISCV_HELPER_OBJECTS)
	$(Q)rm -f $@ && $(RISCV_PREFIX)ar rcs $@ $^

riscv_parts = $(or $(RISCV_PARTS_$(1)),$(if $(filter vt_%,$(1)),$(1:vt_%=tests/vt/test_%.c),tests/unit/$(1).c))
define RISCV_PROGRAM
$(RISCV_DIR)/programs/$(1).o: $(patsubst %.c,$(RISCV_DIR)/%.o,$(call riscv_parts,$(1)))
	$$(Q)mkdir -p $$(@D) && $(RISCV_CC) $(RISCV_MACHINE) -nostdlib -r $$^ -o $$@
	$$(Q)$(RISCV_PREFIX)objcopy --redefine-sym main=main_$(1) --keep-global-symbol=main_$(1) $$@
endef
$(foreach program,$(RISCV_PROGRAMS),$(eval $(call RISCV_PROGRAM,$(program))))

riscv_entry = '$(1)$(if $(RISCV_ARGUMENTS_$(1)),=$(RISCV_ARGUMENTS_$(1)))'
riscv_left_out = '-$(1)=$(RISCV_REASON_$(1))'
$(RISCV_DIR)/programs.c: tests/riscv/generate.py tests/riscv/rules.mk $(RISCV_PROGRAM_OBJECTS)
	$(Q)$(PYTHON) $< programs $(foreach program,$(RISCV_PROGRAMS),$(call riscv_entry,$(program))) \
	  $(foreach program,$(RISCV_LEFT_OUT),$(call riscv_left_out,$(program))) >$@
$(RISCV_DIR)/files.S: tests/riscv/generate.py $(RISCV_FILES)
	$(Q)mkdir -p $(@D) && $(PYTHON) $< files $(RISCV_FILES) >$@

$(RISCV_DIR)/%.o: $(RISCV_DIR)/%.c | $(RISCV_DIR)/tools
	$(Q)$(RISCV_CC) $(RISCV_CFLAGS) -c $< -o $@
$(RISCV_DIR)/files.o: $(RISCV_DIR)/files.S | $(RISCV_DIR)/tools
	$(Q)$(RISCV_CC) $(RISCV_MACHINE) -c $< -o $@

$(RISCV_IMAGE): $(RISCV_DIR)/programs.o $(RISCV_PROGRAM_OBJECTS)
$(RISCV_FAULTS_IMAGE): $(RISCV_DIR)/tests/riscv/faults.o
$(RISCV_IMAGE) $(RISCV_FAULTS_IMAGE): tests/riscv/link.ld $(RISCV_DIR)/firmware.o $(RISCV_DIR)/files.o \
    $(RISCV_BOARD_OBJECTS) $(RISCV_DIR)/helpers.a
	$(Q)$(RISCV_CC) $(RISCV_MACHINE) --specs=picolibc.specs -nostartfiles -Wl,--fatal-warnings -T $< \
	  $(filter %.o,$^) $(filter %.a,$^) -lm -o $@

-include $(wildcard $(RISCV_DIR)/*/*.d $(RISCV_DIR)/*/*/*.d)

.PHONY: check-riscv
check-riscv: $(RISCV_IMAGE) $(RISCV_FAULTS_IMAGE) $(RISCV_HERE) ## the firmware's tests on a bare RISC-V machine (docs/riscv.md)
	$(Q)export O='$(O)' PYTHONDONTWRITEBYTECODE=1; \
	  $(PYTHON) tests/riscv/riscv_test.py && $(PYTHON) tests/riscv/faults_test.py

ifeq ($(SAN),)
SLOW_TESTS += tests/riscv/riscv_test.py tests/riscv/faults_test.py
tests/riscv/riscv_test.py: $(RISCV_IMAGE) $(RISCV_HERE)
tests/riscv/faults_test.py: $(RISCV_FAULTS_IMAGE)
endif
