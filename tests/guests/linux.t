#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# A Linux kernel as the virtual PMU's guest: what the loader gives it (tests/guests/linux.asm says
# what it got), what it refuses; where other payloads may not be. A real Linux: make linux.
use strict;
use warnings;
use File::Temp qw(tempdir);
use Test::More;
use lib 'tests/tools';
use Environment;
use Text;

Environment::forget();
$ENV{TIMEOUT} = 60; # of one payload; all need half of it together
my $build = $ENV{BUILD} // 'build';
my $dir = tempdir(CLEANUP => 1);
my $linux = "$build/linux.bin";

sub file { return Text::save("$dir/" . shift, @_) }

sub run_is
{
    my ($words, $status, $pattern, $name) = @_;
    my $said = `$words tests/tools/run 2>&1 </dev/null`;
    is($? >> 8, $status, "$name: status $status") or diag $said;
    like($said, $pattern, $name);
}

my $initrd = file('initrd', "070701 what an archive begins with\0");
my $state = 'linux: cs ss flags cr0 efer 10 18 0 80000011 500 ';
for my $model (qw(intel-v4 amd-v2)) {
    run_is("PMU=$model LINUX=$linux INITRD=$initrd CMDLINE='a,b c=d'", 0,
           qr/^linux: command line <a,b c=d>\nlinux: initrd of 23 bytes <070701 what an archive /m,
           "$model: command line and initrd");
}
# 256 MiB less us and the modules' pages above us: at least 240.
run_is("PMU=intel-v4 LINUX=$linux INITRD=$initrd", 0,
       qr/^linux: MiB of memory f[0-9a-f] \nlinux: loaded at 1000000 \n\Q$state\E\n/m,
       'memory, place and state of the processor');
run_is("PMU=intel-v4 LINUX=$linux MEMORY=5000", 0,
       qr/^linux: command line <>\nlinux: initrd of 0 b.*\nlinux: MiB of memory 13[67][0-9a-f] \n/m,
       'memory above 4 GB is the guest\'s');

my $bad = Text::content($linux);
my $old = $bad;
substr($old, 0x236, 2) = "\0\0";
my $large = $bad;
substr($large, 0x260, 4) = pack 'V', 300 << 20;
my $giant = $bad;
substr($giant, 0x260, 4) = pack 'V', 3300 << 20;
my $short = substr $bad, 0, 0x300;
my $long = $bad;
substr($long, 0x1f4, 4) = pack 'V', length($long) / 16 + 1;
my $huge = file('huge', '070701');
truncate $huge, 300 << 20;
# What tests/tools/run refuses: a word and its value, more words, what it says of it.
for (['LINUX', "$dir/none", '', 'is not a file'],
     ['LINUX', 'Makefile', '', 'is no Linux kernel \(bzImage\)'],
     ['LINUX', file('gzip', "\x1f\x8b\x08" . "\0" x 2000), '', 'is no Linux kernel \(bzImage\)'],
     ['LINUX', file('elf', "\x7fELF" . "\0" x 2000), '', 'is no Linux kernel \(bzImage\)'],
     (map { ['LINUX', file("cut$_", substr $long, 0, $_), '',
             "is cut off: it has $_ bytes, its header says more"] } 600, 2000, length $long),
     ['INITRD', 'Makefile', "LINUX=$linux", 'is no cpio archive, nor .*'],
     ['INITRD', file('zip', "PK\3\4" . "\0" x 60), "LINUX=$linux", 'is no cpio archive, nor .*'],
     ['PAYLOAD', 'Makefile', '', 'is no multiboot 1 image']) {
    my ($word, $value, $more, $says) = @$_;
    run_is("PMU=intel-v4 $word=$value $more", 2,
           qr/^tests\/tools\/run: $word='\Q$value\E' $says\n\z/, "$word=$value: refused");
}
my $memory = 'tests\/tools\/run: LINUX and INITRD need more than MEMORY=256 MiB: at least';
run_is('PMU=intel-v4 LINUX=' . file('large', $large), 2, qr/^$memory 324\n\z/,
       'larger than memory');
run_is("PMU=intel-v4 LINUX=$linux INITRD=$huge", 2, qr/^$memory 332\n\z/,
       'an initrd larger than memory');
run_is('PMU=intel-v4 LINUX=' . file('old', $old), 77,
       qr/^# payload: this Linux has no 64-bit entry\s*$/m, 'no 64-bit entry');
run_is('PMU=intel-v4 PAYLOAD=' . file('short', $short), 77,
       qr/^# payload: this Linux is shorter than its header says\s*$/m, 'the loader itself: short');
run_is('PMU=intel-v4 PAYLOAD=' . file('payload', $large), 77,
       qr/^# payload: Linux wants 300 MiB from 1000000 on, where so much memory is not free\s*$/m,
    'the loader itself: large');
run_is('PMU=intel-v4 MEMORY=8000 PAYLOAD=' . file('giant', $giant), 77,
       qr/^# payload: Linux wants 3300 MiB from 1000000 on, where so much memory is not free\s*$/m,
    'the loader itself: room above 4 GB only');

# What make linux hands to the guest's shell: make expands nothing.
my $recipe = file('recipe.mk', "all: ;\nlinux: ; \@printf %s \"\$\$COMMANDS\"\n");
is(`make -s -f Makefile -f $recipe linux COMMANDS='a \$(b) \$\${c} \$d' 2>/dev/null`,
   'a $(b) ${c} $d', 'COMMANDS as they are written');

# Multiboot images: one MiB below the end of memory we are; and modules are handed on.
my @header = (0x1badb002, 0x10000, -(0x1badb002 + 0x10000) & 0xffffffff, 0xff00000, 0xff00000, 0, 0,
              0xff00000);
run_is('PMU=intel-v4 PAYLOAD=' . file('top', pack 'V8', @header), 77,
       qr/^# payload: wants \S+, which overlaps ntpmu at /m, 'on top of us');
$header[1] = 0x1000c;
$header[2] = -(0x1badb002 + 0x1000c) & 0xffffffff;
run_is('PMU=intel-v4 PAYLOAD=' . file('features', pack 'V8', @header), 77,
       qr/^# payload: it requires multiboot features 8\s*$/m, 'features that nobody knows');
my $cut = file('cut', substr Text::content("$build/payload.elf"), 0, 8000);
run_is("PMU=intel-v4 PAYLOAD=$cut", 77,
       qr/^# payload: its ELF program headers lead out of the file\s*$/m, 'a multiboot image, cut');
my $two = "PAYLOAD_MODULES='$initrd $initrd'";
run_is("PMU=intel-v4 PAYLOAD=$build/transparent.elf PAYLOAD_ARGS=info $two", 0,
       qr/^module 0 <070701 what an archive begins with> line <\Q$initrd\E>\nmodule 1 <070701/m,
       'modules of a multiboot image');

run_is("PMU=intel-v4 MEMORY=5120 PAYLOAD=$build/payload.elf", 0,
       qr/^ok - payload: \.\.\. above 4 GB too\s*$/m, 'a string instruction above 4 GB');

# A guest's CPUs count each for itself, 100,000 branches and those around, 20 times; and 12
# instructions, of which 7 write a register of the APIC. What they do to each other that the virtual
# PMU refuses is named, and that it starts no other where it steps.
my $cpus = "PAYLOAD=$build/cpus.elf PAYLOAD_ARGS";
my $counted = 'branches 186a4 the same on both 14 TSC back 0 IO-APIC 1 instructions of writes';
run_is("PMU=$_ SMP=4 $cpus=count", 0, qr/^$counted c\s*$/m, "$_: two CPUs of a guest count")
    for qw(intel-v4 amd-v2 alderlake);
# By x2APIC, where five access a register.
run_is("PMU=intel-v4,x2apic SMP=2 $cpus=count", 0, qr/^$counted 10\s*$/m,
       'two CPUs of a guest that start by x2APIC count');
run_is("PMU=intel-v4 SMP=2 $cpus=self", 99, qr/^# vpmu: CPU 0: INIT of the boot CPU: /m,
       'INIT of the boot CPU');
run_is("PMU=intel-v4 SMP=2 $cpus=$_", 99, qr/^# vpmu: CPU 0: writes the local APIC's registers /m,
       "a command by OR, $_") for qw(odd near);
run_is("PMU=intel-v4 SMP=2 $cpus=far", 99,
       qr/^# vpmu: CPU 0: accesses a physical address beyond /m, 'the first address beyond');
run_is("PMU=amd-v2,step SMP=2 $cpus=each", 0,
       qr/^# vpmu: the CPU with APIC id 1 does not start: stepping\s*\n.*\nto one: began 0 /m,
       'no other CPU where all is stepped');

# What a guest does that ends its processor ends the guest, by name: code at 2 MiB.
sub flat
{
    my ($name, $code) = @_;
    my @h = (0x1badb002, 0x10000, -(0x1badb002 + 0x10000) & 0xffffffff, (0x200000) x 2, 0, 0,
             0x200020);
    return file($name, pack('V8', @h) . pack 'H*', $code);
}

# Without paging, which by the registers in memory cannot be: x2APIC on, a few instructions for the
# other CPU at 8000h, INIT and STARTUP of it, and 100,000 PAUSEs at most until it has written 7000h.
run_is('PMU=intel-v4,x2apic SMP=2 PAYLOAD=' . flat('starts',
           'b91b0000000f3280cc040f30c70500800000c6060070c7050480000055f4ebfdb930080000ba01000000'
               . 'b8004500000f30b8084600000f30b9a0860100f390803d0070000055e0f50f95c00fb6c0baf400'
               . '0000ef'),
       0, qr/^# PASS payload: .* value 0\b/m, 'a guest without paging starts a CPU by x2APIC');

my $reset = '(?:.*\n)*# CRASH the payload reset the machine$';
run_is('PMU=intel-v4 PAYLOAD=' . flat('triple', '0f011d20000010cccc'), 99,
       qr/^# vpmu: CPU 0: triple fault: .*\n$reset/m, 'a triple fault');
# CR3 with a bit that is no address, where each instruction is stepped: QEMU takes it of a MOV, and
# VMRUN does not. (Of CR0 and CR4 the guest gets #GP: transparent.t.)
my $control = $bad;
substr($control, (1 + ord substr $control, 0x1f1, 1) * 512 + 0x200, 26) =
    pack 'H*', 'b986010000b8c400430031d20f300f20d8480fbae83e0f22d8f4';
run_is('PMU=intel-v4 LINUX=' . file('control', $control), 99,
       qr/^# vpmu: CPU 0: the guest's control registers are none that this .*: .*\n$reset/m,
       'control registers that are none');
# Paging by tables that are none, while every instruction is stepped.
run_is('PMU=intel-v4,step PAYLOAD=' . flat('paging', '0f20c00d000000800f22c0f4'), 99, qr/$reset/m,
       'page tables that are none');

run_is("PMU=amd-v2 PAYLOAD=$build/payload.elf.64", 0, qr/^# PASS payload$/m, 'an image of ELF64');
run_is("PMU=intel-v4 ARGS=rep=off PAYLOAD=$build/payload.elf", 1,
       qr/^# vpmu: rep=off: a repeated .*\n(?:.*\n)*not ok - payload: .*string/m,
       'rep=off: it counts its iterations, and a line says so');

done_testing;
