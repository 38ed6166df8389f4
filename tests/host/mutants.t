#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The tests are tested: each line of tests/mutants/* breaks one place, as silicon, a hypervisor or a
# slip might, in a copy of the tree; some test must fail, and what it says is shown. `make mutants`;
# two at a time (JOBS=2). With words on the command line only those whose name, clause or file has
# one: prove -v tests/host/mutants.t :: status width SAMPLE=12: only so many of all, chosen by SEED,
# which is printed. PMU=haswell: the PMU's mutants of that vendor on a named machine instead. One
# that is not noticed there nor on the model that the machine is made of means nothing there; of the
# others four in five must be noticed.
#
# A line: what is broken; its clause in tests/contract.md;
# the machine: a model, then variables of tests/run; the file; the text, which stands there
# once; what it becomes; which tests, or a script of them with its words, where the clause's do not
# notice it (if not said the PMU's); 'crash' where no test can outlive it, as with any mutant of
# pmu/; 'lives' where the test panics on purpose, and does not with the mutant; of a header, the
# sources of which it is to be part (if not said all that include it, hundreds).
use strict;
use warnings;
use Test::More;
use File::Path 'make_path';
use lib 'tests/host';
use Environment;
use Contract;
use Mutants;
$| = 1;

my $build = $ENV{BUILD} // 'build';
my $jobs = $ENV{JOBS} // 2;
my $tests = 'pmu_*,diagnosis*,event_tables*';
my ($machine, $sample, $seed) = @ENV{qw(PMU SAMPLE SEED)};
my $share = 80;
Environment::forget(qw(BUILD));

# What proves a clause is the quickest to notice.
my @clauses = grep { !$_->{not} && $_->{text} !~ /^as / }
    @{ Contract::entries('tests/contract.md') };
my %entry_of = map { $_->{id} => $_ } @clauses;

# Whether a test noticed it that its clause names.
sub is_noticed_by_own
{
    my ($id, $said) = @_;
    return grep { Contract::names($entry_of{$id}, $_) } $said =~ /\b(\w+\.\w+)\b/g;
}

sub text
{
    my ($file, $text) = @_;
    open my $f, defined $text ? '>' : '<', $file or die "$file: $!";
    local $/;
    return defined $text ? print $f $text : <$f>;
}

my @mutants = map { my @list = eval text($_); die "$_: $@" if $@; @list }
    sort glob 'tests/mutants/*';
@mutants = grep { my $all = "@$_[0, 1, 3]"; grep { $all =~ /$_/ } @ARGV } @mutants if @ARGV;
# The model that the machine is made of.
my $model_of = '';
if ($machine) {
    ($model_of) = `tests/names MACHINE` =~ /^\Q$machine\E\t([\w-]+)/m
        or die "no such machine: $machine\n";
    my ($vendor) = $model_of =~ /^(\w+)/;
    @mutants = grep { ($_->[6] // '') !~ /\.t(?: |$)/ && $_->[2] =~ /^(?:$vendor|(?!\w))/ }
        @mutants;
}
if ($sample && $sample < @mutants) {
    $seed //= int rand 1e6;
    diag("SAMPLE=$sample SEED=$seed");
    srand($seed);
    my @shuffled = sort { $a->[0] <=> $b->[0] } map { [rand, $_] } @mutants;
    @mutants = map { $_->[1] } @shuffled[0 .. $sample - 1];
}

# What a command says in a folder, up to the line before which $ends says yes; then it is stopped:
# the rest would tell nothing.
sub said
{
    my ($folder, $command, $ends) = @_;
    my ($log, $before) = ('', '');
    my $pid = open my $in, '-|',
        "cd $folder && exec env TMPDIR=\$PWD/tmp $command </dev/null"
        or die "$command: $!";
    while (my $line = <$in>) {
        $log .= $line;
        kill(TERM => $pid), last if $ends->($before, $line);
        $before = $line;
    }
    close $in;
    my $status = $? >> 8;
    text("$folder.log", $log);
    return ($log, $status);
}

# What these tests say of the mutant on a model or machine of what is built in the folder: how they
# notice it, else their verdict.
sub ask_once
{
    my ($folder, $which, $any, @variables) = @_;
    my ($first, $meaning);
    my ($log, $status) = said($folder, "@variables TESTS='$which' tests/run 2>&1", sub {
        my ($before, $line) = @_;
        ($meaning) = $before =~ /^# what does not hold: (.*)/;
        ($first) = $line =~ /^not ok \d+ - (\S+)/;
        return defined $meaning && defined $first;
    });
    return "noticed: $first, $meaning" if defined $meaning && defined $first;
    my ($last) = $log =~ /\n(# (?:PASS|FAIL|NONE|CRASH|HANG|BROKEN).*)\s*\z/;
    return $last // 'BROKEN no verdict'
        if !$status || !$last || $last =~ /^# (?:BROKEN|NONE no test)/;
    return $any ? "noticed: $last" : "no test says what is broken: $last";
}

# ask_once, but what took long because the host is busy is no hang: it gets three times as long.
sub ask_tests
{
    my ($folder, $which, $any, $seconds, @variables) = @_;
    my @before = times;
    my $said = ask_once($folder, $which, $any, "TIMEOUT=$seconds", @variables);
    my @after = times;
    return $said if $said !~ /# HANG/
        || $after[2] + $after[3] - $before[2] - $before[3] > $seconds / 2;
    return ask_once($folder, $which, $any, 'TIMEOUT=' . 3 * $seconds, @variables);
}

# What a script of tests on the host, or a program that it runs, says of the mutant: which check of
# theirs does not hold.
sub ask_script
{
    my ($folder, $script, $any) = @_;
    my $failed;
    my ($log) = said($folder, "PROGRAMS=$build perl tests/host/$script 2>&1", sub {
        my $before = $failed;
        $failed ||= $_[1] =~ /^not ok/;
        return $failed && $script !~ / / if !$before;
        return $_[1] =~ /^# (?:line \d|does not hold)|^(?:not )?ok|^1\.\./;
    });
    my ($first) = $log =~ /^not ok \d+ - (.*)/m
        or return $log =~ /^1\.\.[1-9]/m ? "$script: all good" : 'BROKEN no plan';
    my ($check) = $log =~ /^# ((?:line \d|does not hold).*)/m;
    my ($ended) = $log =~ /^# status (?:99|124), want (?!99).*?^# # ((?:CRASH|HANG).*?)$/ms;
    return "no check says what is broken: $ended" if !$check && $ended && !$any;
    ($check) = $ended // $log =~ /^# (must match.*)/m if !$check;
    return "noticed: $script: $first" . (defined $check ? ": $check" : '');
}

sub ask
{
    my ($folder, $mutant, $model, @variables) = @_;
    my (undef, $clause, undef, $file, undef, undef, $which, $crash) = @$mutant;
    return ask_script($folder, $which, $crash) if ($which // '') =~ /\.t(?: |$)/;
    push @variables, "PMU=$model" if $model;
    if (($crash // '') eq 'lives') {
        my $said = ask_tests($folder, $which, 0, 60, @variables);
        return $said =~ /# CRASH/ ? $said : "noticed: $which, which should end in a panic: $said";
    }
    my $said = '';
    $said = ask_tests($folder, $entry_of{$clause}{text} =~ tr/ /,/r, $crash, 60, @variables)
        if $entry_of{$clause};
    return $said if $said =~ /^noticed/;
    my $pmu = $file =~ m{^pmu/};
    push @variables, 'ARGS=long' if $pmu;
    return ask_tests($folder, $which || $tests, $crash || $pmu, $pmu ? 150 : 60, @variables);
}

# In the folder of this job: what the tests say of the mutant.
sub try_one
{
    my ($folder, $mutant) = @_;
    my (undef, undef, $its_machine, $file, $from, $to, undef, undef, $sources) = @$mutant;
    my ($model, @variables) = split ' ', $its_machine;
    my $path = "$folder/$file";
    my $whole = text($path);
    my $pattern = Mutants::pattern($from);
    return 'BROKEN the text is not there, or twice' if 1 != (() = $whole =~ /$pattern/g);
    my $before = (stat $path)[9];
    text($path, $whole =~ s/$pattern/$to/r);
    if ($sources) {
        utime $before, $before, $path;
        utime undef, undef, map { "$folder/$_" } split ' ', $sources;
    }
    # It need not be good style.
    my $broken = system("cd $folder && mkdir -p tmp && "
                        . "make -s TEXT_FLAGS='-w -g0' >build.log 2>&1 </dev/null");
    my $said = $broken ? 'BROKEN build' : ask($folder, $mutant, $machine // $model, @variables);
    $said = "means nothing on $model_of"
        if $machine && $said !~ /^noticed|^BROKEN/
        && ask($folder, $mutant, $model_of) !~ /^noticed/;
    return $said;
}

# A copy of the tree and of what is built of it, so that only what a mutant touches is built again.
# Folders below with a kernel of their own are not of it.
sub copy
{
    my ($folder) = @_;
    make_path($folder);
    my $others = "-path $build/mutants -o -path $build/check -o -exec test -e '{}/ntpmu.elf' \\;";
    system("(git ls-files; find $build -mindepth 1 -type d \\( $others \\)"
            . " -prune -o -type f -print) | sort -u | tr '\\n' '\\0' |"
            . " xargs -0 cp --parents -pt $folder") == 0 or die "cannot copy to $folder";
}

# What a mutant changed, source and what was built of it, comes back with its time: nothing of it is
# built again.
sub restore
{
    my ($folder, $since, $file) = @_;
    utime $since, $since, "$folder.since" if text("$folder.since", '');
    utime undef, undef, "$folder/$file";
    system('rm', '-rf', "$folder/tmp");
    for (split /\0/, `cd $folder && find . -type f -newer ../\$(basename $folder).since -print0`) {
        -e "$build/mutants/base/$_" or unlink("$folder/$_"), next;
        system('cp', '-p', "$build/mutants/base/$_", "$folder/$_") == 0 or die "cannot restore $_";
    }
}

# Without them blocks.t and others would notice anything.
-e "$build/$_" or die "$build/$_ is not there: make it\n"
    for "linux.bin", map { "$_.elf" } qw(blocks payload peers suite transparent);
plan tests => @mutants + !!$machine;
my ($noticed, $by_others, $nothing, $seconds, @results) = (0, 0, 0, 0);
system('rm', '-rf', "$build/mutants"); # an earlier run may have left its last mutant there
copy("$build/mutants/base");
# What nobody will debug is linked in half the time.
system("find $build/mutants/base/$build -name '*.o' ! -path '*/dll/*' -print0 |"
        . ' xargs -0 strip -g -p') == 0 or die 'strip';
for my $job (0 .. $jobs - 1) {
    my $folder = "$build/mutants/$job";
    system('cp', '-a', "$build/mutants/base", $folder) == 0 or die "cannot copy to $folder";
    pipe my $read, my $write or die "pipe: $!";
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        close $read;
        $write->autoflush(1);
        # what each took, in seconds
        open my $times, '>', "$folder.times" or die "$folder.times: $!";
        $times->autoflush(1);
        for my $n (grep { $_ % $jobs == $job } 0 .. $#mutants) {
            my @before = times;
            my $since = time - 1;
            my $said = try_one($folder, $mutants[$n]);
            restore($folder, $since, $mutants[$n][3]);
            my @after = times;
            my $took = $after[2] + $after[3] - $before[2] - $before[3];
            printf $write "%d %.1f %s\n", $n, $took, $said;
            printf $times "%.1f %s: %s\n", $took, @{$mutants[$n]}[3, 0];
        }
        exit 0;
    }
    close $write;
    $results[$job] = $read;
}
for my $n (0 .. $#mutants) {
    my ($name, $clause, $its_machine, $file) = @{$mutants[$n]};
    my $line = readline $results[$n % $jobs];
    my ($took, $said) = ($line // '? 0 nothing') =~ /^\S+ (\S+) (.*)/;
    $seconds += $took;
    $noticed += $said =~ /^noticed/;
    if ($machine) {
        $nothing += $said =~ /^means/;
        unlike($said, qr/BROKEN|nothing$/, "$name: $said");
        next;
    }
    my $whose = $said =~ /^noticed/ && !is_noticed_by_own($clause, $said);
    $by_others += $whose;
    like($said, qr/^noticed/, "[$clause] $name: " . ($said =~ s/^noticed: //r)
             . ($whose ? " (not by ${clause}'s own tests)" : ''))
        or diag("$file on $its_machine: $said");
}
1 while wait > 0;
diag(sprintf '%d of %d noticed, %d not by their clause\'s own tests, %.0f s of processor time',
     $noticed, scalar @mutants, $by_others, $seconds);
my $meant = @mutants - $nothing;
ok($noticed * 100 >= $share * $meant,
   "$machine: $noticed of $meant noticed, $nothing mean nothing there") if $machine;
