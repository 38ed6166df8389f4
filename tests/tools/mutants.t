#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The tests are tested: one place of the product is changed, as a slip might, in a copy of the tree;
# some test must notice. Two at a time (JOBS=2), chosen by SEED, which is printed. Without it, the
# tree of the commit gives it: whoever runs the same tree takes the same places.
#
# `make mutants`: those by hand, tests/mutants/*, one for each clause of tests/contract.md, which
# the clause's own tests must notice. Words on the command line: only those whose name, clause or
# file has one: prove -v tests/tools/mutants.t :: status width.
#
# `make mutants N=60 ROOM='hal kernel/ke'`: so many lines, changed by the operators of Mutants.pm.
# From 60 on the tests that reach the line look (Cover.pm), on each machine, if they are few and
# the kernel does not pass there when it starts; else those of the line's room look first, then all.
# What no test noticed is said at once, and at the end the shares that were noticed by room and by
# operator; SHARE percent of all must be. KIND=people: only what people do and a slip of the hand
# does not; or a regex for names of operators. Words choose of the lines:
# N=99999 KIND=people prove -v tests/tools/mutants.t :: 'pmc.c:96 bound'.
#
# QUICK=1: of the machines only the first looks with all tests, and no script: what it leaves is for
# a person to judge; slow tests look on the first machine, if they are of the room. SAMPLE=10: so
# many by hand, as quick.
#
# A row by hand: what is broken; the clause, or the test (group.name) that must notice, or a script
# of the host where no test of the kernel can see it; the machine: a model, then variables of
# tests/tools/run; the file, by its name alone; the text, which stands there once; what it becomes;
# 'crash' where no test can outlive it, or it hangs; of a header, the source of the tests that alone
# is built again (if not all that include it). A row of tests/mutants/equivalent, which nothing can
# notice: file, text before, text after, why.
use strict;
use warnings;
use Test::More;
use File::Path 'make_path';
use lib 'tests/tools';
use Environment;
use Contract;
use Cover;
use Guards;
use Mutants;
use Text;
$| = 1;

my $build = $ENV{BUILD} // 'build';
my ($jobs, $sample, $count, $seed, $room) = @ENV{qw(JOBS SAMPLE N SEED ROOM)};
my $kind = ($ENV{KIND} // '') eq 'people' ? $Mutants::PEOPLE : $ENV{KIND} // '';
$jobs ||= 2;
my $sampled = !$count && $sample;
my $quick = $sampled || $ENV{QUICK};
$seed = hex substr `git rev-parse HEAD:`, 0, 5 if !length($seed // '');
use constant { SHARE => 50, MANY => 60 };
my $TRAPS = '-fsanitize=undefined -fsanitize-undefined-trap-on-error'
    . ' -ftrivial-auto-var-init=pattern'; # the Makefile's UBSAN and FILLED
Environment::forget(qw(N SEED SAMPLE ROOM QUICK KIND));
$ENV{BUILD} = $build;
$ENV{TIMEOUT} = 40; # of the emulator's time, of which nothing takes a quarter

# Of which files: the tests that look first at a line, on the first two machines; the scripts that
# look before all other tests; those that look last.
my @programs = 'programs.t win32.c crt.c beside.cpp static.c concurrency.c';
my $ends = 'boot.t last.page panic exception failures page.8000h ^a.framebuffer NMI';
my @rooms = (
    ['boot', 'boot_info*,multiboot_1*,smp*', [$ends], 'transparent.t', 'linux.t'],
    ['kernel/base', 'locks*,irql*,smp*,traps*,sched*,etw_export*', [],
     $ends, 'matrix.t ^99'],
    ['kernel/mm', 'vm*,phys*,memory*,process*', [], 'programs.t'],
    ['kernel/console', 'codes*', [$ends]],
    ['kernel/ke', 'sched*,dispatcher*,synch*,process*,handles*,ring3*,copy*,exceptions*,handling*,'
     . 'fpu*,entry*,tp_switch*,tp_counts*,etw_hooks*', ['programs.t concurrency.c'], 'programs.t'],
    ['kernel/counting', 'tp_*,exact*', []],
    ['kernel/profiling', 'tp_*,profile_*,exact*', []],
    ['kernel/etw', 'etw_*', []],
    ['kernel/driver', 'tp_driver*', ['drivers.t driver_'], 'drivers.t'],
    ['kernel/init', 'pmu_pmi*', [], 'programs.t'],
    ['kernel/user', 'handling*,exceptions*,synch*,etw_win32*,etw_input*,tp_read*,ring3*',
     \@programs, 'programs.t'],
    ['kernel/image', 'ring3*,process*,service_fuzz*', [], 'programs.t'],
    ['kernel', 'ring3*,traps*,exceptions*,entry*,process*,handles*,service_fuzz*',
     [], 'programs.t'],
    ['hal', 'hal_*,bounds*,source*,clock*,acpi*,smbios*,hypervisor*,groups*,smp*,profile_*,'
     . 'measured*', [], $ends, 'matrix.t x2APIC firmware'],
    ['pmu/virt', 'vpmu*,pmu_*,lbr_*,pebs_*', ['blocks.t'], 'transparent.t', 'matrix.t quirks:'],
    ['pmu', 'pmu_*,lbr_*,pebs_*,event_tables*,diagnosis*,kinds*,codes*',
     [], 'matrix.t ^intel-v1,.1 ^intel-v2,.4 ^amd-k7,.1 ^alderlake'],
);
my @machines = ('PMU=intel-v5', 'PMU=amd-v2 SMP=4',
                'PMU=intel-v4 SMP=2 ARGS=counters=isolate', 'PMU=none', 'PMU=alderlake SMP=2');
sub room_of { my ($file) = @_; return (grep { $file =~ m{^$_->[0]/} } @rooms)[0] }

my %needed = Guards::needed(map { Text::content($_) } split /\n/, `git ls-files 'kernel/*.h'`);
my %entry_of = map { $_->{id} => $_ } @{ Contract::entries('tests/contract.md') };
my (@hand, @generated);
@hand = Mutants::by_hand() if !$count;
@hand = grep { my $all = "@$_[0, 1, 3]"; grep { $all =~ /$_/ } @ARGV } @hand if @ARGV;
if ($sampled && $sample < @hand) {
    srand $seed;
    @hand = map { $_->[1] } sort { $a->[0] <=> $b->[0] } map { [rand, $_] } @hand;
    $#hand = $sample - 1;
}
# Objects of a source, in the kernel, in ring 3, or in both.
sub objects
{
    my ($stem, $folder) = $_[0] =~ m{^((.*/).*)\.c$};
    my @own = grep { -e } map { "$build/$_$stem.o" } '', 'dll/';
    return @own ? @own : grep { -e } "$build/dll/${folder}whole.o";
}
my $in_room = join '|', map { quotemeta } split ' ', $room // '';
my @files = grep { objects($_) && room_of($_) && m{^(?:$in_room)} && !m{^pmu/events/} }
    split /\n/, `git ls-files 'boot/*.c' 'hal/*.c' 'kernel/*.c' 'pmu/*.c'`;
@generated = Mutants::choose($count, $seed, $kind, @files) if $count;
@generated = grep { my $all = "$_->[1]:$_->[2] $_->[0]: $_->[4]"; grep { $all =~ /$_/ } @ARGV }
    @generated if @ARGV;
my %reason_of = map { my ($file, @texts) = @$_; my $why = pop @texts; ("$file: @texts" => $why) }
    Mutants::equivalent();

# Which tests reach a line; those that failed on the way and may reach more.
my ($lines, @unsure);

# What a command says in a folder, until a line ends it: the rest would say nothing.
sub said
{
    my ($folder, $command, $ends) = @_;
    my $log = '';
    my $pid = open my $in, '-|', "cd $folder && mkdir -p tmp && exec env TMPDIR=\$PWD/tmp $command "
        . '2>&1 </dev/null' or die "$command: $!";
    while (my $line = <$in>) {
        $log .= $line;
        kill(TERM => $pid), last if $line =~ $ends;
    }
    close $in;
    Text::save("$folder.log", $log);
    return $log;
}

# How these tests notice the mutant on a machine: noticed, crashed, hung, or nothing of it.
sub ask
{
    my ($folder, $tests, $machine) = @_;
    # No test takes 2 s of the emulator's time; what hangs would take all of its own.
    my $log = said($folder, "$machine TESTS='$tests' TIMEOUT=30 tests/tools/run", qr/^not ok/);
    return "noticed: $1" if $log =~ /^not ok \d+ - (\S+)/m;
    return "noticed: $1" if $machine =~ /SMP=4$/ && $log =~ /^(# smp: .*)/m; # matrix.t wants none
    my ($last) = $log =~ /\n# ((?:PASS|FAIL|NONE|CRASH|HANG|BROKEN).*)\s*\z/;
    return 'BROKEN ' . ($last // 'no verdict') if !$last || $last =~ /^(?:BROKEN|NONE no test)/;
    return "noticed: $last" if $last =~ /^FAIL/; # a test that may not be skipped
    return $last =~ /^CRASH/ ? "crashed: $last" : $last =~ /^HANG/ ? "hung: $last" : $last;
}

# How a script notices it, if it does.
sub ask_script
{
    my ($folder, $script) = @_;
    my $log = said($folder, "PROGRAMS=$build perl tests/*/$script", qr/^not ok/);
    die "$script wants more than the mutant: $&" if $log =~ /^not ok .*make deps WITH=.*/m;
    return $log =~ /^not ok \d+ - (.*)/m ? "noticed: $script: $1" : 'unnoticed';
}

# One by hand: asks its clause's tests.
sub ask_clause
{
    my ($folder, undef, $clause, $its_machine) = ($_[0], @{ $_[1] });
    return ask_script($folder, $clause) if $clause =~ /^\S+\.t\b/;
    my ($model, @variables) = split ' ', $its_machine;
    my $tests = $entry_of{$clause} ? join ',', @{ $entry_of{$clause}{tests} } : $clause;
    return ask($folder, $tests, join ' ', @variables, $model ? "PMU=$model" : ());
}

# The first answer that is one, of tests on machines and of scripts.
sub ask_each
{
    my ($folder, @asked) = @_;
    for (@asked) {
        my $said = ref ? ask($folder, @$_) : ask_script($folder, $_);
        return $said if $said =~ /^(?:noticed|crashed|hung)/;
    }
    return 'unnoticed by ' . (join('; ', map { ref ? "@$_" : $_ } @asked) || 'any kernel test');
}

# Of one that was generated: by the tests that reach its line, where few do; else by those of its
# room, by all; by programs on the host.
sub ask_all
{
    my ($folder, $what, $file, $line, $code) = ($_[0], @{ $_[1] });
    my (undef, $first, $scripts, @last) = @{ room_of($file) };
    push @last, 'trace.t' if $file =~ /etw/;
    my @reach = $lines->{$file} ? Cover::tests($lines->{$file}, $line, $code) : undef;
    my $any = @reach && !defined $reach[0];
    my $of_room = join '|', map { Contract::glob_regex($_) } split /,/, $first;
    push @reach, grep { /$of_room/ } @unsure if @reach && !$any;
    my $tests = join ',', grep { defined } @reach;
    $tests =~ s/\.[^,]*/.*/g, $tests =~ s/([^,]+,)\g1+/$1/g if length $tests > 400; # a boot line
    return ask_each($folder, (@reach ? map { [$tests, $_] } @machines : ()),
                    $quick ? () : (@$scripts, @last)) if !$any;
    my $quicker = $quick ? ',-slow' : '';
    my $rest = join(',', '*', map { "-$_" } split /,/, $first) . $quicker;
    my @each = @machines[$what =~ /CPU|lock/ ? (1, 0) : (0, 1)]; # one CPU shows no other
    my @others = @machines[1, 3, $file =~ /^pmu/ ? 4 : ()];
    my @asked = ([$first, $machines[0]], map({ ["$first$quicker", $_] } @others), @$scripts,
                 map({ [$rest, $_] } @each), ['*', $machines[2]], @last);
    @asked = (grep { ref } @asked)[0 .. @others + 1] if $quick;
    return ask_each($folder, @asked);
}

# How the first of the tests that did not notice it notice it where its file alone traps what is
# undefined and fills what has no value yet, as all files do in builds of matrix.t; without the
# mutant they say nothing.
sub ask_trapped
{
    my ($folder, $mutant, $tests) = @_;
    my ($what, $file) = @$mutant;
    return if $what !~ /^bound|^[|]=|left out|not copied/ || $file =~ m{^kernel/user/};
    my $trapped = sub {
        my ($only) = @_;
        utime undef, undef, "$folder/$file";
        system("make -C $folder -s BUILD=$build TEXT_FLAGS='-w -g0 $TRAPS' >$folder/build.log 2>&1"
               . ' </dev/null') == 0 or return 'not built';
        return ask($folder, $only, $machines[0]);
    };
    my $said = $trapped->($tests);
    return if $said !~ /^(?:noticed|crashed)/;
    Text::save("$folder/$file", Text::content("$build/mutants/base/$file"));
    return $trapped->($tests) =~ /^(?:noticed|crashed)/ ? undef : "$said, where the file has traps";
}

# Whether all objects of the source are what they were, but for what debuggers want.
sub same_objects
{
    my ($folder, $file) = @_;
    for my $object (objects($file)) {
        my ($new, $old) = map { `objdump -sr $_/$object` =~ s/^.*file format.*$//mr }
            $folder, "$build/mutants/base";
        return 0 if $new ne $old;
    }
    return 1;
}

# In the folder of this job: what the tests say of the mutant.
sub try_one
{
    my ($folder, $mutant) = @_;
    my $by_hand = @$mutant > 6 || !ref $mutant->[5];
    my $file = $mutant->[$by_hand ? 3 : 1];
    my $path = "$folder/$file";
    my $whole = Text::content($path);
    if ($by_hand) {
        my (undef, undef, undef, undef, $from, $to, undef, $part) = @$mutant;
        my $pattern = Mutants::pattern($from);
        return 'BROKEN the text is not there, or twice' if 1 != (() = $whole =~ /$pattern/g);
        my $before = (stat $path)[9];
        Text::save($path, $whole =~ s/$pattern/$to/r);
        utime $before, $before, $path if $part;
        utime undef, undef, "$folder/$part" if $part;
    } else {
        my $why = $reason_of{"$file: @$mutant[3, 4]"};
        return "equivalent: $why" if $why;
        Text::save($path, Mutants::changed($mutant, $whole));
    }
    # make check wants code without warnings; one by hand need not be good style.
    my $make = "cd $folder && make -s BUILD=$build";
    my $made = sub { return !system "$make @_ >build.log 2>&1 </dev/null" };
    my $warned = !$by_hand && !$made->("WERROR='-Werror -g0 -Wno-empty-body'")
        && Text::content("$folder/build.log") =~ /error: (.*)/ && $1;
    return $by_hand ? 'BROKEN build' : 'not built' if !$made->("TEXT_FLAGS='-w -g0'");
    return "noticed: the compiler: $warned" if $warned;
    return ask_clause($folder, $mutant) if $by_hand;
    return 'equivalent: the same code' if same_objects($folder, $file);
    my ($unguarded) = Guards::faults(Text::content($path), %needed);
    return "noticed: $unguarded" if $unguarded;
    my $said = ask_all($folder, $mutant);
    return $said =~ /^unnoticed by (\S+) / ? ask_trapped($folder, $mutant, $1) // $said : $said;
}

# Which tests reach which line, as the first three machines say, where so many mutants come that it
# is cheaper to know.
sub reached
{
    my $folder = "$build/cover";
    my $make = "make -s BUILD=$folder COVER=1 TEXT_FLAGS='-w -g'";
    system("$make >/dev/null </dev/null") == 0 or die "$make\n";
    for my $n (0 .. 2) {
        next if -e "$folder/$n.log" && -M "$folder/$n.log" < -M "$folder/ntpmu.elf";
        my $tests = $n ? '*,-slow' : '*';
        system("BUILD=$folder LOG=$folder/log TAP=1 $machines[$n] TESTS='$tests' tests/tools/run"
               . " >$folder/$n.log 2>&1 </dev/null");
    }
    my @logs = map { Text::content("$folder/$_.log") } 0 .. 2;
    return (Cover::lines("$folder/ntpmu.elf", @logs), map { /^not ok \d+ - (\S+)/mg } @logs);
}

# A copy of the tree and of what is built of it, so that only what a mutant touches is built again.
# Folders below with a kernel of their own are not of it, nor what others leave there.
sub copy
{
    my ($folder) = @_;
    make_path($folder);
    my $others = join ' -o ', (map { "-path $build/$_" } qw(mutants check linux boot-tests logs)),
        "-exec test -e '{}/ntpmu.elf' \\;";
    system("(git ls-files; find $build -mindepth 1 -type d \\( $others \\)"
            . " -prune -o -type f -print) | sort -u | tr '\\n' '\\0' |"
            . " xargs -0 cp --parents -pt $folder") == 0 or die "cannot copy to $folder";
}

# What a mutant changed, source and what was built of it, comes back with its time: nothing of it is
# built again.
sub restore
{
    my ($folder, $since, $file) = @_;
    utime $since, $since, "$folder.since" if Text::save("$folder.since", '');
    utime undef, undef, "$folder/$file";
    system('rm', '-rf', "$folder/tmp");
    for (split /\0/, `cd $folder && find . -type f -newer ../\$(basename $folder).since -print0`) {
        -e "$build/mutants/base/$_" or unlink("$folder/$_"), next;
        system('cp', '-p', "$build/mutants/base/$_", "$folder/$_") == 0 or die "cannot restore $_";
    }
}

# Without them blocks.t would notice anything.
-e "$build/$_.elf" or die "$build/$_.elf is not there: make it\n"
    for qw(blocks cpus payload transparent);
my @mutants = (@hand, @generated);
plan tests => @mutants + !!@generated;
diag("SEED=$seed");
($lines, @unsure) = reached() if @generated >= MANY || @ARGV && -e "$build/cover/1.log";
system('rm', '-rf', "$build/mutants"); # an earlier run may have left its last mutant there
copy("$build/mutants/base");
# What nobody will debug is linked in half the time.
system("find $build/mutants/base/$build -name '*.o' ! -path '*/dll/*' -print0 |"
        . ' xargs -0 strip -g -p') == 0 or die 'strip';
# Each job takes the next that nobody has taken.
pipe my $next, my $numbers or die "pipe: $!";
pipe my $results, my $result or die "pipe: $!";
$result->autoflush(1);
for my $job (0 .. $jobs - 1) {
    my $folder = "$build/mutants/$job";
    system('cp', '-a', "$build/mutants/base", $folder) == 0 or die "cannot copy to $folder";
    next if fork // die "fork: $!";
    close $numbers;
    while (sysread $next, my $number, 4) {
        my ($n, $since) = (unpack('N', $number), time - 1);
        printf $result "%d %s\n", $n, try_one($folder, $mutants[$n]);
        restore($folder, $since, $mutants[$n][$n < @hand ? 3 : 1]);
    }
    exit 0;
}
close $result;
syswrite $numbers, pack 'N', $_ for 0 .. $#mutants;
close $numbers;
my %said;

my (%all, %noticed, %of_kind, %seen);
for my $n (0 .. $#mutants) {
    while (!exists $said{$n} && defined(my $line = readline $results)) {
        $said{$1} = $2 if $line =~ /^(\d+) (.*)/;
    }
    my $said = $said{$n} // 'BROKEN nothing';
    if ($n < @hand) {
        my ($name, $clause, $machine, $file, undef, undef, $crash) = @{ $mutants[$n] };
        my $ended = $crash && $said =~ /^(?:crashed|hung)/;
        ok($said =~ /^noticed/ || $ended, "[$clause] $name: $said")
            or diag("$file on $machine: $said");
        next;
    }
    my ($what, $file, $line, $from, $to) = @{ $mutants[$n] };
    unlike($said, qr/^BROKEN/, "$file:$line $what: $said");
    next if $said =~ /^(?:equivalent|not built)/;
    my $of = room_of($file)->[0];
    $all{$of}++;
    $noticed{$of} += $said =~ /^(?:noticed|crashed|hung)/;
    $of_kind{$what}++;
    $seen{$what} += $said =~ /^(?:noticed|crashed|hung)/;
    diag("$file:$line $what, $said\n    $from\n    $to") if $said =~ /^unnoticed/;
}
1 while wait > 0;
exit 0 if !@generated;
my ($sum, $of) = (0, 0);
for (sort keys %all) {
    diag(sprintf '%-18s %d of %d noticed', $_, $noticed{$_}, $all{$_});
    $sum += $noticed{$_};
    $of += $all{$_};
}
diag(sprintf '%-34s %d of %d noticed', $_, $seen{$_}, $of_kind{$_}) for sort keys %of_kind;
# Of few the share is chance's: it is printed, and judged only of many. None at all proves nothing.
ok($of && ($of < MANY || $sum * 100 >= SHARE * $of),
   "$sum of $of that tests could notice were noticed");
