#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# A guest that asks the PMU nothing finds the same machine on the virtual PMU as on plain QEMU: each probe of
# tests/payload/transparent.asm, with nothing counting, with an event that the clock counts, with every instruction stepped.
use strict;
use warnings;
use Test::More;

delete @ENV{qw(MAKEFLAGS MFLAGS ACCEL PMU SMP TESTS ARGS MACHINE MEMORY GDB LIST QEMU_ARGS ICOUNT
    MIPS FIRMWARE PROGRAM DRIVER BENCH PAYLOAD PAYLOAD_ARGS)};
$ENV{TIMEOUT} = 120;
my $build = $ENV{BUILD} // 'build';

for my $model (qw(intel-v1 intel-v4 amd-k7 amd-v2 intel-v5,step)) {
    my $said = `PMU=$model tests/transparent $build/transparent.elf 2>&1 </dev/null`;
    is($? >> 8, 0, "$model: the same as plain QEMU") or diag $said;
    like($said, qr/\A# PASS transparent: 574 lines are the same/, "$model: of all probes");
}

my $said = `PMU=intel-v4 tests/transparent $build/payload.elf 2>&1 </dev/null`;
is($? >> 8, 1, 'an image that tells what the PMU does differs');
like($said, qr/^> .*\n(?:.*\n)*# FAIL transparent: \d+ lines of \d+ differ/m, '... and is shown');

done_testing;
