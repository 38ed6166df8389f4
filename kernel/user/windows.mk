# SPDX-License-Identifier: MIT
# What runs in ring 3, PE images that mingw-w64 makes: the libraries, each of kernel/user/NAME/ and
# NAME.def, and the tests' program. The Makefile includes this.
# Of <windows.h> only what a library needs: all of it, and all vector extensions of gcc's, took four
# fifths of the time of a build. kernel/user/include stands before gcc's own. Many parameters of
# Windows' functions mean nothing here. An index outside its array is #UD, as are overflows.
WIN_FLAGS := -DWIN32_LEAN_AND_MEAN -DNOGDI -DNOUSER -DNOSERVICE -DNOMCX -DNOIME \
          -D_INC_VIRTDISK -D_WINNETWK_ -Ikernel/user/include -I. \
          -DKASAN_ON=0 -DKCSAN_ON=0 -std=gnu11 -fno-builtin -fno-stack-protector \
          $(OF_GCC) -fno-ident -ffile-prefix-map=$(CURDIR)=. -Wall -Wextra $(WERROR) -Wshadow \
          -Wno-unused-parameter -fsanitize=bounds,shift,signed-integer-overflow \
          -fsanitize-undefined-trap-on-error
COMPILE = $(WIN_CC) -g $(or $(LEVEL),-O2) $(WIN_DEFINES) $(WIN_FLAGS)
DLLS   := $(addprefix $(BUILD)/dll/,ntdll.dll kernel32.dll msvcrt.dll advapi32.dll ntoskrnl.exe \
          hal.dll handlers.sys)

# One library: entry point or 0, preferred address, what it is linked with beside its own objects.
define library
	$(call SAY,DLL)$(WIN_CC) -nostdlib -shared -Wl,-e,$(1),--image-base=$(2) \
	    -Wl,--no-insert-timestamp -o $@.debug $(filter %.o %.def,$^) $(3) -lgcc
	$(Q)x86_64-w64-mingw32-strip -p -o $@ $@.debug
endef

# All of a library is compiled as one file: mingw-w64's headers are most of the work. But what
# handlers.sys takes too, stubs, and what needs other headers (startup.c <stdlib.h>) stand apart.
APART  := $(addprefix kernel/user/,$(patsubst %,ntdll/%.c,unwind dispatch seh ntdll_context \
          nt_stubs) $(patsubst %,msvcrt/%.c,crt_string wide character sort startup))
WHOLE   = $(filter-out $(APART),$(sort $(wildcard kernel/user/$(1)/*.c)))
WIN_OBJ = $(patsubst %.c,$(BUILD)/dll/%.o,$(filter kernel/user/$(1)/%,$(APART)) \
          kernel/user/$(1)/whole.c)
.PRECIOUS: $(BUILD)/dll/kernel/user/%/whole.c
$(BUILD)/dll/kernel/user/%/whole.c: FORCE | $$(@D)/
	@printf '#include "%s"\n' $(call WHOLE,$*) > $@.$$$$; \
	    if cmp -s $@.$$$$ $@; then rm $@.$$$$; else mv $@.$$$$ $@; fi
$(BUILD)/dll/%/whole.o: $(BUILD)/dll/%/whole.c
	$(call SAY,WCC)$(COMPILE) -MMD -MP -c -o $@ $<

# Objects of a library, and what its own side of mingw-w64's headers looks like.
NTDLL_OBJ := $(call WIN_OBJ,ntdll) \
          $(patsubst %,$(BUILD)/dll/kernel/%.o,image/pe image/pe_names base/string base/format)
KERNEL32_OBJ := $(call WIN_OBJ,kernel32)
MSVCRT_OBJ := $(call WIN_OBJ,msvcrt)
ADVAPI32_OBJ := $(call WIN_OBJ,advapi32)
$(NTDLL_OBJ): WIN_DEFINES := -D_NTSYSTEM_ -D_CRTIMP=
$(KERNEL32_OBJ): WIN_DEFINES := -D_KERNEL32_
$(MSVCRT_OBJ): WIN_DEFINES := -D__MSVCRT__ -D_CRTIMP= -D_CRTIMP_ALTERNATIVE= \
          -D_SECIMP= -D_CTYPE_DISABLE_MACROS -D_WCTYPE_INLINE_DEFINED
$(ADVAPI32_OBJ): WIN_DEFINES := -D_WMI_SOURCE_ -D_ADVAPI32_

$(BUILD)/dll/%.o: %.c | $$(@D)/
	$(call SAY,WCC)$(COMPILE) -MMD -MP -c -o $@ $<

# What a library exports: what its .def says, and each of its functions with a capital letter in its
# name, as Windows' have and ours have not.
EXPORTING := ntdll kernel32 advapi32
$(foreach name,$(EXPORTING),$(eval \
    $(BUILD)/dll/$(name).def: kernel/user/$(name)/$(name).def $(call WIN_OBJ,$(name))))
$(EXPORTING:%=$(BUILD)/dll/%.def):
	$(call SAY,GEN)(cat $<; x86_64-w64-mingw32-nm -g --defined-only $(filter %.o,$^) | \
	    sed -n 's/^[0-9a-f]* T \([a-z]*[A-Z][A-Za-z0-9]*\)$$/\1/p' | LC_ALL=C sort -u) > $@

$(BUILD)/dll/ntdll.dll: $(BUILD)/dll/ntdll.def $(NTDLL_OBJ)
	$(call library,0,0x7ffb00000000)

$(BUILD)/dll/kernel32.dll: $(BUILD)/dll/kernel32.def $(KERNEL32_OBJ) $(BUILD)/dll/ntdll.dll
	$(call library,0,0x7ffb10000000,$(BUILD)/dll/ntdll.dll)

$(BUILD)/dll/msvcrt.dll: kernel/user/msvcrt/msvcrt.def $(MSVCRT_OBJ) $(BUILD)/dll/kernel32.dll
	$(call library,entry,0x7ffb20000000,-lmingwex $(BUILD)/dll/kernel32.dll $(BUILD)/dll/ntdll.dll)

$(BUILD)/dll/advapi32.dll: $(BUILD)/dll/advapi32.def $(ADVAPI32_OBJ)
$(BUILD)/dll/advapi32.dll: $(BUILD)/dll/kernel32.dll
	$(call library,0,0x7ffb50000000,$(BUILD)/dll/kernel32.dll $(BUILD)/dll/ntdll.dll)

$(BUILD)/dll/ntoskrnl.exe: kernel/user/ntoskrnl/ntoskrnl.def
	$(call library,0,0x7ffb30000000)

$(BUILD)/dll/hal.dll: kernel/user/hal/hal.def
	$(call library,0,0x7ffb40000000)

# Loaded into ring 0: how drivers handle exceptions, by ntdll's own code.
HANDLERS_OBJ := $(call WIN_OBJ,handlers) \
          $(patsubst %,$(BUILD)/dll/kernel/user/ntdll/%.o,unwind dispatch seh ntdll_context) \
          $(patsubst %,$(BUILD)/dll/kernel/user/msvcrt/%.o,crt_string wide character sort) \
          $(BUILD)/dll/kernel/base/string.o
$(call WIN_OBJ,handlers): WIN_DEFINES := -D_NTSYSTEM_ -D_CRTIMP=

$(BUILD)/dll/imports.a: kernel/user/handlers/imports.def | $(BUILD)/dll/
	$(call SAY,LIB)x86_64-w64-mingw32-dlltool -t $@ -D ntoskrnl.exe -d $< -l $@

NATIVE := -Wl,--subsystem,native
$(BUILD)/dll/handlers.sys: kernel/user/handlers/handlers.def $(HANDLERS_OBJ) $(BUILD)/dll/imports.a
	$(call library,KiUserExceptionDispatcher,0x10000,$(NATIVE) $(BUILD)/dll/imports.a)

$(BUILD)/kernel/image/images.asm.o: $(DLLS)

# The tests in ring 3, a program with the checks and the small printf of ring 0's.
RING3_C := $(sort $(wildcard tests/ring3/*.c)) tests/harness/checks.c kernel/base/format.c
RING3_OBJ := $(RING3_C:%.c=$(BUILD)/dll/%.o) \
          $(patsubst %,$(BUILD)/dll/%.o,$(sort $(wildcard tests/ring3/*.asm)))
$(RING3_OBJ): WIN_DEFINES := -Itests/ring3/include -fno-strict-aliasing -Wno-format
$(BUILD)/dll/%.asm.o: %.asm | $$(@D)/
	$(call SAY,AS)nasm -f win64 $(WERROR) -MD $(@:.o=.d) -o $@ $<

RING3_DLLS := $(addprefix $(BUILD)/dll/,kernel32.dll advapi32.dll ntdll.dll)
$(BUILD)/dll/ring3.exe: $(RING3_OBJ) $(RING3_DLLS)
	$(call SAY,EXE)$(WIN_CC) -nostdlib -Wl,-e,user_begin,--image-base=0x400000 \
	    -Wl,--disable-dynamicbase,--no-insert-timestamp -o $@.debug $(RING3_OBJ) $(RING3_DLLS) -lgcc
	$(Q)x86_64-w64-mingw32-strip -p -o $@ $@.debug
	$(Q)x86_64-w64-mingw32-objcopy -O binary -j .tests $@ $(@D)/ring3.tests

$(BUILD)/tests/harness/ring3_image.asm.o: $(BUILD)/dll/ring3.exe
WIN_OBJECTS := $(RING3_OBJ) $(NTDLL_OBJ) $(KERNEL32_OBJ) $(MSVCRT_OBJ) $(ADVAPI32_OBJ) \
          $(HANDLERS_OBJ)
