#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The event tables of pmu/events and the sources of hal/ against libpfm4: names, codes, unit masks,
# thresholds, counters. Each difference stands in tests/pmu/libpfm/differences with its reason; one
# that does not, and a line there that is no longer true, are failures. What libpfm4 does not know
# is said by name.
#
# tests/pmu/libpfm/pmus     which of our tables libpfm4's PMUs are
# tests/pmu/libpfm/sources  what each of AMD's sources means, by libpfm4's names
use strict;
use warnings;
use Test::More;
use lib 'tests/tools';
use Environment;
use File::Path 'make_path';

my $build = ($ENV{BUILD} // 'build') . '/libpfm';
my ($usr_os_int_enable, $any_general, $fixed_only) = (0x530000, 0xff, 0xffffffff << 32);

sub lines
{
    my ($file) = @_;
    open my $in, '<', "tests/pmu/libpfm/$file" or die "tests/pmu/libpfm/$file: $!";
    return grep { /\S/ && !/^#/ } map { chomp; $_ } <$in>;
}

sub program
{
    my ($name, $build_it) = @_;
    make_path($build);
    my $flags = "-std=gnu11 -O1 -Wall -Wextra $Environment::WERROR -I.";
    system("cc $flags -o $build/$name tests/pmu/libpfm/$name.c $build_it") == 0 or return;
    my @printed = map { chomp; [split /\t/, $_, -1] } `$build/$name`;
    return $? ? () : @printed;
}

my @ours = program('ours', 'pmu/event.c pmu/events/*.c hal/source_tables.c hal/source_amd.c');
my @theirs = program('theirs', '-l:libpfm.a');
ok(@ours && @theirs, 'our tables and those of libpfm4 can be printed')
    or done_testing, diag('make deps WITH=test installs libpfm4-dev'), exit 1;

# --- what both know

my (%event, %source, %table_of, %default, %theirs, %models);
for (@ours) {
    my ($kind, @f) = @$_;
    $table_of{join ' ', @f[0 .. 2]} = $f[3] if $kind eq 'processor';
    $default{$f[0]} = hex $f[1] if $kind eq 'table';
    $event{$f[0]}{$f[1]} = encoding(@f[2 .. 6]) if $kind eq 'event';
    $source{$f[0]}{hex $f[1]} = { encoding(@f[3 .. 7])->%*, source => $f[2] } if $kind eq 'source';
}
for (@theirs) {
    my ($kind, $pmu, @f) = @$_;
    if ($kind eq 'pmu') {
        $theirs{$pmu} = { general => 0 };
        $models{$pmu} = [split /,/, $f[2]];
    } elsif ($f[1] ne '-') {
        no warnings 'portable';
        my $select = hex($f[1]) & ~$usr_os_int_enable;
        $theirs{$pmu}{event}{$f[0]} = {
            code => $select & 0xff | $select >> 24 & 0xf00,
            umask => $select >> 8 & 0xff,
            flags => $select & 0xffff0000,
            counters => $f[2] eq '-' ? undef : hex $f[2],
        };
        $theirs{$pmu}{general} |= hex($f[2]) & $any_general if $f[2] ne '-';
    }
}

sub encoding
{
    my ($code, $umask, $flags, $counters, $name) = @_;
    no warnings 'portable';
    return {
        code => hex $code, umask => hex $umask, flags => hex $flags, counters => hex $counters,
        name => $name,
    };
}

sub shown
{
    my ($e) = @_;
    return sprintf('%02X/%02X', $e->{code}, $e->{umask})
           . ($e->{flags} >> 24 ? ' threshold ' . ($e->{flags} >> 24) : '')
           . ($e->{flags} & 1 << 23 ? ' inverted' : '') . ($e->{flags} & 1 << 18 ? ' edge' : '');
}

# EVENT, EVENT:MASK, EVENT:MASK|MASK; a MASK may have a *; Intel's own spelling has a dot.
# Undefined: the PMU has none such.
sub resolve
{
    my ($pmu, $name) = @_;
    my $known = $theirs{$pmu}{event};
    my ($event, $masks) = split /[.:]/, $name, 2;
    return $known->{$event} unless defined $masks;
    my @found;
    for my $mask (split /\|/, $masks) {
        (my $glob = quotemeta $mask =~ s/\./_/gr) =~ s/\\\*/.*/g;
        my @matching = grep { /^\Q$event\E:$glob$/ } keys %$known or return;
        push @found, map { $known->{$_} } @matching;
    }
    my %sum = $found[0]->%*;
    for (@found) {
        return if $_->{flags} != $sum{flags};
        $sum{umask} |= $_->{umask};
        $sum{counters} &= $_->{counters} if defined $sum{counters};
    }
    return \%sum;
}

# What libpfm4 calls a code and unit mask: one of its unit masks, or several together.
sub names_of
{
    my ($pmu, $e) = @_;
    my $known = $theirs{$pmu}{event};
    my @of_code = grep { $known->{$_}{code} == $e->{code} && !$known->{$_}{flags} }
                  sort keys %$known;
    my @exact = grep { $known->{$_}{umask} == $e->{umask} } @of_code;
    return @exact if @exact;
    my (%bits, %parts);
    for (grep { $known->{$_}{umask} && !($known->{$_}{umask} & ~$e->{umask}) } @of_code) {
        my ($event, $mask) = split /:/;
        next if !defined $mask || !($known->{$_}{umask} & ~($bits{$event} // 0));
        $bits{$event} |= $known->{$_}{umask};
        push @{ $parts{$event} }, $mask;
    }
    my @complete = grep { $bits{$_} == $e->{umask} } sort keys %bits;
    return map { "$_:" . join '|', @{ $parts{$_} } } @complete;
}

# --- differences

my (%listed, $reason);
for (lines('differences')) {
    next if /^-- (\S.*)/ && ($reason = $1);
    my ($pmus, $what) = /^(\S+) (\S+ .*)$/ or die "differences: not understood: $_";
    die "differences: no reason above: $_" if !$reason;
    for my $glob (map { s/\*/.*/gr } split /,/, $pmus) {
        my @matching = grep { /^$glob$/ } sort keys %theirs;
        @matching || grep { /^\+$glob\s/ } lines('pmus') or die "differences: no PMU is $glob";
        $listed{"$_ $what"} = $reason for @matching;
    }
}
my %seen;

# One test: all that differs of one kind must be listed.
sub compared
{
    my ($title, $count, @differences) = @_;
    my @new = grep { !$listed{$_} } @differences;
    $seen{$_} = 1 for @differences;
    my $listed = @differences - @new;
    my @wrong = $count ? map { "not in differences: $_" } @new : 'nothing to compare';
    ok($count && !@new, "$title: $count compared, $listed listed differences")
        or diag(map { "  $_\n" } @wrong);
}

# The part of a row that every select has: a threshold of our own may stand on their event.
sub same
{
    my ($ours, $theirs, $own_threshold) = @_;
    return $ours->{code} == $theirs->{code} && $ours->{umask} == $theirs->{umask}
        && ($ours->{flags} == $theirs->{flags} || ($own_threshold && !$theirs->{flags}));
}

sub event_difference
{
    my ($pmu, $what, $e) = @_;
    my $found = resolve($pmu, $e->{name});
    return if $found && same($e, $found, $what =~ /^(ISSUE_.|NONISSUES)$/);
    return "$pmu $what " . shown($e) . ', theirs ' . shown($found) if $found;
    my @names = names_of($pmu, $e);
    my $how = @names ? "theirs is @names" : 'not theirs';
    return "$pmu $what " . shown($e) . " $how";
}

# A table may count on fewer counters than the processor has: what hyper-threading leaves.
sub counters_difference
{
    my ($pmu, $what, $e, $default) = @_;
    my $found = resolve($pmu, $e->{name});
    return unless $found && defined $found->{counters};
    my $limit = $e->{counters} & $any_general & ~$default ? $any_general : $default;
    my $compared = $theirs{$pmu}{general} & $limit | $fixed_only;
    my ($ours, $theirs) = map { $_->{counters} & $compared } $e, $found;
    return if $ours == $theirs;
    return sprintf '%s %s counters %X, theirs %X', $pmu, $what, $ours, $theirs;
}

# --- event tables

my (%pmus_of, %used);
for (lines('pmus')) {
    my ($newer, $pmu, $representative, $table) = /^(\+?)(\S+)\s+(\S+)\s+(.+)$/
        or die "tests/pmu/libpfm/pmus: not understood: $_";
    next if $newer && !$theirs{$pmu};
    push @{ $pmus_of{$table} }, $pmu if $table !~ /^-/;
    $used{$pmu} = { table => $table, processor => $representative };
}

is_deeply([sort keys %used], [sort keys %theirs],
          'each PMU of libpfm4 is in tests/pmu/libpfm/pmus, and no other');

sub table_named
{
    my ($pmu) = @_;
    my ($family, $model) = split m{/}, $used{$pmu}{processor};
    return $table_of{"$family $model 0"} // 'none';
}

for my $pmu (sort keys %used) {
    my $table = $used{$pmu}{table};
    if ($table =~ /^-\s*(.*)/) {
        pass("$pmu: $1");
        next;
    }
    is(table_named($pmu), $table, "$pmu: processor $used{$pmu}{processor} has table $table")
        or next;
    my @wrong = grep { ($table_of{"6 $_ 0"} // '') ne $table } @{ $models{$pmu} };
    compared("$pmu: models", scalar @{ $models{$pmu} },
             map { "$pmu model $_ has table " . $table_of{"6 $_ 0"} } @wrong) if $pmu !~ /^amd/;
    my $rows = $event{$table};
    compared("$pmu: events of $table", scalar keys %$rows,
             map { event_difference($pmu, $_, $rows->{$_}) } sort keys %$rows);
    next if $pmu =~ /^amd/; # libpfm4 has neither models nor constraints of AMD's
    compared("$pmu: counters of $table", scalar keys %$rows,
             map { counters_difference($pmu, $_, $rows->{$_}, $default{$table}) } sort keys %$rows);
}

# What of ours nobody else has looked at, by name.
my %known_model = map { $_ => 1 } map { @$_ } values %models;
for my $table (sort keys %event) {
    my @models = map { /^6 (\S+) 0$/ && $table_of{$_} eq $table ? $1 : () } sort keys %table_of;
    my @unknown = map { "model $_" } grep { !$known_model{$_} } @models;
    pass("$table: libpfm4 does not know it") if !$pmus_of{$table};
    pass("$table: libpfm4 does not know " . join ', ', @unknown) if $pmus_of{$table} && @unknown;
}

# --- AMD's sources

my (%meaning, %source_name);
for (lines('sources')) {
    my ($id, $name, @names) = split;
    $source_name{hex $id} = $name if $name ne '"';
    push @{ $meaning{hex $id} }, @names;
}
my @amd_tables = grep { $pmus_of{$_} && $pmus_of{$_}[0] =~ /^amd/ } sort keys %source;
my %amd_ids = map { $source{$_}->%* } @amd_tables;
is_deeply([sort keys %meaning], [sort keys %amd_ids],
          'each source of AMD is in tests/pmu/libpfm/sources, and no other');

sub source_difference
{
    my ($pmu, $id, $e) = @_;
    my $what = sprintf '%02X', $id;
    return "$pmu $what $e->{source}, Windows' name is $source_name{$id}"
        if $e && $e->{source} ne $source_name{$id};
    my ($found) = grep { $_ } map { resolve($pmu, $_) } @{ $meaning{$id} };
    my $own_threshold = $source_name{$id} =~ /^(TotalNonissues|[234]Issue)$/;
    return if $e && $found && same($e, $found, $own_threshold);
    return "$pmu $what " . shown($e) . ($found ? ', theirs ' . shown($found) : ' not theirs') if $e;
    return $found ? "$pmu $what unsupported, theirs " . shown($found) : ();
}

for my $table (@amd_tables) {
    for my $pmu (@{ $pmus_of{$table} }) {
        my $sources = $source{$table};
        my @ids = sort { $a <=> $b } keys %meaning;
        compared("$pmu: sources of $table", scalar @ids,
                 map { source_difference($pmu, $_, $sources->{$_}) } @ids);
    }
}

my @stale = grep { !$seen{$_} } sort keys %listed;
ok(!@stale, 'each line of tests/pmu/libpfm/differences is true')
    or diag(map { "  no longer so: $_\n" } @stale);
done_testing;
