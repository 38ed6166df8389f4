#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The image that `make iso` makes: what is in it, and what was promised of it. tests/machines/boot.t
# starts machines of every kind from it.
use strict;
use warnings FATAL => 'all';
no warnings 'qw';    # QEMU's options have commas
use lib 'tests/tools';
use List::Util 'min';
use File::Path qw(make_path remove_tree);
use Test::More;
use Time::HiRes qw(time sleep);
use Environment;
use Machine;
use Text;

use constant {
    ISO_MAX     => 5_000_000, # bytes
    FIRST_MAX   => 0.020,     # seconds from the kernel's first instruction to its first serial byte
    VERDICT_MAX => 10,        # seconds from power-on to the verdict, SeaBIOS
    LONGEST     => 400,       # seconds that a machine may have
};

my $build = $ENV{BUILD} // 'build';
my $iso = "$build/ntpmu.iso";
my $top = "$build/image-tests";
delete @ENV{qw(MAKEFLAGS MFLAGS)};

my @plain = qw(qemu-system-x86_64 -accel tcg -cpu max -m 256);
my %address = map { /^(ffffffff\w+|0+1\w+) [tT] (\w+)$/ ? ($2 => $1) : () } `nm $build/ntpmu.elf`;

sub at_most
{
    my ($limit, $found, $unit) = @_;
    note("$found $unit");
    return $found && $found <= $limit ? () : "$found $unit, at most $limit";
}

sub menu_groups
{
    my $tests = `BUILD=$build ACCEL=tcg LIST=1 tests/tools/run`;
    my @globs = map { split /,/ } Text::content('boot/grub.cfg') =~ /tests=(\S+)/g;
    return 'no groups' if !@globs;
    return map { my $regex = quotemeta s/^-|\*$//gr;
                 $tests =~ /^$regex/m ? () : "no test is called $_" } @globs;
}

# The least of as many as it takes, at most 20: a busy host only adds.
sub at_best
{
    my ($measure, $limit) = @_;
    my @seconds = $measure->();
    push @seconds, $measure->() while min(@seconds) > $limit && @seconds < 8;
    return min(@seconds);
}

# Seconds of processor time, gdb's protocol included; of a slower processor scaled.
sub first_byte
{
    my $machine = Machine->new("$top/first", LONGEST, @plain, '-kernel', "$build/ntpmu.bin",
                               '-append', 'tests=selfcheck.pass');
    $machine->run_to($address{_start}) or die "no start\n";
    my ($start, $used) = (time, $machine->used);
    $machine->run_to($address{screen_init}) or die "no screen_init\n";
    my $seconds = $used ? $machine->used - $used : time - $start;
    $machine->serial ne '' or die "no byte before screen_init\n";
    return $seconds / Environment::slower();
}

# For the same image, on one host, QEMU 10 took 16.3 s of processor time and QEMU 7 9.4 s.
sub emulator_slower
{
    my ($version) = `qemu-system-x86_64 --version` =~ /version (\d+)/ or die "no version of QEMU\n";
    return $version < 9 ? 1 : 1.7;
}

# By the host's clock; or, the host may be busy, the processor time that it takes and the menu's
# three seconds; of a slower processor or emulator scaled.
sub power_on_to_verdict
{
    my $children = sub { my @times = times; $times[2] + $times[3] };
    my $before = Environment::slower();
    my ($start, $used_before) = (time, $children->());
    my $machine = Machine->new("$top/verdict", LONGEST, @plain, '-cdrom', $iso,
                               qw(-device isa-debug-exit,iobase=0xf4,iosize=4));
    $machine->go;
    my $status = $machine->status;
    my ($seconds, $used) = (time - $start, $children->() - $used_before);
    $machine->serial =~ /^# (?:NONE|FAIL) /m or die "no verdict, exit status $status\n";
    my $slower = ($before + Environment::slower()) / 2 * emulator_slower();
    note(sprintf '%.1f s, of these %.1f s of processor time, of a machine %.2f times slower',
         $seconds, $used, $slower);
    return min($seconds, $used + 3, $used / $slower + 3);
}

my @checks = (
    ['at most 5 MB', sub { at_most(ISO_MAX, -s $iso, 'bytes') }],
    ['each group of the menu has tests', \&menu_groups],
    ['first byte within 20 ms of the first instruction',
     sub { at_most(FIRST_MAX, at_best(\&first_byte, FIRST_MAX), 's') }],
    ['power-on to verdict within 10 s', sub {
        at_most(VERDICT_MAX, at_best(\&power_on_to_verdict, VERDICT_MAX), 's') }],
    ['one BIOS and one UEFI image', sub {
        my $report = `xorriso -indev $iso -report_el_torito plain 2>/dev/null`;
        $report =~ /BIOS.*\n.*UEFI/ ? () : $report }],
    ['the same bytes again, later and elsewhere', sub {
        sleep 2;
        my $again = "boot/mkiso $build/ntpmu.bin $top/again.iso";
        system "umask 077; TZ=Asia/Tokyo $again >/dev/null 2>&1";
        system("cmp $iso $top/again.iso") ? 'other bytes' : () }],
);

remove_tree($top);
make_path($top);
for (@checks) {
    my @wrong = eval { $_->[1]->() };
    push @wrong, $@ if $@;
    ok(!@wrong, "image: $_->[0]") or diag(@wrong);
}
done_testing;
