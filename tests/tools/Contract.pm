# SPDX-License-Identifier: MIT
# tests/contract.md: what each id demands, and which tests prove it.
package Contract;
use strict;
use warnings;
use Text;

sub glob_regex
{
    my ($glob) = @_;
    my $regex = join '', map { $_ eq '*' ? '.*' : $_ eq '?' ? '.' : quotemeta } split //, $glob;
    return qr/^$regex$/;
}

# In the file's order: { id, not (no test proves it), text (tests, ids or why not), globs,
# sentence }; undef: no file. A row may have several ids, each with a sentence; one sentence too
# many and the last id has none.
sub entries
{
    my ($file) = @_;
    my (@entries, @waiting);
    local $_;
    open my $in, '<', $file or return undef;
    while (<$in>) {
        if (/^- ((?:[A-Z]+-\S+ )*[A-Z]+-\S+): (not: )?(.*)/) {
            my ($ids, $not, $text) = ($1, !!$2, $3);
            my @globs = $not ? () : map { glob_regex($_) } split ' ', $text;
            @waiting = map { { id => $_, not => $not, text => $text, globs => \@globs,
                               sentence => '' } } split ' ', $ids;
            push @entries, @waiting;
        } elsif (@entries && /^  (\S.*)/) {
            my $of = shift @waiting;
            ($of // $entries[-1])->{sentence} = $of ? $1 : '';
        }
    }
    return \@entries;
}

sub names
{
    my ($entry, $name) = @_;
    return scalar grep { $name =~ $_ } @{ $entry->{globs} };
}

our %last_of = (VP => 90, TP => 100, HC => 48, KP => 32, PO => 74, ET => 68, LB => 24);

# Against the tests of the image, as the command $list names them; $$count: of ids.
sub faults
{
    my ($list, $count) = @_;
    my (%named, %entry, @wrong);
    for (`$list 2>&1`) {
        my ($test, $meaning) = /^(\w+\.\w+) - (.*)/ or next;
        my $ids = join ' ', $meaning =~ /\[([^\]]*)\]/g;
        $named{$_}{$test} = 1
            for $ids =~ /\b(?:VP|TP|HC|KP|PO|ET|LB)-\d+|\b[CS]-\d\w?(?:\.\d+)?/g;
    }
    return 'the tests cannot be listed' if !%named;
    for my $e (@{ entries('tests/contract.md') // return "tests/contract.md: $!" }) {
        push @wrong, "$e->{id} stands there twice" if $entry{ $e->{id} };
        push @wrong, "$e->{id}: no sentence says what it demands"
            if $e->{sentence} !~ /^\S.*\w.*\.\)?$/;
        $entry{ $e->{id} } = $e;
    }
    for my $id (sort keys %entry) {
        my ($e, $tests) = ($entry{$id}, $named{$id} // {});
        if ($e->{not}) {
            push @wrong, "$id: not tested, says the map; $_ names it" for sort keys %$tests;
        } elsif ($e->{text} =~ /^as (.*)/) {
            $entry{$_} or push @wrong, "$id is covered by $_, which is missing" for split ' ', $1;
        } else {
            for my $glob (split ' ', $e->{text}) {
                my $regex = glob_regex($glob);
                push @wrong, "$id: no test $glob names it" if !grep { $_ =~ $regex } keys %$tests;
            }
        }
    }
    for my $family (sort keys %last_of) {
        $entry{$_} or push @wrong, "$_ has no line"
            for map { sprintf "$family-%02d", $_ } 1 .. $last_of{$family};
    }
    $entry{$_} or push @wrong, "$_ is named by a test and has no line" for sort keys %named;
    $$count = %entry;
    return @wrong;
}

# Patterns of TESTS= in these files, or in a word for it, that match no test: of $list, or of those
# in the sources that are in other images. Row "no such test" is about nonsense.
sub lost_patterns
{
    my ($list, @files) = @_;
    my @tests = map { /^(\w+\.\w+) - / ? $1 : () } `$list 2>&1`;
    push @tests, map { /TEST\w*\((kasan|kcsan|selfcheck\w*), (\w+)/ ? "$1.$2" : () }
        map { Text::lines($_) } glob 'tests/*/*.c';
    my @lists = map { /TESTS='?([^' ]+)/ || /^[A-Z_]+ :?= (\S*[*,]\S*)$/ ? $1 : () }
        map { chomp; $_ } map { Text::lines($_) } @files;
    my %patterns = map { s/^-//r => 1 } grep { !/^(?:\$.*|-?slow|nonsense)$/ }
        map { split /,/ } @lists;
    return !%patterns ? 'no pattern'
        : grep { my $regex = glob_regex($_); !grep { /$regex/ } @tests } sort keys %patterns;
}

1;
