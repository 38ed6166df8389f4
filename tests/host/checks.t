#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The tests of make check: a small tree that is right, which each check of check.t takes, and slips
# in it, one for each thing that a check is for: it says which.
use strict;
use warnings;
use Test::More;
use Cwd 'getcwd';
use File::Basename 'dirname';
use File::Path 'make_path';
use File::Temp 'tempdir';
use lib 'tests/host';
use Environment;

Environment::forget(qw(BUILD CC UBSAN));
my $here = getcwd;
my $dir = tempdir(CLEANUP => 1);
my $spdx = "SPDX-License-Identifier: MIT";

sub file
{
    my ($name, $text, $mode) = @_;
    make_path(dirname("$dir/$name"));
    open my $out, '>', "$dir/$name" or die "$name: $!";
    print $out $text;
    close $out;
    chmod $mode, "$dir/$name" if $mode;
}

sub c_file { my ($name, $text) = @_; file($name, "/* $spdx */\n$text") }
sub script { my ($name, $text) = @_; file($name, "#!/bin/sh\n# $spdx\n$text", 0755) }

# --- The tree.

my %last_of = (VP => 90, TP => 100, HC => 48, KP => 32, PO => 74, ET => 60);
my %cases_of = ('C-1' => 10, 'C-2a' => 14, 'C-2d' => 4, 'C-2e' => 10, 'C-2f' => 13, 'C-2g' => 7,
                'C-2h' => 3, 'C-3' => 44);
my @ids = ((map { my $f = $_; map { sprintf "$f-%02d", $_ } 1 .. $last_of{$f} } sort keys %last_of),
           map { my $f = $_; map { "$f.$_" } 1 .. $cases_of{$f} } sort keys %cases_of);

sub list { return file('tests/list', join '', map { "$_\n" } @_) }
sub mutants # in two files, each below 400 lines
{
    my @rest = splice @_, @_ / 2;
    file('tests/mutants/all', "# $spdx\n(\n" . join('', @_) . ")\n");
    file('tests/mutants/rest', "# $spdx\n(\n" . join('', @rest) . ")\n");
}
sub contract { return file('tests/contract.md', "# The contract\n\n" . join '', @_) }
my @list = ((map { "a.one - first [$_]" } @ids), 'a.two - second', 'b.three - third');
my @contract = map { "- $_: a.one\n  It holds.\n" } @ids;
my @mutants = map { "    ['no call', '$_', '', 'boot/boot.c', 'hal_begin();', ''],\n" } @ids;
my $makefile = "# $spdx\n" . <<'END' =~ s/^ {8}/\t/mgr;
BUILD := build
OBJ := $(patsubst %.c,$(BUILD)/%.o,boot/boot.c hal/hal.c kernel/ke/up.c kernel/ke/down.c)
all: $(BUILD)/ntpmu.bin
$(BUILD)/%.o: %.c
        @mkdir -p $(@D)
        $(CC) -Wall -Werror -I. -c -o $@ $<
$(BUILD)/ntpmu.bin: $(OBJ)
        cat $(OBJ) > $@
END
my $up = "#include \"kernel/ke/up.h\"\n\nvoid up(void) {}\n";
my $hal = "#include \"hal/hal.h\"\n\nvoid hal_begin(void) {}\n";
our @functions = qw(RtlReadThreadProfilingData switch_stacks sched_switch thread_profiling_switch
    etw_context_swap etw_log);
our %code = map { $_ => 'ret' } @functions;
our $icr = "jz 1f\nmfence\nlfence\nwrmsr\n1: ret";

sub make_tree
{
    system("rm -rf $dir/*") == 0 or die 'rm';
    file('README.md', "The tree is in boot/boot.c.\n");
    file('Makefile', $makefile);
    file('linker.ld', "/* $spdx */\n");
    file('boot/grub.cfg', "# $spdx\n");
    system "cp .clang-format $dir";
    c_file('boot/boot.c', "/* hal/hal.c follows. */\n#include \"hal/hal.h\"\n\n"
               . "void boot(void) { hal_begin(); }\n");
    c_file('hal/hal.h', "void hal_begin(void);\n");
    c_file('hal/hal.c', $hal);
    c_file('kernel/ke/up.h', "void up(void);\nvoid down(void);\n");
    c_file('kernel/ke/up.c', $up);
    c_file('kernel/ke/down.c', "#include \"kernel/ke/up.h\"\n\nvoid down(void) { up(); }\n");
    c_file('kernel/driver/layouts.h', "SIZE(KDPC, 64)\nFIELD(KDPC, DeferredContext, 32)\n");
    c_file('pmu/pmu.h', "void pmu(void);\n");
    file('kernel/README.md', "hal/hal.c `hal_begin`.\n");
    script('tests/host/headers', "exit 0\n");
    script('tests/run', "cat tests/list\n");
    list(@list);
    contract(@contract);
    mutants(@mutants);
    code();
}

# What is disassembled: functions, and the sending of IPIs.
sub code
{
    my $text = join '', map { ".globl $_\n.type $_,\@function\n$_: $code{$_}\n" } @functions;
    file('build/code.s', $text);
    file('build/icr.s', ".globl write_icr\n.type write_icr,\@function\nwrite_icr: $icr\n");
    system("cd $dir/build && mkdir -p hal dll/tests/ring3 && as -o code.o code.s"
            . ' && as -o hal/apic.o icr.s && cp code.o ntpmu.elf'
            . ' && cp code.o dll/tests/ring3/work.asm.o'
            . ' && cp code.o dll/ring3.exe.debug && cp code.o dll/ntdll.dll.debug') == 0
        or die 'as';
}

# What these checks say, and the exit status.
sub said
{
    my (@checks) = @_;
    my $all = `cd $dir && perl $here/tests/host/check.t @checks 2>&1 </dev/null`;
    return ($? >> 8, $all);
}

# A tree with these slips: the check fails, and says each of that.
sub slips
{
    my ($name, $check, $slip, @says) = @_;
    make_tree();
    local $ENV{PATH} = "$dir/bin:$ENV{PATH}";
    $slip->();
    my ($status, $all) = said($check);
    my @missing = grep { $all !~ $_ } @says;
    ok($status && !@missing, $name) or diag(map({ "must match $_\n" } @missing), $all);
}

# --- All of them, where nothing is wrong.

make_tree();
system "make -C $dir >/dev/null";
my ($status, $all) = said();
is($status, 0, 'a tree where all is right is taken') or diag($all);
my @ok = $all =~ /^ok/mg;
is(@ok, 20, 'by each check');

# --- Slips.

slips('text', 'text', sub {
    file('hal/none.c', "int a;\nint b;\n/* $spdx */\n");
    file('boot/run', "#!/bin/sh\n\n# $spdx\n");
    c_file('hal/long.c', "int a;\n" x 399);
    c_file('hal/chars.c', "/* \xc3\xa4 */\nint a; \n\tint b;\n/* TO" . "DO */\n#if 1\n"
               . "/* The " . "same. */\n");
    c_file('hal/wide.c', '/*' . 'x' x 97 . "*/\n");
    c_file('hal/table.c', "/* clang-format off */\n/*" . 'x' x 97 . "*/\n/* clang-format on */\n"
               . '/*' . 'x' x 97 . "*/\n");
    file('kernel/ke/README.md', "\t\n");
    file('tests/mutants/more', "# $spdx\n# " . 'x' x 99 . "\n('" . 'x' x 99 . "')\n");
    unlink "$dir/linker.ld";
}, qr/hal\/none\.c: no SPDX line/, qr/boot\/run: no SPDX line/,
   qr/hal\/long\.c: 400 lines, 399 are allowed/, qr/hal\/chars\.c:2: not ASCII/,
   qr/hal\/chars\.c:3: white space/, qr/hal\/chars\.c:4: tab/, qr/hal\/chars\.c:5: unfinished/,
   qr/hal\/chars\.c:6: #if/, qr/hal\/chars\.c:7: a comment begins/,
   qr/hal\/wide\.c:2: 101 columns, 100/,
   qr/\A(?!.*table\.c:3).*table\.c:5: 101 columns/s, qr/ke\/README\.md:1: tab/,
   qr/\A(?!.*more:3).*more:2: 101 columns/s, qr/linker\.ld: missing or empty/);
slips('format', 'format', sub { c_file('hal/hal.h', "void  hal_begin(void);\n") },
      qr/hal\/hal\.h:2:\d+: error: code should be clang-formatted/);
slips('functions', 'functions', sub {
    c_file('hal/long.c', join '', map { "void f$_(void)\n{\n" . "    a();\n" x ($_ ? 13 : 61)
                                        . "}\n" } 0 .. 5);
}, qr/median 13$/m, qr/one has 61$/m);
slips('citations', 'citations', sub {
    file('README.md', "The tree is in boot/none.c.\n");
    c_file('boot/boot.c', "/* none.c follows, hal.c too. */\n");
}, qr/README\.md:1: there is no boot\/none\.c/, qr/boot\/boot\.c:2: there is no none\.c/);
slips('journeys', 'journeys', sub {
    file('kernel/README.md', "hal/hal.c `hal_begin`, `hal_end`\n" . "\n" x 60);
}, qr/hal\/hal\.c has no hal_end/, qr/61 lines, 60 are allowed/);
slips('journeys: there are some', 'journeys', sub { file('kernel/README.md', "None.\n") },
      qr/none found/);
slips('includes', 'includes', sub {
    c_file('hal/hal.c', "#include \"hal/none.h\"\n#include \"kernel/ke/up.h\"\n");
    c_file('boot/boot.c', "#include \"pmu/pmu.h\"\n#include <stdio.h>\n");
    c_file('kernel/user/dll.c', "#include \"kernel/ke/up.h\"\n");
    c_file('tests/hal/a.c', "#include \"tests/pmu/b.h\"\n");
    c_file('tests/pmu/b.h', "void b(void);\n");
}, qr/hal\/hal\.c includes hal\/none\.h, which does not exist/,
   qr/hal\/hal\.c may not include kernel\/ke\/up\.h/, qr/boot\/boot\.c may not include pmu\/pmu\.h/,
   qr/boot\/boot\.c includes stdio\.h, which does not exist/,
   qr/user\/dll\.c may not include kernel\/ke\/up\.h/,
   qr/tests\/hal\/a\.c may not include tests\/pmu\/b\.h/);
slips('symbols', 'symbols', sub {
    c_file('hal/hal.c', "$hal\n#include \"kernel/ke/up.h\"\nvoid hal_up(void) { up(); }\n");
    c_file('kernel/ke/up.c', "#include \"kernel/ke/up.h\"\n\nvoid up(void) { down(); }\n");
    system "make -C $dir >/dev/null";
}, qr/hal\/hal uses up of kernel\/ke\/up$/m, qr/circle: kernel\/ke\/down kernel\/ke\/up$/m);
slips('symbols: there are some', 'symbols', sub { }, qr/no object file/);
slips('layouts', 'layouts', sub {
    c_file('kernel/driver/layouts.h', "SIZE(KDPC, 65)\nFIELD(KDPC, DeferredContext, 24)\n");
}, qr/static assertion failed: "KDPC"/, qr/static assertion failed: "KDPC\.DeferredContext"/);
slips('layouts: there are some', 'layouts', sub { c_file('kernel/driver/layouts.h', '') },
      qr/^#   none$/m);
slips('headers', 'headers', sub { script('tests/host/headers', "echo KDPC differs\nexit 1\n") },
      qr/failed: tests\/host\/headers/, qr/KDPC differs/);
# The script itself, for a few names; it wants to have compared more.
slips('what mingw-w64 says otherwise', 'headers', sub {
    system "cp $here/tests/host/headers $dir/tests/host";
    # What the real one says of all libraries takes three seconds.
    file('bin/x86_64-w64-mingw32-nm',
         "#!/bin/sh\ncase \$1 in */libntdll.a) echo 0 T LdrLoadDll ;; esac\n", 0755);
    c_file('kernel/nt/nt.h', "ABI_SIZE(KDPC, 65);\nABI_FIELD(KDPC, DeferredContext, 24);\n"
               . "ABI_SIZE(CONTEXT, 0x4d0);\n#define STATUS_TIMEOUT 0x103\n");
    file("kernel/user/$_.def", "EXPORTS\nLdrLoadDll\nNoSuchName\n")
        for map({ "$_/$_" } qw(kernel32 ntdll advapi32 msvcrt)),
            map { "ucrt/$_" } qw(ucrtbase text math others);
}, qr/KDPC: mingw-w64 does not say sizeof\(KDPC\) == 65/, qr/KDPC\.DeferredContext: mingw-w64/,
   qr/STATUS_TIMEOUT: mingw-w64 does not say/, qr/ntdll\.dll exports NoSuchName, which/,
   qr/\A(?!.*ntdll\.dll exports LdrLoadDll)(?!.*CONTEXT: ).*kernel32\.dll exports LdrLoadDll/s);
for ('RtlReadThreadProfilingData', 'sched_switch') {
    local $code{$_} = 'rep movsb; ret';
    my $where = /^Rtl/ ? 'reading' : $_;
    slips("REP in $_", 'rep', \&code, qr/$where: $_: .*\brep movs/,
          qr/ring 3: $_: .*\brep movs/, qr/work\.asm\.o: $_: .*\brep movs/);
}
slips('no such function', 'rep', sub {
    local @functions = grep { $_ ne 'etw_log' } @functions;
    code();
}, qr/etw_log: nothing to disassemble/);
for (['mfence', 'behind j[^\n]*lfence wrmsr'], ['lfence', 'behind [^\n]*mfence wrmsr'],
     ['nothing', 'no WRMSR']) {
    my ($what, $says) = @$_;
    local $icr = $icr =~ s/$what\n//r;
    $icr =~ s/wrmsr\n// if $what eq 'nothing';
    slips("an IPI without $what before it", 'fences', \&code, qr/$says/);
}
{
    local $icr = "mfence\njz 1f\nlfence\n1: wrmsr\nret";
    slips('an IPI on a way past the fences', 'fences', \&code, qr/behind .*j/);
}
slips('size', 'size', sub {
    c_file('hal/hal.c', "$hal\nchar big[353 << 10] = { 1 };\n");
    system "make -C $dir >/dev/null";
}, qr/ring 0: 353 KiB of 352/, qr/^#   36\d{4} bytes$/m);
slips('size: of something', 'size', sub { }, qr/^#   0 bytes$/m);

slips('contract', 'contract', sub {
    my %c = map { $_ => "- $_: a.one\n  It holds.\n" } @ids;
    $c{'TP-02'} x= 2;
    $c{'TP-03'} = "- TP-03: a.one\n";
    $c{'TP-04'} = "- TP-04: not: nobody sees it\n  It holds.\n";
    $c{'TP-05'} = "- TP-05: as TP-99 TP-199\n  It holds.\n";
    $c{'TP-06'} = "- TP-06: a.one a.tw* a.none\n  It holds.\n";
    delete @c{qw(VP-90 ET-60 C-3.44)};
    contract(map { $c{$_} // () } @ids);
    list(@list, 'b.four - fourth [PO-75]');
}, qr/TP-02 stands there twice/, qr/TP-03: no sentence says/,
   qr/TP-04: not tested, says the map; a\.one names it/,
   qr/\A(?!.*covered by TP-99).*TP-05 is covered by TP-199, which is missing/s,
   qr/TP-06: no test a\.tw\* names it/, qr/TP-06: no test a\.none names it/, qr/VP-90 has no line/,
   qr/ET-60 has no line/, qr/C-3\.44 has no line/, qr/PO-75 is named by a test and has no line/);
slips('contract: tests that cannot be listed', 'contract', sub { list() },
      qr/the tests cannot be listed/);
slips('mutants', 'mutants', sub {
    my @m = grep { !/'TP-10'/ } @mutants;
    mutants(@m, "['unknown', 'TP-101', '', 'boot/boot.c', 'hal_begin();', ''],\n",
            "['gone', 'own', '', 'boot/boot.c', 'hal_end();', ''],\n",
            "['twice', 'own', '', 'boot/boot.c', 'hal', ''],\n");
    file('tests/mutants/broken', "# $spdx\n(['a' 'b'],)\n");
}, qr/mutants\/broken: syntax error/, qr/unknown: the contract has no tests of clause TP-101/,
   qr/gone: its text stands 0 times in boot\/boot\.c/, qr/twice: its text stands 5 times in/,
   qr/no mutant breaks TP-10$/m);

my $unused = "#include \"hal/hal.h\"\n\nvoid hal_begin(void)\n{\n    int a;\n}\n";
slips("a compiler's warning: $_", $_, sub { c_file('hal/hal.c', $unused) },
      qr/failed: make .*unused variable/s) for qw(gcc clang);
slips('cppcheck', 'cppcheck', sub {
    c_file('hal/hal.c', "int last(void)\n{\n    int a[2] = { 0 };\n    return a[2];\n}\n");
}, qr/hal\/hal\.c:\d+:.*out of bounds/);
slips("clang's analyser", 'scan', sub {
    c_file('hal/hal.c', "int last(int x)\n{\n    int *a = x ? &x : 0;\n    return *a;\n}\n");
}, qr/hal\/hal\.c:\d+:\d+: error: Dereference of null pointer/);
slips('two builds differ', 'repro', sub {
    file('Makefile', $makefile =~ s/cat \$\(OBJ\) >/pwd >/r);
    system "make -C $dir >/dev/null";
}, qr/ntpmu\.bin differs/);
slips('a second build that fails', 'repro', sub {
    file('Makefile', $makefile =~ s/cat \$\(OBJ\) >/false >/r);
}, qr/failed: mkdir/);

# That a compiler's warning ends it, the real Makefile says.
for ('boot/boot', 'kernel/user/ntdll/slist') {
    my $object = (m{/user/} ? 'build/dll/' : 'build/') . "$_.o";
    like(`make -n -W $_.c $object 2>/dev/null`, qr/ -Werror /, "$_.c: a warning ends make");
}
done_testing;
