# SPDX-License-Identifier: MIT
# For tests of reports: whether a page is sound, and whether data keep to tests/tools/report-fields.
package Sound;
use strict;
use warnings;
use Exporter 'import';
use JSON::PP;
use Text;
our @EXPORT = qw(page_faults json_faults);

# --- The page: every tag and attribute is one of ours, all are closed, text has no other.

my %attributes = (
    html => 'lang', meta => 'charset http-equiv content', td => 'class', p => 'class',
    details => 'open', svg => 'width height role', rect => 'x y width height class',
    text => 'x y text-anchor',
    map { $_ => '' } qw(head title style body h1 h2 h3 table tr th pre b br small summary div),
);

sub page_faults
{
    my ($page) = @_;
    my (@open, @wrong);
    $page =~ s/^<!DOCTYPE html>\n// or push @wrong, 'no doctype';
    push @wrong, 'not ASCII' if $page =~ /[^\n\x20-\x7e]/;
    push @wrong, 'a script or an address'
        if $page =~ m{<script|<[^>]*(?:https?:|src=|href=)|url\(|\x40import}i;
    while ($page =~ m{\G([^<]*)<(/?)([a-z0-9]+)((?: [a-z-]+(?:="[^"<>]*")?)*)>}gc) {
        my ($text, $close, $tag, $rest) = ($1, $2, $3, $4);
        push @wrong, "text: $text" if $text =~ />|&(?!amp;|lt;|gt;|quot;|#39;|#160;)/;
        my $known = $attributes{$tag};
        push @wrong, "<$tag>" if !defined $known;
        push @wrong, map { "<$tag $_>" } grep { (" $known ") !~ / $_ / } $rest =~ / ([a-z-]+)/g
            if defined $known && $tag ne 'meta';
        next if $tag =~ /^(?:meta|br)$/;
        push @wrong, "<$tag> in <p>" # which ends there, says HTML
            if !$close && $tag =~ /^(?:p|pre|div|table|details|h\d)$/ && grep { $_ eq 'p' } @open;
        push @open, $tag if !$close;
        push @wrong, "</$tag>" if $close && (pop @open // '') ne $tag;
    }
    my $left = substr $page, pos $page // 0;
    push @wrong, 'from here on: ' . substr $left, 0, 80 if $left ne "\n";
    push @wrong, "open: @open" if @open;
    return @wrong > 5 ? @wrong[0 .. 4] : @wrong;
}

# --- The data: each field is one of the table's, of its type, and none is missing.

my %fields; # of a structure: type by name
for (Text::lines('tests/tools/report-fields')) {
    my ($structure, $field, $type) = /^(\w+) +(\w+) +(\S+)/ or next;
    $fields{$structure}{$field} = $type;
}
my %is = (text => qr/^"/, count => qr/^\d+\z/, integer => qr/^-?\d+\z/, number => qr/^[\d.e-]+\z/,
          bool => qr/^(?:true|false)\z/);

sub faults
{
    my ($value, $type, $at) = @_;
    if ($type =~ s/\[\]$//) {
        return "$at is no list" if ref $value ne 'ARRAY';
        return map { faults($value->[$_], $type, "$at\[$_]") } 0 .. $#$value;
    }
    return structure_faults($value, $fields{$type}, $at) if $fields{$type};
    return map { faults($value->{$_}, $type, "$at.$_") } sort keys %$value if $type =~ s/\{\}$//;
    my $text = JSON::PP->new->allow_nonref->encode($value);
    my $pattern = $type =~ /^'(.*)'$/ ? qr/^"(?:$1)"\z/ : $is{$type};
    return $text =~ $pattern ? () : "$at is $text, no $type";
}

sub structure_faults
{
    my ($value, $fields, $at) = @_;
    return "$at is no object" if ref $value ne 'HASH';
    my @wrong = map { "$at.$_ is unknown" } grep { !$fields->{$_} } sort keys %$value;
    for (sort keys %$fields) {
        my $type = $fields->{$_};
        my $optional = $type =~ s/\?$//;
        push @wrong, exists $value->{$_} ? faults($value->{$_}, $type, "$at.$_")
            : $optional ? () : "$at has no $_";
    }
    return @wrong > 5 ? @wrong[0 .. 4] : @wrong;
}

sub json_faults { return faults($_[0], 'report', 'report') }

1;
