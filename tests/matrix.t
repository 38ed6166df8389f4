#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The matrix of machines, one line each; two run at a time (JOBS=2). Logs stay in build/logs.
use strict;
use warnings;
use Test::More;
use File::Path 'make_path';

my $build = $ENV{BUILD} // 'build';
my $logs = "$build/logs";
make_path($logs);
delete @ENV{qw(MAKEFLAGS MFLAGS ACCEL PMU SMP TESTS ARGS MACHINE MEMORY TIMEOUT GDB LIST QEMU_ARGS)};

# Globs of the groups whose tests all need a counter: without a PMU every one of them must be skipped.
my @counting = qw(exact pmu hal_overflow tp_driver tp_exact tp_isolate tp_cost vpmu);
my $counts = join '|', map { "$_\\w*\\." } @counting;

# What is wrong with a log whose closing line counts fewer.
sub at_least
{
    my ($tests, $checks) = @_;
    return sub {
        my ($passed, $made) = $_[0] =~ /^# (\d+) passed, .* (\d+) checks$/m or return 'no closing line';
        return $passed >= $tests && $made >= $checks ? () : "$passed tests, $made checks; want $tests, $checks";
    };
}

# Name, variables of tests/run, exit status, what the log must match; a pattern with ! must not; or a sub that says what is wrong.
my @machines = (
    ['the machine chosen without being told', '', 0, qr/^# machine: .*\(.+\)$/m],
    (map {
        my $model = $_;
        map { ["$model, $_ CPU", "PMU=$model SMP=$_", 0] } 1, 2, 3, 4
    } qw(intel-v2 amd-v2)),
    (map { ["intel-v2, $_ CPU, scheduler and exactness", "PMU=intel-v2 SMP=$_ TESTS='smp*,sched*,exact*,tp_switch*'", 0] } 8, 16),
        # What something costs, and how often a picture of hot code samples it, is promised for the build that ships.
    (map { ["$_->[0], 4 CPU", "BUILD=$build/$_->[1] SMP=4 TESTS='*,-*cost*,-profile_*,-pmu_exact*,-pmu_faults*,-pmu_pmi_lost*,-vpmu*'", 0] }
        ['undefined behaviour traps', 'ubsan'], ['built by clang', 'clang']),
    (map { ["$_, 1 CPU", "PMU=$_", 0] } qw(intel-v1 intel-v4 intel-v5 amd-k7 amd-ext)),
    (map {
        my $model = $_;
        map { ["$model, $_ CPU, thread profiling, isolate, long", "PMU=$model SMP=$_ ARGS='counters=isolate long' TESTS='tp_*,exact*'", 0] } 1, 4
    } qw(intel-v1 intel-v2 intel-v4 intel-v5 amd-k7 amd-ext amd-v2)),
    ["10,000 runs of one instruction, 100 of a million", "SMP=4 ARGS=long TESTS='tp_exact*'", 0],
    (map { ["payload on $_", "PMU=$_ PAYLOAD=$build/payload.elf", 0, qr/^# PASS payload$/m] } qw(intel-v4 amd-v2)),
    ['payload with memory above 4 GB', "MEMORY=5120 PAYLOAD=$build/payload.elf", 0, qr/^# PASS payload$/m],
    ['a payload that is none', "PAYLOAD=Makefile", 77, qr/^# payload: .*no multiboot/m],
    ['a payload on top of us', "PAYLOAD=$build/ntpmu.bin", 77, qr/^# payload: .*overlaps ntpmu/m],
    ['conformance, intel-v5: no test was lost', "PMU=intel-v5 TESTS='pmu_*'", 0, at_least(550, 15000)],
    ['conformance, intel-v5 that steps: REP counts once', "PMU=intel-v5,step TESTS='pmu_rep*,pmu_instr*,pmu_oracle*,pmu_branches*'",
     0, at_least(30, 500)],
    ['conformance, amd-v2: no test was lost', "PMU=amd-v2 TESTS='pmu_*'", 0, at_least(300, 7000)],
    ['what became of every id of the virtual PMU', "PMU=intel-v4 SMP=2 TESTS='vpmu*'", 0, qr/^# PASS of the ids VP /m],
    ['64 MiB', 'MEMORY=64', 0],
    ['interrupts of counters as NMIs, 4 CPU', "SMP=4 ARGS=pmi=nmi TESTS='profile_*,source_*,hal_*,etw_*'", 0],
    (map { ["$_, 4 CPU, owners, sources and profiles", "PMU=$_ SMP=4 TESTS='hal_*,source_*,profile_*'", 0] }
        qw(intel-v1 intel-v5 amd-k7)),
    ['no ACPI: one of 4 CPUs, and says so', "SMP=4 QEMU_ARGS='-machine acpi=off'", 0, qr/^# acpi: .*one CPU only/m],
    ['no PMU, 1 CPU: says so, counts nothing', 'PMU=none', 77, "!^ok \\d+ - (?:$counts)\\w+\$"],
    ['no PMU, 4 CPU: says so, counts nothing', 'PMU=none SMP=4', 77, "!^ok \\d+ - (?:$counts)\\w+\$"],
    ['only the tests asked for', "TESTS='exact*'", 0, '!^ok \d+ - (?!exact)'],
    ['no such test', 'TESTS=nonsense', 77],
    ['list', 'LIST=1', 0, qr/^\w+\.\w+ - \S/m],

    ['0: a test passes', 'TESTS=selfcheck.pass', 0, qr/^ok 1 - selfcheck\.pass$/m],
    ['1: a test fails', 'TESTS=selfcheck.fail', 1, qr/^# tests\/\S+:\d+: .*\n# what does not hold: .+\nnot ok 1 - selfcheck\.fail\n/m],
    ['1: a skip that no list names', 'TESTS=selfcheck.skip', 1, qr/# FAIL skip.*selfcheck\.skip: /],
    ['1: a stuck thread is named, the run goes on', "TESTS='selfcheck.?a??'", 1,
     qr/^not ok 2 - selfcheck\.hang\n(#.*\n)*ok 3 - selfcheck\.pass$/m],
    ['99: panic', 'TESTS=selfcheck.panic', 99, qr/# CRASH the kernel panicked; .*\(selfcheck\.panic\)/],
    ['99: triple fault', 'TESTS=selfcheck.triple_fault', 99, qr/triple fault.*\n(.*\n)*# CRASH .*\(selfcheck\.triple_fault\)/],
    ['124: a hang only the host can end', 'TESTS=selfcheck.spin_irqs_off TIMEOUT=20', 124,
     qr/# HANG .*\(selfcheck\.spin_irqs_off\) of 1\n\z/],
);

# A KVM without a PMU must be recognised as such; one with a PMU is the machine chosen without being told.
# Such a KVM may be one that emulates, a thousand times slower than the processor: then the whole run is the verdict.
push @machines, ['KVM that gives guests no PMU', 'ACCEL=kvm TIMEOUT=60', 77, qr/^# NONE .*no PMU/m],
    ['the same, some groups', "ACCEL=kvm TESTS='copy*,irql*,hal_*,tp_config*,phys*,pmu_*,exact*,vm*'", 77]
    if -e '/dev/kvm' && `cat /sys/module/kvm/parameters/enable_pmu 2>/dev/null` ne "Y\n";

# Another emulator, with another clock, HPET and opinion of SVM. Its processor promises counters that do not count.
push @machines,
    (map { ["Bochs, $_", "MACHINE=bochs PMU=$_", 0, qr/instruction clock/] } qw(intel-v5 amd-v2)),
    ['Bochs, no virtual PMU: says so, counts nothing', "MACHINE=bochs PMU=none TESTS='hal_*,pmu_*,exact*,tp_*'", 77,
     "!^ok \\d+ - (?:$counts)\\w+\$", qr/^# NONE .* is not what WRMSR wrote /m],
    ['Bochs, 99: panic', 'MACHINE=bochs TESTS=selfcheck.panic', 99, qr/# CRASH .* without a verdict; /]
    if !system 'command -v bochs >/dev/null';

my %running;

sub start
{
    my ($machine) = @_;
    my ($name, $variables) = @$machine;
    (my $file = $name) =~ s/\W+/-/g;
    $machine->[0] = { name => $name, log => "$logs/$file.log" };
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', "$logs/$file.log" or die "$logs/$file.log: $!";
        open STDERR, '>&', \*STDOUT;
        exec '/bin/sh', '-c', "$variables exec tests/run";
    }
    $running{$pid} = $machine->[0];
}

sub judge
{
    my ($run, $variables, $want, @patterns) = @_;
    open my $in, '<', $run->{log};
    my $log = join '', <$in>;
    my @wrong = $run->{status} == $want ? () : "exit status $run->{status}, want $want";
    push @wrong, map { $_->($log) } grep { ref eq 'CODE' } @patterns;
    for (grep { ref ne 'CODE' } @patterns) {
        my ($not, $pattern) = /^(!?)(.*)/s;
        push @wrong, ($not ? 'must not match ' : 'must match ') . $pattern if !!$not == !!($log =~ /$pattern/m);
    }
    push @wrong, "a log of $1 bytes: at most 60000 were promised"
        if $log =~ /\[(\d+) bytes, crc32 /m && $1 > 60_000 && $log !~ /^# ntpmu: boot .*verbose/m;
    my @tail = split /\n/, $log;
    @tail = @tail[-15 .. -1] if @tail > 15;
    ok(!@wrong, $run->{name})
        or diag(map { "$_\n" } @wrong, "make run $variables    # $run->{log}:", map { "    $_" } @tail);
}

$SIG{INT} = $SIG{TERM} = sub { kill TERM => keys %running; exit 1 };
plan tests => 2 + @machines;
ok(!system("make -s BUILD=$build/ubsan UBSAN=1 </dev/null"), 'builds with UBSAN=1');
ok(!system("make -s BUILD=$build/clang CC=clang </dev/null"), 'builds with clang');
my @waiting = @machines;
for my $machine (@machines) {
    while (!ref $machine->[0] || !exists $machine->[0]{status}) {
        start(shift @waiting) while @waiting && keys %running < ($ENV{JOBS} // 2);
        my $pid = wait;
        my $run = delete $running{$pid} or next;
        $run->{status} = $? & 127 ? 128 + ($? & 127) : $? >> 8;
    }
    judge(@$machine);
}
