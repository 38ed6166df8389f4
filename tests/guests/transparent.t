#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# A guest that asks the PMU nothing finds the same machine on the virtual PMU as on plain QEMU: each
# probe of tests/guests/transparent.asm, with nothing counting, with an event that the clock
# counts, with every instruction stepped.
use strict;
use warnings;
use File::Copy;
use File::Temp qw(tempdir);
use Test::More;
use lib 'tests/tools';
use Environment;

Environment::forget();
my $build = $ENV{BUILD} // 'build';

# Where the model's vendor decides, and not QEMU: vector (81: none; 100h and up: where SYSCALL and
# SYSENTER lead), CS there. And how many instructions ring 3 executes, as a counter finds: of what
# comes after SYSCALL and SYSENTER none.
my %answers = (
    #                                        Intel     AMD              counted: Intel, AMD
    'SYSCALL, compatibility mode'          => ['6 1b',   '101 8',        1, 2],
    'SYSCALL, compatibility mode, TF'      => ['1 1b 6 1b', '1 1b 101 8',   1, 2],
    'SYSRET, compatibility mode'           => ['6 50',   '81 1b',        0, 1],
    'SYSENTER, compatibility mode'         => ['102 8',  '6 1b',         2, 1],
    'SYSENTER, 64-bit mode'                => ['102 8',  '6 2b',         2, 1],
    'SYSEXIT to 32-bit code'               => ['81 1b',  '6 50',         3, 0],
    'SYSEXIT to 64-bit code'               => ['81 2b',  '6 8',          3, 0],
    'SYSEXIT from ring 3'                  => ['d 1b',   '6 1b',         0, 0],
    'RDMSR from ring 3'                    => ['d 2b',   'd 2b',         0, 0],
    'HLT from ring 3'                      => ['d 2b',   'd 2b',         0, 0],
    'IN from ring 3'                       => ['d 2b',   'd 2b',         0, 0],
    'an undefined opcode'                  => ['6 2b',   '6 2b',         1, 1],
    'SYSENTER, SYSENTER_CS 0'              => ['d 8',    '6 8',          0, 0],
    'SYSENTER_CS back'                     => ['81 8',   '81 8',         0, 0],
    'MONITOR, which CPUID does not offer'  => ['6 8',    '6 8',          0, 0],
    'MWAIT, which CPUID does not offer'    => ['6 8',    '6 8',          0, 0],
    'CR0.NW without CD'                    => ['d 8',    'd 8',          0, 0],
    'CR0.PG off, 64-bit mode'              => ['d 8',    'd 8',          0, 0],
    'CR4, all bits'                        => ['d 8',    'd 8',          0, 0],
    'CR4.PAE off, long mode'               => ['d 50',   'd 50',         0, 0],
    'CR4.LA57 changed, long mode'          => ['d 50',   'd 50',         0, 0],
    'CR4, a bit without a feature'         => ['d 8',    'd 8',          0, 0],
    'CR0.PG without PE'                    => ['d 8',    'd 8',          0, 0],
    'EFER, a bit without a feature'        => ['d 8',    'd 8',          0, 0],
    'EFER.LME off, long mode'              => ['d 8',    'd 8',          0, 0],
    'CR0.WP and CR4.PCE on and off'        => ['81 8',   '81 8',         0, 0],
);
for my $model (qw(intel-v1 intel-v4 amd-k7 amd-v2)) {
    my $payload = "PAYLOAD=$build/transparent.elf PAYLOAD_ARGS=silicon";
    my $heard = `PMU=$model $payload tests/tools/run 2>&1 </dev/null`;
    my %found;
    push @{ $found{"$1: $2"} }, "$3 $4"
        while $heard =~ /^(idle|counting|stepping): (.+): vector (\w+) .* cs (\w+)/mg;
    push @{ $found{"counted: $1"} }, hex $2 while $heard =~ /^counted: (.+): (\w+) in ring 3/mg;
    # QEMU has it since version 8.
    $answers{'ICEBP, after an instruction'} = $heard =~ /^idle: ICEBP.*: vector 6 /m
        ? [('6 2b') x 2, 1, 1] : [('1 2b 81 2b') x 2, 3, 3];
    my %wanted;
    for my $probe (keys %answers) {
        my $amd = $model =~ /^amd/ ? 1 : 0;
        $wanted{"$_: $probe"} = $answers{$probe}[$amd] for qw(idle counting stepping);
        $wanted{"counted: $probe"} = $answers{$probe}[2 + $amd];
    }
    is_deeply({ map { ($_ => "@{$found{$_}}") } keys %found }, \%wanted,
              "$model: what its vendor's processors do") or diag $heard;
}

# ICEBP is #DB in QEMU 10.0, which makes three lines more, and #UD in 7.2.
my $ALL = qr/\A# PASS transparent: 66[25] lines are the same/;

# What the loader says, of 5,120 MiB: the same but for our 10 MiB; and its strings are below 640 KB,
# which those of plain QEMU are not.
my ($upper, $range, $ours) = ('info: upper 2f[0-9a-f]+', 'range 100000 of bf[0-9a-f]+ is 1',
                              'range bf[0-9a-f]+ of [0-9a-f]+ is 2');
my $told = qr/\A2,3c2,3\n< info: all of it is low 0\n< $upper\n---
> info: all of it is low 1\n> $upper\n7c7,8\n< $range\n---\n> $range\n> $ours
[^<>]*# FAIL transparent: 7 lines of 11 differ/;

# Beside plain QEMU all probes, hot=all: by code of the virtual PMU's that is else for hot loops; by
# page tables of five levels; where the BIOS's calls give all of memory, below 64 MB. The second
# CPU, started in each way, by x2APIC as by memory, which QEMU alone has. What prints what the PMU
# does differs.
for ((map { [$_, 'transparent', '', $ALL] } 'intel-v1 ARGS=hot=all', 'intel-v4', 'amd-k7',
      'amd-v2 ARGS=hot=all', 'intel-v5,step', 'intel-v4 MEMORY=40'),
     ['intel-v4', 'transparent', 'la57', $ALL],
     ['intel-v4 MEMORY=5120', 'transparent', 'info', $told],
     (map { ["$_ SMP=2", 'cpus', '', qr/\A# PASS transparent: 37 lines are the same/] } 'intel-v4',
      'amd-v2', 'intel-v4,x2apic', 'amd-v2,x2apic=2'),
     ['intel-v4', 'payload', '',
      qr/^> .*\n(?:.*\n)*# FAIL transparent: \d+ lines of \d+ differ/m]) {
    my ($words, $image, $line, $says) = @$_;
    my $said = `PMU=$words tests/guests/transparent $build/$image.elf $line 2>&1 </dev/null`;
    ok($said =~ $says && !$? == ($said =~ /^# PASS/), "$words: $image $line beside plain QEMU")
        or diag $said;
}

# Two images as of a suite: one ends alike, the other does not.
my $suite = tempdir(CLEANUP => 1);
mkdir "$suite/x86";
copy("$build/transparent.elf", "$suite/x86/a.flat");
copy("$build/payload.elf", "$suite/x86/b.flat");
my $table = `DIR=$suite PMU=intel-v4 tests/guests/suite 2>&1 </dev/null`;
is($? >> 8, 1, 'make suite: one image differs');
like($table, qr/^# suite: a\.flat +the same .*\n# suite: b\.flat +DIFFERENT.*\n# FAIL suite: 2 /,
     '... and each has its line') or diag $table;
like(`DIR=tests/tools tests/guests/suite 2>&1`, qr{^\S+/suite: DIR='tests/tools' has no image},
     'no image');

# Every MSR of 0 to 3000h, 40000000h to 40000200h and c0000081h to c0012000h, read, written with
# 5555000012345679h, read again: those that do not answer as on plain QEMU are the PMU's registers,
# by the model (first, last, value, what a write does, value then; gp: #GP), those of other PMUs and
# of SVM, which fault, AMD's register that makes LFENCE wait, those that AMD-V's map of MSRs does
# not have, and the PAT's reserved types: they fault, as on a processor; plain QEMU takes them.
my $pat = '277 277 7040600070406 gp 7040600070406';
my @outside = ('2000 3000 gp gp', '40000000 40000200 gp gp');
my @before_last = map { "$_ gp gp" }
    'c0010230 c001023b', 'c0010240 c0010247', 'c0010280 c0010280';
my @old_lists = ('40 47 gp gp', '60 67 gp gp'); # of branches
my @new_lists = map { "$_ gp gp" } '1200 121f', '14ce 14cf', '1500 151f', '1600 161f', '1900 19ff';
my $last = 'c0012000 c0012000 gp gp';
my @svm = ('c0010114 c0010114 gp gp', 'c0010117 c0010117 gp gp');
my %registers = (
    'intel-v5' => [
        @old_lists, 'c1 c8 0 ok 12345679', 'c9 cc gp gp', 'e7 e8 gp gp', '186 18d 0 gp 0',
        '18e 191 gp gp',
        '1a0 1a0 881 gp 881', '1c8 1c9 0 gp 0', '1d9 1d9 0 gp 0', '1db 1dc gp gp',
        '1dd 1de 0 gp 0', $pat,
        '309 30c 0 ok 12345679', '30d 30f gp gp',
        '329 329 gp gp', '345 345 64c5 gp 64c5', '38d 38e 0 gp 0', '38f 38f ff gp ff',
        '390 392 0 gp 0', '3f1 3f2 0 gp 0', '4c1 4c8 0 gp 0', '4c9 4cc gp gp', '600 600 0 gp 0',
        '680 69f 0 gp 0', '6c0 6df 0 gp 0', 'dc0 ddf 0 gp 0', @new_lists, @outside,
        'c00000e7 c00000e9 gp gp', 'c000010e c000010f gp gp', 'c0000300 c0000303 gp gp',
        'c0002000 c0010007 gp gp', @svm, 'c0010200 c001020f gp gp', @before_last,
        'c0010300 c001031f gp gp',
        'c0011029 c0011029 gp gp', $last
    ],
    'amd-v2' => [
        @old_lists, 'c1 cc gp gp', 'e7 e8 gp gp', '186 191 gp gp', '1a0 1a0 gp gp',
        '1c8 1c9 gp gp', '1d9 1d9 0 gp 0', '1db 1de 0 gp 0',
        $pat, '309 30f gp gp', '329 329 gp gp', '345 345 gp gp', '38d 392 gp gp', '3f1 3f2 gp gp',
        '4c1 4cc gp gp', '600 600 gp gp', '680 69f gp gp', '6c0 6df gp gp', 'dc0 ddf gp gp',
        @new_lists, @outside, 'c00000e7 c00000e9 gp gp', 'c000010e c000010f 0 gp 0',
        'c0000301 c0000301 3f ok 39', 'c0002000 c000ffff gp gp',
        'c0010000 c0010003 0 ok 12145679', 'c0010004 c0010007 0 ok 12345679', @svm,
        (map { my ($s, $c) = (0xc0010200 + 2 * $_, 0xc0010201 + 2 * $_);
               sprintf('%x %x 0 ok 12145679', $s, $s), sprintf('%x %x 0 ok 12345679', $c, $c) }
         0 .. 5),
        'c001020c c001020f gp gp', @before_last, 'c0010300 c001031f 0 ok 5555000012345679',
        'c0011029 c0011029 0 ok 5555000012345679', $last
    ],
);

sub different_msrs
{
    my ($heard) = @_;
    my (%said, @runs);
    my $line = qr/^([<>]) MSRs (\w+) to (\w+): fault (\w+) value (\w+) write (\w+) then (\w+)$/m;
    while ($heard =~ /$line/g) {
        my $answer = $4 eq 'd' ? 'gp' : $5;
        $answer .= ($6 eq 'd' ? ' gp' : ' ok') . ($4 eq 'd' ? '' : " $7");
        $said{$1}{$_} = $answer for hex $2 .. hex $3;
    }
    for my $msr (sort { $a <=> $b } keys %{ $said{'>'} }) {
        my $answer = $said{'>'}{$msr};
        next if $answer eq ($said{'<'}{$msr} // '');
        push @runs, [$msr, $msr, $answer]
            unless @runs && $runs[-1][1] == $msr - 1 && $runs[-1][2] eq $answer;
        $runs[-1][1] = $msr;
    }
    return [map { sprintf '%x %x %s', @$_ } @runs];
}

for my $model (sort keys %registers) {
    my $heard = `PMU=$model tests/guests/transparent $build/transparent.elf msrs 2>&1 </dev/null`;
    is_deeply(different_msrs($heard), $registers{$model},
              "$model: MSRs answer as on plain QEMU, but for a PMU's") or diag $heard;
}

done_testing;
