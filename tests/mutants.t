#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The tests are tested: each line breaks the drivers or the virtual PMU in one place, as silicon, a hypervisor or a slip might
# be broken, in a copy of the tree; some test must notice. `make mutants`; two at a time (JOBS=2), some minutes.
# With words on the command line only those of these names: prove -v tests/mutants.t :: status width
use strict;
use warnings;
use Test::More;
use File::Path 'make_path';

my $build = $ENV{BUILD} // 'build';
my $jobs = $ENV{JOBS} // 2;
my $tests = 'pmu_*,diagnosis*,event_tables*';
delete @ENV{qw(MAKEFLAGS MFLAGS BUILD ACCEL PMU SMP TESTS ARGS MACHINE MEMORY TIMEOUT GDB LIST QEMU_ARGS)};

# What is broken; the model; the file below pmu/; the text, which stands there once; what it becomes; tests, if others.
my @mutants = (
    # The drivers
    ['fixed counters never interrupt', 'intel-v5', 'counter.c', '#define FIXED_INTERRUPT 8u', '#define FIXED_INTERRUPT 0u'],
    ['MSRs lie side by side', 'amd-v2', 'counter.c', 'gp + ctr * pmu_caps.msr.stride', 'gp + ctr'],
    ['counters are a bit narrower', 'intel-v4', 'counter.c', '>> (-width & 63)', '>> ((1 - width) & 63)'],
    ['status is never cleared', 'intel-v4', 'counter.c', 'wrmsr(pmu_caps.msr.global_clear, status);', '(void)0;'],
    ['an old overflow stays', 'intel-v4', 'counter.c', 'wrmsr(pmu_caps.msr.global_clear, PMU_BIT(ctr));', '(void)0;'],
    ['an overflow is told twice', 'amd-k7', 'counter.c', '*armed &= ~overflowed;', '(void)0;'],
    ['one counter is armed at a time', 'amd-k7', 'counter.c', '*armed |= PMU_BIT(ctr);', '*armed = PMU_BIT(ctr);'],
    ['stopping one stops all', 'intel-v4', 'counter.c', '*running &= ~counters;', '*running = 0 * counters;', 'pmu_*,hal_*,profile_*'],
    ['a fixed counter turns the others off', 'intel-v5', 'counter.c', 'rdmsr(pmu_caps.msr.fixed_control) & ~fixed_mask(ctr)', '0'],
    ['the longest period is too long', 'intel-v2', 'counter.c', ': pmu_caps.fixed_width) >> 1;', ': pmu_caps.fixed_width);'],
    ['nothing pauses', 'intel-v4', 'counter.c', "        wrmsr(pmu_caps.msr.global_control, 0);\n    else\n        run(state[cpu].running, 0);", '        (void)0;', 'profile_*'],
    ['samples drift by what passed since', 'intel-v4', 'counter.c', '(past - period) & pmu_mask(ctr)', '-period & pmu_mask(ctr)', 'profile_*'],
    ['legacy writes are full ones', 'intel-v1', 'intel.c', 'caps->gp_write_width = 32;', 'caps->gp_write_width = caps->gp_width;'],
    ['version 5 by equality', 'intel-v5', 'intel.c', 'if (version >= 5)', 'if (version == 5)'],
    ['the length of EBX is not looked at', 'intel-v4', 'intel.c', '~leaf->ebx & first(leaf->eax >> 24) &', '~leaf->ebx &'],
    ['AMD counts are not limited', 'amd-v2', 'amd.c', 'v2->ebx & 0xf', 'v2->ebx & 0x1f'],
    # Event tables
    ['loads are stores', 'intel-v5', 'events/intel.c', '0x81, 0, PMU_FIRST(4), EXACT, "MEM_INST_RETIRED.ALL_LOADS"', '0x82, 0, PMU_FIRST(4), EXACT, ""'],
    ['an absent event is the base\'s', 'intel-v5', 'event.c', 'return row->name ? row : 0;', 'return row;'],
    ['family 15h has no constraints', 'amd-v2', 'event.c', 'return line ? line->counters : PMU_ANY_GP;', 'return PMU_ANY_GP;'],
    ['CPUID is not asked for the event', 'intel-v4', 'event.c', 'row && pmu_caps.events >> event & 1 ?', 'row ?'],
    # The self-test
    ['width is not proved', 'intel-v4', 'pmu.c', 'to->rdmsr(pmu_counter_msr(ctr), &value) || value != mask)', 'to->rdmsr(pmu_counter_msr(ctr), &value))'],
    ['an owner of the counter is not seen', 'intel-v4', 'pmu.c', 'if (value & PMU_ENABLE)', 'if (0)'],
    ['nor of a fixed one', 'intel-v4', 'pmu.c', 'if (value >> shift & 3)', 'if (0)'],
    ['RDPMC is not compared', 'intel-v4', 'pmu.c', 'if (by_rdpmc != value)', 'if (0)'],
    ['a dead counter passes', 'intel-v4', 'pmu.c', "    if (!n)\n        return PMU_COUNTERS_DEAD;\n    /* Low", "    /* Low"],
    ['a slow counter passes', 'intel-v4', 'pmu.c', 'if (n < LONG_LOOP / 4 ||', 'if ('],
    ['a double count passes', 'intel-v4', 'pmu.c', 'difference > LOOP_DIFFERENCE + LOOP_DIFFERENCE / 8', 'difference > LOOP_DIFFERENCE * 8'],
    ['lost status passes', 'intel-v4', 'pmu.c', 'if (!(to->take_overflow() >> ctr & 1))', 'if (0)'],
    ['exits are not counted', 'intel-v4', 'pmu.c', 'return prove_exits(ctr);', 'prove_exits(ctr); return PMU_OK;'],
    # The processor: registers
    ['legacy writes are not sign-extended', 'intel-v4', 'virt/model_intel.c', '(uint64_t)(int32_t)value & mask', '(uint32_t)value'],
    ['bits beyond the width are taken', 'intel-v4', 'virt/model_intel.c', "        if (value & ~mask)\n            return false;\n        p->counters[msr - A_PMC].value = value;", '        p->counters[msr - A_PMC].value = value & mask;'],
    ['AnyThread of a fixed counter is taken', 'intel-v5', 'virt/model_intel.c', 'legal |= 0xbull', 'legal |= 0xfull'],
    ['AnyThread of a select is taken', 'intel-v4', 'virt/model_intel.c', '#define SELECT_LEGAL 0xffdfffffull', '#define SELECT_LEGAL 0xffffffffull'],
    ['bits of absent counters are taken', 'intel-v5', 'virt/model_intel.c', "if (value & ~global_mask())\n            return false;\n        p->global_control", "p->global_control"],
    ['clearing one status bit clears all', 'intel-v4', 'virt/model_intel.c', 'p->status &= ~value;', 'p->status = 0;'],
    ['setting one status bit clears the others', 'intel-v4', 'virt/model_intel.c', 'p->status |= value;', 'p->status = value;'],
    ['the status can be written', 'intel-v2', 'virt/model_intel.c', "    switch (msr) {\n    case FIXED_CTR_CTRL:\n        return", "    switch (msr) {\n    case GLOBAL_STATUS:\n        return true;\n    case FIXED_CTR_CTRL:\n        return"],
    ['INUSE does not tell interrupts', 'intel-v5', 'virt/model_intel.c', 'p->fixed_control >> 4 * n & 8 ? 1ull << 63 : 0', '0'],
    ['RDPMC reads one fixed counter too many', 'intel-v4', 'virt/model_intel.c', 'ecx >> 16 == 0x4000 && index < virt_model->fixed', 'ecx >> 16 == 0x4000 && index <= virt_model->fixed'],
    ['AMD keeps bits that it should drop', 'amd-ext', 'virt/model_amd.c', 'value & SELECT_LEGAL', 'value'],
    ['the K7 registers are not the extended ones', 'amd-ext', 'virt/model_amd.c', '&p->counters[msr % K7_COUNTERS]', '&p->counters[(msr + 1) % K7_COUNTERS]'],
    ['AMD counters keep 64 bits', 'amd-k7', 'virt/model_amd.c', 'c->value = value & counter_mask(virt_model);', 'c->value = value;'],
    ['AMD cannot set status', 'amd-v2', 'virt/model_amd.c', 'p->status |= value;', '(void)0;'],
    ['AMD status can be written', 'amd-v2', 'virt/model_amd.c', 'if (msr == GLOBAL_CONTROL)', "if (msr == GLOBAL_STATUS)\n        p->status = value;\n    else if (msr == GLOBAL_CONTROL)"],
    # The processor: counting
    ['fixed counters ignore the ring', 'intel-v5', 'virt/model_intel.c', 'c->kernel = nibble & 1;', 'c->kernel = nibble & 3;'],
    ['counters ignore the ring', 'intel-v4', 'virt/count.c', 'c->event && (user ? c->user : c->kernel)', 'c->event && (user || c->user || c->kernel)'],
    ['fixed counters need no global bit', 'intel-v5', 'virt/model_intel.c', 'nibble & 3 && p->global_control >> (32 + n) & 1', 'nibble & 3'],
    ['a counter needs no enable bit', 'intel-v4', 'virt/count.c', 'c->select & SELECT_ENABLE && (c->user', '(c->user'],
    ['an instruction of a million is counted twice', 'intel-v4', 'virt/count.c', 'v->retired[user] += n;', 'v->retired[user] += n; static unsigned lost; n += n && !(++lost % 1000);'],
    ['wraps one early', 'intel-v4', 'virt/count.c', 'if (c->value > mask)', 'if (c->value >= mask)'],
    ['a threshold is not reached by itself', 'intel-v4', 'virt/count.c', '(n >= c->threshold)', '(n > c->threshold)'],
    ['thresholds do not invert', 'intel-v4', 'virt/count.c', '(n >= c->threshold) != c->invert', '(n >= c->threshold)'],
    ['edges are levels', 'intel-v4', 'virt/count.c', 'each && !c->held', 'each'],
    ['a branch is missed', 'intel-v4', 'virt/count.c', 'effects >> c->event & 1 :', 'effects >> EVENT_TAKEN & 1 :'],
    # The processor: interrupts
    ['interrupts that nobody asked for', 'intel-v4', 'virt/count.c', 'if (v->pmu.counters[counter].pmi)', 'if (1)'],
    ['overflows that come late', 'intel-v4', 'virt/count.c', 'counter_mask(virt_model) - c->value + 1;', 'counter_mask(virt_model) - c->value + 500;'],
    ['Intel does not mask its entry', 'intel-v4', 'virt/model_intel.c', '.auto_mask = true', '.auto_mask = false'],
    ['AMD masks its entry', 'amd-v2', 'virt/model_amd.c', '.width = 48', '.width = 48, .auto_mask = true'],
    ['a mask is no mask', 'intel-v4', 'virt/alarm.c', "    if (lvt & LVT_MASKED)\n        return;\n    v->statistics.pmi++;", '    v->statistics.pmi++;'],
    ['an NMI comes in an NMI', 'intel-v4', 'virt/event.c', 'v->nmi_blocked = true;', 'v->nmi_blocked = false;'],
    ['counters do not freeze', 'intel-v4', 'virt/model_intel.c', 'p->status |= STATUS_FROZEN;', '(void)0;'],
    ['they did not freeze of old', 'intel-v2', 'virt/model_intel.c', "    else\n        p->global_control = 0;", ''],
    ['frozen counters count', 'intel-v5', 'virt/model_intel.c', '!(p->status & STATUS_FROZEN)', 'true'],
);

@mutants = grep { my $name = $_->[0]; grep { $name =~ /$_/ } @ARGV } @mutants if @ARGV;

sub text
{
    my ($file, $text) = @_;
    open my $f, defined $text ? '>' : '<', $file or die "$file: $!";
    local $/;
    return defined $text ? print $f $text : <$f>;
}

# In the folder of this job: what the tests say of the mutant; 0 if they do not notice, else how.
sub try_one
{
    my ($folder, $mutant) = @_;
    my (undef, $model, $file, $from, $to, $which) = @$mutant;
    $which //= $tests;
    my $path = "$folder/pmu/$file";
    my $whole = text($path);
    my $at = index $whole, $from;
    return 'BROKEN the text is not there, or twice' if $at < 0 || index($whole, $from, $at + 1) >= 0;
    (my $broken = $whole) =~ s/\Q$from\E/$to/;
    text($path, $broken);
    my $log = `cd $folder && make -s 2>&1 </dev/null || echo BROKEN build`;
    $log .= `cd $folder && PMU=$model TESTS='$which' TIMEOUT=60 tests/run 2>&1 </dev/null` if $log !~ /^BROKEN/m;
    my $status = $? >> 8;
    text($path, $whole);
    my ($last) = $log =~ /\n(BROKEN.*|# (?:PASS|FAIL|NONE|CRASH|HANG|BROKEN).*)\s*\z/;
    my ($first) = $log =~ /^not ok \d+ - (\S+)/m;
    text("$folder.log", $log);
    return $last // 'BROKEN no verdict' if !$status || !$last || $last =~ /^BROKEN/;
    return 'noticed: ' . ($first // $last);
}

plan tests => scalar @mutants;
my @results;
for my $job (0 .. $jobs - 1) {
    my $folder = "$build/mutants/$job";
    make_path($folder);
    system("git ls-files -z | xargs -0 cp --parents -pt $folder") == 0 or die "cannot copy to $folder";
    pipe my $read, my $write or die "pipe: $!";
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        close $read;
        $write->autoflush(1);
        print $write "$_ ", try_one($folder, $mutants[$_]), "\n" for grep { $_ % $jobs == $job } 0 .. $#mutants;
        exit 0;
    }
    close $write;
    $results[$job] = $read;
}
for my $n (0 .. $#mutants) {
    my $line = readline $results[$n % $jobs];
    my ($index, $said) = ($line // '? nothing') =~ /^(\S+) (.*)/;
    like($said, qr/^noticed/, "$mutants[$n][0]: " . ($said =~ s/^noticed: //r)) or diag("pmu/$mutants[$n][2] on $mutants[$n][1]: $said");
}
