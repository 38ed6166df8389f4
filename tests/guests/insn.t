#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# kernel/base/insn.c takes 10 million starts of instructions apart as Zydis does
# (tests/guests/fuzz/insn.c):
#   SEED=1 COUNT=10000000 BUILD=build prove tests/guests/insn.t
use strict;
use warnings;
use Test::More;
use lib 'tests/tools';
use Environment;

my ($seed, $count, $build) = map { $ENV{ $_->[0] } || $_->[1] }
    ['SEED', 1], ['COUNT', 10_000_000], ['BUILD', 'build'];
mkdir $build;
is(system("cc -std=gnu11 -O2 -Wall -Wextra $Environment::WERROR -DKASAN_ON=0 -DKCSAN_ON=0"
          . " -Itests/guests/fuzz/host -I. -o $build/fuzz-insn"
          . " tests/guests/fuzz/insn.c tests/guests/fuzz/fuzz.c"
          . ' kernel/base/insn.c kernel/base/format.c -lZydis'), 0, 'the program can be built')
    or BAIL_OUT('make deps WITH=test installs libzydis-dev');
my $said = `$build/fuzz-insn $seed $count`;
my ($instructions, $mnemonics) = $said =~
    /^$count starts, (\d+) instructions, (\d+) mnemonics, 0 differences$/m;
is($?, 0, "$count starts by seed $seed, as Zydis has them") or diag $said;
cmp_ok($instructions // 0, '>', $count / 2, 'more than half are instructions');
cmp_ok($mnemonics // 0, '>', $count < 10_000_000 ? 0 : 1000, 'of more than a thousand names');
done_testing;
