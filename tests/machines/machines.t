#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Every named machine of pmu/virt/names.def, with 1 and 4 CPUs, all tests: the verdict, how many
# tests ran, and of those that pass on the ideal model which the machine is made of how many still
# run: 95 % at least. `make machines`; two at a time (JOBS=2), an hour; SMP=1 only those. Logs stay
# in build/machines. With words on the command line only those of these names: prove -v
# tests/machines/machines.t :: haswell zen3
use strict;
use warnings;
use Test::More;
use File::Path 'make_path';
use lib 'tests/tools';
use Environment;
use RunLog;

my $build = $ENV{BUILD} // 'build';
my $jobs = $ENV{JOBS} // 2;
my $share = 95;
my @cpus = split ' ', $ENV{SMP} // '1 4';
make_path("$build/machines");
Environment::forget();

# Machine, and the model that it is made of, with as many kinds of CPU and counters: each has tests
# of its own.
sub machines
{
    my @found;
    for (`tests/tools/names MACHINE`) {
        my ($name, $model, $quirks) = /^(.*?)\t([\w-]+)(\S*)/ or next;
        push @found, [$name, join '', $model, $quirks =~ /,(?:hybrid|gp=\d+)/g];
    }
    return grep { my $name = $_->[0]; !@ARGV || grep { $name eq $_ } @ARGV } @found;
}

sub run
{
    my ($pmu, $smp) = @_;
    my $log = "$build/machines/$pmu-$smp.log";
    my $pid = fork // die "fork: $!";
    return ($pid, $log) if $pid;
    open STDIN, '<', '/dev/null';
    open STDOUT, '>', $log or die "$log: $!";
    open STDERR, '>&', \*STDOUT;
    @ENV{qw(PMU SMP)} = ($pmu, $smp);
    exec 'tests/tools/run';
}

# Names of tests that passed, of all that ran, and the last line.
sub results
{
    my ($log, $why) = RunLog::load(@_);
    my %result = map { $_->{name} => $_->{result} }
        grep { $_->{result} ne 'skipped' } @{ $log->{tests} // [] };
    my @passed = grep { $result{$_} eq 'passed' } keys %result;
    return { passed => { map { $_ => 1 } @passed }, ran => \%result,
             verdict => $log ? $log->{says}[-1] : $why };
}

my @machines = machines();
my (%results, %running, %seen);
my @waiting = grep { !$seen{"@$_"}++ }
    map { my $m = $_; map { ([$m->[1], $_], [$m->[0], $_]) } @cpus } @machines;
plan tests => @machines * @cpus;
while (@waiting || %running) {
    while (@waiting && keys %running < $jobs) {
        my $which = shift @waiting;
        my ($pid, $log) = run(@$which);
        $running{$pid} = ["@$which", $log];
    }
    my $pid = wait;
    my $done = delete $running{$pid} or next;
    $results{$done->[0]} = results($done->[1]);
    $results{$done->[0]}{status} = $? >> 8;
}
for my $machine (@machines) {
    for my $smp (@cpus) {
        my ($here, $ideal) = map { $results{"$_ $smp"} } @$machine;
        my @wanted = keys %{$ideal->{passed}};
        my @still = grep { $here->{ran}{$_} } @wanted;
        my $percent = @wanted ? 100 * @still / @wanted : 0;
        my $said = sprintf '%s, %d CPU: %s; %d tests ran, %.1f %% of the %d that pass on %s',
            $machine->[0], $smp, $here->{verdict},
            scalar keys %{$here->{ran}}, $percent, scalar @wanted, $machine->[1];
        ok(!$here->{status} && $percent >= $share, $said);
    }
}
