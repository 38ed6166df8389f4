#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The matrix of machines, one line each; two run at a time (JOBS=2). Logs stay in build/logs;
# `times` there says how many seconds of processor time each machine took. What failed is named once
# more at the end. With patterns on the command line only the machines that match one:
# prove -v tests/host/matrix.t :: NUMA '^Bochs'
use strict;
use warnings;
use Test::More;
use File::Path 'make_path';
use FindBin '$Bin';
use lib $Bin;
use Environment;
use RunLog;

my $build = $ENV{BUILD} // 'build';
my $logs = "$build/logs";
make_path($logs);
Environment::forget();
$ENV{TIMEOUT} = 300;

# Globs of the groups whose tests all need a counter: without a PMU each must be skipped.
my @counting = qw(exact pmu hal_overflow tp_driver tp_exact tp_isolate tp_cost vpmu);
my $counts = join '|', map { "$_\\w*\\." } @counting;

# What is wrong with a log whose closing line counts fewer.
sub at_least
{
    my ($tests, $checks) = @_;
    return sub {
        my ($passed, $made) = $_[0] =~ /^# (\d+) passed, .* (\d+) checks$/m
            or return 'no closing line';
        return $passed >= $tests && $made >= $checks ? ()
            : "$passed tests, $made checks; want $tests, $checks";
    };
}

# Quirks of the virtual PMU, joined as they let each other show; a test of its name shows each, and
# must not be skipped.
no warnings 'qw'; # commas are meant
my @quirks = qw(
    haswell skylake nehalem alderlake lunarlake zen3 zen4
    kvm-5.15-intel kvm-6.8-intel kvm-6.8-amd kvm-mediated
    intel-v5,wrmsr=-1,ignoremsrs,left=0x100000003,far=2,debugctl=ignore,lostpmi
    intel-v4,hyperv,owned=1,wrap0,gp=10,debugctl=ignore,c1e,throttle=5
    intel-v5,twice,lvtmask=never,dead=2+32,vmrun
    intel-v2,freeze-lag=300,exitcost=20000
    amd-k7,emulraw,lostpmi=2
    amd-ext,ipc=3,ignoremsrs,far,debugctl=ignore,owned=0+3
    amd-v2,hyperv,dead=5,wrap0,pitjitter,left=3
    amd-v2,twice,noemul,contend=5
    amd-zen5,freeze-lag=10,c1e,throttle=3,v2bits=keep amd-v2,v2bits=fault
    intel-v4,sticky=32+33+55,debugctl=ignore
    intel-v5,condchg,ref=5,refrate,tsc=200000 amd-v2,tsc=-300000,nofence,v2status,v2bits=fault
    intel-v5,smi=1000:500 amd-v2,smi=300:1000,smi3 intel-v4,nmi=100
    intel-v6,hybrid,smalllist,dbends,lbrleft intel-v5,lbrleft amd-ext,lbrleft
    amd-v2,fused,lbrlost,dbends intel-v5,x2apic=2,deadline
);

# What the named machines are made of.
my %made = map { (split /\t/)[0, 1] } `tests/names MACHINE`;

# Quirks that are on none of these; step and seed change what others do.
my @nowhere = do {
    my %on = map { /^([\w-]+)/ => 1 } map { split /,/, $made{$_} // $_ } @quirks;
    grep { !$on{$_} && !/^(?:step|seed)$/ } map { /^([\w-]+)/ } `tests/names QUIRK`;
};

# On those that do not run whole.
my $sampled = join ',', qw(
    measured* exact* tp_exact* pmu_absent* pmu_cpuid* pmu_pmi* pmu_auto* pmu_together* pmu_thres*
    hal_overflow* etw_samples* profile_sampling*);
# What something costs, and how often a picture of hot code samples it, is promised for the build
# that ships.
my $not_shipped = '*,-*cost*,-profile_*,-pmu_exact*,-pmu_faults*,-pmu_pmi_lost*,-vpmu*';

# With verbose: no test takes longer than so many seconds by the machine's clock.
sub none_longer_than
{
    my ($most, $tests) = @_;
    return sub {
        my ($n, @wrong) = (0);
        for (my $log = $_[0]; $log =~ /^# (\w+\.\w+): .*\n(?:.*\n)*?# took (\d+) us$/mg; $n++) {
            push @wrong, "$1 took $2 us" if $2 > 1e6 * $most;
        }
        return $n >= $tests ? @wrong : "$n tests said how long they took";
    };
}

# What shows that the tests of these quirks ran.
sub shown
{
    my (undef, @words) = split /,/, $made{$_[0]} // $_[0];
    my @names = map { /^([\w-]+)/ ? $1 =~ tr/-/_/r =~ s/^smi3$/smi/r : () } @words;
    return map { qr/^ok \d+ - vpmu_quirks\.$_$/m } @names;
}

# Of tests that leave something and, after each, one that wants everything to be there: which
# did otherwise than they should, and whose output is long.
sub wrong_leaves
{
    my ($log) = @_;
    my ($lines, $n, @wrong) = (0, 0);
    for (split /\n/, $log) {
        $lines++;
        my ($not, $name, $skip) = /^(not )?ok \d+ - selfcheck_leaves\.(\w+)( # SKIP)?/ or next;
        $n++;
        push @wrong, "$name: " . ($not ? 'fails' : 'passes')
            if !$skip && !$not != !!($name =~ /_first$|_then$/);
        push @wrong, "$name: $lines lines" if $not && $lines > 14;
        $lines = 0;
    }
    return (@wrong, $n >= 45 ? () : "$n tests");
}

# Name, variables of tests/run, exit status, what the log must match; a pattern with ! must not; or
# a sub that says what is wrong.
my @machines = (
    ['intel-v4, 1 CPU, a period of 6 ms', "PMU=intel-v4 ARGS='tick=6000 verbose'", 0,
     none_longer_than(2, 1000)],
    ['a period of 6 ms, 4 CPU, what waits',
     "SMP=4 ARGS='tick=6000 verbose' TESTS='etw_*,sched*,smp*,time*,tp_*,synch*'", 0,
     none_longer_than(2, 200)],
    ['the default machine', '', 0, qr/^# machine: QEMU tcg, 1 CPU, .* intel-v5 \(.+\)$/m],
    ['amd-v2, 4 CPU', 'PMU=amd-v2 SMP=4', 0, '!^# smp: '], # each CPU is there
    ['intel-v2, 4 CPU', "PMU=intel-v2 SMP=4 TESTS='*,-slow'", 0, '!^# smp: '],
    # Machines with names: this whole, the others by groups. `make machines` runs them all whole.
    ['alderlake, 2 CPU', 'PMU=alderlake SMP=2', 0],
    (map { ["$_, 2 CPU, groups where it differs", "PMU=$_ SMP=2 TESTS='$sampled'", 0] }
        grep { $_ ne 'alderlake' } sort keys %made),
    (map { ["intel-v2, $_ CPU, scheduler and exactness",
            "PMU=intel-v2 SMP=$_ TESTS='smp*,sched*,exact*,tp_switch*'", 0] } 8, 16),
    (map { ["$_->[0], 1 CPU", "BUILD=$build/$_->[1] TESTS='$not_shipped$_->[2]'", 0] }
        # its tests are longer code
        ['undefined behaviour traps', 'ubsan', ',-etw_samples.with_counters,-kinds.journey'],
        ['built by clang', 'clang', '']),
    ['wrong addresses are found, and there are none',
     "BUILD=$build/kasan SMP=2 "
         . "TESTS='kasan*,tp_threads*,object*,etw_win32*,-*cost*,user*,hal_overflow*'",
     0, qr/^ok \d+ - kasan\.stack$/m],
    ['races are found, and there are none',
     "BUILD=$build/kcsan SMP=4 PMU=none ICOUNT=off "
         . "TESTS='kcsan*,collide*,object*,sched*,synch*'",
     77, qr/^ok \d+ - kcsan\.marked$/m, qr/ passed, 0 failed, /],
    (map { ["$_, 1 CPU", "PMU=$_", 0] } qw(intel-v1 amd-ext)),
    ['intel-v5, 1 CPU, everything as often as the contract wants', 'PMU=intel-v5 ARGS=long', 0,
     at_least(1070, 370000)],
    ['fuzz and collisions, long, zen3, 2 CPU',
     "PMU=zen3 SMP=2 ARGS=long TESTS='service_fuzz*,dispatcher_time*,boot_info*,hal_overflow*,"
         . "hal_pmc*,pmu_quiet*,pmu_masked*,pmu_two*,pmu_cache*,profile_*,etw_counts*,"
         . "etw_samples*,exceptions*,vpmu.*,tp_cost*'", 0],
    (map { ["$_->[0], $_->[1] CPU, thread profiling, isolate$_->[2]",
            "PMU=$_->[0] SMP=$_->[1] ARGS='counters=isolate$_->[2]' TESTS='tp_*,exact*'", 0] }
        ['intel-v1', 2, ''], ['intel-v5', 4, ' long'], ['amd-k7', 2, ''], ['amd-v2', 2, ' long']),
    ['no RDPMC in ring 3, 2 CPU',
     "PMU=zen3 SMP=2 ARGS=rdpmc=off TESTS='tp_*,exact*,pmu_rdpmc*,vpmu_quirks.irq3'", 0,
     qr/^ok \d+ - tp_exact\.sum$/m],
    ["10,000 runs of one instruction, 100 of a million", "SMP=4 ARGS=long TESTS='tp_exact*'", 0],
    (map { ["payload on $_", "PMU=$_ PAYLOAD=$build/payload.elf", 0, qr/^# PASS payload$/m] }
        qw(intel-v4 amd-v2)),
    ['a payload that is none', "PAYLOAD=Makefile", 2,
     qr/^tests\/run: PAYLOAD='Makefile' is no multiboot 1 image$/m],
    ['this kernel as its own payload',
     "PMU=intel-v4 PAYLOAD=$build/ntpmu.bin PAYLOAD_ARGS='tests=exact*'", 0,
     qr/^# PASS payload: it ended with debug-exit value 16$/m],
    ['conformance, intel-v5: no test was lost', "PMU=intel-v5 TESTS='pmu_*'", 0,
     at_least(550, 15000)],
    ['conformance, intel-v5 that steps: REP counts once',
     "PMU=intel-v5,step TESTS='pmu_rep*,pmu_instr*,pmu_oracle*,pmu_branches*,pmu_adds_up*'",
     0, at_least(43, 1000)],
    ['conformance, amd-v2: no test was lost', "PMU=amd-v2 TESTS='pmu_*'", 0, at_least(300, 7000)],
    ['what became of every id of the virtual PMU', "PMU=intel-v4 SMP=2 TESTS='vpmu*'", 0,
     qr/^# PASS of the ids VP /m],
    # SMIs come between whatever else is counted.
    ['the first counters are left out', "PMU=zen4,dead=0+1+3 TESTS='hal_*,profile_counters*'", 0],
    (map { ["quirks: $_", "PMU=$_ SMP=2 TESTS="
             . (/(smi|nmi)/ ? "vpmu_quirks.$1" : 'vpmu_quirks\*,measured.traps'), 0,
            shown($_)] } @quirks),
    ['lists of two depths, at length',
     "PMU=alderlake,smalllist SMP=2 ARGS=long TESTS='lbr*,arch_lbr*,etw_lbr*'", 0,
     at_least(30, 6000)],
    ['interrupts of samples are lost, and no sample',
     "PMU=zen3,lostpmi=8 ARGS=long TESTS='profile_sampling*,etw_samples*'", 0,
     qr/^# \d+ samples, of which [1-9]\d* of overflows whose interrupt was lost$/m],
    ['NMIs of samples are lost, and no sample',
     "PMU=intel-v4,lostpmi=3 ARGS=pmi=nmi TESTS='etw_samples*,profile_sampling*'", 0,
     qr/^# profile: CPU 0: the interrupt of counter 0 was lost: it is sent again$/m],
    ['SMIs while exits are measured',
     'PMU=amd-zen5,exitcost=527,smi=881:3365 SMP=2 TESTS=measured.exits', 0],
    ['overflows that stop their counter while traps are measured',
     "PMU=amd-v2,irq3=1,throttle=1 SMP=4 "
     . "TESTS='measured.traps,vpmu_quirks.irq3,vpmu_quirks.no_nmi'", 0, at_least(3, 100)],
    ['intel-v6: its own registers', "PMU=intel-v6 TESTS='vpmu_v6*'", 0, at_least(6, 300)],
    (map { ["$_->[0], $_->[1] CPU: by x2APIC", "PMU=$_->[0] SMP=$_->[1] TESTS="
             . "'hal_overflow*,smp*,pmu_pmi*,profile_sampling*,vpmu_quirks.x2apic*'", 0,
            qr/^# running: $_->[1] CPUs?, x2APIC,/m, at_least(30, 3000)] }
        ['amd-v2,x2apic', 4], ['intel-v4,x2apic=2', 1]),
    ['no such quirk: there is no PMU, and all quirks are named',
     "PMU=intel-v5,irq4 TESTS='vpmu_quirks*'", 77,
     qr/^# vpmu: no quirk "irq4"; there are .*irq3\[=N\]/m],
    ['amd-k7, 1 CPU, 64 MiB; clocks and counters begin before their wrap',
     'PMU=amd-k7 MEMORY=64 ARGS=wrap', 0],
    # Machines that once broke it, by what broke there; each ran whole by hand.
    ['28 MiB', "MEMORY=28 TESTS='phys*,memory*,tp_threads*,user*'", 0],
    ['a processor with SSE3 only',
     "QEMU_ARGS='-cpu qemu64' TESTS='vpmu.instructions,vpmu_quirks.c1e,traps*'", 0,
     qr/^# this processor lacks popcnt rax, /m],
    ['XSAVE without XSAVEOPT', "PMU=none QEMU_ARGS='-cpu Opteron_G5' TESTS='fpu*,sched*,traps*'",
     77, qr/^# fpu: x87 SSE, 512 bytes by FXSAVE$/m],
    ['XSAVE without XSAVEOPT, below a virtual PMU',
     "PMU=amd-v2 QEMU_ARGS='-cpu Opteron_G5' TESTS='fpu*,exact*,traps*'", 0],
    ['EPYC-Milan', "PMU=amd-v2 QEMU_ARGS='-cpu EPYC-Milan' TESTS='exact*,fpu*,hal_overflow*'", 0],
    ['phenom', "PMU=amd-ext QEMU_ARGS='-cpu phenom' TESTS='vpmu.instructions,exact*,fpu*'", 0],
    ['q35', "QEMU_ARGS='-M q35' TESTS='acpi*,clock*,exact*'", 0],
    ['no HPET: the virtual PMU steps',
     "QEMU_ARGS='-machine hpet=off' TESTS='exact*,pmu_rep.*,clock*'", 0,
     qr/^# vpmu: intel-v5: no HPET for the alarm: stepping/m],
    ['each string instruction counts 1', "SMP=2 ARGS=long TESTS='exact.strings,pmu_rep.*'", 0],
    ['microvm', "PMU=none QEMU_ARGS='-M microvm' TESTS='acpi*,clock*,sched*,smp*'", 77],
    ['microvm, virtual PMU', "QEMU_ARGS='-M microvm' TESTS='acpi*,exact.known*'", 0],
    ['3 CPU', "SMP=3 ARGS=wrap TESTS='smp*,sched*,exact*,tp_switch*'", 0],
    ['66 CPU, two processor groups, virtual PMU', "SMP=66 TESTS='groups*,smp.call_*,exact.raw*'", 0,
     qr/^# running: 66 CPUs,/m],
    ['66 CPU: what is of a group, what is of each',
     "PMU=none SMP=66 TESTS='etw_lists*,etw_class*,etw_win32.owners,hal_refusals*,profile_input*,"
         . "profile_interrupt.inside*,dispatcher_time.idle*'", 77,
     qr/ 0 failed, /],
    # Emulated by a thread of the host for each, without an instruction clock: in the middle of what
    # takes a few instructions.
    ['4 CPU at once: they collide',
     "PMU=none SMP=4 ICOUNT=off ARGS=long TESTS='collide*'", 77,
     qr/^# 4 passed, 0 failed, /m],
    ['two NUMA nodes',
     "SMP=2 TESTS='smp*,acpi*,phys*,exact*' QEMU_ARGS='"
         . '-object memory-backend-ram,id=a,size=128M -object memory-backend-ram,id=b,size=128M '
         . "-numa node,memdev=a,cpus=0 -numa node,memdev=b,cpus=1'", 0,
     qr/^# running: 2 CPUs,/m],
    (map { ["firmware that leaves $_->[0]",
            "PMU=$_->[1] SMP=$_->[2] MEMORY=5000 FIRMWARE='$_->[3]' "
                . "TESTS='sched*,time*,traps*,clock*,smp*,exact*'",
            $_->[1] eq 'none' ? 77 : 0, @$_[4 .. $#$_]] }
        ['control registers with every bit set', 'none', 2, 'registers'],
        ['lines of its interrupt controller open', 'none', 2, 'lines',
         qr/^# io apic: firmware had left 3 lines open/m],
        ['an interrupt in service', 'none', 2, 'service'],
        ['ACPI tables above 4 GB', 'none', 4, 'high', qr/^# running: 4 CPUs,/m],
        ['a wrong XSDT beside a good RSDT', 'none', 4, 'sum', qr/^# running: 4 CPUs,/m],
        ['CPUs that cannot be reached', 'none', 2, 'many',
         qr/^# smp: 1000 CPUs have APIC ids above 254, and .*\n(#.*\n)*# running: 2 CPUs,/m],
        ['CPUs that do not exist', 'none', 2, 'ghosts',
         qr/^# smp: the CPU with APIC id 209 does not start: left out$/m, qr/^# running: 2 CPUs,/m],
        ['all of that, below a virtual PMU', 'amd-v2', 2, 'registers lines service high',
         qr/^# io apic: firmware had left 2 lines/m]),
    ['CPUs that were not chosen', "PMU=none SMP=4 ARGS=cpus=2-3 TESTS='smp*'", 77,
     qr/^# smp: 1 of 4 CPUs not among cpus=2-3: parked\n(#.*\n)*# running: 3 CPUs,/m],
    ['255 CPUs, the last of them',
     "PMU=none SMP=255 ARGS=cpus=192-254 TESTS='smp*,irql*,clock*'", 77,
     qr/^# smp: 191 of 255 CPUs not among cpus=192-254: parked\n(#.*\n)*# running: 64 CPUs,/m],
    ['255 CPUs, four processor groups', "PMU=none SMP=255 TESTS='groups*,smp*'", 77,
     qr/^# running: 255 CPUs,/m],
    ['more CPUs than may run', "PMU=none SMP=5 ARGS=cpus=3 TESTS='smp*'", 77,
     qr/^# smp: 2 CPUs stay parked: 3 run; .*\n(#.*\n)*# running: 3 CPUs,/m],
    ['words that make no sense', "ARGS='cpus=2- tick=99' TESTS='smp*'", 0,
     qr/^# cpus=2- is neither a number nor a range .*\n(#.*\n)*# tick=99 is no period: /m],
    ['words that make sense',
     "ARGS='long fuzz=1 phase=1 watchdog=3000 tick=999 cpus=1-1 verbose counters=isolate rdpmc=off "
         . "hal=1809' SMP=2 "
         . "TESTS='smp.call_*'", 0, '!^# boot: not understood'],
    ['no PIT: others give the time',
     "QEMU_ARGS='-machine pit=off' TESTS='clock*,acpi*,sched*,time*,exact*'", 0,
     qr/^# clock: .*by HPET, as by PM timer; no answer: PIT;/m],
    ['another TSC than 1 GHz, 2 CPU', "ICOUNT=off PMU=none SMP=2 TESTS='clock*,sched*,time*'", 77,
     qr/^# clock: .*as by PM timer, PIT;/m],
    ['another TSC than 1 GHz, ACPI timer only',
     "ICOUNT=off PMU=none QEMU_ARGS='-machine pit=off,hpet=off' TESTS='clock*,sched*,time*'", 77,
     qr/^# clock: .* by PM timer; no answer: HPET, PIT;/m],
    ['another TSC than 1 GHz, nothing gives it: says so',
     "ICOUNT=off PMU=none QEMU_ARGS='-machine pit=off,hpet=off,acpi=off' TESTS='clock*,sched*'",
     77, qr/^# clock: nothing here reports the TSC's rate: 1000 MHz is a guess/m],
    ['NMIs during stepped handlers and page faults of a test, 2 CPU',
     "PMU=intel-v1,ipc=6,nmi=143,noemul SMP=2 TESTS='pmu_edge*,pmu_exact.page_faults'", 0],
    ['interrupts of counters as NMIs, 4 CPU',
     "SMP=4 ARGS=pmi=nmi TESTS='profile_*,source_*,hal_*,etw_*'", 0],
    (map { ["$_, 4 CPU, owners, sources and profiles",
            "PMU=$_ SMP=4 TESTS='hal_*,source_*,profile_*'", 0] }
        qw(intel-v1 intel-v5 amd-k7)),
    ['no ACPI: one of 4 CPUs, and says so',
     "SMP=4 QEMU_ARGS='-machine acpi=off' TESTS='acpi*,smp*,clock*,time*,sched*,exact*'", 0,
     qr/^# acpi: .*one CPU only/m],
    ['no PMU, 1 CPU: says so, counts nothing', 'PMU=none', 77, "!^ok \\d+ - (?:$counts)\\w+\$",
     qr/^# pmu: [^;\n]*: there is no PMU(?: \(.*\))?$/m],
    ['no PMU, 4 CPU: says so, counts nothing', 'PMU=none SMP=4', 77,
     "!^ok \\d+ - (?:$counts)\\w+\$"],
    ['only the tests asked for', "TESTS='exact*'", 0, '!^ok \d+ - (?!exact)'],
    ['no such test', 'TESTS=nonsense', 77],
    ['list', 'LIST=1 PMU=intel-v5', 0, qr/^service_fuzz\.exports - \S/m],
    ['list of groups', "LIST=1 TESTS='s*'", 0, qr/^sched\.\w+ - /m, '!^(?!s)\w+\.\w+ - '],
    ['list of the slow tests', 'LIST=1 TESTS=slow', 0, qr/^service_fuzz\.exports - /m,
     '!^\w+\.\w+ - (?!.*\bslow\]$)'],
    ['list of the others', "LIST=1 TESTS='*,-slow'", 0, qr/^exact\.raw/m, '!\bslow\]$'],
    ['profile sources, with the kinds of CPU', 'LIST=pmcsources PMU=alderlake SMP=2', 0,
     qr/^ {3}0  Timer +10000 +1221 +1000000 .*\n(.*\n)* {3}2  TotalIssues .*, Gracemont$/m],

    ['0: a test passes', 'TESTS=selfcheck.pass', 0, qr/^ok 1 - selfcheck\.pass$/m],
    ['1: a test fails', 'TESTS=selfcheck.fail', 1,
     qr/^# tests\/\S+:\d+: .*\n# what does not hold: .+\nnot ok 1 - selfcheck\.fail\n/m],
    ['1: a test checks nothing', 'TESTS=selfcheck.empty', 1,
     qr/^# nothing was checked\n# what does not hold: .+\nnot ok 1 - selfcheck\.empty\n/m],
    ['1: a skip that no list names', 'TESTS=selfcheck.skip', 1, qr/# FAIL skip.*selfcheck\.skip: /],
    ['1: a stuck thread is named, the run goes on', "TESTS='selfcheck.?a??' ARGS=watchdog=100", 1,
     qr/^not ok 2 - selfcheck\.hang\n(#.*\n)*ok 3 - selfcheck\.pass$/m],
    ['1: SMIs that came during a failed test are reported',
     'PMU=intel-v5,smi=300:500 TESTS=selfcheck.hang ARGS=watchdog=100', 1,
     qr/^# [1-9]\d* SMIs came on CPU 0 meanwhile: .*\n(#.*\n)*not ok 1 - selfcheck\.hang$/m],
    ['1: what a failed test left is put back',
     "PMU=intel-v5 ARGS=watchdog=100 TESTS='selfcheck_leaves*'", 1, \&wrong_leaves],
    ['99: a thread that cannot be ended, because it has a spin lock',
     'SMP=2 TESTS=selfcheck.lock_held ARGS=watchdog=100', 99,
     qr/^# watchdog: selfcheck\.lock_held is stuck/m,
     qr/ cannot be ended(.*\n)*# CRASH .*\(selfcheck\.lock_held\)/],
    ['99: panic', 'TESTS=selfcheck.panic', 99,
     qr/# CRASH the kernel panicked; .*\(selfcheck\.panic\)/],
    ['99: panic, while another CPU prints',
     'ICOUNT=off PMU=none SMP=2 TESTS=selfcheck.panic_beside', 99, qr/^# another CPU prints$/m,
     '!^# PANIC .*\n(.*\n)*# another CPU prints'],
    ['99: a kernel stack that is used up', 'TESTS=selfcheck.stack', 99,
     qr/^# PANIC .*thread stack has overflowed its kernel stack/m],
    ['99: triple fault', 'TESTS=selfcheck.triple_fault', 99,
     qr/triple fault.*\n(.*\n)*# CRASH .*\(selfcheck\.triple_fault\)/],
    ['124: a hang only the host can end', 'TESTS=selfcheck.spin_irqs_off TIMEOUT=5', 124,
     qr/# HANG .*\(selfcheck\.spin_irqs_off\) of 1\n\z/],
);

# Another emulator, with another clock, HPET and opinion of SVM. Its processor promises counters
# that do not count. It is slow: it begins first, and what is the same on any ground runs on QEMU.
unshift @machines,
    ['Bochs, intel-v5',
     'MACHINE=bochs PMU=intel-v5 '
     . "TESTS='pmu_*,hal_overflow*,profile_sampling*,etw_samples*,exact*,vpmu*,*lbr*,"
     . "tp_exact*,tp_counts*,tp_read*,tp_switch*,tp_torn*,debug_*,traps*'", 0,
     qr/instruction clock/, qr/^# clock: .* by HPET, as by PM timer, PIT;/m],
    ['Bochs, amd-v2', "MACHINE=bochs PMU=amd-v2 TESTS='pmu_*,exact*,vpmu*,amd_lbr*,traps*'", 0,
     qr/instruction clock/],
    ['Bochs, 400 MHz and a dead PIT',
     "MACHINE=bochs PMU=intel-v5,pit=dead MIPS=400 TESTS='clock*,sched*,time*,exact*,tp_exact*'", 0,
     qr/^# clock: TSC (?:399\.99|400\.00)\d MHz by HPET, as by PM timer; no answer: PIT;/m],
    ['Bochs, no virtual PMU: says so, counts nothing',
     "MACHINE=bochs PMU=none TESTS='hal_counters*,pmu_absent*,exact*'", 77,
     "!^ok \\d+ - (?:$counts)\\w+\$", qr/^# NONE .* is not what WRMSR wrote /m]
    if !system 'command -v bochs >/dev/null';

my (%running, @failed);
open my $times, '>', "$logs/times" or die "$logs/times: $!";

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
        delete $ENV{ACCEL} if $variables =~ /MACHINE=bochs/; # which knows none
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
        push @wrong, ($not ? 'must not match ' : 'must match ') . $pattern
            if !!$not == !!($log =~ /$pattern/m);
    }
    push @wrong, "a log of $1 bytes: at most 60000 were promised"
        if $log =~ /\[(\d+) bytes, crc32 /m && $1 > 60_000 && $log !~ /^# ntpmu: boot .*verbose/m;
    return if ok(!@wrong, $run->{name});
    my ($names, @lines) = RunLog::failures($log);
    diag(map { "$_\n" } @wrong, "make run $variables    # $run->{log}:", map { "    $_" } @lines);
    push @failed, map { "    $_\n" } $run->{name}, map { "    $_" } @wrong,
        @$names ? @$names : $lines[-1] // ();
}

$SIG{INT} = $SIG{TERM} = sub { kill TERM => keys %running; exit 1 };
@machines = grep { my $name = $_->[0]; grep { $name =~ /$_/ } @ARGV } @machines if @ARGV;
my @builds = grep { my $build = $_->[0]; !@ARGV
                    || grep { $_->[1] =~ m{^BUILD=\S+/$build } } @machines }
    ['ubsan', 'UBSAN=1'], ['kasan', 'KASAN=1'], ['kcsan', 'KCSAN=1'], ['clang', 'CC=clang'];
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
    while (!ref $machine->[0] || !exists $machine->[0]{status}) {
        start(shift @waiting) while @waiting && keys %running < ($ENV{JOBS} // 2);
        my $before = (times)[2];
        my $pid = wait;
        my $run = delete $running{$pid} or next;
        printf $times "%6.1f %s\n", (times)[2] - $before, $run->{name};
        $run->{status} = $? & 127 ? 128 + ($? & 127) : $? >> 8;
    }
    judge(@$machine);
}
diag("What failed:\n", @failed) if @failed;
