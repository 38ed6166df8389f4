# SPDX-License-Identifier: MIT
# Which tests reach a line, as a build with COVER=1 says on a machine (tests/harness/cover.c).
package Cover;
use strict;
use warnings;
use Text;
no warnings 'portable';

use constant MANY => 30; # of cover.c

# { file => { line where a block begins => { test => 1 } } }: what no test reaches is there, too.
sub lines
{
    my ($elf, @logs) = @_;
    my ($start) = `nm $elf` =~ /^(\w+) T text_start$/m or die "$elf: no text_start\n";
    my (%of, %lines, @tests);
    $of{ hex($_) + 5 - hex $start } = {}
        for `objdump -d --no-show-raw-insn $elf` =~ /^(\w+):\s+call .*<__sanitizer_cov_/mg;
    for (map { split /\n/ } @logs) {
        my ($test, $places) = /^# reached by (\S+):(.*)/ or next;
        $of{ hex $_ }{$test} = 1 for split ' ', $places;
    }
    Text::save("$elf.places", join '', map { sprintf "%x\n", hex($start) + $_ - 1 } keys %of);
    for (split /^/, `addr2line -ia -e $elf <$elf.places`) {
        @tests = keys %{ $of{ hex($1) + 1 - hex $start } }, next if /^0x(\w+)$/;
        next if !m{^(?:\./)?(\w\S*\.c):(\d+)};
        my $line = $lines{$1}{$2} //= {};
        $line->{$_} = 1 for @tests;
    }
    return \%lines;
}

# Those that reach the block of a line: where it begins, at the line or before, and what begins in
# the line. Undefined: so many do, or the kernel does when it starts, that any test may tell.
sub tests
{
    my ($lines, $line, $code) = @_;
    my ($before) = sort { $b <=> $a } grep { $_ < $line } keys %$lines;
    my $several = !$lines->{$line} || $code =~ /&&|\|\||\?|^(?:for|while|\} while)/;
    my %tests = map { %{ $lines->{$_ // 0} // {} } } $several ? $before : (), $line;
    return $tests{'boot.boot'} || keys %tests >= MANY ? undef : sort keys %tests;
}

1;
