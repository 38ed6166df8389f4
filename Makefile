# SPDX-License-Identifier: MIT
# make help says what there is. kernel/user/windows.mk has what ring 3 is made of. Machines are
# started by tests/tools/run, not by make.
# None of make's own rules, which take longest where nothing is to do. As many jobs at once as
# there are CPUs, unless -j says how many.
MAKEFLAGS += -rR
# A file whose command failed is deleted.
.DELETE_ON_ERROR:
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)
endif
BUILD  := build
# Make and the shell read these marks as their own.
MARKS  := ' " & ; | < > * ? ( )
ODD     = $(strip $(word 2,[$(1)]) $(foreach mark,$(MARKS),$(findstring $(mark),$(1))))
$(foreach path,CURDIR BUILD PROGRAM,$(if $(call ODD,$($(path))),$(error \
    $(path)=$($(path)): make wants a path without a space and without $(MARKS))))
# Tools for x86-64, on another kind of host.
CROSS  := $(if $(filter-out x86_64 amd64,$(shell uname -m)),x86_64-linux-gnu-)

# Where Arch has prove.
export PATH := $(PATH):/usr/bin/core_perl

# boot/deps knows what the goals need: "make deps" installs it first, other goals stop where it is
# missing.
GOALS  := $(filter-out deps,$(or $(MAKECMDGOALS),all)) $(WITH) \
          $(if $(findstring .cpp,$(PROGRAM) $(DRIVER)),cpp) $(filter bochs,$(MACHINE))
DEPS   := $(if $(filter deps,$(MAKECMDGOALS)),install $(or $(strip $(GOALS)),run),check $(GOALS))
PROBLEM := $(shell BUILD='$(BUILD)' QEMU='$(QEMU)' CROSS='$(CROSS)' WIN_CC='$(WIN_CC)' \
          boot/deps $(DEPS))
$(if $(PROBLEM),$(error $(PROBLEM)))

# One line for each file; V=1 shows the commands.
Q      := $(if $(V),,@)
SAY     = $(if $(V),,$(info $(1) $(@:$(BUILD)/%=%))@)
# WERROR=-Werror is of make check: who has a newer compiler builds all the same. A parameter without
# a name is one that a function's type has and the function does not need.
CC     := $(CROSS)gcc
TEXT_FLAGS := $(WERROR) -Wall -Wextra -Wshadow -Wundef -Wvla -Wstrict-prototypes \
          -Wmissing-prototypes -Wno-c2x-extensions
# Services, exports and tests are called by one type; newer clangs would trap there.
TRAP_UB := -fsanitize=undefined -fsanitize-undefined-trap-on-error \
          $(if $(findstring clang,$(CC)),-fno-sanitize=function)
# Locals begin with a pattern, and what is between their fields.
FILL := -ftrivial-auto-var-init=pattern
# Only gcc turns loops into calls of memset and copies into REP, slow where those are counted, and
# only gcc knows how to be told not to. What gdb can ask of locals takes a fifth of a build: only
# with LOCALS=1, in a BUILD= of its own.
OF_GCC := -fno-tree-loop-distribute-patterns -mstringop-strategy=loop \
          $(if $(LOCALS),,-fno-var-tracking)
KNOWN  := $(shell $(CC) -Werror $(OF_GCC) -E -x c /dev/null >/dev/null 2>&1 && echo '$(OF_GCC)')
# Rules of addresses by gcc and kasan.c, for the kernel and its tests. Two files run before there is
# shadow, or make it; strings are built for ring 3, too, and ask for themselves.
KASAN_FLAGS := -fsanitize=kernel-address -fasan-shadow-offset=0xdffffc0000000000 \
          --param asan-stack=1 --param asan-globals=1 \
          --param asan-instrumentation-with-call-threshold=0
NO_KASAN := boot/boot.c kernel/base/sanitize/%.c kernel/base/string.c
# Races by gcc and kcsan.c. The virtual PMU's host has no block of a CPU at GS.
KCSAN_FLAGS := -fsanitize=thread --param tsan-distinguish-volatile=1 \
          --param tsan-instrument-func-entry-exit=0 -fno-optimize-sibling-calls
# Places that a test reaches (cover.c), of what is not the tests' and has no naked functions.
SANITIZE = $(if $(filter-out $(NO_KASAN),$<),$(KASAN:1=$(KASAN_FLAGS)) \
          $(if $(filter-out pmu/virt/% kernel/base/insn.c,$<),$(KCSAN:1=$(KCSAN_FLAGS))) \
          $(if $(filter-out tests/% %/chain.c,$<),$(COVER:1=-fsanitize-coverage=trace-pc)))
COMMON := -std=gnu11 -O2 -g -ffreestanding -fno-pic -fno-common -fno-stack-protector \
          -fno-omit-frame-pointer -fno-strict-aliasing -fno-asynchronous-unwind-tables \
          $(KNOWN) -ffile-prefix-map=$(CURDIR)=. -I. $(TEXT_FLAGS) -MMD -MP \
          $(UBSAN:1=$(TRAP_UB)) $(FILLED:1=$(FILL))
CFLAGS := $(COMMON) -DKASAN_ON=$(if $(KASAN),1,0) -DKCSAN_ON=$(if $(KCSAN),1,0) \
          -DFILLED_ON=$(if $(FILLED),1,0) -DSANITIZED=$(if $(KASAN)$(KCSAN)$(UBSAN),1,0) \
          -mcmodel=kernel -mno-red-zone -mgeneral-regs-only

ROOMS  := base base/sanitize mm console counting ke profiling etw image services \
          driver init
TEST_ROOMS := harness kernel hal pmu vpmu profiling etw cost
FOLDERS := boot kernel $(ROOMS:%=kernel/%) hal hal/buffers hal/machine pmu pmu/events pmu/pebs \
          pmu/virt pmu/virt/blocks pmu/virt/guests $(TEST_ROOMS:%=tests/%)
SANITIZERS := $(if $(KASAN),,kasan) $(if $(KCSAN),,kcsan) $(if $(COVER),,cover)
ASM    := $(sort $(wildcard $(FOLDERS:%=%/*.asm)))
C      := $(sort $(wildcard $(FOLDERS:%=%/*.c)))
C      := $(filter-out $(addprefix %/,$(SANITIZERS:=.c)),$(C))
OBJ    := $(ASM:%.asm=$(BUILD)/%.asm.o) $(C:%.c=$(BUILD)/%.o) $(BUILD)/kernel/driver/code_names.o

# What makes PE images: mingw-w64, of Debian's two the one that has threads of C++.
POSIX  := $(if $(shell command -v x86_64-w64-mingw32-gcc-posix),-posix)
WIN_CC := x86_64-w64-mingw32-gcc$(POSIX)
WIN_CXX := x86_64-w64-mingw32-g++$(POSIX)

# What is traced where nobody says what.
ifneq ($(filter trace,$(MAKECMDGOALS)),)
PROGRAM ?= tests/samples/threads.c
EVENTS ?= cswitch
COUNTERS ?= instructions
endif

# With PROGRAM=file.c or .cpp mingw-w64 makes an executable of it first, as it does without us.
PROGRAM_SOURCE := $(filter-out %.exe %.EXE,$(PROGRAM))
PROGRAM_EXE := $(if $(PROGRAM_SOURCE),$(BUILD)/program/$(basename $(notdir $(PROGRAM_SOURCE))).exe)
PROGRAM_CC := $(if $(filter %.c,$(PROGRAM)),$(WIN_CC),$(WIN_CXX)) -O2 -g -static -Wall \
          -mstringop-strategy=loop -ffunction-sections \
          -isystem $(BUILD)/program/include

# DRIVER=file.c or .cpp becomes a kernel driver, with the DDK's headers; there may be several. A
# driver of several sources is X.c+Y.c and has the first one's name.
DRIVER_SOURCES := $(filter-out %.sys %.SYS,$(DRIVER))
DRIVER_NAME = $(basename $(notdir $(firstword $(subst +, ,$(1)))))
DRIVER_IMAGE := $(foreach d,$(DRIVER_SOURCES),$(BUILD)/program/$(call DRIVER_NAME,$(d)).sys)
DDK := $(wildcard $(addprefix /usr/x86_64-w64-mingw32/,include/ddk sys-root/mingw/include/ddk))

# The kernel alone, and with the tests. Where tests/ is not there, the kernel runs PROGRAM= and
# DRIVER= all the same.
IMAGE  := $(BUILD)/$(if $(wildcard tests/tools/run),ntpmu,kernel)
STARTER := $(firstword $(wildcard tests/tools/run boot/run))
all: $(IMAGE).bin $(PROGRAM_EXE) $(DRIVER_IMAGE)
kernel: $(BUILD)/kernel.bin

# QEMU's multiboot loader refuses ELF64 but takes a flat file by the header's addresses; GRUB and
# gdb want the ELF.
$(BUILD)/ntpmu.bin $(BUILD)/kernel.bin: %.bin: %.elf
	$(call SAY,BIN)$(CROSS)objcopy -O binary $< $@

$(BUILD)/ntpmu.elf: $(OBJ) $(BUILD)/ring3.o
$(BUILD)/kernel.elf: $(filter-out $(BUILD)/tests/%,$(OBJ))
$(BUILD)/ntpmu.elf $(BUILD)/kernel.elf: linker.ld
	$(call SAY,LD)$(CROSS)ld -n -T linker.ld --build-id=none -z noexecstack -o $@.1 $(filter %.o,$^)
	$(Q)$(CROSS)nm $@.1 | LC_ALL=C sort | sed -n \
	    -e '/^ffffffff........ [tT$(if $(KCSAN),dDbB)] /s/ . / /' \
	    -e 's/^ffffffff\(........\) \([A-Za-z_][A-Za-z0-9_]*\)$$/.long 0x\1; .asciz "\2"/p' | \
	    (echo '.section .symbols, "a"'; cat) | $(CROSS)as -o $@.symbols.o -
	$(Q)$(CROSS)ld -n -T linker.ld --build-id=none -z noexecstack -o $@ $(filter %.o,$^) \
	    $@.symbols.o

# Folders of what is made.
.SECONDEXPANSION:
.PRECIOUS: %/
%/: ; @mkdir -p $@

# Names of bug checks and statuses, by the headers.
CODES := kernel/driver/bugcheck.h kernel/nt/nt.h kernel/nt/nt_dispatcher.h \
          kernel/nt/nt_context.h kernel/nt/nt_trace.h kernel/driver/nt_driver.h
$(BUILD)/kernel/driver/code_names.o: $(CODES) | $$(@D)/
	$(call SAY,GEN)(echo '.section .rodata; .globl code_names, code_names_end; code_names:'; \
	    sed -n -e 's/^    \([A-Z_]*\) = \(0x[0-9a-f]*\),$$/.long \2; .asciz "\1"/p' \
	    -e 's/^#define \(STATUS_[A-Z0-9_]*\) ((NTSTATUS)\(0x.*\))$$/.long \2; .asciz "\1"/p' $^; \
	    echo 'code_names_end:') | $(CROSS)as -o $@ -

# What the kernel's half of the tests knows of ring 3's: addresses.
$(BUILD)/ring3.o: $(BUILD)/dll/ring3.exe
	$(call SAY,GEN)x86_64-w64-mingw32-nm $<.debug | sed -n \
	    's/^\([0-9a-f]*\) . \(user_[a-z0-9_]*\)$$/.globl \2; .set \2, 0x\1/p' | $(CROSS)as -o $@ -

include kernel/user/windows.mk

# Guests that are not this kernel, for PAYLOAD=: QEMU-style multiboot 1, hence ELF32.
PAYLOADS := $(patsubst %,$(BUILD)/%.elf,payload transparent blocks cpus)
payloads: $(PAYLOADS) $(BUILD)/linux.bin $(BUILD)/firmware.elf
$(BUILD)/transparent.elf: $(wildcard tests/guests/probes_*.asm)
$(BUILD)/blocks.elf: tests/guests/sequences.h
$(PAYLOADS): $(addprefix tests/guests/,guest.inc guest.h payload.ld) \
          kernel/base/registers.inc
$(PAYLOADS): $(BUILD)/%.elf: tests/guests/%.asm tests/guests/%.c | $(BUILD)/tests/guests/
	$(call SAY,AS)nasm -f elf64 $(WERROR) -o $(BUILD)/tests/guests/$*.asm.o tests/guests/$*.asm
	$(call SAY,CC)$(CC) $(COMMON) -mno-red-zone -mgeneral-regs-only -c \
	    -o $(BUILD)/tests/guests/$*.o tests/guests/$*.c
	$(Q)$(CROSS)ld -n -T tests/guests/payload.ld --build-id=none -z noexecstack -o $@.64 \
	    $(BUILD)/tests/guests/$*.asm.o $(BUILD)/tests/guests/$*.o
	$(Q)$(CROSS)objcopy -O elf32-i386 --strip-debug $@.64 $@

# What a loader takes for a Linux kernel, for LINUX=.
$(BUILD)/linux.bin: tests/guests/linux.asm | $(BUILD)/
	$(call SAY,AS)nasm -f bin $(WERROR) -o $@ $<

# Firmware as bad as it can be, for FIRMWARE=; it starts the kernel.
$(BUILD)/firmware.elf: $(addprefix tests/machines/firmware/,firmware.ld main.c start.asm) \
          | $(BUILD)/tests/machines/firmware/
	$(call SAY,AS)nasm -f elf32 $(WERROR) \
	    -o $(BUILD)/$(<D)/start.o $(<D)/start.asm
	$(call SAY,CC)$(CC) -m32 -std=gnu11 -O2 -ffreestanding -fno-pic -fno-stack-protector \
	    -mgeneral-regs-only $(TEXT_FLAGS) -c -o $(BUILD)/$(<D)/main.o $(<D)/main.c
	$(Q)$(CROSS)ld -m elf_i386 -T $< --build-id=none -z noexecstack -o $@ \
	    $(BUILD)/$(<D)/start.o $(BUILD)/$(<D)/main.o

# Compiled each time, as the program; of the source that is called so.
SOURCES_OF = $(subst +, ,$(foreach d,$(DRIVER_SOURCES),\
          $(if $(filter $(1),$(call DRIVER_NAME,$(d))),$(d))))
$(DRIVER_IMAGE): FORCE | $(BUILD)/program/
	$(call SAY,SYS)for source in $(call SOURCES_OF,$(basename $(@F))); do \
	    cxx='-fno-exceptions -fno-rtti -fno-threadsafe-statics'; \
	    [ $${source%.cpp} != $$source ] || cxx=; \
	    objects="$$objects $@.$${source##*/}.o"; \
	    $(WIN_CC) $$cxx -O2 -g -Wall -Wno-unknown-pragmas -Wno-array-bounds -Wno-multichar \
	    -isystem kernel/user/ddk -isystem $(DDK) -c -o $@.$${source##*/}.o $$source || exit 1; done; \
	$(WIN_CC) -shared -nostdlib -Wl,--subsystem,native,-e,DriverEntry,--exclude-all-symbols \
	    -o $@ $$objects -lntoskrnl -lhal -lgcc

# Windows does not look at capitals in a header's name; sources have them.
CAPITALS := Windows.h WinBase.h WinNT.h WinDef.h Winternl.h EvnTrace.h Evntrace.h \
          EvnTCons.h Evntcons.h Psapi.h Intrin.h Process.h Tchar.h
$(BUILD)/program/include/%.h: | $$(@D)/
	$(Q)echo '#include <$(shell echo $(@F) | tr A-Z a-z)>' > $@

# Compiled each time: the next program may be another file.
ifneq ($(PROGRAM_SOURCE),)
$(PROGRAM_EXE): FORCE | $(CAPITALS:%=$(BUILD)/program/include/%)
	$(call SAY,WCC)$(PROGRAM_CC) -o $@ $(PROGRAM_SOURCE) -lmingwex -lmsvcrt -lwinmm -lntdll
endif

$(BUILD)/layout.inc: kernel/base/layout.h | $(BUILD)/
	$(call SAY,GEN)sed -n 's/^#define \([A-Z0-9_]* .*\)/%define \1/p' $< > $@

# nasm 2.16 does not list with -MD what is included.
$(BUILD)/%.asm.o: %.asm $(BUILD)/layout.inc $(filter-out $(BUILD)/%,$(wildcard */*/*.inc)) | $$(@D)/
	$(call SAY,AS)nasm -dKASAN_ON=$(if $(KASAN),1,0) -f elf64 -g -F dwarf \
	    -i$(BUILD)/ -i$(BUILD)/dll/ $(WERROR) -MD $(@:.o=.d) -o $@ $<

# Tests are half of what is compiled, and none promises how long it is; but where a test says what
# the kernel's inline code costs, it is compiled as the kernel is. gdb knows their lines.
QUICKLY := -Og $(if $(LOCALS)$(findstring -g0,$(TEXT_FLAGS)),,-g1)
$(BUILD)/tests/%.o: CFLAGS += $(QUICKLY)
$(BUILD)/dll/tests/%: LEVEL := $(QUICKLY)
COSTS := harness/cost cost/cost_operations hal/hal_pmc_sets profiling/tp_cost etw/etw_rate
$(COSTS:%=$(BUILD)/tests/%.o): CFLAGS += -O2
$(BUILD)/dll/tests/ring3/cost.o $(BUILD)/dll/tests/ring3/tp_cost.o: LEVEL := -O2

# Routines that only drivers call, by the table.
$(BUILD)/kernel/driver/%.o: CFLAGS += -Wno-missing-prototypes

$(BUILD)/%.o: %.c | $$(@D)/
	$(call SAY,CC)$(CC) $(CFLAGS) $(SANITIZE) -c -o $@ $<

$(BUILD)/ntpmu.iso: $(BUILD)/ntpmu.bin boot/mkiso boot/grub.cfg
	$(call SAY,ISO)boot/mkiso $< $@

# With a program, a driver or a snippet: made each time.
PROGRAM_FILES := $(or $(PROGRAM_EXE),$(PROGRAM)) $(filter %.sys %.SYS,$(DRIVER)) $(DRIVER_IMAGE) \
          $(DLL)
$(BUILD)/program/ntpmu.iso: $(BUILD)/ntpmu.bin $(PROGRAM_EXE) $(DRIVER_IMAGE) FORCE
	$(call SAY,ISO)files='$(PROGRAM_FILES)'; \
	$(if $(PROGRAM),files="$$files $$(BUILD='$(BUILD)' boot/libraries $$files)" || exit 1;) \
	$(if $(SNIPPET),files=$$(ASSEMBLE=1 tests/tools/bench) || exit 2;) \
	ARGS='$(ARGS)' PROGRAM_ARGS='$(PROGRAM_ARGS)' boot/mkiso $< $@ $$files
SNIPPET := $(CODE)$(OP)$(FILE)
ISO := $(BUILD)/$(if $(PROGRAM)$(DRIVER)$(SNIPPET),program/)ntpmu.iso

# The variables that a script's first comment explains; what PMU= may name.
VARIABLES = @sed -n '/^\#   [A-Z]*=/,/^\#$$/s/^\#   /    /p' $(1)
NAMES = @tests/tools/names $(1) | awk -F '\t' '{ printf "      %-22s %s\n", $$1, $$2 }'

# doc/commands.md is the list of commands: its first section, all of it. Then the variables.
help:
	@sed -n '/^## To begin/,/^## Machines/p' doc/commands.md | sed '1,2d; /^## /d; s/^    //' | \
	    fold -sw 79
help-all:
	@sed -n '/^## /,$$p' doc/commands.md | sed 's/^## \(.*\)/\1:/' | fold -sw 100
	@echo
	@echo 'Variables of make run:'
	$(call VARIABLES,tests/tools/run)
	@echo '    MODEL is one of:'
	$(call NAMES,MODEL)
	@echo '    or a machine made of one, with quirks:'
	$(call NAMES,MACHINE)
	@echo '    QUIRK, a difference of a processor from its manual, is one of:'
	$(call NAMES,QUIRK)
	@echo 'Variables of make trace, beside those of make run:'
	$(call VARIABLES,tests/tools/trace)
	@echo 'Variables of make bench:'
	$(call VARIABLES,tests/tools/bench)
	@echo 'Variables of make linux:'
	$(call VARIABLES,tests/guests/linux)

# Done above, before anything looks for what it installs.
deps: ; @:

# Which tests run where; none that is slow in instrumented builds, unless asked for.
-include tests/tools/choices.mk
run: export TESTS := $(or $(TESTS),$(if $(KASAN)$(UBSAN),$(NOT_SHIPPED:%=%,-slow)),\
                          $(if $(KCSAN),$(NOT_TIMED:%=%,-slow)))
# Red zones take memory.
run: export MEMORY := $(or $(MEMORY),$(if $(KASAN),512,256))
# The slow tests take half of the time; TESTS='*' and make test run them.
run: export QUICK := $(if $(filter long,$(ARGS)),,1)

iso: $(ISO)

usb: iso
	@boot/mkusb $(ISO) '$(DEV)'

run: all $(filter $(PAYLOADS) $(BUILD)/linux.bin,$(PAYLOAD) $(LINUX)) \
     $(if $(FIRMWARE),$(BUILD)/firmware.elf)
	@DRIVER='$(DRIVER)' PROGRAM='$(PROGRAM)' DLL='$(DLL)' $(if $(KCSAN),$(foreach word,$(AT_ONCE),\
	    $(if $($(firstword $(subst =, ,$(word)))),,$(word)))) $(STARTER)

trace: all
	@DRIVER='$(DRIVER)' PROGRAM='$(PROGRAM)' EVENTS='$(EVENTS)' COUNTERS='$(COUNTERS)' \
	    STACKS='$(STACKS)' BRANCHES='$(BRANCHES)' tests/tools/trace

bench: all
	@DRIVER= PROGRAM= tests/tools/bench

list: all
	@LIST=1 tests/tools/run

pmcsources: all
	@LIST=pmcsources tests/tools/run

# Debian's Linux and perf on the virtual PMU: packages are fetched, none installed.
# COMMANDS are the guest's shell's: make expands nothing in them, but $$ is $ as everywhere here.
linux: override export COMMANDS := $(subst $$$$,$$,$(value COMMANDS))
linux: all
	@tests/guests/linux

# Of logs of runs, the files LOG.
report: all
	@BUILD=$(BUILD) tests/tools/report $(LOG)

# The machine runs in a session of its own: Ctrl-C is for gdb. Symbols are those of the kernel and
# of ring 3.
GDB_PORT := 1234
RING3_SYMBOLS := $(if $(PROGRAM)$(DRIVER),,$(BUILD)/dll/ring3.exe.debug)
RING3_SYMBOLS += $(or $(PROGRAM_EXE),$(PROGRAM))
debug: all
	@DRIVER='$(DRIVER)' PROGRAM='$(PROGRAM)' GDB=$(GDB_PORT) setsid tests/tools/run & \
	gdb -q $(BUILD)/ntpmu.elf $(RING3_SYMBOLS:%=-ex 'add-symbol-file %') \
	    -ex 'set tcp connect-timeout 60' -ex 'target remote :$(GDB_PORT)' \
	    -ex 'hbreak kernel_main' -ex continue $(GDB_ARGS); \
	kill $$! 2>/dev/null || :

# A make that a script starts has jobs of its own.
PROVE := MAKELEVEL= MAKEFLAGS='$(MAKEOVERRIDES)' prove

# What failed among those together is told again at the end.
TOGETHER := $(wildcard $(TOGETHER:%=tests/*/%.t))
test: all iso payloads
	@status=0; said=$(BUILD)/together; : > $$said; $(if $(JUNIT),,\
	{ $(PROVE) --timer -j2 $(TOGETHER) 2>&1 || echo 'make test: of these some failed'; } | \
	    tee $$said;) \
	! grep -q '^make test: ' $$said || status=1; \
	SAMPLE=10 $(PROVE) \
	    $(if $(JUNIT),--merge --formatter TAP::Formatter::JUnit $(TOGETHER),--timer) \
	    $(wildcard $(ALONE:%=tests/*/%.t)) $(if $(JUNIT),> $(JUNIT)) || status=1; \
	[ $$status = 0 ] || { grep -A9 '^#   Failed test' $$said | tail -30; \
	    echo 'make test: some test failed: see above'; }; exit $$status

quirks: all
	$(if $(EACH),,N=$(or $(N),1000)) tests/machines/quirks.t

# COUNT mutated copies of a program, and as many of a driver, by SEED: the loader of images refuses
# or runs them.
fuzz-images:
	@$(MAKE) -s PROGRAM=tests/programs/events.c DRIVER=tests/drivers/driver_try.c
	@BUILD=$(BUILD) tests/programs/fuzz-images
	@BUILD=$(BUILD) tests/programs/fuzz-images $(BUILD)/program/driver_try.sys

# Scripts that take all they need from make's command line, which is in their environment.
distro: SCRIPT := tests/machines/distro
fuzz: SCRIPT := tests/machines/fuzz-services
fuzz-guest: SCRIPT := tests/guests/fuzz-guest
soak: SCRIPT := tests/machines/soak
suite: SCRIPT := tests/guests/suite
fuzz soak suite: all
distro fuzz fuzz-guest soak suite:
	@$(SCRIPT)

mutants: all payloads
	$(PROVE) -v tests/tools/mutants.t

machines: all
	$(PROVE) -v tests/machines/matrix.t :: ^named

check:
	$(PROVE) -v tests/tools/check.t

# Rooms, their lines and budgets; who includes whom, as text, with graphviz as a picture, too.
rooms:
	$(Q)find boot hal kernel pmu -type f | \
	    perl -Itests/tools -MRooms -e 'print Rooms::picture(map { chomp; $$_ } <>)' > doc/rooms.dot
	$(Q)$(PROVE) -v tests/tools/check.t :: budgets | sed -n 's/^#   //p; s/^\(not \)*ok 1 - //p'
	$(Q)mkdir -p $(BUILD); ! command -v dot >/dev/null || dot -Tsvg -o $(BUILD)/rooms.svg doc/rooms.dot
	@echo 'doc/rooms.dot$(if $(shell command -v dot), and $(BUILD)/rooms.svg): who includes whom'

format:
	clang-format -i $$(git ls-files '*.c' '*.h' '*.cpp')

clean:
	rm -rf $(BUILD)

-include $(OBJ:.o=.d) $(WIN_OBJECTS:.o=.d)
ACTIONS := usb linux suite run report trace bench list pmcsources debug test fuzz \
        fuzz-guest fuzz-images quirks mutants machines soak distro check rooms format clean
.PHONY: FORCE all kernel payloads help help-all deps iso $(ACTIONS)

# Each action waits for the one before it, as in "make run report"; what others need is made alone.
$(foreach action,$(filter $(ACTIONS),$(MAKECMDGOALS)),\
    $(eval $(action): | $(before))$(eval before := $(action)))
ifneq ($(filter clean,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif
