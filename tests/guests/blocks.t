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
# With hot=all each block is executed as those that run often are.
for ('', 'ARGS=hot=all', 'la57') {
    my $levels = /la57/ ? $_ : '';
    my $all = $levels ? 100 : 300;
    my $options = $levels ? '' : $_;
    my $words = "PMU=intel-v5 $options PAYLOAD=$build/blocks.elf PAYLOAD_ARGS=$levels TIMEOUT=60 "
        . 'TAP=1';
    my $said = `$words tests/tools/run 2>&1 </dev/null`;
    is($? >> 8, 0, "$_: each sequence does the same") or diag $said;
    like($said, qr/^the same: @{[sprintf '%x', $all]}$/m, "$_: all $all");
    $list{$_} = lists($said);
    my %ends = map { /^ended by vector (\w+): (\w+)/ ? (hex $1 => hex $2) : () } split /\n/, $said;
    cmp_ok($ends{0x81} // 0, '>=', $all / 4, "$_: many get to their end");
    cmp_ok($ends{14} // 0, '>=', $all / 12, "$_: ... and many fault on the way");
}

# Sequences are stepped here; those that a timer ended there are not compared.
my $words = "PMU=intel-v5,step PAYLOAD=$build/blocks.elf PAYLOAD_ARGS=lists TIMEOUT=60 TAP=1";
my $stepped = `$words tests/tools/run 2>&1 </dev/null`;
$list{steps} = lists($stepped);
my @both = grep { exists $list{''}{$_} } sort keys %{ $list{steps} };
cmp_ok(scalar @both, '>=', 200, 'many lists of branches, of blocks and of steps');
my @differ = grep { $list{steps}{$_} ne $list{''}{$_} } @both;
is("@differ", '', '... are the same, branch by branch');
is_deeply($list{'ARGS=hot=all'}, $list{''}, '... and those of hot blocks');
my %seen = reverse %{ $list{''} };
cmp_ok(scalar keys %seen, '>=', 100, '... and no two sequences have the same');
done_testing;
