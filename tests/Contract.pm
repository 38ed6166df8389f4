# SPDX-License-Identifier: MIT
# tests/contract.md: what each id demands, and which tests prove it.
package Contract;
use strict;
use warnings;

sub glob_regex
{
    my ($glob) = @_;
    my $regex = join '', map { $_ eq '*' ? '.*' : $_ eq '?' ? '.' : quotemeta } split //, $glob;
    return qr/^$regex$/;
}

# In the file's order: { id, not (no test proves it), text (tests, ids or why not), globs,
# sentence }; undef: no file.
sub entries
{
    my ($file) = @_;
    my @entries;
    local $_;
    open my $in, '<', $file or return undef;
    while (<$in>) {
        if (/^- ([A-Z]+-\S+): (not: )?(.*)/) {
            my @globs = $2 ? () : map { glob_regex($_) } split ' ', $3;
            push @entries, { id => $1, not => !!$2, text => $3, globs => \@globs, sentence => '' };
        } elsif (@entries && /^  (\S.*)/) {
            $entries[-1]{sentence} .= ($entries[-1]{sentence} && ' ') . $1;
        }
    }
    return \@entries;
}

sub names
{
    my ($entry, $name) = @_;
    return scalar grep { $name =~ $_ } @{ $entry->{globs} };
}

1;
