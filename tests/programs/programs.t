#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Programs of a user: the samples, and small ones that try what a program may expect. Each is built
# by make and run by tests/tools/run; its status and what it prints are checked. With words on the
# command line only the programs whose name and machine have one: prove -v tests/programs/programs.t
# :: wide.cpp
use strict;
use warnings;
use Test::More;
use lib 'tests/tools';
use Environment;

# A tree that is built for one script has the kernel for it already: PROGRAMS.
my $build = $ENV{PROGRAMS} // ($ENV{BUILD} // 'build') . '/programs';
$ENV{WINE} //= ($ENV{BUILD} // 'build') . '/wine';
Environment::forget();

# Builds and runs; returns the status of tests/tools/run and what the program printed.
sub run
{
    my ($program, $variables) = @_;
    my $failure = Environment::make($build, "PROGRAM=$program");
    return (-1, $failure) if $failure;
    my $all = `$variables BUILD=$build PROGRAM=$program tests/tools/run 2>&1 </dev/null`;
    my $status = $? >> 8;
    $all =~ s/.*?^# running: [^\n]*\n//ms;
    return ($status, $all);
}

sub wanted
{
    my ($name) = @_;
    return !@ARGV || grep { $name =~ /$_/ } @ARGV;
}

# Returns what it printed, or nothing if it is not wanted. No program: it could not be built.
sub check
{
    my ($program, $variables, $want, @patterns) = @_;
    return fail('a program of another tool chain is built') if !$program;
    return '' if !wanted("$program $variables");
    my ($status, $output) = run($program, $variables);
    my @missing = grep { $output !~ $_ } @patterns;
    ok($status == $want && !@missing, "$program $variables")
        or diag("status $status, want $want\n", map({ "must match $_\n" } @missing), $output);
    return $output;
}

# Whether a program that needs Wine's libraries is wanted and has them. Where they are not, one line
# fails and says what brings them.
my $wine = -f "$ENV{WINE}/msvcrt.dll";
my $missed = 0;
sub with_wine
{
    my ($name) = @_;
    return 0 if !wanted($name);
    fail("no Wine in $ENV{WINE}: make deps WITH=dlls brings it, or WINE= is a folder that has it")
        if !$wine && !$missed++;
    return $wine;
}

# Each way to end badly: one line says where, or where each thread is and what it waits for.
my %badly = (
    null     => [1, qr/ STATUS_ACCESS_VIOLATION \w+ at \w+ \(bad\.exe!main\+\w+\), address 0x0$/m],
    stack    => [1, qr/^# FAIL .* STATUS_STACK_OVERFLOW .* \(bad\.exe!deep\+/m],
    frame    => [1, qr/^# FAIL .* STATUS_STACK_OVERFLOW .* \(bad\.exe!large_frame\+/m],
    free     => [1, qr/^# heap: .*\n# FAIL .* STATUS_HEAP_CORRUPTION .*\(bad\.exe!bad_free\+/m],
    overrun  => [1, qr/^# heap: .*\n# FAIL .* STATUS_HEAP_CORRUPTION .*\(bad\.exe!bad_overrun\+/m],
    thread   => [1, qr/\Abefore\n# FAIL .* STATUS_ACCESS_VIOLATION 0xc0000005 .*, address 0x123\n/],
    check    => [1, qr/\Abefore 1\n# FAIL .* STATUS_STACK_BUFFER_OVERRUN 0xc0000409 (?x:
                  ).*bad_check.*, code 0x7$/m],
    loop     => [124, qr/^# thread \d+ \(program\) is ready to run, at bad\.exe!bad_loop\+0x/m],
    deadlock => [124, qr/^# thread (\d+) .* waits for a mutant that thread (\d+) owns, .*\n(?x:
                  )# thread \2 .* waits for a mutant that thread \1 owns, .* bad\.exe!take_both/m],
);
for (sort keys %badly) { # only what hangs may want for time
    my $limit = $badly{$_}[0] == 124 ? ' TIMEOUT=2' : '';
    check('tests/programs/bad.c', "PROGRAM_ARGS=$_ PMU=none$limit", @{ $badly{$_} });
}

if (wanted('large.c')) {
    system "mkdir -p $build; echo 'static volatile char all[280 << 20]; int main(void) { return"
        . " *all; }' >$build/large.c; : >$build/empty.exe";
    check("$build/large.c", "PMU=none MEMORY=$_->[0]", @$_[1, 2])
        for [256, 1, qr/^# FAIL large\.exe needs more memory than there is: MEMORY= gives the /m],
            [1024, 0, qr/^# PASS/m];
    check("$build/empty.exe", 'PMU=none', 1, qr/^# FAIL \S*empty\.exe is an empty file: \w+/m);
}

my $none = check('tests/samples/read.cpp', 'PMU=none', 1,
                 qr/^KeSetHardwareCounterConfiguration: status 0xc0000002$/m);
# Two counters and three fixed ones: four sources are too many.
check('tests/samples/read.cpp', 'PMU=intel-v2', 1,
      qr/^KeSetHardwareCounterConfiguration: status 0xc000009a$/m);
for my $policy ('', 'ARGS=counters=isolate ') {
    my $read = check('tests/samples/read.cpp', "${policy}PMU=amd-v2", 0,
                     qr/^1: 4 counters, 1 switches, /m,
                     qr/^10: .*, [1-9]\d* instructions, [1-9]\d* branches, /m,
                     qr/^10: .* branches, [1-9]\d* cache misses, [1-9]\d* branch misp/m);
    next if !$read;
    my @instructions = $read =~ /, (\d+) instructions/g;
    is(@instructions, 10, 'ten readings');
    ok(!(grep { $instructions[$_] <= $instructions[$_ - 1] } 1 .. 9),
       'instructions grow from reading to reading');
}
check('tests/samples/inline.c', "PMU=$_", 0, qr/^one instruction: 1$/m, qr/^ten instructions: 10$/m,
      qr/^a loop of 1000 iterations: 2001$/m) for qw(intel-v2 amd-v2);

my $threads = check('tests/samples/threads.c', 'PMU=amd-v2 SMP=4', 0, qr/^4 CPUs: /m);
if ($threads) {
    my %beside = map { $_ => 1 } $threads =~ /, (\d+) beside its loop, \d+ switches, 0 retries$/mg;
    is(keys %beside, 1, 'each thread counts its loop exactly') or diag($threads);
    my ($exact) = keys %beside;
    my @retried = $threads =~ /, (\d+) beside its loop, \d+ switches, [1-9]\d* retries$/mg;
    ok(!(grep { $_ <= $exact } @retried),
       'only one that was switched while it was read counts more, and says so') or diag($threads);
    my ($all, $outside) = $threads =~ /^4 CPUs: (\d+) .* (-?\d+)$/m;
    ok($all && $outside >= 0 && $outside < 0.001 * $all,
       'their sum is the total of the CPUs, but for what is outside')
        or diag($threads);
}

# Of a million iterations and more, 2 instructions each; what is beside them the trace counts in
# both rings.
for my $machine ('PMU=intel-v2', 'PMU=intel-v5 SMP=4') {
    my $trace = check('tests/samples/trace.c', $machine, 0,
                      qr/^\d+ counters can be had at once$/m,
                      qr/^[1-9]\d* events, 0 lost, ProcessTrace: 0$/m);
    next if !$trace;
    my @counts = $trace =~ /^thread \d: (\d+) instructions, \d+ cycles, [1-9]\d* switches$/mg;
    my @more = map { $counts[$_] - 2e6 * ($_ + 1) } 0 .. 3;
    is(scalar(grep { $_ > 0 && $_ < 100_000 } @more), 4,
       'a trace that a program reads gives each thread its loop, and little more')
        or diag($trace);
}
# What the kernel walks of a program's stack is what RtlVirtualUnwind walks in it.
check('tests/programs/stacks.c', 'PMU=intel-v5', 0, qr/^147 stacks, 5 match; /m);
# Regions that it marks by events of its own count their loops, and what the two calls do beside.
check('tests/programs/marks.c', "PMU=amd-v2 SMP=$_", 0, qr/^region 3: 80\d{4} instructions, /m,
      qr/^\d+ checks, 0 wrong\n# PASS/m) for 1, 2;
check('tests/samples/trace.c', 'PMU=none', 1, qr/^this processor has no source/m);

# The host's C library knows what should come out; these it calls otherwise.
my $names = join ' ', map { "-D$_" } qw(
    _strtoi64=strtoll _strtoui64=strtoull strtok_s=strtok_r
    _stricmp=strcasecmp _strnicmp=strncasecmp _strdup=strdup);
for my $program (grep { wanted("$_.c") } 'format', 'text') {
    system "mkdir -p $build && gcc -w $names -o $build/$program.host tests/programs/$program.c -lm";
    my ($status, $output) = run("tests/programs/$program.c", 'PMU=none');
    my $want = `$build/$program.host`;
    $want .= "\n" if $want !~ /\n\z/;
    $output =~ s/# PASS [^\n]*\n\z//;
    is($status, 0, "tests/programs/$program.c");
    is($output, $want, 'prints what the host prints');
}

check('tests/programs/wide.cpp', 'PMU=none', 0, qr/^# libraries of Wine \S+: msvcrt\.dll$/m,
      qr/^capital 12-x\nwprintf 7\n# PASS/m) if with_wine('wide.cpp PMU=none');
# From power-on to a program's first line, two seconds at 100 million instructions a second, which
# TCG executes on a slow host too; an instruction is a nanosecond of the machine's time, so this is
# the same on every host.
for my $machine ('PMU=none SMP=4', 'PMU=intel-v5') {
    my $output = check('tests/programs/beside.cpp', $machine, 0,
                       qr/^96 checks, 0 wrong\nend second\nend first\n# PASS/m);
    next if !$output;
    my ($first) = $output =~ /\Abegin first\nbegin second\nfirst line after (\d+)$/m;
    cmp_ok($first // 0, '>', 1_000_000, 'the TSC counts from power-on');
    cmp_ok($first // 1e12, '<', 200_000_000, 'the first line comes within 2 s');
}
# CPUID's two ways of telling: of two processors each has three caches, and both have one. QEMU's
# sizes: 32 + 32 + 4096 and 16384; 32 + 64 + 512 and 8192.
my %caches = ('Skylake-Client' => 24704, EPYC => 9408);
check('tests/programs/beside.cpp', "PMU=none SMP=2 QEMU_ARGS='-cpu $_'", 0,
      qr/^7 caches, $caches{$_} KB$/m, qr/^96 checks, 0 wrong$/m)
    for sort keys %caches;
cmp_ok(-s "$build/program/beside.exe", '>', 250_000, 'the program has 250 KB')
    if wanted('beside.cpp');
check('tests/programs/context.c', "PMU=none SMP=$_", 0, qr/\A126 checks, 0 wrong\n# PASS/) for 1, 4;
# The program checks what each group of the machine says of itself.
check('tests/programs/groups.c', "PMU=none SMP=$_", 0,
      $_ > 64 ? qr/\A2 groups, 66 processors, 59 checks, 0 wrong\n# PASS/
              : qr/\A1 groups, 2 processors, 35 checks, 0 wrong\n# PASS/)
    for 2, 66;
check('tests/programs/runtime.cpp', q(PROGRAM_ARGS='"a b" c\d e\"f g\\' PMU=none SMP=2), 0,
      qr/\A56 checks, 0 wrong\nthen\nlast\n# PASS/);
check('tests/programs/static.c', "PMU=none SMP=$_", 0, qr/\Awide\n85 checks, 0 wrong\n# PASS/)
    for 1, 4;
# CPUs that really run at once, too.
check('tests/programs/concurrency.c', "PMU=none SMP=$_", 0, qr/\A58 checks, 0 wrong\n# PASS/)
    for 1, 4;
check('tests/programs/concurrency.c', 'PMU=none SMP=4 ICOUNT=off PROGRAM_ARGS=at_once', 0,
      qr/\A[1-9]\d+ checks, 0 wrong\n# PASS/);
check('tests/programs/win32.c', qq{PROGRAM_ARGS='"a b" c' PMU=none SMP=$_}, 1, qr/\Adebug, (?x:
    )as sixteen bits, [\w -]+, which go as two parts\n(?x:
    )# a write to handle 0x0 was refused: status 0xc0000008\nw{299}\n(?x:
    )(?:# a write to handle 0x7 was refused: status 0xc00000(?:05|08|bb)\n){4}(?x:
    )177 checks, 0 wrong\n# FAIL the program ended with 42$/m) for 1, 4;
check('tests/programs/crt.c', "PMU=none SMP=$_", 0, qr/\Av\|   42\|1\|pq\|\nab\n(?x:
    )# a write to handle 0x0 was refused: status 0xc0000008\n(?x:
    )Assertion failed: holds, file crt\.c, line 7\n82 checks, 0 wrong\n# PASS/) for 1, 4;

# Rust, of Debian 12: what its library asks for before main is there, and its threads count exactly.
# Debian 13 has no library of Rust's for Windows; rustup brings one.
SKIP: {
    last if !wanted('count.exe');
    my $rust = 'rustc --target x86_64-pc-windows-gnu';
    $rust = "/usr/bin/$rust" if -x '/usr/bin/rustc';
    skip "$rust has no library", 2 if !-d (`$rust --print target-libdir` =~ s/\n//r);
    my $failed = system "mkdir -p $build; $rust -O -o $build/count.exe"
        . " -C linker=$Environment::WIN_CC tests/samples/count.rs";
    check($failed ? '' : "$build/count.exe", $_, 0, qr/^alone: 2000000$/m,
               qr/^at once: \[200000, 400000, 600000, 800000\]\n# PASS/m)
        for 'PMU=intel-v5', 'PMU=amd-v2 SMP=4';
}

# Programs of other tool chains, by what they import: UCRT64's, the API sets of ucrtbase.dll; Visual
# Studio's, these, vcruntime140.dll and msvcp140.dll. They get Wine's.
sub make_msvc
{
    my $own = "$build/msvcp";
    my $cpp = '-std=c++17 -fcxx-exceptions -fno-sized-deallocation -fexceptions -fno-builtin';
    return system("clang --target=x86_64-pc-windows-msvc $cpp -O2 -Wall -Wextra -c -o $own.o "
                  . "tests/programs/msvcp.cpp && $Environment::WIN_CC -nostdlib "
                  . "-Wl,-e,mainCRTStartup -o $own.exe $own.o $ENV{WINE}/msvcp140.dll "
                  . "$ENV{WINE}/vcruntime140.dll -lucrt -lkernel32") ? '' : "$own.exe";
}

# C++ with threads and exceptions, linked with Debian's static libraries, which know no other name
# of setjmp.
sub make_ucrt_library
{
    my $to = "$build/ucrt.library.exe";
    my $libraries = join ' ', map { "-l$_" }
        qw(stdc++ mingw32 gcc gcc_eh mingwex pthread ucrt kernel32 advapi32 winmm);
    my $setjmp = '_setjmp=__intrinsic_setjmpex';
    return system("$Environment::WIN_CXX -D_UCRT -O2 -w -static -s -o $to "
                  . "tests/programs/beside.cpp -nodefaultlibs -Wl,--defsym=$setjmp "
                  . "-Wl,--start-group $libraries -Wl,--end-group") ? '' : $to;
}

system "mkdir -p $build";
if (with_wine('ucrt.library.exe')) {
    my $exe = make_ucrt_library();
    my $imports = `x86_64-w64-mingw32-objdump -p $exe`;
    ok($imports =~ /DLL Name: api-ms-win-crt-stdio-l1-1-0\.dll/ && $imports !~ /msvcrt/i,
       'ucrt.library.exe imports API sets and no msvcrt.dll');
    check($exe, 'PMU=none SMP=2', 0, qr/^96 checks, 0 wrong\nend second\nend first\n# PASS/m);
}
if (with_wine('msvcp.exe')) {
    my $exe = make_msvc();
    check($exe, 'PMU=none SMP=2', 0, qr/^# libraries of Wine \S+: msvcp140\.dll /m,
               qr/^a stream: 42 2\.5 global 5\nhandled 0, destroyed 10\nhandled 7, destroyed 21\n/m,
               qr/^handled exception: own\n2, destroyed 1033\nhandled out of range: thrown by /m,
               qr/ library\n3, destroyed 1046\nagain: text\nout of a handler 44, destroyed 1160, /,
               qr/ uncaught 0\nthread 9\nat exit\n# PASS/);
    check($exe, 'WINE=/none PMU=none', 1, qr/^# FAIL \S+ imports \S+: make deps WITH=dlls brings/m);
}

# What the kernel's own msvcrt.dll lacks Wine's has; a program may also bring it by itself.
my $mine = "DLL=$ENV{WINE}/msvcrt.dll";
check('tests/programs/wide.cpp', 'WINE=/none PMU=none', 1,
      qr/^# FAIL wide\.exe imports fputwc fwprintf of msvcrt\.dll, which the kernel's own (?x:
         )lacks: make deps WITH=dlls brings it/m);
check('tests/programs/runtime.cpp', qq(PROGRAM_ARGS='"a b" c\\d e\\"f g\\' PMU=none $mine), 0,
      qr/^# libraries of Wine \S+: msvcrt\.dll$/m, qr/^56 checks, 0 wrong\nthen\nlast\n# PASS/m)
    if with_wine("runtime.cpp $mine");
check('tests/samples/read.cpp', "PMU=amd-v2 $mine", 0, qr/^# libraries of Wine \S+: msvcrt\.dll$/m,
      qr/^10: .*, [1-9]\d* instructions, /m) if with_wine("read.cpp $mine");

# Libraries beside a program come before the kernel's.
if (wanted('bring.exe')) {
    my $windows = "$Environment::WIN_CC -O2 -nostdlib -s";
    open my $out, '>', "$build/bring.c" or die;
    print $out "__declspec(dllimport) int answer(void), _getpid(void);\n"
        . "__declspec(dllimport) void *LoadLibraryA(const char *),"
        . " *GetModuleHandleA(const char *);\n"
        . "int start(void) { return answer() != 42 || _getpid() != 7 || LoadLibraryA(\"broken\") ||"
        . " GetModuleHandleA(\"broken\") || LoadLibraryA(\"broken\"); }\n";
    close $out;
    system "echo 'int answer(void) { return 42; }' >$build/own.c;"
        . " echo 'int _getpid(void) { return 7; }' >$build/vcruntime140.c";
    system "$windows -shared -Wl,-e,0 -o $build/$_.dll $build/$_.c" for qw(own vcruntime140);
    system "$windows -Wl,-e,start,--subsystem,console -o $build/bring.exe $build/bring.c"
        . " $build/own.dll $build/vcruntime140.dll -lkernel32";
    # A library whose imports are damaged stays in no list.
    system "echo 'int answer(void); int broken(void) { return answer(); }' >$build/broken.c;"
        . " $windows -shared -Wl,-e,0 -o $build/broken.dll $build/broken.c $build/own.dll";
    open my $broken, '+<:raw', "$build/broken.dll" or die;
    my $image = do { local $/; <$broken> };
    my $header = unpack 'x60 V', $image;
    my $imports = unpack "x$header x144 V", $image;
    my ($section) = grep { $_->[1] <= $imports && $imports < $_->[1] + $_->[0] }
        map { [unpack 'x' . ($header + 264 + 40 * $_) . ' x8 V3 V', $image] } 0 .. 6;
    seek $broken, $imports - $section->[1] + $section->[3] + 12, 0;
    print $broken pack 'V', 0x7fffff00;
    close $broken;
    my $libraries = "$build/own.dll $build/vcruntime140.dll $build/broken.dll";
    check("$build/bring.exe", "PMU=none DLL='$libraries'", 0,
          qr/\A# PASS/);
    my $many = "$build/own.dll " x 32;
    check("$build/bring.exe", "PMU=none DLL='$many'", 1,
          qr/\A# FAIL the loader brought \d+ files, \d more than there can be: give fewer by /);
    check("$build/bring.exe", 'PMU=none', 1, qr/^# bring\.exe: imports are missing, .*own\.dll/m);
}

# Entry points of libraries, one of which refuses, and exports that another library has.
if (wanted('entries.c')) {
    my $windows = "$Environment::WIN_CC -O2 -nostdlib -s -shared";
    my $main = '__declspec(dllimport) void OutputDebugStringA(const char *);'
        . ' static char text[] = "%s 0\n"; int entry(void *base, unsigned why, void *unused)'
        . ' { text[sizeof text - 3] = 48 + why; OutputDebugStringA(text); return %d; }'
        . ' int refusals(void) { return 0; }';
    my %source = (entry => sprintf($main, 'entry', 1), refuses => sprintf($main, 'refuses', 0),
                  above => 'int refusals(void); int entry(void *base, unsigned why, void *unused) '
                      . '{ return 1; } int above(void) { return refusals(); }',
                  nested => '__declspec(dllimport) void *LoadLibraryA(const char *); int entry('
                      . 'void *base, unsigned why, void *unused)'
                      . ' { if (why) LoadLibraryA("two"); return 0; }',
                  takes => join('', map { "__declspec(dllimport) void $_(void *);" }
                                qw(OutputDebugStringA AcquireSRWLockExclusive AcquireSRWLockShared
                                   InitializeCriticalSection EnterCriticalSection))
                      . 'static void *slim; static long long critical[5]; void take(void)'
                      . ' { AcquireSRWLockExclusive(&slim); EnterCriticalSection(critical); }'
                      . ' int entry(void *base, unsigned why, void *unused)'
                      . ' { if (why == 1) InitializeCriticalSection(critical); if (!why)'
                      . ' { take(); AcquireSRWLockShared(&slim); OutputDebugStringA("takes\n"); }'
                      . ' return 1; }',
                  two => 'int answer(void) { return 42; } int seven(void) { return 7; }',
                  forwards => 'int none(void) { return 0; }');
    my %definitions = (two => "answer \@1\nseven \@2\n",
                       forwards => "by_name = two.answer \@1\nby_ordinal = \"two.#2\" \@2\n"
                           . "to_nowhere = nowhere.answer \@3\nto_none = two.none \@4\n");
    for my $name (qw(two forwards entry refuses above nested takes)) {
        my $main = $name =~ /^(?:[aenr]|ta)/ ? 'entry' : 0;
        my @more = $name eq 'above' ? "$build/refuses.dll" : ();
        for (['c', $source{$name}], ['def', "EXPORTS\n" . ($definitions{$name} // '')]) {
            open my $out, '>', "$build/$name.$_->[0]" or die;
            print $out $_->[1];
        }
        push @more, "$build/$name.def" if $definitions{$name};
        system "$windows -Wl,-e,$main -o $build/$name.dll $build/$name.c @more -lkernel32";
    }
    my $libraries = join ' ', map { "$build/$_.dll" } qw(entry refuses above nested takes two
                                                            forwards);
    check('tests/programs/entries.c', "PMU=none DLL='$libraries'", 0,
          qr/\Aentry 1\nentry 2\nentry 3\n(?:refuses 1\nrefuses 0\n){3}36 checks, 0 wrong\n(?x:
          )takes\nentry 0\n# PASS/);
}

# 256 KB more of libraries, with a pointer to relocate in each 64 bytes and no place of their own,
# cost at most 0.2 s at 100 million instructions a second.
if (wanted('weight.exe')) {
    my $windows = "$Environment::WIN_CC -O2 -s";
    open my $out, '>', "$build/weight.c" or die;
    print $out "#include <stdio.h>\n#include <x86intrin.h>\nint answer(void);\n"
        . "int main(void) { printf(\"at %llu\\n\", __rdtsc()); return answer() != 42; }\n";
    close $out;
    my $weight = 'struct { void *to, *rest[7]; } weight[4096] = { [0 ... 4095] = { weight } };';
    my @at;
    for ('', $weight) {
        system "echo '$_ int answer(void) { return 42; }' >$build/weigh.c;"
            . " $windows -nostdlib -shared -Wl,-e,0,--image-base,0x140000000 -o $build/weigh.dll"
            . " $build/weigh.c; $windows -o $build/weight.exe $build/weight.c $build/weigh.dll";
        my $output = check("$build/weight.exe", "PMU=none DLL=$build/weigh.dll", 0, qr/^at \d+/m);
        push @at, $output =~ /^at (\d+)$/m;
    }
    cmp_ok(-s "$build/weigh.dll", '>', 256 << 10, 'the library has 256 KB');
    cmp_ok($at[1] - $at[0], '<', 20_000_000, 'and is loaded within 0.2 s') or diag("@at");
}

# A program runs without imports that it does not use.
if (wanted('missing.exe')) {
    Environment::make($build, 'PROGRAM=tests/programs/missing.c');
    system "sed 's/lstrcmpiA/lstrcmpiX/g; s/WINMM\\.dll/WINMX.dll/' $build/program/missing.exe"
        . " >$build/missing.exe";
    my $function = 'KERNEL32\.dll!lstrcmpiX';
    my @started = qr/^# missing\.exe: imports are missing, .*: $function .*WINMX\.dll!time/m;
    my $end = qr/^# FAIL the program ended by STATUS_ENTRYPOINT_NOT_FOUND 0xc0000139 at .*!main\+/m;
    check("$build/missing.exe", 'PMU=none', 0, @started, qr/^not found\n# PASS/m);
    check("$build/missing.exe", 'PMU=none PROGRAM_ARGS=call', 1, $end,
          qr/^not found\n# missing import is called: $function\n/m);
    check("$build/missing.exe", 'PMU=none PROGRAM_ARGS=read', 1, $end,
          qr/^not found\n# missing import is read: $function\n/m);
    check("$build/missing.exe", 'PMU=none PROGRAM_ARGS=library', 1, $end,
          qr/^not found\n# missing import is called: WINMX\.dll!timeGetTime\n/m);
}

done_testing, exit if @ARGV;

# Images that are none: one line says why, and nothing else happens.
sub u16 { pack 'v', @_ }
sub u32 { pack 'V', @_ }
Environment::make($build, 'PROGRAM=tests/programs/events.c');
my $good = do { local $/; open my $in, '<:raw', "$build/program/events.exe" or die; <$in> };
my $pe = unpack 'V', substr $good, 0x3c, 4;
sub bad
{
    my ($name, $why, @changes) = @_;
    my $image = $good;
    while (my ($at, $bytes) = splice @changes, 0, 2) {
        $at eq 'length' ? ($image = substr $image, 0, $bytes)
                        : substr $image, $at, length $bytes, $bytes;
    }
    open my $out, '>:raw', "$build/bad.exe" or die;
    print $out $image;
    close $out;
    my $all = `PMU=none BUILD=$build PROGRAM=$build/bad.exe tests/tools/run 2>&1 </dev/null`;
    my $status = $? >> 8;
    $all =~ s/.*?^# running: [^\n]*\n//ms;
    ok($status == 1 && $all =~ $why && $all !~ /PANIC|system calls/, "refused: $name")
        or diag("status $status\n$all");
}
bad('no MZ', qr/^# FAIL bad\.exe is not a Windows program: give /m, 0, 'ZM');
bad('cut off after the headers', qr/^# FAIL bad\.exe is truncated: copy it /m, length => 0x400);
bad('a header outside the file', qr/^# FAIL bad\.exe \w.*$/m, 0x3c, u32(0x7ffffff0));
bad('of 32 bits', qr/^# FAIL bad\.exe .*32.*: build it for x86-64$/m, $pe + 4, u16(0x14c));
bad('of .NET', qr/^# FAIL bad\.exe is a \.NET program:/m, $pe + 4, u16(0x14c), $pe + 24, u16(0x10b),
    $pe + 24 + 96 + 8 * 14, u32(0x2000) . u32(72));
bad('of ARM', qr/^# FAIL bad\.exe .*ARM.*: build it for x86-64$/m, $pe + 4, u16(0xaa64));
bad('a library', qr/^# FAIL bad\.exe is a library, .*: DLL= brings /m, $pe + 22, u16(0x2022));
bad('a driver', qr/^# FAIL .*driver|^# FAIL bad\.exe \w/m, $pe + 24 + 68, u16(1));
bad('imports outside the image', qr/^# FAIL \w.*$/m, $pe + 24 + 120, u32(0xfffff000));
bad('a library that nobody has', qr/^# .*ERNEL33/m, index($good, "KERNEL32.dll\0"), 'KERNEL33');

# More of them by chance; make fuzz-images has as many as one wants.
Environment::make($build, 'DRIVER=tests/drivers/driver_try.c');
for (['program/events.exe', 10, 'PASS'], ['program/driver_try.sys', 5, 'loaded']) {
    my ($image, $count, $some) = @$_;
    my $fuzzed = `SEED=1 COUNT=$count BUILD=$build tests/programs/fuzz-images $build/$image 2>&1`;
    ok(!$? && $fuzzed =~ /^$count images, seed 1: (?=.*FAIL)(?=.*$some)/m
       && $fuzzed =~ /^@{[200 * $count]} images, seed 1: (\d+) opened$/m && $1 > 100 * $count,
       "$count mutated copies of $image are refused, run or end by themselves") or diag($fuzzed);
}
done_testing;
