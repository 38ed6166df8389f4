#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The runner's own tests: streams of machines that do not exist, and hosts of every kind.
use strict;
use warnings;
use Test::More;
use lib 'tests/tools';
use Pretend;
use RunLog;
use Compress::Raw::Zlib 'crc32';

my $bad = $start . "# tests/harness/test.c:7: x = 1, want 2\nnot ok 2 - a.two\nok 3 - a.three\n"
    . "# 2 passed, 1 failed, 0 skipped, 9 checks\n# FAIL\n";
my $skip = $two . "ok 3 - a.three # SKIP no PMU\n# 2 passed, 0 failed, 1 skipped, 9 checks\n";
my $other = $skip =~ s/SKIP no PMU/SKIP it rains/r;

file("$dir/slow", $good);
judged('0: all passed', $good, 'exit 33', 0, qr/# PASS\n\z/);
judged('no carriage return, no control character reaches the terminal', "\e[2J$good", 'exit 33', 0,
       qr/^[\n -~]*\z/);
judged('0: all passed, however slowly', '',
       "while read -r line; do printf %s \"\$line\"; sleep .02; printf '\\r'; sleep .02; echo; done"
       . " < $dir/slow; exit 33", 0, qr/^[\n -~]*# PASS\n\z/);
judged('0: the last line, though it has no end', $good =~ s/\n\z//r, 'exit 33', 0,
       qr/\n# PASS\n\z/);
judged('1: a test failed', $bad, 'exit 35', 1, qr/want 2\nnot ok 2.*# FAIL\n\z/s);
judged('1: a skip that no list names', "$other# PASS\n", 'exit 33', 1,
       qr/# FAIL skip.*a\.three: it rains\n\z/);
judged('1: no PMU is no excuse for a machine that has one', "$skip# PASS\n", 'exit 33', 1,
       qr/# FAIL skip.*a\.three/);
judged('77: nothing could be tested', "$skip# NONE no PMU: nothing there\n", 'exit 37', 77,
       qr/# NONE.*\n\z/);
judged('1: a failed test, and what its useless PMU excuses',
       "# pmu: x\n" . $skip =~ s/^ok 2/not ok 2/mr =~ s/2 passed, 0/1 passed, 1/r . "# FAIL\n",
       'exit 35', 1, qr/^(?!.*FAIL skip).*# FAIL\n\z/s);
judged('1: NONE excuses no other skip', "$other# NONE x\n", 'exit 37', 1,
       qr/# FAIL skip.*it rains\n\z/);
judged('77: no test has such a name',
       "TAP version 13\n1..0\n# 0 passed, 0 failed, 0 skipped, 0 checks\n# PASS\n",
       'exit 33', 77, qr/# NONE no test/);

judged('99: panic', $two . "# panic\n", 'exit 39', 99,
       qr/# CRASH the kernel panicked.*test 3 \(a\.three\) of 3\n\z/);
for (['triple fault', $start, 'exit 0',
      '.*triple fault.*\(a\.one\) ended, then came test 2 \(a\.two\)'],
     ['reset before the first byte', '', 'exit 0', '.*triple fault; no test ended'],
     ['reset after the verdict', $good, 'exit 0', '.*triple fault'],
     ['the virtual PMU gave up', $two, 'exit 255', '.*virtual PMU'],
     ['the emulator gave up', '', 'exit 1', 'the emulator gave up'],
     ['the emulator died', $two, 'kill -SEGV $$', 'the emulator died of signal 11'],
     ['unknown exit status', $good, 'exit 41', 'unknown exit status 41']) {
    my ($name, $stream, $end, $says) = @$_;
    judged("99: $name", $stream, $end, 99, qr/# CRASH $says/);
}
for (['no plan', $good =~ s/1\.\.3\n//r, 'test 1 comes before the plan'],
     ['nothing but a verdict', "# PASS\n", 'the plan is missing'],
     ['no TAP version', $good =~ s/TAP.*\n//r, 'the plan stands alone'],
     ['fewer tests than planned', $good =~ s/ok 3.*\n//r, '2 of 3 tests ended'],
     ['wrong number', $good =~ s/ok 2/ok 4/r, 'test 4 comes after test 1'],
     ['a test twice', $good =~ s/(ok 2.*\n)/$1$1/r, 'test 2 comes after test 2'],
     ['started twice', $start . $good, 'a second TAP version'],
     ['torn line', $good =~ s/ok 2 - a.two/ok 2 -/r, 'not understood: ok 2 -'],
     ['no verdict', $good =~ s/# PASS\n//r, 'the verdict line is missing'],
     ['PASS with a failed test', $bad =~ s/FAIL/PASS/r, 'the verdict is PASS with 1'],
     ['verdict against exit status', $good =~ s/PASS/FAIL/r, 'the verdict is FAIL, .* says PASS'],
     ['output after the verdict', "${good}more\n", 'output after the verdict: more'],
     ['wrong totals', $good =~ s/3 passed/2 passed/r, '.* are 3 0 0; .* 2 0 0'],
     ['no totals', $good =~ s/# 3.*\n//r, 'the line with the totals'],
     ['a log whose begin is lost', $good =~ s/# PASS/# PASS 3 tests [0 bytes, crc32 00000000]/r,
      'the kernel sent 0 bytes, crc32 00000000; here came'],
     ['a verdict whose end is lost',
      "# ntpmu: begin\n$good" =~ s/# PASS/# PASS [24 bytes, crc32 816/r,
      'the verdict line is cut']) {
    my ($name, $stream, $says) = @$_;
    judged("99: $name", $stream, 'exit 33', 99, qr/# BROKEN $says/);
}
judged('99: FAIL without a failed test', $good =~ s/PASS/FAIL/r, 'exit 35', 99,
       qr/# BROKEN the verdict is FAIL with 0/);
judged('124: a machine that sleeps for ever, and which test hangs', $two, 'exec sleep 60', 124,
       qr/ok 2.*# HANG no test .* in 1 s .*\(a\.two\) ended, .* test 3 \(a\.three\) of 3\n\z/s,
       'ACCEL=tcg TIMEOUT=1');
judged("124: a machine $_->[0] for ever", $two, $_->[1], 124, qr/# HANG/, 'ACCEL=tcg TIMEOUT=1')
    for ['that prints', 'exec yes'], ['that prints a result', "exec yes 'ok 2 - a.two'"],
        ['that computes', 'while :; do :; done'],
        ['a child of which computes', "sh -c 'while :; do :; done'; exit 33"];
# Each in more time than is allowed, of which some does not count.
my $results = "while read -r line; do echo \"\$line\"; PAUSE; done < $dir/slow; exit 33";
judged("0: all passed, $_->[0]", '', $results =~ s/PAUSE/$_->[1]/r, 0, qr/# PASS\n\z/,
       'ACCEL=tcg TIMEOUT=2')
    for ['each result after a second of sleep', 'case $line in ok*) sleep 1 ;; esac'],
        ['stopped for three seconds in between',
         "case \$line in ok*2*) (sleep 3; kill -CONT \$\$) & kill -STOP \$\$ ;; esac"];

# A log that cannot be written, and one that cannot be written to its end.
pretend($good, 'exit 33');
like(join(' ', run_it("trap '' XFSZ; ulimit -f 0; ACCEL=tcg")),
     qr{^0 .*^tests/tools/run: the log \S+ ends too early: .*# PASS\n\z}ms,
     'a full disk: a verdict');
like(join(' ', run_it("BUILD=$dir/log; mkdir -p \$BUILD/run.log; cp $dir/ntpmu.bin \$BUILD;")),
     qr{^2 tests/tools/run: cannot write the log \S+: .*\n\z}, '2: a log that cannot be written');

# What is reported of a log that failed.
my ($failed, @lines) = RunLog::failures("# kernel\n$bad");
is("@$failed, $lines[0], $lines[1]",
   'a.two, # tests/harness/test.c:7: x = 1, want 2, not ok 2 - a.two',
   'a log names the test that failed, and why');
is($lines[-1], '# FAIL', 'and ends as it does');
my $many = join '', map { "# line $_ of it\n" x 12
                          . "not ok $_ - a.test\nok 99 - a.other\n" } 1 .. 30;
($failed, @lines) = RunLog::failures("$many# FAIL\n");
ok(@$failed == 30 && @lines == 25 && $lines[9] eq 'not ok 1 - a.test',
   '30 that failed: their names, and 25 lines of it') or diag("@lines");
($failed, @lines) = RunLog::failures($two . "# line\n" x 20 . "# CRASH\n");
ok(!@$failed && @lines == 15 && $lines[-1] eq '# CRASH', 'none that failed: how the log ends');

judged('1: an id of the contract whose tests were not run', $good, 'exit 33', 1,
       qr/^# VP-47 cannot be seen from inside: .*^# FAIL of the ids VP .*: VP-01 VP-02 /ms,
       "ACCEL=tcg TESTS='vpmu*'");
# What a run says of an id: proved by a test that passed, not by one that was skipped; after a
# failure nothing is said.
my $id = $good =~ s/a\.one/pmu_cpuid.vendor/r;
judged('an id whose test passed is proved', $id, 'exit 33', 1,
       qr/^# VP-01 proved: pmu_cpuid\.vendor$/m, "ACCEL=tcg TESTS='vpmu*'");
judged('an id whose test was skipped is not',
       $id =~ s/(vendor)/$1 # SKIP absent registers do not fault/r
           =~ s/3 passed, 0 failed, 0/2 passed, 0 failed, 1/r,
       'exit 33', 1, qr/\A(?!.*^# VP-\d+ proved)/ms, "ACCEL=tcg TESTS='vpmu*'");
judged('after a failed test no id is proved', $bad =~ s/a\.one/pmu_cpuid.vendor/r, 'exit 35', 1,
       qr/\A(?!.*^# VP-\d+ proved)/ms, "ACCEL=tcg TESTS='vpmu*'");

# Length and checksum of what came between begin and verdict, by another's CRC-32.
my ($begin, $body) = ("\n# ntpmu: begin\n", $good =~ s/\A\n//r =~ s/# PASS\n\z//r);
sub verdict { return sprintf '# PASS 3 tests [%d bytes, crc32 %08x]', length $_[0], crc32($_[0]) }
judged('0: length and checksum are those of what came', $begin . $body . verdict($body) . "\n",
       'exit 33', 0, qr/# PASS 3 tests.*\n\z/);
for (['a byte of a line', sub { s/kernel/kernl/ }], ['a line', sub { s/# kernel\n// }],
     ['a byte, another for it', sub { s/kernel/kerneL/ }],
     ['two bytes, the one for the other', sub { s/kernel/kenrel/ }]) {
    my ($what, $change) = @$_;
    my $came = $body;
    $change->() for $came;
    judged("99: a log that lost $what", $begin . $came . verdict($body) . "\n", 'exit 33', 99,
           qr/# BROKEN the kernel sent .*; here came/);
}

# Bochs.
my $asked = "00012p[UNMAP ] >>PANIC<< Shutdown port: shutdown requested\n";
judged('0: no status, but a verdict and an end that was asked for', $good . $asked, 'exit 1', 0,
       qr/\n# PASS\n\z/);
judged('1: the same with a failed test', $bad . $asked, 'exit 1', 1, qr/\n# FAIL\n\z/);
judged('99: an end that was asked for, without a verdict', $two . $asked, 'exit 1', 99,
       qr/# CRASH .* without a verdict/);
judged('99: an end of its own', $two . "00012p[CPU0  ] >>PANIC<< no resolution\n", 'exit 1', 99,
       qr/# CRASH the emulator gave up: no resolution; test 2/);

judged('1: five skips that no list names: three of them, and how many more',
       "\n# kernel\nTAP version 13\n1..5\n"
       . join('', map { "ok $_ - a.test$_ # SKIP for no reason\n" } 1 .. 5)
       . "# 0 passed, 0 failed, 5 skipped, 0 checks\n# PASS\n", 'exit 33', 1,
       qr{\n# PASS\n(?:# FAIL skip .*\n){3}# FAIL 2 more skips that tests/machines/skips .*\n\z});
my $needy = "TAP version 13\n1..1\nok 1 - a.one # SKIP only one counter counts instructions\n"
    . "# 0 passed, 0 failed, 1 skipped, 0 checks\n# PASS\n";
judged('1: a skip for want of counters', "\n# kernel\n$needy", 'exit 33', 1, qr/# FAIL skip/);
my $left_out = "\n# pmu: x; left out: counters 1 of 3\n$needy";
judged('1: ... that a model lacks', $left_out, 'exit 33', 1, qr/# FAIL skip/,
       'ACCEL=tcg PMU=amd-v2');
judged('0: ... that a quirk spoils', $left_out, 'exit 33', 0, qr/\n# PASS\n\z/,
       'ACCEL=tcg PMU=amd-v2,irq3');
file("$dir/a.exe", 'program');
judged('99: a program whose end the kernel does not report', "some output\n", 'exit 33', 99,
       qr/\n# BROKEN no word on how the program ended\n\z/, "ACCEL=tcg PROGRAM=$dir/a.exe");
my $program = "some output\nok 1 - of its own\n";
for (['# PASS the program ended with 0', 'exit 33', 0],
     ['# FAIL the program ended with 1', 'exit 35', 1], ['# NONE no PMU', 'exit 37', 77],
     ['# PASS the program ended with 0', 'exit 35', 99], ['# PASS', 'exit 39', 99]) {
    my ($word, $end, $status) = @$_;
    judged("$status: a program, $word, $end", "$program$word\n", $end, $status,
           qr/\n$word\n@{[$status == 99 ? '# (?:BROKEN|CRASH) [^\n]*\n' : '']}\z/,
           "ACCEL=tcg PROGRAM=$dir/a.exe");
}
file("$dir/payload", pack 'V', 0x1badb002);
file("$dir/qemu", "#!/bin/sh\nexec sleep 60\n", 0755);
my ($hung, $list) = run_it('LIST=1 TIMEOUT=1');
like("$hung $list", qr{^124 .*\n# HANG no list in 1 s .*\n\z}, '124: a list that does not come');
for (['exit 39', qr/^99 .*\n# CRASH no list: wait status 9984\n\z/],
     ['exit 33', qr/^77 .*\n# NONE no test has such a name\n\z/],
     ['kill -SEGV $$', qr/^99 .*\n# CRASH no list: wait status (?:11|139)\n\z/]) {
    my ($end, $says) = @$_;
    file("$dir/qemu", "#!/bin/sh\n$end\n", 0755);
    my ($got, $said) = run_it('LIST=1');
    like("$got $said", $says, "a list that does not come: $end");
}
judged('the stream of a list is its tests', $good, 'exit 33', 0,
       qr/^# machine.*\na\.one - first \[x\]\n.*third\n\z/s, 'LIST=1');

# A payload by its magic number; the least of a Linux, and 30 MiB for it to unpack.
file("$dir/a,load", pack 'V', 0x1badb002);
file("$dir/linux", pack '@514 a4 @566 C @608 V x512', 'HdrS', 1, 0);
file("$dir/initrd", '070701');
truncate "$dir/initrd", 30 << 20;
for (['ACCEL=warp', 'auto kvm tcg'], ['PMU=nonsense', 'intel-v2'],
     ['PMU=zen5', 'near it: amd-zen5'], ['PMU=Ice-Lake-Server', 'near it: intel-kvm'],
     ['PMU=amd-v2,ipc=2,irq4', "quirk='irq4' is not one of: step"],
     ['PMU=broadwell,irq3', 'near it: haswell'], ['PMU=genoa', 'near it: kvm-6.8-amd'],
     ['SMP=0', '1 to 255'], ['SMP=two', '1 to 255'], ['SMP=256', '1 to 255'],
     ['MEMORY=lots', '1 to'],
     ['TIMEOUT=0', '1 to'], ['MACHINE=abacus', 'qemu'], ['PMU=host ACCEL=tcg', 'one of: none'],
     ['MACHINE=bochs ACCEL=kvm', 'one of: auto'], ['MACHINE=bochs SMP=2', 'one of: 1'],
     ["TESTS='a b'", 'one glob'], ['PAYLOAD=no-such', 'not a file'],
     ['FIRMWARE=x PAYLOAD=Makefile', 'not to be set'],
     ['PROGRAM=no-such.exe', 'not a file'], ['PROGRAM=no-such.c', 'builds it'],
     ['MEMORY=99999999999999999999', '1 to'], ["PAYLOAD='$dir/a,load'", 'takes no comma'],
     ["LINUX='$dir/linux' INITRD='$dir/initrd' MEMORY=40", 'at least 54'],
     ['DRIVER=no-such.c', 'builds it'], ['BENCH=no-such.o', 'not a file'],
     ["LINUX='$dir/linux' PAYLOAD=Makefile", 'not to be set'],
     ["PAYLOAD='$dir/payload' PMU=none", 'one of: amd|one of: .*intel-v2'], ['MIPS=0', '1 to'],
     ['GDB=70000', '1 to 65535'], ["LINUX='$dir/linux' INITRD='$dir/none'", 'not a file'],
     ['MACHINE=bochs QEMU_ARGS=-s', 'MACHINE=qemu']) {
    my ($variables, $legal) = @$_;
    judged("2: $variables", $good, 'exit 33', 2, qr/^tests\/tools\/run: [^\n]*$legal[^\n]*\n\z/,
           $variables);
}
judged('2: no emulator', $good, 'exit 33', 2, qr/not installed/, 'QEMU=no-such-program');
judged('2: no kernel', $good, 'exit 33', 2, qr/'make' builds it/, 'BUILD=no-such-folder');

# Which machine: a host is a folder with the files that tests/tools/run looks at.
sub host
{
    my ($kvm, $enable_pmu, $pmu, $starts) = @_;
    my $host = "$dir/host";
    system "rm -rf $host $dir/kvm_works; mkdir -p $host/dev $host/sys/module/kvm/parameters";
    file("$host/dev/kvm", '') if $kvm;
    file("$host/sys/module/kvm/parameters/enable_pmu", "$enable_pmu\n");
    system "mkdir -p $host/sys/bus/event_source/devices/cpu" if $pmu;
    file("$dir/kvm_works", '') if $starts;
    return "HOST=$host";
}

sub chosen
{
    my ($variables, $machine, $argument) = @_;
    pretend($good, 'exit 33');
    unlink "$dir/arguments";
    my ($status, $output) = run_it($variables);
    my $arguments = `cat $dir/arguments 2>/dev/null`;
    (my $name = $variables) =~ s/HOST=\S+//;
    ok($output =~ /^# machine: $machine/ && $arguments =~ $argument,
       "chosen: $machine" . ($name && " by$name"))
        or diag("$argument is not in $arguments\n$output");
}

chosen(host(1, 'Y', 1, 1), 'QEMU kvm.*KVM here can give a guest a PMU',
       qr/-cpu host,migratable=no -accel kvm /);
chosen(host(0, 'Y', 1, 1), 'QEMU tcg.*virtual, intel-v5 .*no /dev/kvm',
       qr/-icount .* -append vpmu=intel-v5 /);
chosen(host(1, 'N', 1, 1), 'QEMU tcg.*enable_pmu is not Y', qr/vpmu=intel-v5/);
chosen(host(1, 'Y', 0, 1), 'QEMU tcg.*this host has no PMU', qr/vpmu=intel-v5/);
{
    my $variables = host(1, 'N', 0, 1);
    system "mkdir -p $dir/host/proc $dir/host/sys/bus/event_source/devices";
    file("$dir/host/proc/cpuinfo", "flags\t\t: fpu vme hypervisor lahf_lm\n");
    chosen($variables, 'QEMU tcg.*a guest itself \(nested\)', qr/vpmu=intel-v5/);
    system "mkdir -p $dir/host/sys/bus/event_source/devices/cpu_$_" for qw(core atom);
    chosen($variables, 'QEMU tcg.*two kinds of cores \(hybrid\)', qr/vpmu=intel-v5/);
}
{
    my $variables = host(1, 'Y', 1, 1);
    file("$dir/kvm_works", '-arch-capabilities');    # the only way this host's KVM starts
    chosen($variables, 'QEMU kvm.*KVM here can give a guest a PMU',
           qr/-cpu host,migratable=no,-arch-capabilities -accel kvm /);
}
chosen(host(1, 'Y', 1, 0), 'QEMU tcg.*does not start with KVM', qr/vpmu=intel-v5/);
chosen(host(1, 'Y', 1, 1) . ' PMU=amd-v2 SMP=4', 'QEMU tcg, 4 CPU.*virtual, amd-v2',
       qr/-smp 4 .*vpmu=amd-v2/);
chosen(host(1, 'Y', 1, 1) . ' PMU=none', 'QEMU tcg.*PMU: none', qr/-append ?$/);
file("$dir/a,b.exe", 'program');
# Slow tests are slow where each instruction of the PMU is ours.
my $slow = qr/\n# tests: all but the slow ones/;
chosen('QUICK=1 ACCEL=tcg', "QEMU tcg.*$slow",
       qr/ -nodefaults .*-append vpmu=intel-v5  tests=\*,-slow$/);
chosen('ACCEL=tcg TESTS=1', "(?!.*$slow)QEMU tcg", qr/ tests=1$/);
chosen("QUICK=1 ACCEL=tcg $_", "(?!.*$slow)QEMU tcg", qr/-append (?!.*slow)/)
    for 'TESTS=exact*', 'PMU=none', 'LIST=pmcsources', "PROGRAM='$dir/a,b.exe' TIMEOUT=1";
chosen(host(1, 'Y', 1, 1) . ' QUICK=1', "(?!.*$slow)QEMU kvm", qr/-append (?!.*slow)/);
file("$dir/recipe.mk", "all: ;\nrun: ; \@printf %s \"\$\$QUICK\"\n");
my $recipe = "make -s -f Makefile -f $dir/recipe.mk run 2>/dev/null";
is(`$recipe`, '1', 'make run is quick');
is(`$recipe ARGS='tick=6000 long'`, '', 'unless it is long');
chosen(host(1, 'Y', 1, 1) . ' ACCEL=kvm', 'QEMU kvm.*\(as asked for\)',
       qr/-accel kvm/);
chosen(host(1, 'N', 1, 1) . ' ACCEL=kvm', 'QEMU kvm.*as asked for, but .*enable_pmu is not Y',
       qr/-accel kvm/);
chosen(host(1, 'Y', 0, 1) . ' PMU=host', 'QEMU kvm.*as asked for, but this host has no PMU',
       qr/-accel kvm/);
chosen('ACCEL=tcg', 'QEMU tcg', qr/ -no-reboot .*-icount shift=0,sleep=off /);
chosen('ACCEL=tcg ICOUNT=off', 'QEMU tcg', qr/\A(?!.*-icount)/);
chosen("ACCEL=tcg PROGRAM='$dir/a,b.exe' PROGRAM_ARGS='c,d' TIMEOUT=1", 'QEMU tcg',
       qr{-initrd \S*/a,,b\.exe c,,d .*-append vpmu=intel-v5  program$});
file("$dir/a.$_", 'image') for qw(sys o);
chosen("ACCEL=tcg DRIVER=$dir/a.sys PROGRAM='$dir/a,b.exe' TIMEOUT=1", 'QEMU tcg',
       qr{-initrd \S*/a,,b\.exe,\S*/a\.sys .*-append vpmu=intel-v5  program$});
chosen("ACCEL=tcg BENCH='$dir/a.o $dir/a.sys' TIMEOUT=1", 'QEMU tcg',
       qr{-initrd \S*/a\.o,\S*/a\.sys .*-append vpmu=intel-v5  program$});
chosen('ACCEL=tcg GDB=1234 MEMORY=64', 'QEMU tcg', qr{-m 64 .*-gdb tcp:127\.0\.0\.1:1234 -S });
chosen("ACCEL=tcg FIRMWARE='a b' PMU=none", 'QEMU tcg',
       qr{-kernel \S*/firmware\.elf -append a b -- \S*/ntpmu\.bin +-initrd \S*/ntpmu\.bin$});
# The log of the last tests, which make report reads, stays as it is when a program runs.
for (["PROGRAM=$dir/a.exe", 'program'], ["DRIVER=$dir/a.sys", 'program'],
     ["BENCH=$dir/a.o", 'program'], ['TESTS=a\\*', 'run']) {
    my ($variables, $log) = @$_;
    unlink glob "$dir/*.log";
    run_it("ACCEL=tcg $variables");
    is("@{[glob \"$dir/*.log\"]}", "$dir/$log.log", "$variables: its log is $log.log");
}
chosen(host(1, 'Y', 1, 1) . " PMU=intel-v2,step TESTS='a*' ARGS='seed=7'",
       'QEMU tcg.*intel-v2,step',
       qr/vpmu=intel-v2,step seed=7 tests=a\*$/);

# What is said of a host with KVM: its release, vendor, settings, and the facts that follow.
for (['6.8.0-45-generic', 'GenuineIntel', '', '',
      qr/nothing here is known to disturb a guest's counters$/],
     ['5.15.0-1', 'GenuineIntel', '', '',
      qr/KVM: before 5\.17 [^;]*not counted; before 6\.6 [^;]*; before 6\.7 [^;]*two PMIs$/],
     ['5.17.1', 'GenuineIntel', '', '', qr/KVM: before 6\.6 /],
     ['6.7.2', 'GenuineIntel', '', '', qr/nothing here is known/],
     ['6.6.13', 'GenuineIntel', '', '', qr/KVM: before 6\.7 [^;]*two PMIs$/],
     ['6.8.0', 'AuthenticAMD', '', '',
      qr/KVM: on AMD each VMRUN [^;]*; from 6\.6 to 6\.8 [^;]*; before 6\.18 [^;]*faults$/],
     ['6.6.0', 'AuthenticAMD', '', '', qr/KVM: on AMD each VMRUN [^;]*; from 6\.6 to 6\.8 /],
     ['6.1.0', 'AuthenticAMD', '', '', qr/KVM: on AMD each VMRUN [^;]*; before 6\.18 [^;]*$/],
     ['6.9.1', 'AuthenticAMD', '', '', qr/KVM: on AMD each VMRUN [^;]*; before 6\.18 [^;]*$/],
     ['6.18.0', 'AuthenticAMD', '', '', qr/KVM: on AMD each VMRUN [^;]*guest$/],
     ['6.8.0', 'GenuineIntel', 'nmi_watchdog', '',
      qr/KVM: nmi_watchdog has one counter of each CPU: [^;]*one stands still/],
     ['6.8.0', 'GenuineIntel', 'ignore_msrs', '',
      qr/KVM: ignore_msrs is Y: MSRs that do not exist read as 0 [^;]*$/],
     ['6.8.0', 'GenuineIntel', '', 'hypervisor',
      qr/KVM: nested, the host is a guest itself: [^;]*$/],
     ['6.8.0', 'AuthenticAMD', 'nmi_watchdog ignore_msrs', 'hypervisor',
      qr/nmi_watchdog[^;]*; ignore_msrs[^;]*; nested[^;]*; on AMD /],
     ['unknown', 'GenuineIntel', '', '', qr/Linux unknown, KVM: nothing here is known/],
     ['', 'GenuineIntel', '', '', qr/Linux of unknown version, KVM: nothing here is known/]) {
    my ($release, $vendor, $settings, $flag, $facts) = @$_;
    my $variables = host(1, 'Y', 1, 1);
    my $kernel = "$dir/host/proc/sys/kernel";
    system "mkdir -p $kernel";
    file("$kernel/osrelease", "$release\n") if $release;
    file("$kernel/nmi_watchdog", ($settings =~ /nmi_watchdog/ ? 1 : 0) . "\n");
    file("$dir/host/sys/module/kvm/parameters/ignore_msrs",
         ($settings =~ /ignore_msrs/ ? 'Y' : 'N') . "\n");
    file("$dir/host/proc/cpuinfo", "vendor_id\t: $vendor\nflags\t\t: fpu $flag vme\n");
    pretend($good, 'exit 33');
    my (undef, $output) = run_it("$variables ACCEL=kvm");
    my @lines = $output =~ /^# host: (.*)$/mg;
    ok(@lines == 1 && $lines[0] =~ $facts, "host: Linux $release, $vendor, $settings $flag")
        or diag($output);
}
{
    my $variables = host(1, 'N', 1, 1);
    my (undef, $output) = run_it("$variables ACCEL=kvm");
    like($output, qr/^# host: .*enable_pmu is not Y: guests have no PMU/m,
         'host: KVM gives guests no PMU');
    (undef, $output) = run_it("$variables ACCEL=tcg");
    unlike($output, qr/^# host:/m, 'host: nothing is said of it without KVM');
}
judged('77: ACCEL=kvm without KVM', $good, 'exit 33', 77, qr/# machine: none\n# NONE no KVM.*\n\z/,
       host(0, 'N', 0, 0) . ' ACCEL=kvm');
judged('77: ACCEL=kvm that does not start', $good, 'exit 33', 77,
       qr/# NONE .*does not start with KVM/,
       host(1, 'N', 0, 0) . ' ACCEL=kvm');
judged("1: a skip that only looks like a listed one: $_",
       $skip =~ s/a\.three # SKIP no PMU/$_/r . "# PASS\n", 'exit 33', 1,
       qr/# FAIL skip.*etw_class/)
    for 'etw_class.without_pmu_too # SKIP there is a PMU',
        'etw_class.without_pmu # SKIP there is a PMU here',
        'my_etw_class.without_pmu # SKIP there is a PMU';
for (['intel-v5', 0], ['amd-v2', 1], ['none', 1], ['icelake,noemul', 0], ['zen4', 1]) {
    my ($model, $status) = @$_;
    judged("$status: a skip that the list of intel-v5 names, on $model",
           $skip =~ s/a\.three # SKIP no PMU/pmu_x.gp0 # SKIP AMD only/r . "# PASS\n",
           'exit 33', $status, $status ? qr/# FAIL skip.*AMD only/ : qr/# PASS\n\z/,
           "ACCEL=tcg PMU=$model");
}
judged('0: a skip that the list of machines without PMU names', "$skip# PASS\n", 'exit 33', 0,
       qr/# PASS\n\z/, 'ACCEL=tcg PMU=none');
chosen(host(1, 'Y', 1, 1) . ' ACCEL=kvm PMU=none', 'QEMU kvm.*PMU: none',
       qr/-cpu host,migratable=no,pmu=off -accel kvm/);

# Payloads.
for (['exit 33', 0, 'PASS payload: it ended with debug-exit value 16'],
     ['exit 1', 0, 'PASS payload'],
     ['exit 35', 1, 'FAIL payload'], ['exit 37', 77, 'NONE the payload was not started'],
     ['exit 155', 77, 'NONE payload: .* its exit with 77'], ['exit 77', 77, 'NONE payload'],
     ['exit 0', 99, 'CRASH the payload reset'], ['exit 39', 99, 'CRASH below'],
     ['exit 255', 99, 'CRASH below'],
     ['echo qemu: terminating on signal 15 from pid 1 >&2; exit 0', 99, 'CRASH QEMU was ended'],
     ['for last; do :; done; echo qemu_system_shutdown_request reason=6 > "$last"; exit 0', 0,
      'PASS payload: it switched the machine off'],
     ['exec sleep 60', 124, 'HANG the payload']) {
    my ($end, $status, $word) = @$_;
    judged("$status: a payload, $end", "payload\n", $end, $status,
           qr/^# machine: .*\n(?:.*\n)*# $word.*\n\z/,
           "PAYLOAD=$dir/payload PMU=intel-v5 TIMEOUT=1");
}
done_testing;
