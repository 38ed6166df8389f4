#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Machines with quirks that nobody chose: N combinations of model, quirks, CPUs and groups of tests,
# made of SEED. A test may find there what a processor does wrong, and fail: then it says what was
# measured of the machine, or a quirk's name where only that can tell. But the kernel must not
# panic, no test be killed or hang, and none fail because of what another left: it fails alone too.
# A line of a machine that did otherwise repeats it:
#     SEED=1 N=20 tests/machines/quirks.t        FIRST=7 N=1 for the seventh alone
# With EACH=1 each quirk alone instead, on a model of each vendor that has it, all tests; without N,
# as in make test, five of these beside, by a seed that the tree gives, but the quick tests alone of
# what asks the PMU.
use strict;
use warnings FATAL => 'all';
use Test::More;
use List::Util qw(any shuffle);
use lib 'tests/tools';
use Environment;
use Text;

my ($each, $by_hand, $build) = ($ENV{EACH}, $ENV{N}, $ENV{BUILD} || 'build');
my ($seed, $n, $first) = ($ENV{SEED} || 1, $by_hand || 12, $ENV{FIRST} || 1);
Environment::forget();

use constant { GROUPS => 8, QUIRKS => 6, ALONE => 3, SEEDS => 8, EACH => 5 };
# Greater values are no processor's: hours pass, or nothing but the quirk runs.
my %most = (irq3 => 5, skid => 10_000, exitcost => 20_000, 'freeze-lag' => 10_000);
my @reserved = (19, 21, 36 .. 39, 42 .. 63);    # of AMD's event select
my $asks_the_pmu =
    qr/^(?:pmu_|hal_|tp_|profile_|source_|etw_|exact|measured|sched|smp|vpmu_quirks|diagnosis)/;

sub one_of { return $_[int rand @_] }
# From least to most, each number of digits as likely as the others.
sub between
{
    my ($least, $most) = @_;
    return int exp(log($least) + rand(log($most + 1) - log $least));
}
sub big { return sprintf '0x%x', int(rand 2**32) << 32 | int rand 2**32 }

my %vendor = ((map { /^((\w).*?)\t/ } `tests/tools/names MODEL`),
              (map { /^(.*?)\t(\w)/ } `tests/tools/names MACHINE`));
my @names = sort keys %vendor;
my @quirks = map { /^([\w-]+)(.*?)\t.*\t\w+, ([A-Z]+), ([A-Z]+), (\w+), (\w+), (\w+)$/
        ? { name => $1, form => $2, kind => $3, vendor => $4, least => $5, most => $6,
            bare => $7 } : () }
    # an instruction of a stepped machine takes as long as a thousand
    grep { !/^step\t/ } `tests/tools/names QUIRK`;
# A folder of its own: other tests run beside this one, and each run leaves its log.
system "mkdir -p $build/quirks && cp $build/ntpmu.bin $build/quirks";
$ENV{BUILD} = "$build/quirks";
my @groups = do { my %seen; grep { $_ =~ $asks_the_pmu && !$seen{$_}++ }
                  map { /^(\w+)\./ } `LIST=1 PMU=intel-v5 tests/tools/run` };

sub bits
{
    my @from = @_;
    my %on = map { one_of(@from) => 1 } 0 .. rand 3;
    return join '+', sort { $a <=> $b } keys %on;
}

sub word_of
{
    my ($q, $vendor) = @_;
    my ($name, $kind, $least, $most) = @$q{qw(name kind least most)};
    $most = $most{$name} // ($most eq 'UINT64_MAX' ? 2**32 : $most);
    return $name if $kind eq 'FLAG';
    return "$name=" . big() if $name eq 'left' || $name eq 'misc';
    return "$name=" . one_of('', '-') . between(1, $most) if "$kind$q->{form}" eq 'SIGNED=N';
    return "$name=" . one_of($q->{form} =~ /([\w+-]+)/g) if $kind eq 'CHOICE' || $kind eq 'SIGNED';
    return "$name=" . bits($name eq 'sticky' ? @reserved : (0 .. 7, $vendor eq 'i' ? 32 .. 35 : ()))
        if $kind eq 'BITS';
    my $value = between($least || 1, $most);
    return "$name=$value+-" . int rand $value + 1 if $kind eq 'SPREAD';
    if ($kind eq 'PAIR') {
        my $tenth = 100 * $value;    # of the time, at 1000 MHz
        return "$name=$value:" . between(1, $tenth < $most ? $tenth : $most);
    }
    return "$name=$value";
}

# Models with facts of real processors: version and number of counters, kinds of cores.
sub real
{
    my @row = map { [map { hex } /^(?:\w+:){3}\w+$/ ? split(/:/) : (0) x 4] } split /\s/, $_[0];
    my ($vendor, $signature, $features, $pmu, $extended, $v2) = @row[2, 3, 4, 6, 16, 20];
    my ($version, $gp) = ($pmu->[0] & 255, $pmu->[0] >> 8 & 255);
    return ["intel-v$version", "gp=$gp", $features->[3] >> 15 & 1 ? 'hybrid' : ()]
        if $vendor->[1] == 0x756e6547 && $version >= 1 && $version <= 6 && $gp && $gp <= 12;
    return [$v2->[0] ? $signature->[0] >> 20 == 11 ? 'amd-zen5' : 'amd-v2'
            : $extended->[2] >> 23 & 1 ? 'amd-ext' : 'amd-k7'] if $vendor->[1] == 0x68747541;
    return;
}
my @real = map { real($_) } grep { !/^#/ } Text::lines('tests/pmu/cpus/cpus.tsv');

sub combination
{
    my ($model, @facts) = @{ one_of([one_of(@names)], one_of(@real)) };
    my %word = map { /^(\w+)/ => $_ } @facts;
    for (0 .. rand QUIRKS) {
        my $q = one_of(grep { $_->{vendor} eq 'BOTH'
                              || lc substr($_->{vendor}, 0, 1) eq $vendor{$model} } @quirks);
        $word{$q->{name}} = word_of($q, $vendor{$model});
    }
    my $smp = one_of(1, 2, 2, 4);
    my %group = map { one_of(@groups) => 1 } 1 .. GROUPS;
    return join(',', $model, map { $word{$_} } sort keys %word), $smp, join ',',
        map { "$_.*" } sort keys %group;
}

# What a quirk is given alone, and what it needs beside; its model if the newer ones lack it.
my %given = (seed => 7, ipc => 4, ref => 35, wrmsr => '+1', gp => 4, sticky => '32+33', misc => 1,
    throttle => 3, left => 3, owned => 1, dead => 0, 'freeze-lag' => 300, smi => '1000:500',
    exitcost => 20_000, nmi => 200, tsc => 200_000, early => 20);
my %beside = (refrate => ',ref=4', leftone => ',left=3', smi3 => ',smi=1000:500',
    smalllist => ',hybrid', tscfixed => ',tsc=200000');
my %model = (uncore => 'intel-v3', stale => 'intel-v3', lbrsign => 'haswell', brs => 'amd-ext',
    dbkeeps => 'intel-v4');
sub alone
{
    my ($q) = @_;
    my ($name, $beside) = ($q->{name}, $beside{ $q->{name} } // '');
    my @values = $q->{kind} eq 'CHOICE' ? $q->{form} =~ /(\w+)/g : $q->{bare} ? () : $given{$name};
    my @models = $model{$name} // grep { $q->{vendor} eq 'BOTH' || /^$q->{vendor}/i }
        qw(intel-v5 amd-v2);
    my $smp = $name =~ /^(?:hybrid|smalllist|tsc|leftone)/ ? 2 : 1;
    return map { my $model = $_; map { ["$model,$_$beside", $smp] }
                 @values ? map { "$name=$_" } @values : $name } @models;
}

sub machines
{
    my @alone = map { alone($_) } @quirks;
    return map { [@$_, '*'] } grep { $_ } @alone[$first - 1 .. $first - 2 + ($by_hand || @alone)]
        if $each;
    my @machines = map { srand($seed * 1_000_003 + $_); [combination()] } $first .. $first + $n - 1;
    srand hex substr `git rev-parse HEAD:`, 0, 5;
    my $tests = join ',', (map { "$_.*" } @groups), '-slow';
    return (@machines, $by_hand ? () : map { [@$_, $tests] } (shuffle @alone)[0 .. EACH - 1]);
}

sub run
{
    my ($pmu, $smp, $tests) = @_;
    local @ENV{qw(PMU SMP TESTS)} = ($pmu, $smp, $tests);
    my $log = `tests/tools/run 2>&1 </dev/null`;
    return ($? >> 8, $log);
}

# Whether nothing but a test of this group fails first on the machine, so that it can be nobody's
# echo.
sub fails_first
{
    my ($group, @machine) = @_;
    return (run(@machine))[1] =~ /^not ok \d+ - (\w+)\./m && $1 eq $group;
}

# What the lines before a failure may explain (causes.c, measured.c), by the groups whose tests can
# notice it: sched and smp count nothing, so only what takes time explains a failure there.
my $time = qr/^\#\ (?: \d+\ SMIs\ came | CPU\ \d+:\ (?:\d+\ NMIs|its\ TSC|memory)
    | a\ loop\ counts | the\ virtual\ PMU\ has\ the\ quirk
    | measured\ too:\ (?:an\ access|1,000) )/mx;
my $counts = qr/^\#\ (?: CPU\ \d+:\ interrupts\ of | counters\ \w+\ of\ \w+\ are\ left\ out
    | firmware\ had\ left | measured(?:\ too)?: )/mx;
my $registers = qr/^\#\ (?: counters\ \w+\ of\ \w+\ are\ left\ out | firmware\ had\ left
    | measured:\ .*\ host\ has | measured\ too:\ (?:MSR|MISC|an\ event\ select|a\ reserved) )/mx;
sub explained
{
    my ($test, $said) = @_;
    return 1 if $said =~ $time;
    return 0 if $test =~ /^(?:sched|smp)/;
    my $takes_no_count = $test =~ /^pmu_(?:absent|registers|bits|reserved|select\.)/;
    return $said =~ ($takes_no_count ? $registers : $counts);
}

sub unnamed
{
    my ($log, $wanted) = @_;
    my ($said, @unnamed) = ('');
    for (split /^/, $log =~ s/.*?^1\.\.\d+$//msr) {
        push @unnamed, $1 if /^not ok \d+ - (\S+)/
            && !($wanted ? $said =~ $wanted : explained($1, $said));
        $said = /^(?:not )?ok / ? '' : $said . $_;
    }
    return @unnamed;
}

# Tests that fail here and nowhere first: neither alone, nor in their group where chance falls
# otherwise, nor after groups that do not fail, for what a quirk does may depend on the time. The
# first that fails here is none of them, nor one to which SMIs or NMIs came, or whose counters the
# firmware enabled again, or the host reset, meanwhile. Of each group one is asked.
sub echoes
{
    my ($log, $pmu, $smp) = @_;
    my (%fails, %passes);
    my ($before, @failed) = grep { !$fails{(split /\./)[0]}++ } $log =~ /^not ok \d+ - (\S+)$/mg;
    my $again = $pmu =~ /\bowned=/ ? '|firmware had left'
              : $pmu =~ /\bbug=(?:reset|losing)/ ? '|the virtual PMU has the quirk bug' : '';
    my %calm = map { $_ => 1 } unnamed($log, qr/^# (?:\d+ SMIs came|CPU \d+: \d+ NMIs$again)/m);
    @failed = grep { $calm{$_} } @failed;
    splice @failed, ALONE if @failed > ALONE;
    my @others = grep { !$fails{$_} && !$passes{$_}++ } $log =~ /^ok \d+ - (\w+)\.\w+$/mg;
    return grep {
        my $test = $_;
        my ($group) = /^(\w+)/;
        !any { fails_first($group, @$_) } [$pmu, $smp, $test],
            (map { ["$pmu,seed=$_", $smp, "$group.*"] } 1 .. SEEDS),
            map { [$pmu, $smp, "$_.*,$test"] } @others;
    } @failed;
}

sub wrong
{
    my ($status, $log, @machine) = @_;
    my @wrong = map { "stuck: $_" } $log =~ /^# watchdog: (\S+) is stuck/mg;
    push @wrong, "exit status $status" if $status != 0 && $status != 1 && $status != 77;
    push @wrong, "a skip that is not listed: $1" if $log =~ /^# FAIL (\d+ (?:more )?skip.*)/m;
    push @wrong, map { "names no quirk: $_" } unnamed($log);
    push @wrong, "refused: $1"
        if $log =~ /^# vpmu: (no .*|.* is no quirk .*|.* does not begin .*)/m;
    push @wrong, map { "fails only after others: $_" } echoes($log, @machine) if !@wrong;
    return @wrong;
}

my @machines = machines();
plan tests => 2 + @machines;
is_deeply([unnamed("1..3\n# measured: x\nnot ok 1 - a.b\n# CPU 1: 3 NMIs came\nok 2 - c.d\n"
             . "# 0, want 1\nnot ok 3 - e.f\n# measured: x\nnot ok 4 - sched.g\n")],
    ['e.f', 'sched.g'], 'a failure without a cause, or with one that it cannot have, is found');
ok(@names > 20 && @quirks > 35 && @groups > 80, 'models, quirks and groups are read');
for (@machines) {
    my ($pmu, $smp, $tests) = @$_;
    my ($status, $log) = run($pmu, $smp, $tests);
    my @wrong = wrong($status, $log, $pmu, $smp);
    my ($verdict) = $log =~ /^# ((?:PASS|FAIL|NONE|CRASH|HANG|BROKEN)\b.*?)(?: \[.*)?$/m;
    ok(!@wrong, "$pmu, $smp CPU: " . ($verdict // 'no verdict'))
        or diag(map { "$_\n" } @wrong, "make run PMU=$pmu SMP=$smp TESTS='$tests'");
}
