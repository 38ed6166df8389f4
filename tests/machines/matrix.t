#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The machines of tests/machines/matrix; three run at a time (JOBS=3), as some wait. Logs stay in
# build/logs; `times` there says how many seconds of processor time each machine took. What failed
# is named once more at the end. With patterns on the command line only the machines that match one:
# prove -v tests/machines/matrix.t :: NUMA '^Bochs'. make machines is the pattern ^named, an hour.
use strict;
use warnings;
use Test::More;
use File::Path 'make_path';
use List::Util 'uniq';
use lib 'tests/tools';
use Environment;
use RunLog;
use Text;

my $build = $ENV{BUILD} // 'build';
my $logs = "$build/logs";
make_path($logs);
Environment::forget();
$ENV{TIMEOUT} = 300;

# What the named machines are made of; their models, with as many kinds of CPU and counters: each
# has tests of its own.
my %made = map { (split /\t/)[0, 1] } `tests/tools/names MACHINE`;
my %ideal = map { my ($model, $quirks) = $made{$_} =~ /^([\w-]+)(.*)/;
                  ($_ => join '', $model, $quirks =~ /,(?:hybrid|gp=\d+)/g) } keys %made;

# --- What says what is wrong with a log; the table calls them by name.

# A log whose closing line counts fewer.
sub at_least
{
    my ($log, $tests, $checks) = @_;
    my ($passed, $made) = $log =~ /^# (\d+) passed, .* (\d+) checks$/m
        or return 'no closing line';
    return $passed >= $tests && $made >= $checks ? ()
        : "$passed tests, $made checks; want $tests, $checks";
}

# So many tests passed whose names begin so.
sub passed
{
    my ($log, $least, $prefix) = @_;
    my $passed = () = $log =~ /^ok \d+ - \Q$prefix\E\w*\.\w+$/mg;
    return $passed >= $least ? () : "$passed tests of $prefix, want $least";
}

# With verbose: no test takes longer than so many seconds by the machine's clock.
sub none_longer_than
{
    my ($log, $most, $tests) = @_;
    my ($n, @wrong) = (0);
    for (; $log =~ /^# (\w+\.\w+): .*\n(?:.*\n)*?# took (\d+) us$/mg; $n++) {
        push @wrong, "$1 took $2 us" if $2 > 1e6 * $most;
    }
    return $n >= $tests ? @wrong : "$n tests said how long they took";
}

# The tests of the machine's quirks ran.
sub shown
{
    my ($log, $machine) = @_;
    my (undef, @words) = split /,/, $made{$machine} // $machine;
    my @names = map { /^([\w-]+)/ ? $1 =~ tr/-/_/r =~ s/^smi3$/smi/r : () } @words;
    return map { "vpmu_quirks.$_ did not pass" }
        grep { $log !~ /^ok \d+ - vpmu_quirks\.$_$/m } @names;
}

# Of the tests that pass on the ideal model 98 of 100 still run here, however many counters there
# are; 90 where the list of branches is not there, with which the records go.
sub as_of_ideal
{
    my ($log, $machine, $cpus) = @_;
    my $test = qr/(\S+?)(?:\.(?:gp|fixed)\d+)?$/m;
    my %ran = map { $_ => 1 } $log =~ /^(?:not )?ok \d+ - $test/mg;
    my $ideal = Text::content(log_of("named: of $ideal{$machine}, $cpus CPU"));
    my @wanted = do { my %seen; grep { !$seen{$_}++ } $ideal =~ /^ok \d+ - $test/mg };
    my $still = grep { $ran{$_} } @wanted;
    my $share = "$still of " . @wanted . " tests that pass on $ideal{$machine}";
    my ($has, $had) = map { scalar /^# pmu: .*branch records/m } $log, $ideal;
    return @wanted && $still >= ($had && !$has ? 0.9 : 0.98) * @wanted ? () : $share;
}

# What others reported of a PMU is noticed by its own test.
my %noticed = qw(uncounted=hlt pmu_ops.halt bug=quiet pmu_ops.overflow bug=down pmu_bits.
                 bug=carry pmu_carries. bug=locked pmu_ops.conditional bug=event8 pmu_select.);
sub bent
{
    my ($log, $machine) = @_;
    my ($word) = $machine =~ /,(.*)/;
    my $test = $noticed{$word} // 'pmu_ops.instructions';
    return $log =~ /^not ok \d+ - \Q$test\E/m ? () : "$test does not notice it";
}

# Of tests that leave something and, after each, one that wants everything to be there: which
# did otherwise than they should, and whose output is long.
sub wrong_leaves
{
    my ($log) = @_;
    my ($lines, $n, $text, @wrong) = (0, 0, '');
    for (split /\n/, $log) {
        $lines++;
        $text .= "$_\n";
        my ($not, $name, $skip) = /^(not )?ok \d+ - selfcheck_leaves\.(\w+)( # SKIP)?/ or next;
        $n++;
        push @wrong, "$name: " . ($not ? 'fails' : 'passes')
            if !$skip && !$not != !!($name =~ /_first$|_then$/);
        push @wrong, "$name: $lines lines" if $not && $lines > 14;
        my ($broken) = $text =~ /breaks an invariant: (.+)/;
        push @wrong, "$name: not named" if defined $broken && $text !~ /^# CPU 1: \Q$broken\E: /m;
        ($lines, $text) = (0, '');
    }
    return (@wrong, $n >= 70 ? () : "$n tests");
}

# --- The table.

sub choices
{
    my %word = (BUILD => $build);
    /^(\w+) := (.*)/ and $word{$1} = $2 for Text::lines('tests/tools/choices.mk');
    return %word;
}

# Whether there is Bochs, for its machines.
sub is_there
{
    my ($variables) = @_;
    return $variables !~ /MACHINE=bochs/ || !system 'command -v bochs >/dev/null';
}

my %kinds = map { $_ => 1 } qw(says never);

sub log_of { return "$logs/" . $_[0] =~ s/\W+/-/gr . '.log' }

# Rows as they stand: name, status, variables, and the lines below.
sub rows
{
    my ($word) = @_;
    my @rows;
    for (map { chomp; $_ } Text::lines('tests/machines/matrix')) {
        next if /^\s*(?:#|$)/;
        if (/^([A-Z_]+) = (.*)/) {
            $word->{$1} = $2;
        } elsif (/^(\S.*?) \| (\d+) \| ?(.*)/) {
            push @rows, { name => $1, status => $2, variables => $3, each => [], lines => [] };
        } elsif (/^    ([A-Z_]+=.*)/ && @rows) {
            $rows[-1]{variables} .= " $1";
        } elsif (/^    each (.*)/ && @rows) {
            push @{ $rows[-1]{each} }, split ' ', $1;
        } elsif (/^    asked$/ && @rows) {
            $rows[-1]{asked} = 1;
        } else {
            my ($kind, $text) = /^    (\w+) ?(.*)/;
            die "tests/machines/matrix: not understood: $_\n"
                if !@rows || !$kind || !($kinds{$kind} || main->can($kind));
            push @{ $rows[-1]{lines} }, [$kind, $text];
        }
    }
    return @rows;
}

sub expanded
{
    my ($text, $word, $each) = @_;
    1 while $text =~ s/\$\(?([A-Z_]{3,})\)?/$word->{$1} \/\/ die "no word $1\n"/e;
    return defined $each ? $text =~ s/%/$each/gr : $text;
}

# The machines of a row: a word for each, or none.
sub machines_of
{
    my ($row, $word) = @_;
    my @each = map { $_ eq 'MACHINES' ? sort keys %made
                     : $_ eq 'IDEALS' ? uniq(sort values %ideal) : $_ } @{ $row->{each} };
    my @found;
    for my $each (@each ? @each : undef) {
        my %machine = map { $_ => expanded($row->{$_}, $word, $each) } qw(name status variables);
        $machine{lines} = [map { [$_->[0], expanded($_->[1], $word, $each)] } @{ $row->{lines} }];
        push @found, \%machine;
    }
    return @found;
}

my %word = choices();
my @machines = grep { is_there($_->{variables}) } map { machines_of($_, \%word) }
    grep { @ARGV || !$_->{asked} } rows(\%word);

# Quirks that are on none of these; step and seed change what others do.
my @nowhere = do {
    my %on = map { /^([\w-]+)/ => 1 } map { split /,/, $made{$_} // $_ }
        map { $_->{name} =~ /^(?:quirks|bent): (.*)/ } @machines;
    grep { !$on{$_} && !/^(?:step|seed)$/ } map { /^([\w-]+)/ } `tests/tools/names QUIRK`;
};

my (%running, @failed);
open my $times, '>', "$logs/times" or die "$logs/times: $!";

sub start
{
    my ($machine) = @_;
    $machine->{log} = log_of($machine->{name});
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', $machine->{log} or die "$machine->{log}: $!";
        open STDERR, '>&', \*STDOUT;
        delete $ENV{ACCEL} if $machine->{variables} =~ /MACHINE=bochs/; # which knows none
        exec '/bin/sh', '-c', "$machine->{variables} exec tests/tools/run";
    }
    $running{$pid} = $machine;
}

# What a line of the table finds wrong with a log.
sub faults
{
    my ($log, $kind, $text) = @_;
    return $log =~ /$text/m ? () : "must match $text" if $kind eq 'says';
    return $log =~ /$text/m ? "must not match $text" : () if $kind eq 'never';
    return main->can($kind)->($log, split ' ', $text);
}

sub judge
{
    my ($machine) = @_;
    my ($name, $want) = @$machine{qw(name status)};
    my $log = join '', Text::lines($machine->{log});
    my @wrong = $machine->{ended} == $want ? () : "exit status $machine->{ended}, want $want";
    push @wrong, map { faults($log, @$_) } @{ $machine->{lines} };
    push @wrong, "a log of $1 bytes: at most 60000 were promised"
        if $log =~ /\[(\d+) bytes, crc32 /m && $1 > 60_000 && $log !~ /^# ntpmu: boot .*verbose/m;
    return if ok(!@wrong, $name);
    my ($names, @lines) = RunLog::failures($log);
    diag(map { "$_\n" } @wrong, "make run $machine->{variables}    # $machine->{log}:",
         map { "    $_" } @lines);
    push @failed, map { "    $_\n" } $name, map { "    $_" } @wrong,
        @$names ? @$names : $lines[-1] // ();
}

$SIG{INT} = $SIG{TERM} = sub { kill TERM => keys %running; exit 1 };
@machines = grep { my $name = $_->{name}; grep { $name =~ /$_/ } @ARGV } @machines if @ARGV;
my @builds = grep { my $build = $_->[0]; !@ARGV
                    || grep { $_->{variables} =~ m{^BUILD=\S+/$build } } @machines }
    ['kcsan', 'KCSAN=1'], ['traps', 'KASAN=1 UBSAN=1 FILLED=1'];
plan tests => 1 + @builds + @machines;
ok(%made && !@nowhere, 'each quirk is on a machine') or diag("@nowhere");
for (@builds) {
    my ($folder, $variable) = ("$build/$_->[0]", $_->[1]);
    Environment::begin($folder, 'dll'); # ring 3 is the same in all
    my $make = "make -s -j2 BUILD=$folder $variable TEXT_FLAGS='-w -g0'"; # make check looks
    ok(!system("$make </dev/null"), "builds with $variable");
}
my @waiting = @machines;
for my $machine (@machines) {
    while (!exists $machine->{ended}) {
        start(shift @waiting) while @waiting && keys %running < ($ENV{JOBS} // 3);
        my $before = (times)[2];
        my $pid = wait;
        my $run = delete $running{$pid} or next;
        printf $times "%6.1f %s\n", (times)[2] - $before, $run->{name};
        $run->{ended} = $? & 127 ? 128 + ($? & 127) : $? >> 8;
    }
    judge($machine);
}
diag("What failed:\n", @failed) if @failed;
