# SPDX-License-Identifier: MIT
# For tests of reports: whether a page is sound, and whether data keep to
# tests/tools/report-schema.json.
package Sound;
use strict;
use warnings;
use Exporter 'import';
use File::Temp ();
use JSON::PP;
our @EXPORT = qw(page_faults json_faults browser_faults);

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
        push @open, $tag if !$close;
        push @wrong, "</$tag>" if $close && (pop @open // '') ne $tag;
    }
    my $left = substr $page, pos $page // 0;
    push @wrong, 'from here on: ' . substr $left, 0, 80 if $left ne "\n";
    push @wrong, "open: @open" if @open;
    return @wrong > 5 ? @wrong[0 .. 4] : @wrong;
}

# --- The schema: as much of JSON Schema as ours uses.

open my $in, '<', 'tests/tools/report-schema.json' or die "tests/tools/report-schema.json: $!";
my $schema = decode_json(join '', <$in>);
close $in;

sub type_of
{
    my ($value) = @_;
    return 'boolean' if JSON::PP::is_bool($value);
    return ref $value eq 'HASH' ? 'object' : 'array' if ref $value;
    return JSON::PP->new->allow_nonref->encode($value) =~ /^-?\d+\z/ ? 'integer' : 'string';
}

sub object_faults
{
    my ($value, $rule, $at) = @_;
    my ($known, $other) = ($rule->{properties} // {}, $rule->{additionalProperties});
    my @wrong = map { "$at has no $_" } grep { !exists $value->{$_} } @{ $rule->{required} // [] };
    for (sort keys %$value) {
        my $next = $known->{$_} // (ref $other eq 'HASH' ? $other : undef);
        push @wrong, $next ? faults($value->{$_}, $next, "$at.$_") : "$at.$_ is unknown";
    }
    return @wrong;
}

sub faults
{
    my ($value, $rule, $at) = @_;
    $rule = $schema->{'$defs'}{$1} if ($rule->{'$ref'} // '') =~ m{^#/\$defs/(\w+)$};
    my @wrong;
    my $type = type_of($value);
    $type = 'number' if ($rule->{type} // '') eq 'number'
        && ($type eq 'integer' || $value =~ /^\d[\d.e-]*\z/);
    push @wrong, "$at is no $rule->{type}" if $rule->{type} && $type ne $rule->{type};
    return @wrong if @wrong;
    push @wrong, "$at is $value" if $rule->{enum} && !grep { $_ eq $value } @{ $rule->{enum} };
    push @wrong, "$at is $value" if exists $rule->{const} && $rule->{const} ne $value;
    push @wrong, "$at is too small" if exists $rule->{minimum} && $value < $rule->{minimum};
    push @wrong, "$at is too large" if exists $rule->{maximum} && $value > $rule->{maximum};
    push @wrong, object_faults($value, $rule, $at) if ref $value eq 'HASH';
    push @wrong, map { faults($value->[$_], $rule->{items}, "$at\[$_]") } 0 .. $#$value
        if ref $value eq 'ARRAY';
    return @wrong > 5 ? @wrong[0 .. 4] : @wrong;
}

sub json_faults { return faults($_[0], $schema, 'report') }

# --- In Chromium, headless. What it says of scripts, addresses and policies is a fault, and so is a
# document that its parser had to make another one of.

sub plain_page
{
    my ($page) = @_;
    $page =~ s/<\/?tbody>//g;
    $page =~ s/ open=""/ open/g;
    $page =~ s/&(?:#160|nbsp);/ /g;
    $page =~ s/&quot;/"/g;
    $page =~ s/&#39;/'/g;
    return $page =~ s/\s+//gr;
}

sub browser_faults
{
    my ($file) = @_;
    my $folder = File::Temp::tempdir(CLEANUP => 1);
    system('command -v chromium >/dev/null') == 0
        or return "CHROMIUM IS MISSING: nobody has seen $file; 'make deps WITH=test' installs it";
    my $words = '--headless --no-sandbox --disable-gpu --disable-dev-shm-usage '
        . "--enable-logging=stderr --dump-dom --user-data-dir=$folder/profile";
    my $shown = `timeout 900 chromium $words 'file://$file' 2>$folder/said </dev/null`;
    my $status = $? >> 8;
    my ($page, $said) = map { local $/; open my $in, '<', $_ or die "$_: $!"; <$in> // '' }
        $file, "$folder/said";
    my @wrong = $status ? "chromium ends with $status" : ();
    push @wrong, $said =~ /CONSOLE.*?\] (.*)/g;
    my ($ours, $theirs) = map { plain_page($_) } $page, $shown;
    return @wrong if $ours eq $theirs;
    my $at = (($ours ^ $theirs) =~ /[^\0]/) ? $-[0] : 0;
    return (@wrong, map { 'other document: ' . substr $_, $at < 20 ? 0 : $at - 20, 80 }
            $ours, $theirs);
}
1;
