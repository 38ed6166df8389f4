#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# A guest that asks the PMU nothing finds the same machine on the virtual PMU as on plain QEMU: each
# probe of tests/payload/transparent.asm, with nothing counting, with an event that the clock
# counts, with every instruction stepped.
use strict;
use warnings;
use Test::More;
use lib 'tests';
use Environment;

Environment::forget();
$ENV{TIMEOUT} = 600; # a host may be busy
my $build = $ENV{BUILD} // 'build';

for my $model (qw(intel-v1 intel-v4 amd-k7 amd-v2), 'intel-v5,step') {
    my $said = `PMU=$model tests/transparent $build/transparent.elf 2>&1 </dev/null`;
    is($? >> 8, 0, "$model: the same as plain QEMU") or diag $said;
    like($said, qr/\A# PASS transparent: 598 lines are the same/, "$model: of all probes");
}

# By page tables of five levels.
my $five = `PMU=intel-v4 tests/transparent $build/transparent.elf la57 2>&1 </dev/null`;
like($five, qr/\A# PASS transparent: 598 lines are the same/,
     'the same by page tables of five levels') or diag $five;

# Where the model's vendor decides, and not QEMU: vector (81: none; 100h and up: where SYSCALL and
# SYSENTER lead), CS there. And how many instructions ring 3 executes, as a counter finds: of what
# comes behind SYSCALL and SYSENTER none.
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
    'SYSENTER, SYSENTER_CS 0'              => ['d 8',    '6 8',          0, 0],
    'SYSENTER_CS back'                     => ['81 8',   '81 8',         0, 0],
    'MONITOR, which CPUID does not offer'  => ['6 8',    '6 8',          0, 0],
    'MWAIT, which CPUID does not offer'    => ['6 8',    '6 8',          0, 0],
);
for my $model (qw(intel-v1 intel-v4 amd-k7 amd-v2)) {
    my $payload = "PAYLOAD=$build/transparent.elf PAYLOAD_ARGS=silicon";
    my $heard = `PMU=$model $payload tests/run 2>&1 </dev/null`;
    my %found;
    push @{ $found{"$1: $2"} }, "$3 $4"
        while $heard =~ /^(idle|counting|stepping): (.+): vector (\w+) .* cs (\w+)/mg;
    push @{ $found{"counted: $1"} }, hex $2 while $heard =~ /^counted: (.+): (\w+) in ring 3/mg;
    my %wanted;
    for my $probe (keys %answers) {
        my $amd = $model =~ /^amd/ ? 1 : 0;
        $wanted{"$_: $probe"} = $answers{$probe}[$amd] for qw(idle counting stepping);
        $wanted{"counted: $probe"} = $answers{$probe}[2 + $amd];
    }
    is_deeply({ map { ($_ => "@{$found{$_}}") } keys %found }, \%wanted,
              "$model: what its vendor's processors do") or diag $heard;
}

my $said = `PMU=intel-v4 tests/transparent $build/payload.elf 2>&1 </dev/null`;
is($? >> 8, 1, 'an image that tells what the PMU does differs');
like($said, qr/^> .*\n(?:.*\n)*# FAIL transparent: \d+ lines of \d+ differ/m, '... and is shown');

done_testing;
