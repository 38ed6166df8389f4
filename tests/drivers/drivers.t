#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Windows kernel drivers: the samples, what a driver may rely on, and what becomes of drivers that
# do something wrong. With words on the command line only the runs whose variables have one:
# prove -v tests/drivers/drivers.t :: driver_try
use strict;
use warnings;
use Test::More;
use lib 'tests/tools';
use Environment;

# A tree that is built for one script has the kernel for it already: PROGRAMS.
my $build = $ENV{PROGRAMS} // ($ENV{BUILD} // 'build') . '/drivers';
Environment::forget();

sub run
{
    my ($words) = @_;
    my $failure = Environment::make($build, $words);
    return (-1, $failure) if $failure;
    my $all = `$words BUILD=$build tests/tools/run 2>&1 </dev/null`;
    my $status = $? >> 8;
    $all =~ s/.*?^# running: [^\n]*\n//ms;
    return ($status, $all);
}

sub check
{
    my ($words, $want, @patterns) = @_;
    return if @ARGV && !grep { $words =~ /$_/ } @ARGV;
    my ($status, $output) = run($words);
    my @missing = grep { $output !~ $_ } @patterns;
    push @missing, 'one verdict' if $output =~ /^# PASS.*^# PASS/ms;
    ok($status == $want && !@missing, $words)
        or diag("status $status, want $want\n", map({ "must match $_\n" } @missing), $output);
    return $output;
}

# Beside the loop one reading is counted, of at most 150 instructions, with the calls around it and
# the loop that empties its structure, at most 200; and each attempt at it that a switch of threads
# interrupted, when another thread came by chance.
for my $machine ('PMU=amd-v2 SMP=4', 'PMU=intel-v5') {
    my $output = check("DRIVER=tests/samples/counters.c PROGRAM=tests/samples/client.cpp $machine",
                       0, qr/^processor \d shows [1-9]\d* instructions/m, qr/^# PASS/m);
    next if !$output;
    my ($instructions, $branches, $again) = map { $output =~ $_ ? $1 : -1 }
        qr/^instructions: (\d+)$/m, qr/^branches: (\d+)$/m, qr/^of which (\d+) attempts/m;
    ok($again >= 0 && $instructions > 20000 && $instructions < 20400 + 150 * $again
           && $branches > 10000 && $branches < 10100 + 150 * $again,
       "the loop, and a reading: $instructions instructions, $branches branches, $again again");
}
# A driver that takes some of the counters meets the rules before Windows 10 1903.
check('DRIVER=tests/samples/counters.c ARGS=hal=1809 PMU=intel-v5', 1,
      qr/^# FAIL counters\.sys: DriverEntry returned STATUS_INVALID_PARAMETER 0xc000000d/m);
# The one with a status register, and one without.
check("DRIVER=tests/samples/overflow.c PMU=$_ SMP=2", 0,
      qr/^2000000 instructions, 20 overflows, some DPCs, 0 wrong\n# PASS/m)
    for qw(intel-v5 amd-ext);
# The loop's four instructions: add, mov, sub, jnz; the third counts rcx down.
for my $pmu (qw(intel-v4 intel-v5)) {
    my $output = check("DRIVER=tests/samples/buffer.c PMU=$pmu SMP=2", 0,
                       qr/^10 samples, one in 1001 instructions:\n(?:loop\+.*\n){10}(?x:
                       )2 calls, 0 wrong\n# PASS/m) // next;
    my ($last, @wrong);
    while ($output =~ /^(loop\+(\d+): rax (\d+), rcx (\d+), rdx (\d+)), flags/mg) {
        my ($line, $n, $rax, $rcx, $rdx) = ($1, { 0, 0, 3, 1, 6, 2, 10, 3 }->{$2}, $3, $4, $5);
        my $now = $rcx + ($n >= 2); # rcx at the loop's head
        my $sum = 3000 * 3001 / 2 - $now * ($now - 1) / 2;
        my $done = 4 * (3000 - $now) + $n;
        push @wrong, $line if $rax != $sum || $rdx != $sum - ($n ? 0 : $now)
            || ($last && $done - $last != 1001);
        $last = $done;
    }
    ok($last && !@wrong, "$pmu: each sample has the registers of its instruction")
        or diag(@wrong);
}
check('DRIVER=tests/samples/hello_driver.c PMU=none SMP=2', 0,
      qr/^# machine: RDMSR of an MSR that does not exist succeeds here/m,
      qr/, IRQL 0, 2 processors\nall at IRQL 14: 0x3\n.*hello_driver goes\n# PASS/);
check("DRIVER=tests/drivers/driver_checks.c $_", 0, qr/^69 checks, 0 wrong\n# PASS/m)
    for 'PMU=amd-v2 SMP=2', 'PMU=intel-v5 SMP=66';

check('DRIVER=tests/drivers/driver_calls.c PMU=none SMP=2', 0,
      qr/^41 checks, 0 wrong\na DPC outlives DriverUnload\n# PASS/m,
      qr/^\[  -42\|42   \|-0042\|\+7\|005\|  005\] \[beef\|0xBEEF\|0000beef\] /m,
      qr/ \[123456789abcdef\|-5000000000\|5000000000\]$/m,
      qr/^\[text\|te\|   ab\|ab   \|000ab\] \[wide\|also\|counted\] (?x:
      )\[c\|C\|%\] \[000000000000FEED\]$/m);

check("DRIVER=tests/drivers/device_driver.c PROGRAM=tests/drivers/device.c PMU=none SMP=$_", 0,
      qr/^172 checks, 0 wrong\n# PASS[^\n]*\n0 still waited$/m,
      map { qr/^# device_driver\.sys: $_ is not supported$/m } 'IRP_MJ_READ', 'IRP_MJ_WRITE',
      'METHOD_NEITHER', 'device control that calls a routine') for 1, 2;

check('DRIVER=tests/drivers/driver_imports.c PMU=none', 0, qr/^40 checks, 0 wrong\n# PASS/m);
check("DRIVER=tests/drivers/driver_routines.c PMU=none SMP=$_", 0,
      qr/^printed 1\n61 checks, 0 wrong\n# PASS/m) for 1, 2;
my %nmis = (1 => 26, 2 => 29);
check("DRIVER=tests/drivers/driver_nmi.c PMU=none SMP=$_", 0,
      qr/^$nmis{$_} checks, 0 wrong\n# PASS/m) for 1, 2;
my $two = 'tests/drivers/device_driver.c tests/drivers/caller_driver.c';
check("DRIVER='$two' PMU=none", 0, qr/^8 checks, 0 wrong\n0 still waited\n# PASS/m);
check('DRIVER=tests/drivers/driver_try.c PMU=none SMP=2', 0, qr/^40 checks, 0 wrong\n# PASS/m);

my $class = 'tests/drivers/class_driver.cpp+tests/drivers/class_helper.c';
check("DRIVER='$class tests/samples/hello_driver.c' PMU=none", 0, qr/^area: 49$/m,
      qr/hello_driver goes\n# PASS/);

check('DRIVER=tests/samples/hello_driver.c PROGRAM=tests/drivers/service.c PMU=none', 0,
      qr/^# StartService: none\.sys is not loaded: DRIVER= loads it\n67 checks, 0 wrong\n# PASS/m);

# Each under a name of its own, which says what it does.
system "mkdir -p $build";
sub bad_driver
{
    my ($name) = @_;
    my $failure = Environment::make($build, 'DRIVER=tests/drivers/bad_driver.c');
    BAIL_OUT($failure) if $failure;
    system 'cp', "$build/program/bad_driver.sys", "$build/$name.sys";
    return "$build/$name.sys";
}
sub bad
{
    my ($name, $want, @patterns) = @_;
    my $pmu = { leave => 'amd-v2', written => 'intel-v5' }->{$name} // 'none';
    return check('DRIVER=' . bad_driver($name) . " PMU=$pmu", $want, @patterns);
}
# What the line says before and after the place. P: an address of the kernel's or a driver's.
my %bug = (
    wait      => ['0x0000000a IRQL_NOT_LESS_OR_EQUAL', 'P, 0x2, 0x0, P',
                 '\w+Object waits at DISPATCH_LEVEL$'],
    service   => ['0x0000000a IRQL_NOT_LESS_OR_EQUAL', 'P, 0x1, 0x8, P',
                 'ZwClose at IRQL 1, its highest is 0$'],
    read      => ['0x0000007e SYSTEM_THREAD_EXCEPTION_NOT_HANDLED', '0xc0000005, P, P, 0x0',
                 '.* address 0x10,'],
    null      => ['0x0000007e SYSTEM_THREAD_EXCEPTION_NOT_HANDLED', '0xc0000005, 0x0, P, 0x0',
                 '.* address 0x0,'],
    stack     => ['0x0000007f UNEXPECTED_KERNEL_MODE_TRAP', '0x8, P, 0x0, 0x0',
                 '.* a kernel stack\'s 16 KB$'],
    dpc       => ['0x000000d1 DRIVER_IRQL_NOT_LESS_OR_EQUAL', '0x10, 0x2, 0x0, P', ''],
    lock      => ['0x0000000f SPIN_LOCK_ALREADY_OWNED', 'P, 0x0, 0x0, 0x0',
                 '.* has the lock already$'],
    free      => ['0x000000c2 BAD_POOL_CALLER', '0x46, P, 0x0, 0x0', '.* not allocated: .*'],
    tag       => ['0x000000c2 BAD_POOL_CALLER', '0xa, P, 0x646e6554, 0x746e6554',
                 '.* another tag .*'],
    overrun   => ['0x000000c1 SPECIAL_POOL_DETECTED_MEMORY_CORRUPTION', 'P, 0x64, 0x0, 0x23',
                 'wrote beyond pool \'Over\', 100 bytes, from overrun\.sys\+.*'],
    header    => ['0x00000019 BAD_POOL_HEADER', '0x20, P, 0x0, 0x0',
                 '.* header is overwritten: .*'],
    write     => ['0x000000be ATTEMPTED_WRITE_TO_READONLY_MEMORY', 'P, 0x3, P, 0x0', ''],
    raised    => ['0x000000c8 IRQL_UNEXPECTED_VALUE', '0x2, 0x0, P, 0x0', ''],
    irql      => ['0x000000c8 IRQL_UNEXPECTED_VALUE', '0x2, 0x0, P, 0x0', ''],
    forget    => ['0x000000c9 DRIVER_VERIFIER_IOMANAGER_VIOLATION', '0x210, P, 0x0, 0x0',
                 '.*did not complete'],
    twice     => ['0x00000044 MULTIPLE_IRP_COMPLETE_REQUESTS', 'P, 0x0, 0x0, 0x0',
                 'the IRP was completed before$'],
    status    => ['0x000000c9 DRIVER_VERIFIER_IOMANAGER_VIOLATION', '0x6, P, 0x103, 0x0',
                 '.*STATUS_PENDING'],
    raise     => ['0x0000007e SYSTEM_THREAD_EXCEPTION_NOT_HANDLED', '0xc0000123, P, P, 0x0',
                 'raised, IRQL 0$'],
    check     => ['0x00000139 KERNEL_SECURITY_CHECK_FAILURE', '0x2, P, 0x0, 0x0', 'INT 29h$'],
    stop      => ['0x000000e2 a driver\'s own', '0x1, 0x2, 0x3, 0x4', 'KeBugCheckEx$'],
    stopped   => ['0x000000e2 a driver\'s own', '0x0, 0x0, 0x0, 0x0', 'KeBugCheck$'],
    beyond    => ['0x0000001e KMODE_EXCEPTION_NOT_HANDLED', '0xc0000047, P, 0x0, 0x0',
                 '.*_LIMIT_EXCEEDED$'],
    not_owner => ['0x0000001e KMODE_EXCEPTION_NOT_HANDLED', '0xc0000046, P, 0x0, 0x0',
                 '.*_NOT_OWNED$'],
    lower     => ['0x0000000a IRQL_NOT_LESS_OR_EQUAL', '0x1, 0x2, 0x0, P',
                 'KeRaiseIrql to a lower IRQL$'],
    early     => ['0x0000000a IRQL_NOT_LESS_OR_EQUAL', 'P, 0x0, 0x1, P',
                 '.* below DISPATCH_LEVEL$'],
    not_mine  => ['0x00000010 SPIN_LOCK_NOT_OWNED', 'P, 0x0, 0x0, 0x0',
                 'this processor does not have the lock .*'],
    unmade    => ['0x000000c7 TIMER_OR_DPC_INVALID', '0x0, P, 0x0, P', 'KeInsertQueueDpc of .*'],
    tagless   => ['0x000000c2 BAD_POOL_CALLER', '0x9b, 0x0, 0x10, P', '.* a tag of 0$'],
    ud2       => ['0x0000007e SYSTEM_THREAD_EXCEPTION_NOT_HANDLED', '0xc000001d, P, P, 0x0',
                 'exception 6,.*'],
);
for my $name (sort keys %bug) {
    my ($code, $numbers, $why) = @{ $bug{$name} };
    $why = ": $why" if $why;
    $numbers =~ s/P/0xffff\\w{12}/g;
    bad($name, 1, qr/^# FAIL bug check $code \($numbers\) in $name\.sys\+0x\w+$why/m);
}
bad('refuse', 1, qr/^# FAIL refuse\.sys: DriverEntry returned STATUS_DEVICE_BUSY 0x80000011; (?x:
    )the last call that failed: IoCreateDevice, STATUS_OBJECT_PATH_SYNTAX_BAD 0xc000003b, (?x:
    )in refuse\.sys\+0x\w+$/m);
bad('leave', 1, qr/^thread (\d+)$(?s:.*)^# leave\.sys left thread \1, which still runs$/m,
    map { qr/^# leave\.sys left $_/m } qr/1 timer set/, qr/1 NMI callback/,
    qr/a thread notify routine, leave\.sys\+0x/, 'hardware counters',
    q{its handler of the counters' interrupt$}, 'device \\\\Device\\\\Left',
    'symbolic link \\\\\?\?\\\\Left', "pool 'Left', 5000 bytes");
bad('written', 1, qr/^# written\.sys left hardware counters with an event buffer, (?x:
    )allocated at written\.sys\+0x.*\n# FAIL /m);

# The loader sets the security cookie of a driver and of a program.
sub enter_load_config
{
    my ($from, $to) = @_;
    no warnings 'portable';
    my ($base) = map { /^ImageBase\s+(\w+)/ ? hex $1 : () } `x86_64-w64-mingw32-objdump -p $from`;
    my ($at) = map { /^(\w+) . load_config$/ ? hex $1 : () } `x86_64-w64-mingw32-nm $from`;
    my $bytes = do { local $/; open my $in, '<:raw', $from or die; <$in> };
    my $pe = unpack 'V', substr $bytes, 0x3c, 4;
    substr $bytes, $pe + 24 + 112 + 8 * 10, 8, pack 'VV', $at - $base, 0x60;
    open my $out, '>:raw', $to or die;
    print $out $bytes;
}
if (!@ARGV || "@ARGV" =~ /cookie/) {
    Environment::make($build,
                      'DRIVER=tests/drivers/cookie_driver.c PROGRAM=tests/drivers/cookie.c');
    enter_load_config("$build/program/cookie_driver.sys", "$build/cookie.sys");
    enter_load_config("$build/program/cookie.exe", "$build/cookie.exe");
    check("DRIVER=$build/cookie.sys PROGRAM=$build/cookie.exe PMU=none", 0, qr/^# PASS/m);
}

# Sections that are not on pages of their own, as old MSVC drivers have them.
my $aligned = '--section-alignment=0x20,--file-alignment=0x20';
system "$Environment::WIN_CC -O2 -w -isystem kernel/user/ddk"
    . " -isystem $Environment::DDK -shared -nostdlib -s"
    . " -Wl,--subsystem,native,-e,DriverEntry,--exclude-all-symbols,$aligned"
    . " -o $build/packed.sys tests/samples/hello_driver.c -lntoskrnl -lhal -lgcc";
check("DRIVER=$build/packed.sys PMU=none", 0, qr/\\Driver\\packed goes\n# PASS/);

# Compiled as by Microsoft's compiler.
system "clang --target=x86_64-pc-windows-msvc -O2 -Wall -Wextra -fms-extensions"
    . " -Xclang -stack-protector -Xclang 2 -c -o $build/msvc.o tests/drivers/msvc_driver.c";
for ('', ",$aligned") {
    system "$Environment::WIN_CC -shared -nostdlib -s -Wl,--subsystem,native,"
        . "-e,GsDriverEntry,--exclude-all-symbols$_ -o $build/msvc.sys $build/msvc.o -lntoskrnl";
    check("DRIVER=$build/msvc.sys PMU=none", 0,
          qr/^tries 11 110 110, copied 8, own cookie\nmsvc_driver goes\n# PASS/m);
}

# What hangs says where each thread is and what it waits for, of the kernel's own nothing; a
# driver's loop at DISPATCH_LEVEL is a bug check.
for my $way (
    ['loop', 1, qr/^# FAIL bug check 0x00000133 DPC_WATCH.* in loop\.sys\+0x\w+: too long /m],
    ['stuck', 124, qr/^# thread \d+ \(stuck\.sys\) waits for an event, in stuck\.sys\+0x\w+$/m],
    ['hang', 124, qr/^# thread \d+ \(hang\.sys\) is ready to run, in hang\.sys\+0x\w+$/m,
     "ARGS=trace=cswitch QEMU_ARGS='-serial null'"],
    ['keep', 124, qr/ waits for a request, IRP_MJ 0e, that keep\.sys has not completed, (?x:
        )in keep\.sys.*, called by bad\.exe!bad_request/m,
     'PROGRAM=tests/programs/bad.c PROGRAM_ARGS=request']) {
    my ($name, $want, $pattern, $words) = @$way;
    my $limit = $want == 124 ? 2 : 5;
    my $output = check(($words // '') . ' DRIVER=' . bad_driver($name)
                       . " PMU=none TIMEOUT=$limit", $want, $pattern) // next;
    is(scalar(() = $output =~ /^# thread /mg), $want == 124 ? 1 : 0, "$name: what hangs is named");
}

# Files that are no drivers: one line, and nothing is started, no program either.
system "echo text > $build/text.sys";
check("DRIVER=$build/text.sys PROGRAM=tests/programs/bad.c PMU=none", 1,
      qr/^# FAIL text\.sys is not a Windows program: give an /m);
Environment::make($build, 'DRIVER=tests/samples/hello_driver.c');
system "head -c 3000 $build/program/hello_driver.sys > $build/short.sys";
check("DRIVER=$build/short.sys PMU=none", 1, qr/^# FAIL short\.sys is truncated: copy it again/m);
my $good = do { local $/; open my $in, '<:raw', "$build/program/hello_driver.sys" or die; <$in> };
my $pe = unpack 'V', substr $good, 0x3c, 4;
for my $way (['empty', qr/empty\.sys is an empty file: \w+/, 0, ''],
             ['arm', qr/arm\.sys .*ARM.*: build it /, $pe + 4, pack 'v', 0xaa64],
             ['dotnet', qr/dotnet\.sys is a \.NET program: /, $pe + 4, pack('v', 0x14c), $pe + 24,
              pack('v', 0x10b), $pe + 24 + 96 + 8 * 14, pack 'VV', 0x2000, 72],
             ['console', qr/console\.sys is no driver: its subsystem /, $pe + 24 + 68, pack 'v', 3],
             ['library', qr/bug check 0x00000050 .* in library\.sys.*calls xtoskrnl\.exe!/,
              index($good, "ntoskrnl.exe\0"), 'x']) {
    my ($name, $line, @changes) = @$way;
    my $image = $good;
    while (my ($at, $bytes) = splice @changes, 0, 2) {
        substr $image, $at, length $bytes || length $image, $bytes;
    }
    open my $out, '>:raw', "$build/$name.sys" or die;
    print $out $image;
    close $out;
    check("DRIVER=$build/$name.sys PMU=none", 1, qr/^# FAIL (?:\S*\/)?$line/m);
}
system "echo 'static volatile char all[400 << 20]; long DriverEntry(void) { return *all; }'"
    . " >$build/large.c";
check("DRIVER=$build/large.c PMU=none", 1,
      qr/^# FAIL large\.sys needs more memory than there is: MEMORY= gives the machine more$/m);
my $missing = 'IoGetDeviceProperty';
my $calls_it = "long $missing(void); long DriverEntry(void) { return $missing() + 1; }";
system "echo '$calls_it' > $build/missing.c";
check("DRIVER=$build/missing.c PMU=none", 1,
      qr/^# missing\.sys imports ntoskrnl\.exe!$missing, .*: its use is a bug check$/m,
      qr/^# FAIL .* 0x00000050 .* in missing\.sys\+0x\w+: missing\.sys calls \S+!$missing,/m);
$calls_it = "long $missing(void); long DriverEntry(void *o) { return o ? 0 : $missing(); }";
system "echo '$calls_it' > $build/unused.c";
check("DRIVER=$build/unused.c PMU=none", 0, qr/^# unused\.sys imports .*!$missing,/m, qr/^# PASS/m);
# What wdmsec.lib has for old versions of Windows is imported and not called: the routine that it
# asks for is there.
check('DRIVER=tests/drivers/secure_driver.c PMU=none', 0,
      qr/^# secure_driver\.sys imports ntoskrnl\.exe!ZwSetSecurityObject, /m,
      qr/^# secure_driver\.sys imports ntoskrnl\.exe!SeExports, /m, qr/^# PASS/m);
done_testing;
