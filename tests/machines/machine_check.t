#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Machine checks, which QEMU's monitor injects: in rings 0 and 3, on another CPU, and one more
# while the kernel prints the first. Each is a panic that names the bank, and the end.
use strict;
use warnings FATAL => 'all';
no warnings 'qw';    # QEMU's options have commas
use Test::More;
use File::Temp 'tempdir';
use lib 'tests/tools';
use Environment;
use Machine;

my $build = $ENV{BUILD} || 'build';
my $dir = tempdir(CLEANUP => 1);
my %address = map { /^(ffffffff\w+) [tT] (\w+)$/ ? ($2 => $1) : () } `nm $build/ntpmu.elf`;
my @qemu = qw(qemu-system-x86_64 -accel tcg -cpu max -m 256
    -device isa-debug-exit,iobase=0xf4,iosize=4);
# Valid, uncorrected, enabled, with misc and address.
my $error = '9 0xbc00000000000134 5 0x1234000 0x8c';
my $bank = qr/bank 9: status bc00000000000134, address 1234000, misc 8c$/m;

# RIP, from all registers: the seventeenth.
sub rip
{
    my ($machine) = @_;
    return unpack 'Q<', pack 'H*', substr $machine->gdb('g'), 16 * 16, 16;
}

# Steps out of the kernel.
sub to_ring3
{
    my ($machine) = @_;
    for (1 .. 100) {
        return 1 if rip($machine) < 1 << 47;
        $machine->gdb('s');
    }
    return 0;
}

# What is wrong where a machine check comes on these CPUs at this place.
sub faults
{
    my ($cpus, $place, %more) = @_;
    my $machine = Machine->new($dir, 200, @qemu, '-smp', $more{smp} || 1,
                               '-kernel', "$build/ntpmu.bin", '-append', 'tests=exceptions*');
    $machine->run_to($address{$place}) or return "$place is not reached";
    to_ring3($machine) or return 'not in ring 3' if $more{ring3};
    $machine->monitor("mce $_ $error") for @$cpus;
    if ($more{again}) {
        $machine->run_to($address{$more{again}}) or return "$more{again} is not reached";
        $machine->monitor("mce $_ $error") for @$cpus;
    }
    $machine->go;
    my ($status, $log) = ($machine->status, $machine->serial);
    return map { $log =~ $_ ? () : "does not match $_" }
        qr/^# PANIC on CPU $cpus->[0]: exception 18,/m, qr/MCG_STATUS 5/, $bank, qr/^# backtrace/m;
}

sub panics
{
    my ($name, @arguments) = @_;
    my @wrong = faults(@arguments);
    ok(!@wrong, "a machine check $name") or diag(map { "$_\n" } @wrong);
}

plan tests => 3;
panics('in ring 0', [0], 'init_thread');
panics('in ring 3', [0], 'trap_return', ring3 => 1);
panics('twice on another CPU', [1], 'init_thread', smp => 2, again => 'print_place');
