# SPDX-License-Identifier: MIT
# tests/mutants/*: a pattern of the text that a mutant changes, however white space stands in it.
package Mutants;
use strict;
use warnings;

sub pattern
{
    my ($text) = @_;
    my $pattern = join '\s*', map { quotemeta } $text =~ /\w+|\S/g;
    return qr/$pattern/;
}

1;
