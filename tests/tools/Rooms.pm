# SPDX-License-Identifier: MIT
# The rooms of the house, lowest first: a file includes, and its object refers to, only its own room
# and those below. What is wrong with that, and which files of one room hang together in a circle.
package Rooms;
use strict;
use warnings;

our @ROOMS = qw(
    kernel/nt
    kernel/base
    kernel/mm
    kernel/console
    pmu
    pmu/virt
    hal/machine
    hal
    kernel/counting
    kernel/ke
    kernel/profiling
    kernel/etw
    kernel/image
    kernel/services
    kernel
    kernel/driver
    kernel/init
    boot
    tests/harness
    tests/hal
    tests/pmu
    tests/vpmu
    tests/profiling
    tests/etw
    tests/kernel
    tests/cost
    tests
);
my %height = map { $ROOMS[$_] => $_ } 0 .. $#ROOMS;

# Arrows upward that are meant: who, what (a header or a symbol), why.
our @EXCEPTIONS = (
    [qr{^hal/profile\b}, qr{^(KeProfileInterruptWithSource|kernel/profiling/profile\.h)$},
     'the one call up: NT calls its kernel so'],
    [qr{^hal/profile\b}, qr{^(mutex_(acquire|release)|kernel/ke/mutex\.h)$},
     'a thread sleeps while another sets sampling up'],
    [qr{^kernel/main\b}, qr{^(pmu_(init_cpu|report)|pmu/pmu\.h)$}, 'the order of initialisation'],
    [qr{^kernel/main\b}, qr{^init_thread$}, 'the first thread comes last'],
    [qr{^kernel/syscall\b},
     qr{^(Nt(CreateFile|DeviceIoControlFile|LoadDriver|ReadFile|WriteFile)|kernel/driver/io\.h)$},
     'the one list of services'],
    [qr{^kernel/ke/thread\b}, qr{^trap_return$}, "a thread's first way to ring 3"],
    [qr{^tests/harness/runner\b}, qr{^(bench_(is|run)|tests/cost/bench\.h)$},
     'make bench runs a snippet instead of tests'],
    [qr{^kernel/base/panic\b}, qr{^(text|symbols)_(start|end)$}, "the linker's"],
);

# Circles that are there, each with its reason or what would cut it.
our @CIRCLES = (
    [qw(kernel/syscall kernel/trap kernel/entry), 'code in assembly and its C'],
    [qw(kernel/profiling/ring3_run), 'the same'],
    [qw(boot/ap boot/boot), 'the same'],
    [qw(kernel/driver/export kernel/driver/thunk), 'the same'],
);

# Of a path; pmu/virt is told by its folder, ring 3 is no room.
sub room_of
{
    my ($file) = @_;
    return undef if $file =~ m{^(kernel/user|dll)/};
    for (my $folder = $file; $folder =~ s{/[^/]+$}{};) {
        return $folder if exists $height{$folder};
    }
    return undef;
}

# Whether code or headers of one room may use another.
sub may
{
    my ($from, $to) = @_;
    return 1 if $from eq $to || $from eq 'tests';
    # Rooms of tests use what is tested, and of each other the harness alone.
    return $to !~ m{^tests/} || $to eq 'tests/harness' if $from =~ m{^tests/};
    return $to =~ m{^kernel/(base|nt)$} if $from eq "pmu/virt";
    return $from eq 'boot' if $to eq 'pmu/virt'; # nobody else sees it
    return $from eq 'hal' if $to eq 'pmu';       # above the HAL there are no registers
    return $height{$to} <= $height{$from};
}

sub excepted
{
    my ($file, $what) = @_;
    return grep { $file =~ $_->[0] && $what =~ $_->[1] } @EXCEPTIONS;
}

# $uses: [file, symbol, its file]... What runs upward.
sub upward
{
    my @wrong;
    for (@_) {
        my ($file, $symbol, $home) = @$_;
        my ($from, $to) = (room_of($file), room_of($home));
        next if !$from || !$to || may($from, $to) || excepted($file, $symbol);
        push @wrong, "$file uses $symbol of $home";
    }
    return @wrong;
}

# Tarjan's strongly connected components of files inside their rooms: those of several files that
# nobody named.
sub circles
{
    my (%next, %index, %low, %on, @stack, @found);
    for (@_) {
        my ($file, undef, $home) = @$_;
        my ($from, $to) = (room_of($file) // '', room_of($home) // '-');
        $next{$file}{$home} = 1 if $from eq $to && $file ne $home && $from !~ /^tests/;
    }
    my $run;
    $run = sub {
        my ($v) = @_;
        $index{$v} = $low{$v} = keys %index;
        push @stack, $v;
        $on{$v} = 1;
        for my $w (sort keys %{ $next{$v} // {} }) {
            $run->($w) if !defined $index{$w};
            $low{$v} = $low{$w} if $on{$w} && $low{$w} < $low{$v};
        }
        return if $low{$v} != $index{$v};
        my @group;
        do { push @group, pop @stack; $on{ $group[-1] } = 0 } until $group[-1] eq $v;
        push @found, [sort @group] if @group > 1;
    };
    defined $index{$_} or $run->($_) for sort keys %next;
    return map { my $group = $_;
                 (grep { named($group, $_) } @CIRCLES) ? () : "circle: @$group" } @found;
}

sub named
{
    my ($group, $circle) = @_;
    my @members = @$circle[0 .. $#$circle - 1];
    return !grep { my $file = $_; !grep { ref $_ ? $file =~ $_ : $file eq $_ } @members } @$group;
}

1;
