# SPDX-License-Identifier: MIT
# Everything is here: make help. Machines are started by tests/run, not by make.
BUILD  := build
CC     := gcc
TEXT_FLAGS := -Wall -Wextra -Werror -Wshadow -Wundef -Wvla -Wstrict-prototypes -Wmissing-prototypes
TRAP_UB := -fsanitize=undefined -fsanitize-undefined-trap-on-error
# Only gcc turns loops into calls of memset, and only gcc knows how to be told not to.
NO_LOOP_CALLS := $(shell f=-fno-tree-loop-distribute-patterns; $(CC) -Werror $$f -E -x c /dev/null >/dev/null 2>&1 && echo $$f)
COMMON := -std=gnu11 -O2 -g -ffreestanding -fno-pic -fno-common -fno-stack-protector -fno-omit-frame-pointer \
          -fno-strict-aliasing -fno-asynchronous-unwind-tables $(NO_LOOP_CALLS) \
          -ffile-prefix-map=$(CURDIR)=. -I. $(TEXT_FLAGS) -MMD -MP $(UBSAN:1=$(TRAP_UB))
CFLAGS := $(COMMON) -mcmodel=kernel -mno-red-zone -mgeneral-regs-only
UFLAGS := $(COMMON) -fshort-wchar -mcmodel=small -mno-red-zone -Ikernel/user
# A user's program: hosted, as far as the language goes; no exceptions, no RTTI. The formats are Windows', not gcc's.
PROGRAM_FLAGS := -O2 -g -fshort-wchar -fno-pic -fno-pie -fno-stack-protector -fno-builtin -fno-asynchronous-unwind-tables -mcmodel=small \
          -mno-red-zone -Wall -Wno-format -Wno-sign-compare -nostdinc -D_LIBC_LIMITS_H_ -isystem kernel/user/hosted -isystem kernel/user \
          -isystem $(shell gcc -print-file-name=include) -idirafter . -MMD -MP
PROGRAM_C := gcc -std=gnu11 $(PROGRAM_FLAGS)
PROGRAM_CXX := g++ -std=gnu++17 -nostdinc++ -fno-exceptions -fno-rtti -fno-threadsafe-statics $(PROGRAM_FLAGS)

ASM    := $(sort $(wildcard boot/*.asm kernel/*.asm pmu/virt/*.asm tests/*.asm))
C      := $(sort $(wildcard boot/*.c kernel/*.c hal/*.c pmu/*.c pmu/events/*.c pmu/virt/*.c tests/*.c))
UASM   := $(sort $(wildcard kernel/user/*.asm tests/ring3/*.asm))
RUNTIME := $(sort $(filter-out kernel/user/program.c,$(wildcard kernel/user/*.c)))
UC     := $(RUNTIME) $(sort $(wildcard tests/ring3/*.c))
OBJ    := $(ASM:%.asm=$(BUILD)/%.asm.o) $(C:%.c=$(BUILD)/%.o)
# Two pure kernel files are built a second time for ring 3.
UOBJ   := $(UASM:%.asm=$(BUILD)/%.asm.o) $(UC:%.c=$(BUILD)/%.o) $(BUILD)/ring3/string.o $(BUILD)/ring3/format.o

# What is traced where nobody says what.
ifneq ($(filter trace,$(MAKECMDGOALS)),)
PROGRAM ?= tests/samples/threads.c
EVENTS ?= cswitch
COUNTERS ?= instructions
endif

# With PROGRAM=file.c or .cpp the image is another one: tests stay in it, the program comes beside them.
OUT    := $(BUILD)$(if $(PROGRAM),/program)
PROGRAM_OBJ := $(BUILD)/program/user.o
POBJ   := $(RUNTIME:%.c=$(BUILD)/%.o) $(BUILD)/kernel/user/program.o $(BUILD)/kernel/user/ntdll.asm.o \
          $(BUILD)/ring3/string.o $(BUILD)/ring3/format.o
IMAGES := $(BUILD)/ring3-image.o $(if $(PROGRAM),$(BUILD)/program/program-ring3-image.o)

all: $(OUT)/ntpmu.bin

# QEMU's multiboot loader refuses ELF64 but takes a flat file by the header's addresses; GRUB and gdb want the ELF.
%/ntpmu.bin: %/ntpmu.elf
	objcopy -O binary $< $@

$(OUT)/ntpmu.elf: linker.ld $(OBJ) $(IMAGES)
	ld -n -T linker.ld --build-id=none -z noexecstack -o $@.1 $(OBJ) $(IMAGES)
	nm $@.1 | LC_ALL=C sort | sed -n 's/^ffffffff\(........\) [tT] \([A-Za-z_][A-Za-z0-9_]*\)$$/.long 0x\1; .asciz "\2"/p' | \
	    (echo '.section .symbols, "a"'; cat) | as -o $@.symbols.o -
	ld -n -T linker.ld --build-id=none -z noexecstack -o $@ $(OBJ) $(IMAGES) $@.symbols.o

# Ring-3 code: linked by itself first, so that its memcpy is not the kernel's. Only user_* stays visible.
$(BUILD)/ring3-image.o: $(UOBJ)
	ld -r -z noexecstack -o $@.all $(UOBJ)
	objcopy --wildcard --keep-global-symbol='user_*' $@.all $@

# A guest that is not this kernel, for PAYLOAD=: QEMU-style multiboot 1, hence ELF32.
$(BUILD)/payload.elf: tests/payload/payload.ld tests/payload/main.c tests/payload/start.asm
	@mkdir -p $(@D)/tests/payload
	nasm -f elf64 -w+all -Werror -o $(BUILD)/tests/payload/start.o tests/payload/start.asm
	$(CC) $(COMMON) -mno-red-zone -mgeneral-regs-only -c -o $(BUILD)/tests/payload/main.o tests/payload/main.c
	ld -n -T $< --build-id=none -z noexecstack -o $@.64 $(BUILD)/tests/payload/start.o $(BUILD)/tests/payload/main.o
	objcopy -O elf32-i386 --strip-debug $@.64 $@

# The program with a runtime of its own, whose names give way to the program's.
$(BUILD)/program/program-ring3-image.o: $(PROGRAM_OBJ) $(POBJ)
	ld -r -z noexecstack -o $@.runtime $(POBJ)
	objcopy --weaken $@.runtime
	ld -r -z noexecstack -o $@.all $(PROGRAM_OBJ) $@.runtime
	objcopy --keep-global-symbol=user_program --keep-global-symbol=user_ctors --keep-global-symbol=user_ctors_end $@.all $@

# Compiled each time: the next program may be another file.
$(PROGRAM_OBJ): FORCE
	@mkdir -p $(@D)
	$(if $(filter %.c,$(PROGRAM)),$(PROGRAM_C),$(PROGRAM_CXX)) -c -o $@ $(PROGRAM)

$(BUILD)/layout.inc: kernel/layout.h
	@mkdir -p $(@D)
	sed -n 's/^#define \([A-Z0-9_]* .*\)/%define \1/p' $< > $@

$(BUILD)/%.asm.o: %.asm $(BUILD)/layout.inc
	@mkdir -p $(@D)
	nasm -f elf64 -g -F dwarf -i$(BUILD)/ -w+all -Werror -MD $(@:.o=.d) -o $@ $<

$(BUILD)/kernel/user/%.o: kernel/user/%.c
	@mkdir -p $(@D)
	$(CC) $(UFLAGS) -c -o $@ $<

$(BUILD)/tests/ring3/%.o: tests/ring3/%.c
	@mkdir -p $(@D)
	$(CC) $(UFLAGS) -c -o $@ $<

$(BUILD)/ring3/%.o: kernel/%.c
	@mkdir -p $(@D)
	$(CC) $(UFLAGS) -c -o $@ $<

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

$(BUILD)/ntpmu.iso: $(BUILD)/ntpmu.bin boot/mkiso boot/grub.cfg
	boot/mkiso $< $@

# What the targets below need on Debian and Ubuntu.
PACKAGES := qemu-system-x86 grub-pc-bin grub-efi-amd64-bin grub-common xorriso mtools ovmf seabios nasm gcc g++ binutils make clang clang-tools \
            cppcheck perl libtap-formatter-junit-perl bochs bochs-term gdb babeltrace2

help:
	@echo 'make            build $(BUILD)/ntpmu.bin'
	@echo 'make deps       install what is needed (Debian, Ubuntu; elsewhere: print it)'
	@echo 'make run        boot and run every test; the exit status says pass or fail. Variables:'
	@sed -n 's/^#   \([A-Z]*=.*\)/                   \1/p' tests/run
	@echo 'make trace      run PROGRAM= with a trace of EVENTS= with COUNTERS=, left in $(BUILD)/trace. Variables, beside those:'
	@sed -n 's/^#   \([A-Z]*=.*\)/                   \1/p' tests/trace
	@echo 'make list       every test with its meaning'
	@echo 'make test       the whole matrix of machines through prove; JUNIT=file writes JUnit XML'
	@echo 'make mutants    breaks drivers and virtual PMU in sixty ways; some test must notice each'
	@echo 'make check      include rules, gcc and clang without warnings, static analysis, same bytes twice'
	@echo 'make iso        $(BUILD)/ntpmu.iso: BIOS and UEFI, CD and USB stick'
	@echo 'make usb        writes it to the stick DEV=/dev/sdX, after asking'
	@echo 'make debug      QEMU waits for gdb; symbols of the kernel and of ring 3 loaded; GDB_PORT=1234, GDB_ARGS=more'
	@echo 'make clean'

deps:
	@if ! command -v apt-get >/dev/null; then echo 'This needs: $(PACKAGES)'; exit 0; fi; \
	missing=; for p in $(PACKAGES); do \
	    dpkg-query -W -f '$${db:Status-Status}' $$p 2>/dev/null | grep -qx installed || missing="$$missing $$p"; \
	done; \
	[ "$$missing" ] || exit 0; \
	root=; [ "$$(id -u)" = 0 ] || root=sudo; \
	[ -z "$$root" ] || command -v sudo >/dev/null || { echo "As root: apt-get install$$missing"; exit 1; }; \
	$$root apt-get -q update && $$root env DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends $$missing

iso: $(BUILD)/ntpmu.iso

usb: iso
	@boot/mkusb $(BUILD)/ntpmu.iso '$(DEV)'

run: all $(filter $(BUILD)/payload.elf,$(PAYLOAD))
	@PROGRAM='$(PROGRAM)' tests/run

trace: all
	@PROGRAM='$(PROGRAM)' EVENTS='$(EVENTS)' COUNTERS='$(COUNTERS)' tests/trace

list: all
	@LIST=1 tests/run

# The machine runs in a session of its own: Ctrl-C is for gdb. Symbols are those of the kernel and of ring 3.
GDB_PORT := 1234
debug: all
	@PROGRAM='$(PROGRAM)' GDB=$(GDB_PORT) setsid tests/run & \
	gdb -q $(OUT)/ntpmu.elf -ex 'target remote :$(GDB_PORT)' -ex 'hbreak kernel_main' -ex continue $(GDB_ARGS); \
	kill $$! 2>/dev/null || :

PROVE := prove $(if $(JUNIT),--merge --formatter TAP::Formatter::JUnit)

test: all iso $(BUILD)/payload.elf
	$(PROVE) tests/runner.t tests/programs.t tests/trace.t tests/speed.t tests/usb.t tests/boot.t tests/matrix.t $(if $(JUNIT),> $(JUNIT))

mutants:
	prove -v tests/mutants.t

check:
	prove -v tests/check.t

clean:
	rm -rf $(BUILD)

# "make deps run" in one go, also with -j.
ifneq ($(filter deps,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

-include $(OBJ:.o=.d) $(UOBJ:.o=.d)
.PHONY: FORCE all help deps iso usb run trace list debug test mutants check clean
