#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# What can be proved about the sources and the image without running it; one line each. `make
# check`. With words on the command line only these checks:
# prove -v tests/tools/check.t :: text includes
use strict;
use warnings;
use Test::More;
use File::Find;
use FindBin '$Bin';
use lib $Bin;
use Contract;
use Environment;
use Facts;
use Guards;
use Mutants;
use Rooms;
use Text;

# The build that ships is looked at.
my ($gcc, $out) = ('build', 'build/check');
Environment::forget(qw(BUILD CC UBSAN));
my @sources = sort grep { -f && m{\.(c|h|asm|inc|cpp|def)$} } tree(qw(boot kernel hal pmu tests));
# Scripts have no ending; a first line says what they are.
my @scripts = grep { -f && m{/[^./]+$} && (Text::lines($_))[0] =~ /^#!/ } tree(qw(.ci boot tests));
my @texts = (@sources, @scripts, qw(Makefile linker.ld boot/grub.cfg),
             grep { m{/matrix$|README\.md$|\.(?:t|pm|mk|ld)$|/skips$|/mutants/|/libpfm/[a-z]+$} }
             'README.md', tree(qw(kernel tests)));
my @pages = ('README.md', sort(glob 'doc/*.md'), qw(kernel/README.md tests/README.md));
push @texts, grep { m{^doc/} } @pages;

sub tree
{
    my @found;
    find({ wanted => sub { push @found, $_ }, no_chdir => 1 }, grep { -d } @_);
    return @found;
}

# Objects of the image by these folders' sources: those that make links, not what else is built.
sub objects
{
    my %in = map { $_ => 1 } @_;
    my ($list) = `make -pq MAKEFLAGS= 2>/dev/null` =~ /^OBJ := (.*)/m or die 'no list of objects';
    return grep { m{^$gcc/(\w+)/} && $in{$1} } split ' ', $list;
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
    return $? ? ('failed: ' . substr($command, 0, 200), @output > 25 ? @output[-25 .. -1] : @output)
        : ();
}

# --- text

sub check_citations
{
    # These name files that a user, or they, write.
    my @documents = ((grep { !m{^tests/(?:guests/linux|tools/(?:bench|checks\.t))$} } @texts),
                     grep { /\.md$/ } tree(qw(boot kernel hal pmu tests)));
    my %names = map { m{([^/]+)$} ? ($1 => 1) : () } tree(qw(boot kernel hal pmu tests doc));
    holds('each file that a comment or a document names is there',
          map { Text::citation_faults($_, \%names) } @documents);
}

# A newcomer reads README.md in one sitting.
sub check_pages
{
    my $lines = () = Text::lines('README.md');
    holds(@pages . " pages link to files that are there; README.md has $lines lines of 160",
          (map { Text::link_faults($_) } @pages),
          $lines > 160 ? "README.md: $lines lines, 160 are allowed" : ());
}

# What the Makefile and the first comments of scripts name.
sub check_commands
{
    my %known = map { $_ => 1 } map { m{\b([A-Z][A-Z0-9_]*)=}g }
        map { Text::first_comment($_) } grep { m{^tests/} } @scripts, glob 'tests/*/*.t';
    for (Text::lines('Makefile')) {
        $known{$1} = 1 while /\$\(([A-Z]+(?:_[A-Z]+)*)\b/g;
        next if !/^((?:[a-z][a-z-]* ?)+):(?!=)/;
        $known{$_} = 1 for split ' ', $1;
    }
    my $list = join '', Text::lines('doc/commands.md');
    my @targets = map { /^(?:\.PHONY:|ACTIONS :=) (.*)/s ? grep { /^[a-z-]+$/ } split ' ', $1 : () }
        split /(?<!\\)\n/, join '', Text::lines('Makefile');
    my @missing = grep { $_ ne 'all' && $list !~ /^    make (?:.*\s)?$_\b/m } @targets;
    holds('each command and variable that a page names is there; doc/commands.md has '
          . @targets . ' targets of make', (map { Text::command_faults($_, \%known) } @pages),
          map { "doc/commands.md: no make $_" } @missing);
}

# kernel/README.md leads through the code by file and `function`.
sub check_journeys
{
    my ($file, $found, @wrong) = ('', 0);
    my @page = Text::lines('kernel/README.md');
    for (map { m{(?:boot|kernel|hal|pmu)/[\w./]*\w\.(?:c|h|asm)\b|`\w+`}g } @page) {
        $file = $_, next if !s/`//g;
        $found++;
        push @wrong, "$file has no $_" if !Text::defines($file, $_);
    }
    push @wrong, @page . ' lines, 60 are allowed' if @page > 60;
    holds("kernel/README.md: its $found functions are where it says",
          $found ? @wrong : 'none found');
}

# grep and gdb can tell names apart that have a noun. A program of a few files has its own.
sub check_names
{
    my $programs = qr{^tests/(?:programs|drivers|samples|guests|machines|pmu/\w+|tools)/};
    my %files;
    for my $file (grep { /\.[ch]$/ && !/$programs/ } @sources) {
        push @{ $files{$_} }, $file for Text::static_functions($file);
    }
    holds(keys(%files) . ' names of static functions: none stands in more than two files',
          map { @{ $files{$_} } > 2 ? "$_: @{ $files{$_} }" : () } sort keys %files);
}

# A name is said without its folder. A header, C and assembly of one matter share it; a test bears
# the name of what it tests. Windows' headers for drivers have Windows' names.
sub check_files
{
    my %folders;
    for (grep { !m{^(?:tests|kernel/user/ddk)/} } @sources) {
        my ($folder, $name) = m{^(.*)/([^/]+)\.\w+$};
        $folders{$name}{$folder} = 1;
    }
    holds(keys(%folders) . ' names of files of the product: each stands in one folder',
          map { my @in = sort keys %{ $folders{$_} };
                @in > 1 ? "$_: @in" : () } sort keys %folders);
}

# Half of ring 0's functions can be read at a glance.
sub check_functions
{
    my @files = grep { m{^(boot|hal|kernel|pmu)/.*\.c$} && !m{^kernel/user/} } @sources;
    my @lengths = sort { $a <=> $b } map { Text::function_lengths($_) } @files;
    my $median = $lengths[@lengths / 2] // 99;
    holds(@lengths . " functions of ring 0: half of them have at most $median lines,"
          . ' 12 are allowed; none has more than 60',
          $median > 12 ? "median $median" : (), $lengths[-1] > 60 ? "one has $lengths[-1]" : ());
}

# .clang-format has the rules; make format applies them.
sub check_format
{
    my @formatted = grep { /\.(c|h|cpp)$/ } @sources;
    my ($version) = (`clang-format --version` // '') =~ /version (\d+)/;
  SKIP: {
        skip "the layout is that of clang-format 14, here is $version", 1
            if ($version //= 14) != 14;
        holds(@formatted . ' files are as make format leaves them',
              failure("clang-format --dry-run -Werror @formatted"));
    }
}

sub check_text
{
    holds(@texts . ' files: SPDX, 100 columns but for tables, ASCII, nothing unfinished, no #if',
          map { Text::faults($_) } @texts);
    # A file is one subject. Of a long one somebody asks whether it has two; it fails nothing.
    my %length = map { $_ => scalar(my @lines = Text::lines($_)) } @texts;
    diag("  $_ has $length{$_} lines") for grep { $length{$_} > 500 } sort keys %length;
}

sub check_facts
{
    holds(@Facts::FACTS . ' facts have one definition each', Facts::faults(@texts));
}

# --- rooms: Rooms.pm has the order

# the compiler's own
my $freestanding = qr{^(std(int|int-gcc|bool|def|arg|align|noreturn)|limits|float|x86intrin)\.h$};
# Theirs are mingw-w64's headers, or the host's.
my $hosted = qr{^(kernel/user|tests/(samples|programs|drivers|ring3/include|tools|guests/fuzz))/};
# What ring 3 may include of the kernel's folders.
my $for_ring3 = qr{^kernel/(user/.*|nt/\w+|image/pe|base/(layout|string|print|rdpmc))\.h$};

sub may_include
{
    my ($file, $header) = @_;
    return $header =~ $for_ring3 if $file =~ m{^kernel/user/};
    return 1 if Rooms::excepted($file, $header);
    my ($from, $to) = map { Rooms::room_of($_) } $file, $header;
    return 1 if $file =~ m{^tests/} && !($from && $to);  # guests and firmware
    return $from && $to && Rooms::may($from, $to);
}

sub include_faults
{
    my ($file, $count) = @_;
    my @wrong;
    return if $file =~ m{^tests/pmu/(?:libpfm|cpus)/}; # programs for the host
    for (Text::lines($file)) {
        my ($quote, $name) = /^\s*[#%]\s*include\s*([<"'])([^>"']+)/ or next;
        $$count++;
        next if $quote eq '<' && ($name =~ $freestanding || $file =~ $hosted);
        my $meant = Rooms::meant($file, $name);
        push @wrong, "$file includes $name, which does not exist" if !$meant;
        push @wrong, "$file may not include $meant" if $meant && !may_include($file, $meant);
    }
    return @wrong;
}

sub check_includes
{
    my $count = 0;
    my @wrong = map { include_faults($_, \$count) } @sources;
    holds("$count includes in " . @sources . ' files go down: to their own room and those below',
          @wrong);
}

# make rooms writes the picture.
sub check_picture
{
    my @product = grep { m{^(?:boot|hal|kernel|pmu)/} } @sources;
    my $same = Rooms::picture(@product) eq join '', Text::lines('doc/rooms.dot');
    holds('doc/rooms.dot shows the rooms as they are', $same ? () : 'make rooms');
}

# Rooms.pm says how many lines each may have.
sub check_budgets
{
    my @files = grep { -f } tree(qw(.ci boot doc hal kernel pmu tests)), glob '*';
    my ($sum, $said, $wrong) =
        Rooms::budgets({ map { $_ => scalar(() = Text::lines($_)) } @files });
    note("  $_") for @$said;
    holds($sum, @$wrong);
}

# What each object file of ring 0 uses of another: [file, symbol, its file]. And where each symbol
# is defined.
my %home;
sub uses
{
    my @uses;
    for (split /\n/, `nm -A -P @{[objects(qw(boot hal kernel pmu tests))]} 2>&1`) {
        my ($file, $name, $kind) = m{^$gcc/(\S+?)(?:\.asm)?\.o: (\S+) (\w)} or next;
        $home{$name} = $file if $kind =~ /[A-TV-Z]/;
        push @uses, [$file, $name] if $kind eq 'U';
    }
    return map { my ($file, $name) = @$_; $home{$name} ? [$file, $name, $home{$name}] : () } @uses;
}

sub check_symbols
{
    my @uses = uses();
    holds(@uses . ' uses of symbols keep to the same order',
          @uses ? Rooms::upward(@uses) : 'no object file');
    holds('no circle of files inside a room but the ' . @Rooms::CIRCLES . ' that Rooms.pm names',
          Rooms::circles(@uses));
    # Windows' own headers (kernel/nt) are ring 3's, too, and say who has what.
    my @headers = grep { /\.h$/ && Rooms::room_of($_) && !m{^(?:tests|kernel/nt)/} } @sources;
    holds(@headers . ' headers declare what the file of their name defines, or what Rooms.pm lists',
          Rooms::misplaced(\%home, @headers));
    holds('what a header declares, another file uses', Rooms::idle(\%home, \@uses, @headers));
    my ($upcalls, @wrong) = Rooms::upcall_faults(@sources);
    holds("$upcalls pointers carry calls upward, set by the files that upcalls.h names", @wrong);
}

# --- the image

# What drivers see of the kernel's structures, against mingw-w64's headers.
sub check_layouts
{
    my $count = grep { /^(SIZE|FIELD)\(/ } Text::lines('kernel/driver/layouts.h');
    my $program = join '\n', '#include <ntddk.h>', '#undef HalQuerySystemInformation',
        '#undef HalSetSystemInformation', '#define SIZE(t, n) _Static_assert(sizeof(t) == n, #t);',
        '#define FIELD(t, f, n) _Static_assert(__builtin_offsetof(t, f) == n, #t "." #f);',
        '#include "kernel/driver/layouts.h"', '';
    holds("$count sizes and offsets of drivers' structures are those of mingw-w64's headers",
          $count ? () : 'none',
          failure("printf '%b' '$program' | $Environment::WIN_CC -std=gnu11 -fsyntax-only "
                  . "-I. -isystem $Environment::DDK -Wno-array-bounds -x c -"));
}

# The tests call each routine that drivers import and each function of kernel32, advapi32 and
# msvcrt, or name it. Some have another name in headers; compilers call what ntdll exports too.
sub check_routines
{
    my %called = map { $_ => 1 } map { /\w+/g } map { Text::lines($_) }
        split /\n/, `git ls-files 'tests/*.c' 'tests/*.cpp' 'tests/*.h'`;
    my %other = (HalDispatchTable => 'HalSetSystemInformation',
                 IofCompleteRequest => 'IoCompleteRequest',
                 ObfDereferenceObject => 'ObDereferenceObject',
                 GetEnvironmentStrings => 'GetEnvironmentStringsA',
                 VerifyConsoleIoHandle => 'GetConsoleMode');
    my @routines = map { /^[A-Z_]+\((?:\w+, )?([A-Z]\w+)/ }
        Text::lines('kernel/driver/export_list.h');
    my @made = map { "$gcc/dll/$_.def" } qw(kernel32 advapi32);
    my @wrong = failure("make -s @made");
    my @functions = map { /^([A-Za-z]\w+)/ } grep { !/^(?:EXPORTS|LIBRARY|Rtl|Ki)/ }
        map { Text::lines($_) } @made, map { "kernel/user/$_/$_.def" } qw(msvcrt handlers);
    holds(@routines . ' routines of drivers and ' . @functions . ' of programs are called by tests',
          @wrong, @routines && @functions ? () : 'none',
          grep { !$called{ $other{$_} // $_ } } @routines, @functions);
    # These take handles of any kind or of a driver's files, none of an object, or end the caller.
    my $others = qr/Close|Duplicate|Wait|File|ReadThread|TraceEvent|TerminateProcess/;
    my @services = grep { !/$others/ } map { /^NTSTATUS Nt(\w+)\(HANDLE / }
        map { Text::lines($_) } grep { m{^kernel/.*\.h$} } @sources;
    my $tried = Text::content('tests/ring3/handles.c');
    holds(@services . ' services are asked what they refuse of handles', @services ? () : 'none',
          grep { $tried !~ /\b(?:Nt|Zw)$_\b/ } @services);
}

# Structures, constants and exports that both know; tests/tools/headers names the exceptions.
sub check_headers
{
    holds("Windows' names mean what they mean to mingw-w64", failure('tests/tools/headers'));
}

sub check_guards
{
    my ($guarded, @wrong) = 0;
    my @headers = grep { m{^kernel/.*\.h$} } @sources;
    my %needed = Guards::needed(map { join '', Text::lines($_) } @headers);
    for my $file (grep { m{^(?!tests/).*\.c$} } @sources) {
        my $source = join '', Text::lines($file);
        $guarded += (my %lock = Guards::guarded($source));
        push @wrong, map { "$file:$_" } Guards::faults($source, %needed);
    }
    holds($guarded / 2 . ' variables are touched by who has the lock that guards them',
          @wrong, $guarded ? () : 'none');
}

# An IPI by MSR may overtake the stores that it is sent for: MFENCE; LFENCE stand in front of the
# WRMSR, on every way to it.
sub check_fences
{
    my (@wrong, $found, @last);
    my $object = "$gcc/hal/machine/apic.o";
    for (split /\n/, `objdump -d --no-show-raw-insn $object --disassemble=write_icr 2>&1`) {
        my ($code) = /^\s*[0-9a-f]+:\s+(.*?)\s*$/ or next;
        push @last, $code if $code =~ /^(?:mfence|lfence|j|call|ret|wrmsr)/;
        next if $code !~ /^wrmsr/;
        $found++;
        push @wrong, "after @last" if "@last[-3 .. -1]" ne 'mfence lfence wrmsr';
    }
    holds('MFENCE and LFENCE stand before each IPI by x2APIC',
          $found ? @wrong : 'no WRMSR in write_icr');
}

# Ring 0: all that is linked but the tests that ride in the image and what runs in ring 3. The
# commit that needs more says what for.
sub check_size
{
    my ($kernel, $all) = (0, (-s "$gcc/ntpmu.bin") // 0);
    my @ring0 = grep { !m{/kernel/user/|/images\.asm\.o$} } objects(qw(boot hal kernel pmu));
    for (split /\n/, `size -d @ring0 2>&1`) {
        $kernel += $1 + $2 if /^\s*(\d+)\s+(\d+)\s+\d+\s+\d+/; # text, data
    }
    holds('ring 0: ' . ($kernel >> 10) . ' KiB of 417; with all tests ' . ($all >> 10),
          $kernel && $kernel <= 417 << 10 ? () : "$kernel bytes");
    my ($end) = `nm $gcc/ntpmu.elf` =~ /^f{8}8(\w{7}) . image_end$/m;
    $end = hex($end // 0) >> 10;
    holds("the image ends at $end KiB of 28 MiB; 256 are left for firmware and other compilers",
          $end && $end <= (28 << 10) - 256 ? () : 'doc/machines.md: 28 MB are enough');
}

# --- the contract

sub check_contract
{
    my $count = 0;
    my @wrong = Contract::faults("LIST=1 BUILD=$gcc tests/tools/run", \$count);
    holds("contract: $count ids, each with its tests or the reason why not", @wrong);
    # On this machine each test of the image is listed.
    holds('each pattern of TESTS= in matrix and choices.mk matches a test', Contract::lost_patterns(
        "LIST=1 PMU=intel-v4,gp=7 BUILD=$gcc tests/tools/run", 'tests/machines/matrix',
        'tests/tools/choices.mk'));
}

# tests/tools/mutants.t runs seldom, by a sample: what each line of its tables changes must still
# stand in the source, once, and its clause in the contract. Each clause that names tests has one.
sub check_mutants
{
    my (@wrong, %has);
    my %known = map { $_->{id} => 1 } grep { !$_->{not} && !$_->{as} }
        @{ Contract::entries('tests/contract.md') };
    my @mutants = eval { Mutants::by_hand() };
    push @wrong, $@ if $@;
    my $tests = join '', map { Text::lines($_) } glob 'tests/*/*.c';
    for (@mutants) {
        my ($name, $clause, undef, $file, $from, undef, undef, $part) = @$_;
        push @wrong, "$name: the contract has no tests of clause $clause"
            if !$known{$clause} && !($clause =~ /^(\S+\.t)\b/ && (glob "tests/*/$1")[0])
            && !($clause =~ /^([a-z]\w*)\.(\w+)$/ && $tests =~ /TEST\w*\(\s*$1,\s*$2,/);
        $has{$clause}++;
        my $pattern = Mutants::pattern($from);
        my $times = () = join('', Text::lines($file)) =~ /$pattern/g;
        push @wrong, "$name: its text stands $times times in $file" if $times != 1;
        push @wrong, "$name: there is no $part" if $part && !-e $part;
    }
    my @bare = grep { !$has{$_} } sort keys %known;
    push @wrong, "no mutant breaks @bare" if @bare;
    for (Mutants::equivalent()) {
        my ($file, $from) = @$_;
        push @wrong, "equivalent: $file has no $from"
            if !grep { /^\s*\Q$from\E/ } Text::lines($file);
    }
    holds(@mutants . ' mutants: the text that each changes stands once', @wrong);
}

# --- compilers and analysers

my $make = 'make --no-print-directory -s -j2';

# And a change of any source builds again what it is part of; the sanitizers and coverage are no
# part of this build.
sub check_gcc
{
    holds('gcc builds', failure($make));
    system('find boot hal kernel pmu tests -type d -exec touch {} +'); # as copies of the tree are
    holds('a second make makes nothing', split /\n/, `$make 2>&1`);
    my %known = map { $_ => 1 } map { split }
        `make -pq MAKEFLAGS= 2>/dev/null` =~ /^$gcc\S+: (.*)/mg;
    my @built = grep { m{^(?:boot|hal|kernel|pmu|tests/(?:ring3|harness))/.*\.(?:c|asm)$}
                       && !m{/sanitize/|/cover\.c$} } @sources;
    holds('make knows what is built of each of ' . @built . ' sources',
          map { $known{$_} ? () : "$_ changes, and nothing is built again" } @built);
}
sub check_clang
{
    Environment::begin("$gcc/clang", 'dll'); # mingw-w64 builds ring 3
    holds('clang builds without a warning what traps where it is undefined, which passes',
          failure("$make run BUILD=$gcc/clang CC=clang UBSAN=1 FILLED=1 WERROR=-Werror"));
}

sub check_cppcheck
{
    my $windows = join ' ', map { "-i$_" } qw(tests/samples tests/programs tests/drivers),
        map { "kernel/user/$_" } qw(ntdll kernel32 msvcrt advapi32);
    my $flags = "-q -j2 $windows --enable=warning,performance,portability --std=c11 "
        . '--platform=unix64 -I. '
        . '--inline-suppr --error-exitcode=1 --suppress=missingIncludeSystem '
        # The linker's labels around a table are one object to us.
        . '--suppress=comparePointers --suppress=subtractPointers';
    holds('cppcheck finds nothing', failure("cppcheck $flags boot kernel hal pmu tests"));
}

# What scan-build runs, without compiling each file once more. It reads the product, not the tests,
# and at most 50,000 states of a function, not 225,000: either would take twice the time.
sub check_scan
{
    my @objects = map { s{^$gcc/}{$out/scan/}r }
        grep { !/\.asm\.o$/ } objects(qw(boot hal kernel pmu));
    my $clang = 'clang --analyze --analyzer-output text -Xclang -analyzer-werror '
        . '-Xclang -analyzer-config -Xclang max-nodes=50000';
    holds('the clang analyser finds nothing in ' . @objects . ' files', @objects ? () : 'none',
          failure("$make -k BUILD=$out/scan CC='$clang' @objects >$out/scan.log 2>&1"
                  . " || { grep ' error: ' $out/scan.log; false; }"));
}

# A folder without tests/ and with what make makes of ours: nothing there is compiled again.
sub check_alone
{
    my $alone = "$out/alone";
    my $sample = 'samples/read.cpp';
    holds('the kernel links without tests/, and runs a program', failure(
        "mkdir -p $alone/samples && cp tests/$sample $alone/samples && "
            . "cp -rp Makefile linker.ld boot kernel hal pmu $alone && "
            . "$make -C $alone BUILD=../../../$gcc kernel && "
            . "$make -C $alone BUILD=../../../$gcc PMU=amd-v2 PROGRAM=$sample run | "
            . "grep '^# PASS the program ended with 0'"));
}

sub check_repro
{
    my $copy = "$out/another/folder";
    my $all = 'Makefile linker.ld boot kernel hal pmu tests';
    my @wrong = failure("mkdir -p $copy && cp -r $all $copy && "
                        . "$make -C $copy WERROR=-Werror all payloads");
    my $same = !@wrong && !system "cmp $gcc/ntpmu.bin $copy/build/ntpmu.bin";
    holds('gcc, mingw-w64 and nasm build in another folder without a warning, and give the same '
              . 'bytes', @wrong,
          $same || @wrong ? () : 'ntpmu.bin differs');
}

my @names = @ARGV ? @ARGV
    : qw(text facts format functions names files citations pages commands journeys includes picture
         budgets guards layouts routines headers gcc symbols fences size contract mutants clang
         cppcheck scan alone repro);
system "rm -rf $out; mkdir -p $out";
for (@names) {
    no strict 'refs';
    "check_$_"->();
}
done_testing;
