# SPDX-License-Identifier: MIT
# tests/contract.md: what each id demands; by the sources, which tests prove it.
package Contract;
use strict;
use warnings FATAL => 'all';
use Text;

sub glob_regex
{
    my ($glob) = @_;
    my $regex = join '', map { $_ eq '*' ? '.*' : $_ eq '?' ? '.' : quotemeta } split //, $glob;
    return qr/^$regex$/;
}

# By id: the tests whose meaning names it in the sources; GROUP.gp* and GROUP.fixed* if they are of
# each counter. A macro that makes a test says in its body how it names it.
sub proofs
{
    my $files = do { local (@ARGV, $/) = (glob 'tests/*/*.[ch]'); @ARGV ? join '', <> : '' };
    my %made = (TEST => ['TEST', 0, 1], TEST_USER => ['TEST', 0, 1], TEST_EACH => ['TEST_EACH', 0]);
    while ($files =~ /^#define (\w+)\(([^)]*)\)((?:.*\\\n)*.*)/mg) {
        my ($macro, $parameters, $body) = ($1, $2, $3);
        my ($base, $group, $name) = $body =~ /\b(TEST|TEST_EACH)\((\w+), ([\w#]+),/ or next;
        my @of = split /, */, $parameters;
        my $place = sub { my ($word) = @_; (grep { $of[$_] eq $word } 0 .. $#of)[0] // $word };
        $made{$macro} //= [$base, map { $place->($_) } $group, $name];
    }
    my $string = qr/"(?:[^"\\]|\\.)*"/;
    my %tests;
    while ($files =~ /^([A-Z]\w*)\(([^";{}]*,)\s*($string(?:\s*$string)*)/mg) {
        my ($macro, $arguments, $meaning) = ($1, $2, $3);
        my @given = split /,\s*/, $arguments =~ s/^\s+//r;
        my ($base, @words) = @{ $made{$macro} // next };
        my ($group, $name) = map { /^\d+$/ ? $given[$_] : $_ } @words;
        my @names = $base eq 'TEST' ? "$group.$name" : ("$group.gp*", "$group.fixed*");
        push @{ $tests{$_} }, @names for ids($meaning =~ s/"\s*"//gr);
    }
    return \%tests;
}

# That a test's meaning names, in brackets.
sub ids
{
    my $all = join ' ', $_[0] =~ /\[([^\]]*)\]/g;
    return $all =~ /\b(?:VP|TP|HC|KP|PO|ET|LB|PE)-\d+|\b[CS]-\d\w?(?:\.\d+)?/g;
}

# In the file's order: { id, sentence, not (why no test proves it), as (ids that cover it), tests,
# globs (of the tests) }; undef: no file.
sub entries
{
    my ($file) = @_;
    my ($tests, @entries) = proofs();
    local $_;
    open my $in, '<', $file or return undef;
    while (defined(local $_ = <$in>)) {
        if (/^- ([A-Z]+-\S+): (.*)/) {
            my @tests = sort @{ $tests->{$1} // [] };
            push @entries, { id => $1, sentence => $2, tests => \@tests,
                             globs => [map { glob_regex($_) } @tests] };
        } elsif (@entries && /^  (not|as):? (.*)/) {
            $entries[-1]{$1} = $2;
        } elsif (@entries && /^\s+\S/) {
            $entries[-1]{sentence} = '';
        }
    }
    return \@entries;
}

sub names
{
    my ($entry, $name) = @_;
    return scalar grep { $name =~ $_ } @{ $entry->{globs} };
}

our %last_of = (VP => 90, TP => 100, HC => 48, KP => 32, PO => 74, ET => 68, LB => 24, PE => 16);

# Against the tests of the image, as the command $list names them; $$count: of ids.
sub faults
{
    my ($list, $count) = @_;
    my (%named, %entry, @wrong);
    for (`$list 2>&1`) {
        my ($test, $meaning) = /^(\w+\.\w+) - (.*)/ or next;
        $named{$_}{$test} = 1 for ids($meaning);
    }
    return 'the tests cannot be listed' if !%named;
    for my $e (@{ entries('tests/contract.md') // return "tests/contract.md: $!" }) {
        push @wrong, "$e->{id} stands there twice" if $entry{ $e->{id} };
        push @wrong, "$e->{id}: no sentence says what it demands"
            if $e->{sentence} !~ /^\S.*\w.*\.\)?$/;
        $entry{ $e->{id} } = $e;
    }
    for my $id (sort keys %entry) {
        my ($e, @tests) = ($entry{$id}, sort keys %{ $named{$id} // {} });
        push @wrong, map { "$id: the source of $_ does not name it" }
            grep { !names($e, $_) } @tests;
        if ($e->{not}) {
            push @wrong, map { "$id: not tested, says the map; $_ names it" } @tests;
        } elsif ($e->{as}) {
            $entry{$_} or push @wrong, "$id is covered by $_, which is missing"
                for split ' ', $e->{as};
        } else {
            push @wrong, "$id: no test names it" if !@tests;
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
