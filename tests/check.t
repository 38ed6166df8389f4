#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# What can be proved about the sources and the image without running it; one line each. `make check`.
# With words on the command line only the checks of these names: prove -v tests/check.t :: text includes
use strict;
use warnings;
use Test::More;
use File::Find;

my $out = 'build/check';
delete @ENV{qw(MAKEFLAGS MFLAGS BUILD CC UBSAN)};
my @sources = sort grep { -f && m{\.(c|h|asm|cpp)$} } tree(qw(boot kernel hal pmu tests));
my @texts = (@sources, qw(Makefile linker.ld .ci/run README.md), qw(boot/mkiso boot/mkusb boot/grub.cfg), grep { -f && m{/(run|judge|trace|[^/]*\.(t|pm))$|/skips/} } tree('tests'));

sub tree
{
    my @found;
    find({ wanted => sub { push @found, $_ }, no_chdir => 1 }, grep { -d } @_);
    return @found;
}

sub lines
{
    my ($file) = @_;
    open my $in, '<', $file or return ();
    return <$in>;
}

# One line for a check; what is wrong below it.
sub holds
{
    my ($name, @wrong) = @_;
    ok(!@wrong, $name) or diag(map { "  $_\n" } @wrong > 30 ? (@wrong[0 .. 29], '...') : @wrong);
}

# Runs a command silently; its last lines if it fails.
sub failure
{
    my ($command) = @_;
    my @output = split /\n/, `($command) 2>&1 </dev/null`;
    return $? ? ("failed: $command", @output > 25 ? @output[-25 .. -1] : @output) : ();
}

# --- text

sub text_faults
{
    my ($file) = @_;
    my @lines = lines($file) or return "$file: missing or empty";
    my @wrong;
    push @wrong, "$file: no SPDX line" if $file !~ /README/ && !grep { /SPDX-License-Identifier: MIT/ } @lines[0 .. (@lines > 1)];
    push @wrong, "$file: " . @lines . ' lines, 399 are allowed' if @lines >= 400;
    my $n = 0;
    for (@lines) {
        $n++;
        push @wrong, "$file:$n: not ASCII" if /[^\t\n\x20-\x7e]/;
        push @wrong, "$file:$n: white space at the end" if /[ \t]\n/;
        push @wrong, "$file:$n: tab" if /\t/ && $file !~ /Makefile/;
        push @wrong, "$file:$n: unfinished: write a skipped test" if /\b(TO[D]O|FIX[M]E|XX[X])\b/;
        push @wrong, "$file:$n: #if" if /^\s*#\s*if/ && $file !~ m{^kernel/user/};
    }
    return @wrong;
}

sub check_text { holds(@texts . ' files: SPDX, under 400 lines, ASCII, nothing unfinished, no #if', map { text_faults($_) } @texts) }

# --- layers

my $leaf = 'layout|x86|msr|cpu|assert|print|lock|string';
# Who may include what of ours; the first match counts.
my @may_include = (
    [qr{^tests/},       qr{.}],
    [qr{^boot/},        qr{^(boot/\w+|kernel/(layout|x86|msr|print|main|screen|string|assert)|pmu/virt/virt)\.h$}],
    [qr{^kernel/user/}, qr{^kernel/(user/\w+|nt|ntddk|nt_profile|nt_trace|nt_trace_class|layout|string|print)\.h$}],
    [qr{^kernel/main\.c$}, qr{^(kernel/\w+|boot/multiboot|hal/(hal|apic)|pmu/pmu)\.h$}],
    [qr{^kernel/(acpi|phys|smp)\.c$}, qr{^(kernel/\w+|boot/multiboot|hal/(hal|apic))\.h$}],    # struct boot_info
    [qr{^kernel/},      qr{^(kernel/\w+|hal/(hal|apic))\.h$}],
    [qr{^hal/},         qr{^(hal/\w+|pmu/pmu|kernel/($leaf|nt|ntddk|nt_profile|irql|smp))\.h$}],
    [qr{^pmu/virt/},    qr{^(pmu/virt/\w+|kernel/($leaf))\.h$}],
    [qr{^pmu/},         qr{^(pmu/\w+|pmu/events/\w+|kernel/($leaf))\.h$}],
);
my $freestanding = qr{^(std(int|int-gcc|bool|def|arg|align|noreturn)|limits|float|x86intrin)\.h$}; # the compiler's own

# The file of ours that an include means: next to the includer, in ring 3's folder, or from the root.
sub meant
{
    my ($file, $name) = @_;
    return 'kernel/layout.h' if $name eq 'layout.inc';
    my ($folder) = $file =~ m{^(.*/)};
    return (grep { -f } $name, "$folder$name", "kernel/user/$name")[0];
}

sub include_faults
{
    my ($file, $count) = @_;
    my ($rule) = grep { $file =~ $_->[0] } @may_include;
    my @wrong;
    for (lines($file)) {
        my ($quote, $name) = /^\s*[#%]\s*include\s*([<"'])([^>"']+)/ or next;
        $$count++;
        next if $quote eq '<' && $name =~ $freestanding;
        my $meant = meant($file, $name);
        push @wrong, "$file includes $name, which does not exist" if !$meant;
        push @wrong, "$file may not include $meant" if $meant && $meant !~ $rule->[1];
    }
    return @wrong;
}

sub check_includes
{
    my $count = 0;
    my @wrong = map { include_faults($_, \$count) } @sources;
    holds("$count includes in " . @sources . ' files go down: tests, kernel, hal, pmu, leaf headers', @wrong);
}

# --- symbols: the same rules for what the linker sees; first match counts

my $leaf_code = qr{^kernel/(print|format|panic|lock|string|crc32|cpu|serial|screen)\b};
my @may_use = (
    [qr{^tests/},          qr{.}],
    [qr{^boot/},           qr{^(boot/|pmu/virt/|kernel/(print|string|panic|serial|screen|main|smp)\b)}],
    [qr{^kernel/user/},    qr{^(kernel/user/|ring3/|kernel/(string|format)|tests/)}],
    [qr{^kernel/main\.},   qr{^((boot|kernel|hal|tests)/|pmu/(pmu|counter)\b)}],
    [qr{^kernel/thread\b}, qr{^(kernel/|hal/)}],    # where ring-3 threads begin
    [qr{^kernel/},         qr{^(boot/|kernel/(?!user/)|hal/)}],
    [qr{^hal/},            qr{^(hal/|pmu/(?!virt/)|kernel/(profile|smp)\b)|$leaf_code}],
    [qr{^pmu/virt/},       qr{^pmu/virt/|$leaf_code}],
    [qr{^pmu/},            qr{^pmu/(?!virt/)|$leaf_code}],
);

sub ring { return $_[0] =~ m{^(kernel/user|ring3|tests/ring3)/} ? 3 : 0 }

sub check_symbols
{
    my %home; # of a name, by ring: the two rings are linked apart
    my @uses;
    for (split /\n/, `find $out/gcc -mindepth 2 -name '*.o' | xargs nm -A -P 2>&1`) {
        my ($file, $name, $kind) = m{^$out/gcc/(\S+?)(?:\.asm)?\.o: (\S+) (\w)} or next;
        $home{ring($file)}{$name} = $file if $kind =~ /[A-TV-Z]/;
        push @uses, [$file, $name] if $kind eq 'U';
    }
    my @wrong = @uses ? () : 'no object file';
    for (@uses) {
        my ($file, $name) = @$_;
        my $home = $home{ring($file)}{$name} // $home{3 - ring($file)}{$name} or next;
        my ($rule) = grep { "$file." =~ $_->[0] } @may_use;
        push @wrong, "$file uses $name of $home" if !$rule || "$home." !~ $rule->[1];
    }
    holds(@uses . ' uses of symbols keep to the same layers', @wrong);
}

# --- the image

# Kernel paths whose instructions are counted; a name that no longer exists is an error.
my @measured = qw(switch_stacks sched_switch thread_profiling_switch etw_context_swap etw_log);

sub rep_faults
{
    my ($where, $command) = @_;
    my ($function, @wrong) = '';
    for (split /\n/, `$command 2>&1`) {
        $function = $1 if /^[0-9a-f]+ <(.*)>:$/;
        push @wrong, "$where: $function: $_" if /^\s*[0-9a-f]+:\s.*\brep(z|nz|e|ne)?\b/;
    }
    return $function ? @wrong : "$where: nothing to disassemble";
}

sub check_rep
{
    my @objects = grep { m{/work\.asm\.o$} } tree("$out/gcc/tests");
    my $dump = 'objdump -d --no-show-raw-insn -M intel';
    holds('no REP in ring-3 code, measured loops and measured kernel paths',
          rep_faults('ring 3', "$dump -j .user.text $out/gcc/ntpmu.elf"),
          (map { rep_faults($_, "$dump $_") } @objects),
          map { rep_faults($_, "$dump --disassemble=$_ $out/gcc/ntpmu.elf") } @measured);
}

# The kernel: all that is linked but the tests that ride in the image, and what ring 3 gets for them.
sub check_size
{
    my ($kernel, $all) = (0, (-s "$out/gcc/ntpmu.bin") // 0);
    for (split /\n/, `find $out/gcc -mindepth 2 -name '*.o' -not -path '*/gcc/tests/*' | xargs size -d 2>&1`) {
        $kernel += $1 + $2 if /^\s*(\d+)\s+(\d+)\s+\d+\s+\d+/; # text, data
    }
    holds('kernel: ' . ($kernel >> 10) . ' KiB of 256; with all tests ' . ($all >> 10),
          $kernel && $kernel <= 256 << 10 ? () : "$kernel bytes");
}

# --- the contract

my %last_of = (VP => 90, TP => 100, HC => 48, KP => 32, PO => 74, ET => 60);
# Cases of other suites, by suite.
my %cases_of = ('C-1' => 10, 'C-2a' => 14, 'C-2d' => 4, 'C-2e' => 10, 'C-2f' => 13, 'C-2g' => 7, 'C-2h' => 3, 'C-3' => 44);

# tests/contract.md against the tests of the image: who names which id.
sub contract_faults
{
    my ($count) = @_;
    my (%named, %line, @wrong);
    for (`LIST=1 BUILD=$out/gcc tests/run 2>&1`) {
        my ($test, $meaning) = /^(\w+\.\w+) - (.*)/ or next;
        $named{$_}{$test} = 1 for map { /\b(?:VP|TP|HC|KP|PO|ET)-\d+|\bC-\d\w?(?:\.\d+)?/g } $meaning =~ /\[([^\]]*)\]/g;
    }
    return 'the tests cannot be listed' if !%named;
    for (lines('tests/contract.md')) {
        my ($id, $rest) = /^- ([A-Z]+-[\w.]+): (\S.*)/ or next;
        push @wrong, "$id stands there twice" if $line{$id};
        $line{$id} = $rest;
    }
    for my $id (sort keys %line) {
        my $tests = $named{$id} // {};
        if ($line{$id} =~ /^not: /) {
            push @wrong, "$id: not tested, says the map; $_ names it" for sort keys %$tests;
        } elsif ($line{$id} =~ /^as (.*)/) {
            $line{$_} or push @wrong, "$id is covered by $_, which is missing" for split ' ', $1;
        } else {
            for my $glob (split ' ', $line{$id}) {
                my $regex = join '.*', map { quotemeta } split /\*/, $glob, -1;
                push @wrong, "$id: no test $glob names it" if !grep { /^$regex$/ } keys %$tests;
            }
        }
    }
    for my $family (sort keys %last_of) {
        $line{$_} or push @wrong, "$_ has no line" for map { sprintf "$family-%02d", $_ } 1 .. $last_of{$family};
    }
    for my $suite (sort keys %cases_of) {
        $line{$_} or push @wrong, "$_ has no line" for map { "$suite.$_" } 1 .. $cases_of{$suite};
    }
    $line{$_} or push @wrong, "$_ is named by a test and has no line" for sort keys %named;
    $$count = %line;
    return @wrong;
}

sub check_contract
{
    my $count = 0;
    my @wrong = contract_faults(\$count);
    holds("contract: $count ids, each with its tests or the reason why not", @wrong);
}

# --- compilers and analysers

my $make = 'make --no-print-directory -s -j2';

sub check_gcc { holds('gcc builds without a warning', failure("$make BUILD=$out/gcc CC=gcc")) }
sub check_clang { holds('clang builds without a warning', failure("$make BUILD=$out/clang CC=clang")) }

sub check_cppcheck
{
    my $flags = '-q -j2 -itests/samples -itests/programs --enable=warning,performance,portability --std=c11 --platform=unix64 -I. -Ikernel/user '
        . '--inline-suppr --error-exitcode=1 --suppress=missingIncludeSystem '
        # The linker's labels around a table are one object to us.
        . '--suppress=comparePointers --suppress=subtractPointers';
    holds('cppcheck finds nothing', failure("cppcheck $flags boot kernel hal pmu tests"));
}

sub check_scan
{
    holds('the clang analyser finds nothing',
          failure("scan-build --use-cc=clang --status-bugs -o $out/report $make BUILD=$out/scan"));
}

sub check_repro
{
    my @copies = ("$out/repro/one", "$out/repro/another/folder");
    my @wrong = map {
        failure("mkdir -p $_ && cp -r Makefile linker.ld boot kernel hal pmu tests $_ && $make -C $_")
    } @copies;
    my $same = !@wrong && !system "cmp $copies[0]/build/ntpmu.bin $copies[1]/build/ntpmu.bin";
    holds('two builds in two folders give the same bytes', @wrong, $same || @wrong ? () : 'ntpmu.bin differs');
}

my @names = @ARGV ? @ARGV : qw(text includes gcc symbols rep size contract clang cppcheck scan repro);
system "rm -rf $out; mkdir -p $out";
for (@names) {
    no strict 'refs';
    "check_$_"->();
}
done_testing;
