#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The virtual PMU executes guest code itself where each instruction must be decoded: random
# sequences of instructions end as they do on the processor alone, and count what they count
# stepped. tests/guests/blocks.c says how.
use strict;
use warnings;
use Test::More;
use lib 'tests/tools';
use Environment;

Environment::forget();
my $build = $ENV{BUILD} // 'build';
my %list; # of a machine: the hash of each sequence's list of branches
sub lists { my ($said) = @_; return { $said =~ /^list (\w+) (\w+)$/mg } }
for my $levels ('', 'la57') {
    my $all = $levels ? 100 : 300;
    my $words = "PMU=intel-v5 PAYLOAD=$build/blocks.elf PAYLOAD_ARGS=$levels TIMEOUT=300 TAP=1";
    my $said = `$words tests/tools/run 2>&1 </dev/null`;
    is($? >> 8, 0, "$levels: each sequence does the same") or diag $said;
    like($said, qr/^the same: @{[sprintf '%x', $all]}$/m, "$levels: all $all");
    $list{blocks} //= lists($said);
    my %ends = map { /^ended by vector (\w+): (\w+)/ ? (hex $1 => hex $2) : () } split /\n/, $said;
    cmp_ok($ends{0x81} // 0, '>=', $all / 4, "$levels: many get to their end");
    cmp_ok($ends{14} // 0, '>=', $all / 12, "$levels: ... and many fault on the way");
}

# Sequences are stepped here; those that a timer ended there are not compared.
my $words = "PMU=intel-v5,step PAYLOAD=$build/blocks.elf PAYLOAD_ARGS=lists TIMEOUT=300 TAP=1";
my $stepped = `$words tests/tools/run 2>&1 </dev/null`;
$list{steps} = lists($stepped);
my @both = grep { exists $list{blocks}{$_} } sort keys %{ $list{steps} };
cmp_ok(scalar @both, '>=', 200, 'many lists of branches, of blocks and of steps');
my @differ = grep { $list{steps}{$_} ne $list{blocks}{$_} } @both;
is("@differ", '', '... are the same, branch by branch');
my %seen = reverse %{ $list{blocks} };
cmp_ok(scalar keys %seen, '>=', 100, '... and no two sequences have the same');
done_testing;
