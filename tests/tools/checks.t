#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The tests of make check: a small tree that is right, which each check of check.t takes that is no
# compiler, and the same tree with a slip for each of them, which it names.
use strict;
use warnings;
use Test::More;
use Cwd 'getcwd';
use File::Basename 'dirname';
use File::Path 'make_path';
use File::Temp 'tempdir';
use lib 'tests/tools';
use Contract;
use Environment;
use Text;

Environment::forget(qw(BUILD CC UBSAN));
my $here = getcwd;
my $dir = tempdir(CLEANUP => 1);
my $spdx = "SPDX-License-Identifier: MIT";

sub file
{
    my ($name, $text, $mode) = @_;
    make_path(dirname("$dir/$name"));
    return Text::save("$dir/$name", $text, $mode);
}

sub c_file { my ($name, $text) = @_; file($name, "/* $spdx */\n$text") }
sub script { my ($name, $text) = @_; file($name, "#!/bin/sh\n# $spdx\n$text", 0755) }

# --- The tree.

my $last_of = \%Contract::last_of;
my @ids = map { my $f = $_; map { sprintf "$f-%02d", $_ } 1 .. $last_of->{$f} } sort keys %$last_of;

sub list { return file('list', join '', map { "$_\n" } @_) }
sub mutants { file('tests/mutants/all', "# $spdx\n(\n" . join('', @_) . ")\n") }
sub contract { return file('tests/contract.md', "# The contract\n\n" . join '', @_) }
my @list = ((map { "a.one - first [$_]" } @ids), 'a.two - second', 'b.three - third');
my @contract = map { "- $_: It holds.\n" } @ids;
my @mutants = map { "    ['no call', '$_', '', 'boot.c', 'hal_begin();', '']," } @ids;
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
my $guards = <<'END';
struct lock { int owner; };
static struct lock lock;
static int one; /* L: lock */
static int two = 2, three[3]; /* L: lock */
int lock_acquire(struct lock *), lock_release(struct lock *), phys_free(int *);
int driver_enter(int *, int (*)(void)), driver_leave(int *), theirs(void);
extern int *page;
static void touch(void) { two = one + three[0]; }
/* L: lock */
static void need(void) {}
static void take(void) { lock_acquire(&lock); }

void all(void)
{
    take();
    touch();
    need();
    lock_release(&lock);
}

void some(void)
{
    lock_acquire(&lock);
    two = 1;
    lock_release(&lock);
    phys_free(page);
    int call;
    driver_enter(&call, theirs);
    theirs();
    driver_leave(&call);
}
END
our @functions = qw(RtlReadThreadProfilingData switch_stacks sched_switch thread_profiling_switch
    etw_context_swap etw_log);
our %code = map { $_ => 'ret' } @functions;
our $image_end = '0xffffffff81b00000';
our $icr = "jz 1f\nmfence\nlfence\nwrmsr\n1: ret";

sub make_tree
{
    system("rm -rf $dir/*") == 0 or die 'rm';
    file('README.md', "The tree is in [boot.c](boot/boot.c); `make all`.\n");
    file('Makefile', $makefile);
    file('linker.ld', "/* $spdx */\n");
    file('boot/grub.cfg', "# $spdx\n");
    system "cp .clang-format $dir";
    c_file('boot/boot.c', "/* hal/hal.c follows, then down. */\n#include \"hal/hal.h\"\n\n"
               . "void boot(void) { hal_begin(); }\n");
    c_file('hal/hal.h', "void hal_begin(void);\n");
    c_file('hal/hal.c', $hal);
    c_file('hal/guards.c', $guards);
    c_file('kernel/ke/up.h', "void up(void);\n");
    c_file('kernel/ke/down.h', "/* L: dispatcher lock */\nvoid down(void);\n");
    c_file('kernel/ke/up.c', $up);
    c_file('kernel/ke/down.c', "#include \"kernel/ke/down.h\"\n#include \"kernel/ke/up.h\"\n\n"
               . "void down(void) { up(); }\n");
    c_file('kernel/driver/layouts.h', "SIZE(KDPC, 64)\nFIELD(KDPC, DeferredContext, 32)\n");
    c_file('pmu/pmu.h', "#define COUNTER(selector) ((selector) - RDPMC_FIXED)\n");
    c_file('kernel/base/rdpmc.h', "#define RDPMC_FIXED (1u << 30)\n");
    c_file('kernel/nt/nt_thread_profiling.h', "#define ALL (1 << MAX_HW_COUNTERS)\n");
    c_file('kernel/base/insn.c', "int a = b & 0xe7;\nint c = sib >> 3;\n");
    script('tests/tools/names', "cat pmu/virt/names.def\n");
    file('kernel/README.md', "hal/hal.c `hal_begin`.\n");
    file('doc/rooms.dot', qq(digraph rooms {\n    rankdir=BT; node [shape=box];\n)
             . qq(    "boot" -> "hal";\n}\n));
    script('tests/tools/run', "cat list\n");
    file('tests/machines/matrix', "# $spdx\nA | 0 | TESTS=a*,b.three\n");
    file('tests/tools/choices.mk', "# $spdx\n");
    list(@list);
    c_file('tests/pmu/a.c', join "\n     ", 'TEST(a, one,', '"first"', map({ qq(" [$_]") } @ids),
           ")\n{\n}\n");
    contract(@contract);
    mutants(@mutants);
    code();
}

# What is disassembled: functions, and the sending of IPIs.
sub code
{
    my $text = join '', map { ".globl $_\n.type $_,\@function\n$_: $code{$_}\n" } @functions;
    file('build/code.s', "$text.globl image_end\n.set image_end, $image_end\n");
    file('build/icr.s', ".globl write_icr\n.type write_icr,\@function\nwrite_icr: $icr\n");
    system("cd $dir/build && mkdir -p hal/machine dll/tests/ring3 && as -o code.o code.s"
            . ' && as -o hal/machine/apic.o icr.s && cp code.o ntpmu.elf'
            . ' && cp code.o dll/tests/ring3/work.asm.o'
            . ' && cp code.o dll/ring3.exe.debug && cp code.o dll/ntdll.dll.debug') == 0
        or die 'as';
}

# What these checks say, and the exit status.
sub said
{
    my (@checks) = @_;
    my $all = `cd $dir && perl $here/tests/tools/check.t @checks 2>&1 </dev/null`;
    return ($? >> 8, $all);
}

my @checks = qw(text facts functions names citations pages commands journeys includes picture
    budgets guards layouts symbols fences size contract mutants);
make_tree();
system "make -C $dir >/dev/null";
my ($status, $all) = said(@checks);
is($status, 0, 'a tree where all is right is taken') or diag($all);
is(scalar(() = $all =~ /^ok/mg), @checks + 6, 'by each check');

# A slip for each check; what it says.
$icr = "mfence\njz 1f\nlfence\n1: wrmsr\nret";
$image_end = '0xffffffff81bf0000';
make_tree();
file('README.md', "In boot/none.c: [here](boot/none.c), `make none NONE=1`, `tests/none`.\n"
         . "\n" x 160);
file('kernel/README.md', "hal/hal.c `hal_begin`, `hal_end`\n");
file('tests/machines/matrix', "# $spdx\nA | 0 | TESTS='a*,b.gone'\n");
c_file('hal/long.c', join '', "#define FIXED 0x40000000\n",
       map { "void f$_(void)\n{\n" . "    a();\n" x 61 . "}\n" } 0 .. 11);
c_file('hal/chars.c', "/* \xc3\xa4 */\nint a; \n\tint b;\n/* TO" . "DO */\n#if 1\n"
           . '/*' . 'x' x 97 . "*/\n/* The " . "same. */\n");
c_file('hal/hal.c', "$hal\n#include \"kernel/ke/up.h\"\nvoid hal_up(void) { up(); }\n"
           . "char big[1 << 20] = { 1 };\n");
c_file('kernel/ke/up.h', "void up(void);\nvoid down(void);\nvoid out(void);\n");
c_file('kernel/ke/up.c', "#include \"kernel/ke/up.h\"\n\nint (*way)(void);\n"
           . "void up(void) { down(); }\nvoid out(void) { }\n");
c_file('hal/guards.c', $guards =~ s/    take\(\);\n//r
           =~ s/(    (?:two = 1|theirs\(\));\n)(.*\n)/$2$1/gr
           =~ s/phys_free\(page\);\n/$&    *page = 1;\n/r . "int other(void) { return one; }\n");
c_file('kernel/base/upcalls.h', "/* Set by hal/hal.c. */\nextern void (*hook)(void);\n");
c_file('hal/many.c', "int a;\n" x 9000);
c_file('kernel/driver/layouts.h', "SIZE(KDPC, 65)\n");
c_file("tests/hal/$_.c", "static void find(void)\n{\n}\n") for qw(one two three);
list(@list, 'b.four - fourth [PO-75]', 'b.five - fifth [VP-01]');
contract("- VP-91: It holds.\n- VP-92: it\n- VP-93: It holds.\n  as VP-99\n",
         grep { !/VP-90/ } @contract);
mutants("['gone', 'TP-11', '', 'boot.c', 'hal_end();', ''],\n", grep { !/'TP-10'/ } @mutants);
system "make -C $dir >/dev/null";
my %says = (
    text => [qr/chars\.c:2: not ASCII/, qr/chars\.c:3: white space/, qr/chars\.c:4: tab/,
             qr/chars\.c:5: unfinished/, qr/chars\.c:6: #if/, qr/chars\.c:7: 101 columns/,
             qr/chars\.c:8: a comment begins/],
    facts => [qr/hal\/long\.c: RDPMC's bit/], functions => [qr/median 61$/m],
    names => [qr{find: tests/hal/one\.c tests/hal/three\.c tests/hal/two\.c$}m],
    citations => [qr/README\.md:1: there is no boot\/none\.c/],
    pages => [qr/README\.md:1: there is no boot\/none\.c/, qr/161 lines, 160 are allowed/],
    commands => [qr/:1: there is no none$/m, qr/:1: there is no NONE$/m,
                 qr/:1: there is no tests\/none$/m],
    journeys => [qr/hal\/hal\.c has no hal_end/],
    includes => [qr/hal\/hal\.c may not include kernel\/ke\/up\.h/],
    picture => [qr/make rooms$/m],
    budgets => [qr/hal: 9\d{3} lines of \d+$/m, qr/the core has 9\d{3} of/],
    guards => [qr/guards\.c:\d+: touch touches two without lock$/m,
               qr/guards\.c:\d+: some touches two beside lock$/m,
               qr/guards\.c:\d+: some uses page, which it gave back$/m,
               qr/guards\.c:\d+: some calls theirs beside driver_enter$/m,
               qr/guards\.c:\d+: all calls need without lock$/m,
               qr/up\.c:\d+: up calls down without dispatcher$/m,
               qr/: other touches one without/],
    layouts => [qr/static assertion failed: "KDPC"/],
    symbols => [qr/hal\/hal uses up of kernel\/ke\/up$/m,
                qr/circle: kernel\/ke\/down kernel\/ke\/up$/m,
                qr/kernel\/ke\/up\.h declares down of kernel\/ke\/down$/m, qr/^# +out$/m,
                qr/up\.c: way belongs in/, qr/upcalls\.h: hook is not set by hal\/hal\.c$/m],
    fences => [qr/after .*j/],
    size => [qr/^#   1\d{6} bytes$/m, qr/28 MB are enough$/m],
    contract => [qr/VP-90 has no line/, qr/VP-91: no test names it/, qr/VP-92: no sentence/,
                 qr/VP-93 is covered by VP-99, which is missing/,
                 qr/VP-01: the source of b\.five does not name it/,
                 qr/PO-75 is named by a test and has no line/, qr/^#   b\.gone$/m],
    mutants => [qr/gone: its text stands 0 times/, qr/no mutant breaks TP-10 VP-91 VP-92$/m],
);
for my $check (@checks) {
    ($status, $all) = said($check);
    my @missing = grep { $all !~ $_ } @{ $says{$check} };
    ok($status && !@missing, "$check notices its slip")
        or diag(map({ "must match $_\n" } @missing), $all);
}
done_testing;
