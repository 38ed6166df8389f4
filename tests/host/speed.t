#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# What counting costs on the virtual PMU, in time: a ring-3 loop of ten million instructions,
# counted, with the timer going on, takes at most 1.5 times as long as without a virtual PMU. Taken
# is the time that QEMU's threads get from the host, which others on the host disturb less than the
# clock on the wall; machines of both kinds run in turn, and the medians of many loops are compared.
# The exits and steps behind it are exact: vpmu.free_running.
use strict;
use warnings;
use Test::More;
use lib 'tests/host';
use Environment;

use constant { ROUNDS => 4, LOOP => 10_000_000, MOST => 1.5 };
my $build = ($ENV{BUILD} // 'build') . '/programs';
my $pid_file = "$build/speed.pid";
Environment::forget();
$ENV{TIMEOUT} = 600; # a host may be busy

# Nanoseconds that the machine has run so far, the first field of schedstat; 0 when it is gone
# already.
sub used
{
    my $sum = 0;
    my $pid = `cat $pid_file 2>/dev/null`;
    return 0 if $pid !~ /^(\d+)/;
    for my $file (glob "/proc/$1/task/*/schedstat") {
        open my $in, '<', $file or next;
        $sum += (split ' ', <$in>)[0];
    }
    return $sum;
}

# Runs the program once: the nanoseconds of each loop, and what it counted.
sub run
{
    my ($pmu) = @_;
    my (@times, @counts, $begin);
    open my $stream, '-|', "BUILD=$build PROGRAM=tests/programs/speed.c ACCEL=tcg PMU=$pmu " .
                           "QEMU_ARGS='-pidfile $pid_file' tests/run 2>&1 </dev/null" or die;
    while (<$stream>) {
        $begin = used() if /^begin/;
        if (/^end (\d+)/) {
            my $end = used();
            push @times, $end - $begin if $begin && $end;
            push @counts, $1;
        }
    }
    close $stream;
    is($?, 0, "PMU=$pmu runs") if $?;
    return (\@times, \@counts);
}

sub median { (sort { $a <=> $b } @_)[@_ / 2] // 0 }

BAIL_OUT('tests/programs/speed.c is not built')
    if system "make -s BUILD=$build PROGRAM=tests/programs/speed.c </dev/null";
for my $model (qw(intel-v5 amd-v2)) {
    my (@with, @without, @counts);
    for (1 .. ROUNDS) {
        my ($times) = run('none');
        push @without, @$times;
        ($times, my $counts) = run($model);
        push @with, @$times;
        push @counts, @$counts;
    }
    ok(@counts && !(grep { $_ < LOOP || $_ > LOOP + 5000 } @counts),
       "$model: each loop was counted") or diag("@counts");
    my $ratio = median(@with) / (median(@without) || 1);
    note(sprintf '%s: %d loops counted, %d without a PMU: medians %.1f and %.1f ms', $model,
         scalar @with, scalar @without,
         median(@with) / 1e6, median(@without) / 1e6);
    ok($ratio && $ratio <= MOST, sprintf '%s: counting takes %.2f times the time, at most %.1f',
       $model, $ratio, MOST);
}
done_testing;
