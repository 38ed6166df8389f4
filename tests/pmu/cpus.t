#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Each processor of tests/pmu/cpus/cpus.tsv through the probes and tables of pmu/, compared with
# what Linux concludes, by rules written here after intel_pmu_init, amd_core_pmu_init and lbr.c;
# they are not compared with a version of its source. The registers that a processor has, and 345h,
# which no dump shows, are what Linux expects of it. Each Intel row comes twice: the second time the
# BIOS has limited CPUID.
use strict;
use warnings FATAL => 'all';
use Test::More;
use lib 'tests/tools';
use Environment;
use File::Path 'make_path';

my $build = ($ENV{BUILD} // 'build') . '/cpus';
my $folder = 'tests/pmu/cpus';
use constant { INTEL => 0x756e6547, AMD => 0x68747541, HYGON => 0x6f677948, FORM_NONE => 0 };
use constant { OLD => 1, STACK => 2, ARCH => 3, BRANCHES_AMD => 4 };

sub first_bits { my ($n) = @_; return (1 << $n) - 1 }

sub build_program
{
    make_path($build);
    my $cc = "cc -std=gnu11 -O1 -Wall -Wextra $Environment::WERROR -I.";
    for (qw(intel amd branches)) {
        system("$cc -include $folder/row.h -c -o $build/$_.o pmu/$_.c") == 0 or return 0;
    }
    return system("$cc -o $build/cpus $folder/cpus.c $build/*.o pmu/event.c pmu/events/*.c") == 0;
}

# Of Intel's models: how many registers of branches, where the first is, and the format; what
# Linux calls the events, as our table is named.
my %list_of = (
    core2 => '4+40:1', bonnell => '8+40:1', silvermont => '8+40:1', knl => '8+680:1',
    nehalem => '10+680:3', haswell => '10+680:4', skylake => '20+680:5', goldmont => '20+680:6',
    plus => '20+680:7',
);
my (%list, %table);
for (split /\n/, <<'END') {
core      -        0e | Core
core2     core2    0f 16 17 1d | Core 2
nehalem   nehalem  1a 1e 1f 2e | Nehalem
nehalem   nehalem  25 2c 2f | Westmere
bonnell   bonnell  1c 26 27 35 36 | Bonnell
sandy     nehalem  2a 2d 3a 3e | Sandy Bridge
haswell   haswell  3c 3f 45 46 | Sandy Bridge
broadwell haswell  3d 47 4f 56 | Broadwell
silvermont silvermont 37 4a 4c 4d 5a 75 | Silvermont
knl       knl      57 85 | Knights
goldmont  goldmont 5c 5f | Goldmont
plus      plus     7a | Goldmont
tremont   skylake  86 96 9c | Tremont
skylake   skylake  4e 5e 8e 9e a5 a6 66 | Skylake
skylake   skylake  55 | Skylake server
icelake   skylake  7d 7e 9d 8c 8d a7 6a 6c | Ice Lake
lakefield skylake  8a | Ice Lake/Tremont
spr       arch     8f cf ad ae | Sapphire Rapids
adl       arch     97 9a b7 ba bf d7 | Golden Cove/Gracemont
mtl       arch     aa ac b5 | Golden Cove/Crestmont
lnl       arch     bd c6 cc d5 | Lion Cove/Skymont
arlh      arch     c5 | Lion Cove/Skymont/Crestmont
grt       arch     be | Gracemont
cmt       arch     af b6 | Crestmont
END
    my ($list, $models, $names) = /^\S+\s+(\S+)\s+(.*) \| (.*)$/ or die;
    for (split ' ', $models) {
        $list{hex $_} = $list;
        $table{hex $_} = [split m{/}, $names];
    }
}

# { 'LEAF.SUBLEAF' => [EAX, EBX, ECX, EDX] }, and the name.
sub rows
{
    open my $in, '<', "$folder/cpus.tsv" or die $!;
    my (@columns, @rows);
    while (<$in>) {
        chomp;
        my ($name, $seen, @values) = split /\t/, s/^# (?=name\t)//r;
        @columns = @values if $name eq 'name';
        next if /^#/;
        my %leaf = map { ($columns[$_] => [map { hex } split /:/, $values[$_]]) }
            grep { $values[$_] ne '-' } 0 .. $#columns;
        my ($highest) = sort { $b <=> $a } map { /^(8\w+)\.0$/ ? hex $1 : () } keys %leaf;
        $leaf{'80000000.0'} //= [$highest // 0, 0, 0, 0];
        push @rows, { name => $name, %leaf };
    }
    return @rows;
}

sub leaf { my ($cpu, $leaf, $word) = @_; return ($cpu->{$leaf} // [0, 0, 0, 0])->[$word] }

sub signature
{
    my $eax = leaf($_[0], '1.0', 0);
    my $family = $eax >> 8 & 0xf;
    $family += $eax >> 20 & 0xff if $family == 0xf;
    return ($family, $eax >> 4 & 0xf | $eax >> 12 & 0xf0);
}

# intel_pmu_init, update_pmu_cap: counters, and how wide they and writes are.
sub intel_counters
{
    my ($cpu) = @_;
    my ($eax, undef, $ecx, $edx) = map { leaf($cpu, 'a.0', $_) } 0 .. 3;
    my $version = $eax & 0xff;
    my $general = first_bits($eax >> 8 & 0xff);
    my $fixed = $version < 2 ? 0 : first_bits($edx & 0x1f);
    my $hypervisor = leaf($cpu, '1.0', 2) >> 31;
    $fixed |= 7 if $version > 1 && $version < 5 && !$hypervisor;
    $fixed |= $ecx if $version >= 5;
    my ($family, $model) = signature($cpu);
    my ($hybrid, $core) = (leaf($cpu, '7.0', 3) >> 15 & 1, leaf($cpu, '1a.0', 0) >> 24);
    my $bitmaps = leaf($cpu, '7.1', 0) >> 8 & 1 && leaf($cpu, '23.0', 0) & 2;
    ($general, $fixed) = (leaf($cpu, '23.1', 0), leaf($cpu, '23.1', 1)) if $bitmaps;
    ($general, $fixed) = ($general | 0xff, $fixed | 0xf)
        if !$bitmaps && $hybrid && $core == 0x40 && ($list{$model} // '') eq 'arch';
    return ($version, $general | $fixed << 32, $eax >> 16 & 0xff);
}

# What Linux would call the events; nothing: it knows the architectural ones alone.
sub intel_events
{
    my ($cpu) = @_;
    my ($family, $model) = signature($cpu);
    my $names = $family == 6 ? $table{$model} : undef or return;
    my $type = leaf($cpu, '1a.0', 0);
    my $kind = $type >> 24 != 0x20 ? 0 : ($type & 0xffffff) == 2 && @$names > 2 ? 2 : 1;
    return $names->[$kind < @$names ? $kind : $#$names];
}

sub intel
{
    my ($cpu) = @_;
    my ($version, $counters, $width) = intel_counters($cpu);
    my ($family, $model) = signature($cpu);
    my $events = intel_events($cpu);
    return { counters => 0, says => 'none' } if !$version;
    my $capable = leaf($cpu, '1.0', 2) >> 15 & 1;
    my $list = $capable && $events ? $list{$model} : '-';
    my ($depth, $first, $format) = (0, 0, 0);
    ($depth, $first, $format) = map { hex } split /[+:]/, $list_of{$list} if $list_of{$list};
    ($depth, $first, $format) = (32, 0x1500, 0x3f)
        if $list eq 'arch' && leaf($cpu, '7.0', 3) >> 19 & 1;
    $depth = 16 if $list eq 'arch' && $depth && !(leaf($cpu, '1c.0', 0) & 8);
    my $full = $capable && $version >= 3 && $first != 0x40 && $format != 3 ? 1 : 0;
    my $form = !$depth ? FORM_NONE : $first == 0x40 ? OLD : $first == 0x680 ? STACK : ARCH;
    my ($write) = $full || $version >= 6 ? $width : 32;
    return { counters => $counters, list => $depth ? sprintf('%x+%x', $first, $depth) : '-',
        capabilities => $capable ? sprintf('%x', $format | $full << 13) : '-',
        says => sprintf('intel %d %x %d %d %d:%d:%x %d %s', $version, $counters, $width, $write,
            $form, $depth, $depth ? $format : 0, $events ? 1 : 0, $events // 'architectural') };
}

# amd_core_pmu_init, amd_pmu_lbr_init.
my %zen = (0xf => 'K8', 0x10 => 'K10', 0x11 => 'Turion', 0x12 => 'Llano', 0x14 => 'Bobcat',
    0x15 => 'Bulldozer', 0x16 => 'Jaguar', 0x17 => 'Zen 2', 0x18 => 'Zen', 0x19 => 'Zen 4',
    0x1a => 'Zen 5');
sub amd
{
    my ($cpu) = @_;
    my ($family, $model) = signature($cpu);
    my $extended = leaf($cpu, '80000001.0', 2) >> 23 & 1;
    my $v2 = leaf($cpu, '80000022.0', 0);
    my $number = $v2 & 1 ? leaf($cpu, '80000022.0', 1) & 0xf : $extended ? 6 : 4;
    my $depth = $v2 & 2 ? leaf($cpu, '80000022.0', 1) >> 4 & 0x3f : 0;
    my $name = $zen{$family} // '?';
    $name = 'Zen' if $family == 0x17 && $model < 0x30;
    $name = 'Zen 3' if $family == 0x19 && ($model < 0x10 || $model >= 0x20 && $model < 0x60);
    return { counters => first_bits($number), list => $depth ? sprintf('c0010300+%x', $depth) : '-',
        capabilities => '-',
        says => sprintf('amd %d %x 48 48 %d:%d:0 1 %s', $v2 & 1 ? 2 : 1, first_bits($number),
            $depth ? BRANCHES_AMD : FORM_NONE, $depth, $name) };
}

sub linux
{
    my ($cpu) = @_;
    my $vendor = leaf($cpu, '0.0', 1);
    return amd($cpu) if $vendor == AMD || $vendor == HYGON;
    return intel($cpu) if $vendor == INTEL;
    # VIA's and Zhaoxin's: of Intel's leaf, with events of their own.
    my ($version, $counters, $width) = intel_counters($cpu);
    return { counters => $counters, list => '-', capabilities => '-',
        says => sprintf('intel %d %x %d 32 0:0:0 0 architectural', $version, $counters, $width) };
}

sub line_of
{
    my ($cpu, $linux, $limited) = @_;
    return join("\t", sprintf('%x', $linux->{counters}), $linux->{list} // '-',
        $linux->{capabilities} // '-', $limited,
        map { my $leaf = $_; "$leaf=" . join ':', map { sprintf '%x', $_ } $cpu->{$leaf}->@* }
        grep { /\./ } sort keys %$cpu) . "\n";
}

# SIGNATURE: OURS, theirs LINUX; above them -- REASON.
sub listed
{
    open my $in, '<', "$folder/differences" or die $!;
    my ($reason, %listed);
    for (grep { /\S/ && !/^#/ } map { chomp; $_ } <$in>) {
        next if /^-- (\S.*)/ && ($reason = $1);
        die "differences: no reason above: $_" if !$reason;
        $listed{$_} = $reason;
    }
    return %listed;
}

ok(build_program(), 'the probes can be built for the host') or done_testing, exit 1;
my @rows = rows();
my (@all, $input);
for my $cpu (@rows) {
    my $linux = linux($cpu);
    for my $limited (0 .. (leaf($cpu, '0.0', 1) == INTEL ? 1 : 0)) {
        push @all, [$cpu, $linux, $limited];
        $input .= line_of($cpu, $linux, $limited);
    }
}
open my $file, '>', "$build/input" or die $!;
print $file $input;
close $file;
my @ours = map { chomp; $_ } `$build/cpus <$build/input`;
cmp_ok(scalar @rows, '>=', 270, 'the processors are read');
is(scalar @ours, scalar @all, 'each is probed');
my (%listed, %seen) = listed();
my @wrong;
for my $i (0 .. $#ours) {
    my ($cpu, $linux, $limited) = @{ $all[$i] };
    next if $ours[$i] eq $linux->{says};
    my $what = sprintf '%x: %s, theirs %s', leaf($cpu, '1.0', 0), $ours[$i], $linux->{says};
    $seen{$what} = 1;
    push @wrong, "$cpu->{name}" . ($limited ? ' limited' : '') . ": $what" if !$listed{$what};
}
my $listed = keys %listed;
ok(!@wrong, @ours . " conclusions are those of Linux, but for $listed with a reason")
    or diag(map { "$_\n" } @wrong);
my @stale = grep { !$seen{$_} } sort keys %listed;
ok(!@stale, 'each difference that is listed is there') or diag(map { "$_\n" } @stale);
done_testing;
