#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# What is hostile, by chance, on the host: the guest of the virtual PMU (tests/guests/fuzz-guest).
# make fuzz-guest has as many cases as one wants, by any seed.
use strict;
use warnings;
use Test::More;

delete @ENV{qw(MAKEFLAGS MFLAGS)};
my $build = $ENV{BUILD} // 'build';
my $said = `SEED=1 COUNT=200000 BUILD=$build tests/guests/fuzz-guest 2>&1 </dev/null`;
is($? >> 8, 0, "the virtual PMU's page tables, code, registers and quirks: refused, done rightly")
    or diag $said;
like($said, qr/^200000 cases, [1-9]\d* ended the guest$/m, 'all cases ran');
like($said, qr/^20000 boots: [1-9]\d* CPUs, [1-9]\d* names, [1-9]\d* ranges$/m,
     'what loader and firmware leave: nothing outside is read, and what is right is found');
done_testing;
