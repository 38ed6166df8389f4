#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Traces out of the machine: what babeltrace2 and our reader of .etl files read of them. N=10: for
# how many seconds the trace of many switches lasts; 1 if not said.
use strict;
use warnings;
use Test::More;
use File::Path 'make_path';
use lib 'tests/tools';
use Environment;
use EtlReader;
use Text;

# A tree that is built for one script has the kernel for it already: PROGRAMS.
my $build = $ENV{PROGRAMS} // ($ENV{BUILD} // 'build') . '/traces';
Environment::forget(qw(EVENTS COUNTERS STACKS BRANCHES));

# Programs are built once, and each image kept where tests/tools/trace looks for it; a driver, too.
sub built
{
    my ($program, $what) = (@_, 'PROGRAM');
    my ($name) = $program =~ m{(\w+)\.c$};
    my $failure = Environment::make($build, "$what=$program");
    BAIL_OUT($failure) if $failure;
    make_path("$build/$name/program");
    system 'cp', "$build/ntpmu.bin", "$build/$name";
    system 'cp', "$build/program/$name." . ($what eq 'DRIVER' ? 'sys' : 'exe'),
        "$build/$name/program";
    return "BUILD=$build/$name $what=$program";
}
my $threads = built('tests/samples/threads.c');
my $calls = built('tests/programs/events.c');
my $sample = built('tests/samples/trace.c');
my $driver = built('tests/samples/overflow.c', 'DRIVER');
my $format = built('tests/programs/format.c');

# Runs with a trace; status, output, and the events as babeltrace2 tells them.
sub trace
{
    my ($program, $variables) = @_;
    my ($folder) = $program =~ /BUILD=(\S+)/;
    my $output = `TIMEOUT=600 $program $variables tests/tools/trace 2>&1 </dev/null`;
    my $status = $? >> 8;
    my @events = -d "$folder/trace"
        ? `babeltrace2 --no-delta --clock-cycles $folder/trace 2>$folder/errors` : ();
    return ($status, $output, \@events, join '', Text::lines("$folder/errors"));
}

# Names of hooks, and layouts of payloads, from the format's description.
my %hook = (
    0x501 => ['THREAD_CREATE', 'V2 Q<7 V C4'], 0x502 => ['THREAD_DELETE', 'V2 Q<7 V C4'],
    0x524 => ['CONTEXTSWAP', 'V2 c2 C c4 C V2'], 0x532 => ['READY_THREAD', 'V c2 C2'],
    0xf2e => ['SAMPLED_PROFILE', 'Q< V v C2'], 0xf2f => ['PMC_INTERRUPT', 'Q< V v2'],
    0xf33 => ['SYSCALL_ENTER', 'Q<'], 0xf34 => ['SYSCALL_EXIT', 'V'],
    0xf43 => ['INTERRUPT', 'Q<2 C v C'], 0xf44 => ['DPC', 'Q<2'], 0xf45 => ['TIMERDPC', 'Q<2'],
    0xf48 => ['SAMPLED_PROFILE_SET_INTERVAL', 'V3'], 0xf5b => ['IPI', 'Q<2'],
    0x1820 => ['STACKWALK', 'Q< V2 Q<*'], branches => ['LAST_BRANCH', 'Q< V4 Q<*']);

# The names of a 0F30, as many as it says.
sub names_of
{
    my ($payload) = @_;
    my ($count, @names) = unpack 'V', $payload;
    my $at = 4;
    while (@names < $count) {
        push @names, EtlReader::text(substr $payload, $at);
        $at += 2 * length($names[-1]) + 2;
    }
    return @names;
}

# A record of the .etl as a line of numbers; the same of an event as babeltrace2 tells it.
sub line_of_record
{
    my ($r, $hook) = @_;
    my ($name, $layout) = @{ $hook{$hook} };
    my @numbers = unpack $layout, $r->{payload};
    # CTF says how many follow.
    splice @numbers, 2, 0, @numbers - 3 if $hook eq 0x1820;
    $numbers[4] = (@numbers - 5) / 3 if $hook eq 'branches';
    return join ' ', $r->{time}, $name, @{ $r->{counters} }, @numbers;
}

sub line_of_event
{
    my ($time, $name, $cpu, $rest) = $_[0] =~ /^\[0*(\d+)\] (\w+): \{ cpu_id = (\d+) \}, (.*)/
        or return (-1, $_[0]);
    no warnings 'portable'; # numbers of 64 bits
    my @numbers = map { /^0x/ ? hex : $_ }
        $rest =~ /= (?:\( "\w+" : container = )?(0x[0-9A-F]+|-?\d+)\b/g;
    $numbers[-1] &= 0xffffffff if $name eq 'SYSCALL_EXIT'; # a status has a sign there
    return ($cpu, join ' ', $time, $name, @numbers);
}

# Size, checksum and time that an image's headers have.
sub image_of
{
    my $bytes = Text::content($_[0]);
    my ($time, @others) = unpack 'x8 V x68 V x4 V', substr $bytes, unpack 'x60 V', $bytes;
    return "@others $time";
}

# The .etl of the same run, read by our own reader: its header; records as lines, by CPU; the names
# of its counters; what each thread counted, by the differences between context switches; the names
# of its images, with size, checksum and time.
sub read_etl
{
    my ($folder) = @_;
    my $etl = EtlReader::read_file("$folder/trace.etl");
    my (%lines, %last, %thread, @names, %image);
    for (@{ $etl->{records} }) {
        my $hook = $_->{kind} == 0x14 ? 'branches' : $_->{hook};
        push @{ $lines{ $_->{cpu} } }, line_of_record($_, $hook) if $hook{$hook};
        @names = names_of($_->{payload}) if $hook eq 0xf30;
        $image{ EtlReader::text(substr $_->{payload}, 56) } = join ' ', unpack 'x8 Q< x4 V2',
            $_->{payload} if $hook eq 0x1404;
        next if $_->{hook} != 0x524;
        die "a context switch of another size\n" if length $_->{payload} != 0x18;
        my ($new, $old) = unpack 'V V', $_->{payload};
        $thread{$new}{switches}++;
        for my $i (0 .. $#{ $_->{counters} }) {
            $thread{$old}{counts}[$i] += $_->{counters}[$i] - $last{ $_->{cpu} }[$i]
                if $last{ $_->{cpu} };
        }
        $last{ $_->{cpu} } = $_->{counters};
    }
    return ($etl->{header}, \%lines, \%thread, "@names", \%image);
}

# The first line of a list that another one does not have there.
sub difference
{
    my ($one, $other) = @_;
    for my $i (0 .. (@$one > @$other ? $#$one : $#$other)) {
        my ($line, $wanted) = map { $_->[$i] // 'nothing' } $one, $other;
        return "the .etl has $line, CTF $wanted\n" if $line ne $wanted;
    }
    return;
}

# What each trace must be: the counts of the summary, no warning, times in order, and switches that
# follow each other: what a CPU switched to is what it switches from next.
sub check
{
    my ($program, $variables, @kinds) = @_;
    my ($status, $output, $events, $errors) = trace($program, $variables);
    my ($name) = $program =~ m{(\w+)\.c$};
    my ($told, $lost) =
        $output =~ /^# trace: \S+, \S+: (\d+) events of \d+ CPUs in \S+ s, (\d+) lost$/m;
    my (%seen, %time, %running, %lines, @wrong);
    for (@$events) {
        my ($time, $kind, $cpu) = /^\[(\S+)\] (\w+): \{ cpu_id = (\d+) \}/
            or push(@wrong, $_), next;
        $seen{$kind}++;
        push @wrong, "earlier than the one before: $_" if $time < ($time{$cpu} // 0);
        $time{$cpu} = $time;
        push @{ $lines{$cpu} }, (line_of_event($_))[1];
        my ($new, $old) = /NewThreadId = (\d+), OldThreadId = (\d+)/ or next;
        push @wrong, "from $old, not $running{$cpu}: $_"
            if defined $running{$cpu} && $running{$cpu} != $old;
        $running{$cpu} = $new;
    }
    push @wrong, "no $_\n" for grep { !$seen{$_} } @kinds;
    push @wrong, "the summary's number of $_\n"
        for grep { $output !~ /^# +$seen{$_} $_$/m } keys %seen;
    my ($folder) = $program =~ /BUILD=(\S+)/;
    my ($header, $etl, $thread, $names, $image) = eval { read_etl($folder) };
    push @wrong, "the .etl: $@" if !$header;
    ($header, $etl, $names) = ({ masks => [(0) x 8], lost => -1, frequency => 0 }, {}, '') if $@;
    push @wrong, map { difference($etl->{$_} // [], $lines{$_} // []) } keys %{ { %$etl, %lines } };
    my ($asked) = map { s/:u/_u/gr =~ tr/,/ /r } $variables =~ /COUNTERS=(\S*)/;
    push @wrong, "the .etl's counters are $names\n" if $asked ne $names;
    my @masks = @{ $header->{masks} };
    push @wrong, "the .etl's masks are @masks\n" # PERF_CONTEXT_SWITCH, PERF_SYSCALL
        if !($masks[1] & 4) != !$seen{CONTEXTSWAP} || !($masks[2] & 0x40) != !$seen{SYSCALL_ENTER};
    push @wrong, map { ($image->{s{.*/}{}r} // '') eq image_of($_) ? ()
                           : "the .etl has another image $_\n" }
        $program =~ /DRIVER/ ? ()
        : ("$folder/program/$name.exe", map { "$build/dll/$_.dll" } qw(ntdll kernel32));
    for (grep { $_->[0] =~ /^\d/ } rows($output)) {
        my ($id, undef, @counts) = @$_;
        my @own = map { $_ // 0 } @{ $thread->{$id}{counts} }[0 .. $#counts];
        push @wrong, "the .etl counts @own for thread $id, the summary @counts\n"
            if "@own" ne "@counts";
    }
    my ($cpus) = $output =~ /^# running: (\d+) CPU.*?/m;
    my ($mhz) = $output =~ /^# clock: TSC ([\d.]+) MHz/m;
    push @wrong, "the .etl's header has other processors, lost events or another clock\n"
        if ($header->{processors} // 0) != $cpus || $header->{lost} != $lost
            || int($header->{frequency} / 1000) != $mhz =~ s/\.//r;
    ok($status == 0 && ($told // 0) == @$events && !$lost && $errors eq '' && !@wrong,
       "$name $variables: two traces, whole, the same, without a warning")
        or diag("status $status\n$output$errors", @wrong > 5 ? @wrong[0 .. 4] : @wrong);
    return ($output, \%seen, $events);
}

# Rows of the summary: thread, switches, counts.
sub rows { return map { [split] } $_[0] =~ /^# +((?:\d+|idle|export) +\d+(?: +\d+)+)$/mg }

# What a thread counts by thread profiling, between two calls of its own, and what the trace counts
# of it in ring 3, from its first instruction to its last. Between lies ntdll's beginning and end of
# a thread: 2,300 instructions, more the more threads there are, and what a wait for the loader's
# lock costs.
for my $machine ('PMU=intel-v2', 'PMU=intel-v5 SMP=4', 'PMU=amd-v2 SMP=4',
                 'PMU=intel-v5 SMP=64') {
    my ($output) = check($threads, "$machine EVENTS=cswitch COUNTERS=instructions:u",
                         'CONTEXTSWAP');
    my @profiled = $output =~ /^thread \d: (\d+) instructions/mg;
    my @traced = sort { $a <=> $b } grep { $_ >= 1_000_000 } map { $_->[2] } rows($output);
    my @beside = map { ($traced[$_] // 0) - $profiled[$_] } 0 .. $#profiled;
    ok(@profiled == 8 && @traced == 8 && !(grep { $_ < 2000 || $_ > 6000 } @beside),
       "$machine: context switches give thread profiling's counts and what surrounds them")
        or diag("@beside\n$output");
}

# All kinds of events, with the maximum of hooks that carry counters, and of counters.
my $counters = 'COUNTERS=instructions,cycles,TotalIssues,instructions:u,cycles:u,TotalCycles,'
    . 'UnhaltedReferenceCycles';
my ($text, $seen) = check($threads, "PMU=intel-v5 SMP=4 EVENTS=cswitch,syscall,ready $counters",
                          qw(CONTEXTSWAP SYSCALL_ENTER SYSCALL_EXIT READY_THREAD));
is($seen->{SYSCALL_ENTER} - $seen->{SYSCALL_EXIT}, 9,
   'all system calls return but those that end eight threads and the process')
    or diag($text);
like($text, qr/^# +thread +switches +instructions +cycles +TotalIssues +instructions_u +cycles_u /m,
     'counters have the names that were asked for');
is(scalar(grep { $_->[2] != $_->[4] } rows($text)), 0, 'two counters of the same event agree')
    or diag($text);
(undef, undef, my $walked) = check($threads,
      'PMU=amd-ext SMP=2 EVENTS=thread,cswitch,ready,syscall,interrupt,ipi,profile COUNTERS= '
      . 'STACKS=cswitch,profile,syscall',
      qw(THREAD_CREATE THREAD_DELETE CONTEXTSWAP READY_THREAD SYSCALL_ENTER SYSCALL_EXIT INTERRUPT
         SAMPLED_PROFILE STACKWALK));
# A driver's overflow handler queues a DPC each time.
(undef, undef, my $dpcs) =
    check($driver, 'PMU=intel-v4 EVENTS=dpc COUNTERS=instructions,cycles', 'DPC');
is(scalar(grep { /\] DPC: .*\{ instructions = [1-9]\d*, cycles = [1-9]\d* \}/ } @$dpcs), 20,
   "each of a driver's DPCs, with counters");
# A stack follows each record of its kinds, says its time and thread, and nothing comes between.
my (%before, @loose);
for (@$walked) {
    my ($time, $kind, $cpu) = /^\[(\S+)\] (\w+): \{ cpu_id = (\d+) \}/;
    if ($kind eq 'STACKWALK') {
        my ($stamp, $thread, $stack) =
            /EventTimeStamp = (\d+), .*StackThread = (\d+), Stack = \[ (.*)\]/;
        my $event = $before{$cpu} // '';
        my ($new) = $event =~ /NewThreadId = (\d+)/;
        my ($ip) = $event =~ /InstructionPointer = (\w+)/;
        push @loose, "$event$_"
            if $event !~ /\] (?:CONTEXTSWAP|SAMPLED_PROFILE|SYSCALL_\w+): /
            || (defined $new && $new != $thread)
            || (defined $ip && $stack !~ /^\[0\] = $ip\b/);
    } elsif (($before{$cpu} // q()) =~ /\] (?:CONTEXTSWAP|SAMPLED_PROFILE|SYSCALL_\w+): /) {
        push @loose, "no stack after $before{$cpu}";
    }
    $before{$cpu} = $_;
}
ok(@$walked && !@loose, 'each record that stacks are asked of has its own next')
    or diag(@loose > 5 ? @loose[0 .. 4] : @loose);

# So do branches, of the ring that was asked for.
for my $machine ('PMU=intel-v4', 'PMU=intel-v6 SMP=2', 'PMU=amd-v2') {
    ($text, undef, my $branched) =
        check($calls, "$machine PROGRAM_ARGS=100 EVENTS=syscall COUNTERS= BRANCHES=syscall,user",
              qw(SYSCALL_ENTER SYSCALL_EXIT LAST_BRANCH));
    my ($times, $mark) = $text =~ /^(\d+) system calls, marked at (\w+)/m;
    my ($marked, %before, @loose) = (0);
    for (@$branched) {
        my ($kind, $cpu) = /\] (\w+): \{ cpu_id = (\d+) \}/;
        my $of = $before{$cpu} // '';
        push @loose, $_
            if ($kind eq 'LAST_BRANCH') != ($of =~ /^SYSCALL/) || /From = 0xF\w+, To = 0xF/;
        $marked++ if $of eq 'SYSCALL_ENTER' && /To = 0x$mark\b/;
        $before{$cpu} = $kind;
    }
    ok($times && $marked == $times && !@loose,
       "$machine: each system call has its branches next, with the call that was before it")
        or diag("$marked times\n$text", @loose > 5 ? @loose[0 .. 4] : @loose);
}
($text, $seen, my $list) = check($threads, 'PMU=amd-k7 EVENTS=cswitch,pmc COUNTERS=instructions',
                                 qw(CONTEXTSWAP PMC_INTERRUPT));
my ($counted, $samples) = (0, 0);
$counted += $_->[2] for rows($text);
# The table counts from the first switch to the last one.
my @swaps = grep { $list->[$_] =~ / CONTEXTSWAP: / } 0 .. $#$list;
$samples += / PMC_INTERRUPT: / for @$list[$swaps[0] .. $swaps[-1]];
cmp_ok(abs($samples - $counted / 65536), '<=', 1, 'one sample for each 65,536 instructions')
    or diag($text);

# A trace without events is one.
($text, $seen) = check($threads, 'PMU=intel-v5 EVENTS=ipi COUNTERS=');
is(scalar(keys %$seen), 0, 'one processor sends itself no IPI') or diag($text);

# Two sessions at once: what a program reads of its own with ProcessTrace is what comes out of the
# machine.
($text) = check($sample, 'PMU=intel-v5 SMP=4 EVENTS=cswitch COUNTERS=instructions', 'CONTEXTSWAP');
my %exported = map { $_->[2] => 1 } rows($text);
my @own = $text =~ /^thread \d: (\d+) instructions/mg;
is(scalar(grep { $exported{$_} } @own), 4,
   'a program counts by its own session what the exported trace has, exactly') or diag($text);

# Sessions with log files: one with a counter, a sequential one that ended at its size, a circular
# one with the newest calls.
my $log_file = built('tests/programs/log_file.c');
my ($made, $log_output) = trace($log_file, 'PMU=intel-v5 SMP=2 EVENTS=none');
my ($folder) = $log_file =~ /BUILD=(\S+)/;
my %log = map { $_ => eval { EtlReader::read_file("$folder/$_.etl") } } qw(counted full ring lossy);
my @with = grep { @{ $_->{counters} } } @{ $log{counted}{records} // [] };
my ($names_record) = grep { $_->{hook} == 0xf30 } @{ $log{counted}{records} // [] };
ok($made == 0 && @with > 4 && !(grep { $_->{hook} != 0x524 } @with) && $names_record
       && EtlReader::text(substr $names_record->{payload}, 4) eq 'TotalIssues'
       && $log{counted}{header}{session} eq 'C:\traces\counted.etl',
   'a session with a log file: its counters, their name, its name') or diag($@);
my ($mark) = grep { $_->{kind} == 0x14 } @{ $log{counted}{records} // [] };
is($mark->{payload}, "midnight\0", "a program's own event in it");
# 100 ns since 1601, between those that the program read before and after.
my $header = $log{counted}{header};
my ($from, $until) = $log_output =~ /^marked from (\d+) to (\d+)$/m;
my $time = $header->{start} + ($mark->{time} - $header->{time}) * 1e7 / $header->{frequency};
ok($from && $from - 10 <= $time && $time <= $until + 10, 'at the time that the program read')
    or diag("$time, not from $from to $until");
is(join(', ', map { join ' ', $_->{version}, unpack('V3', $_->{payload}),
                    EtlReader::text(substr $_->{payload}, 12) }
        grep { $_->{hook} == 0xf49 || $_->{hook} == 0xf4a } @{ $log{counted}{records} // [] }),
   join(', ', ('3 0 10000 10000 Timer', '3 2 70000 70000 TotalIssues') x 2),
   'the intervals at the beginning and at the end are those that were set');
for my $name (qw(counted lossy)) {
    my ($queried) = $log_output =~ /^$name: (\d+) lost$/m;
    is($log{$name}{header}{lost}, $queried, "$name.etl has the session's EventsLost, $queried");
}
cmp_ok($log{lossy}{header}{lost}, '>', 10_000, 'one of which lost most of its events');
for my $name (qw(full ring)) {
    my ($h, @times) = ($log{$name}{header}, map { $_->{time} }
                       grep { $_->{hook} == 0xf33 } @{ $log{$name}{records} // [] });
    ok(-s "$folder/$name.etl" <= 1 << 20 && -s _ > 900 << 10 && $h->{maximum} == 1
           && $h->{mode} & ($name eq 'full' ? 1 : 2) && @times > 10_000,
       "$name.etl is of the size that was asked for") or diag(-s _, " @times[0 .. 2]");
}
# What came after the sequential file was full is lost, and counted. Each buffer of 16 KB has 679
# records of 24 bytes, but for the last one of each CPU, which the session's stop ended.
my ($lost, $in) = @{ $log{full}{header} }{qw(lost buffers_lost)};
ok($in > 0 && $lost > 679 * ($in - 2) && $lost <= 679 * $in,
   'what a full file has no space for is lost events, in lost buffers')
    or diag("$lost lost in $in buffers");
# Each CPU has buffers of its own: one that it did not fill comes last, with what is old.
my @gaps = map { my $cpu = $_;
    my ($last, $first) = map { my ($name, $at) = @$_;
        (sort { $a <=> $b } map { $_->{time} } grep { $_->{hook} == 0xf33 && $_->{cpu} == $cpu }
            @{ $log{$name}{records} // [] })[$at] } ['full', -1], ['ring', 0];
    defined $last && defined $first ? $first - $last : () } 0, 1;
ok(@gaps && !grep({ $_ <= 0 } @gaps), 'the first calls are in the one, the last ones in the other')
    or diag("@gaps");

# A thousand switches a second of each of four CPUs, and more, with four counters: none is lost, and
# both traces are written in 2 s of a processor, of a slower one in more.
my $seconds = $ENV{N} || 1;
my $switches = built('tests/programs/switches.c');
($folder) = $switches =~ /BUILD=(\S+)/;
my $traced = "ARGS='trace=cswitch pmc=instructions,cycles,instructions:u,cycles:u' "
    . "QEMU_ARGS='-serial file:$folder/stream' PROGRAM_ARGS=$seconds";
my $ran = `TIMEOUT=600 PMU=intel-v5 SMP=4 $switches $traced tests/tools/run 2>&1 </dev/null`;
my $ended = $? >> 8;
my ($user, $system) = (times)[2, 3];
my $slower = Environment::slower();
my $told = `tests/tools/trace split $folder/stream $folder/many 2>&1`;
my $took = sprintf '%.2f', ((times)[2] + (times)[3] - $user - $system) / $slower;
my $many = eval { EtlReader::read_file("$folder/many.etl") };
my %switches_of;
$switches_of{ $_->{cpu} }++
    for grep { $_->{hook} == 0x524 && @{ $_->{counters} } == 4 } @{ $many->{records} // [] };
ok($ended == 0 && $told =~ /^# \d+ events, 0 lost$/ && $took < 2 && keys %switches_of == 4
       && !(grep { $_ < 1000 * $seconds } values %switches_of),
   "$seconds s of a thousand switches a second of four CPUs: none lost, written in $took s")
    or diag("$ran$told", join ' ', %switches_of);

# Events at full rate; the export keeps up.
($text, $seen) = check($calls, 'PMU=amd-v2 SMP=4 EVENTS=syscall COUNTERS=instructions,cycles',
                       qw(SYSCALL_ENTER SYSCALL_EXIT));
cmp_ok($seen->{SYSCALL_ENTER}, '>=', 20_000, 'none of 20,000 system calls is missing');
check($format, 'PMU=none EVENTS=syscall,cswitch COUNTERS=', 'SYSCALL_ENTER');

# What cannot be is said before anything starts.
sub refused_trace
{
    my ($variables, $why) = @_;
    my ($status, $output, $events) = trace($threads, $variables);
    ok($status == 1 && $output =~ /^# FAIL trace: .*$why/m && $output !~ /^thread /m && !@$events,
       "refused: $variables")
        or diag("status $status, want '$why': $output");
}

refused_trace(@$_) for
    ['PMU=none EVENTS=cswitch COUNTERS=instructions', 'there is no PMU'],
    ['PMU=none EVENTS= COUNTERS=', 'no events are asked for'],
    ['PMU=none EVENTS=cswitch COUNTERS= STACKS=ready', 'stacks of ready need that event'],
    ['PMU=none EVENTS=cswitch COUNTERS= STACKS=other', 'no event is called other'],
    ['PMU=intel-v6 EVENTS=cswitch COUNTERS= BRANCHES=ready', 'branches of ready need that event'],
    ['PMU=none EVENTS=cswitch COUNTERS= BRANCHES=cswitch',
     'a processor has no list of last branches'],
    ['PMU=amd-v2 EVENTS=cswitch COUNTERS= BRANCHES=cswitch,calls', 'leaves nothing out like that'],
    ['PMU=none EVENTS=cswitch,nonsense COUNTERS=', 'no event is called nonsense'],
    ["PMU=none EVENTS=${\('x' x 99)} COUNTERS=", 'no event is called x{63}: thread'],
    ['PMU=none EVENTS=pmc COUNTERS=', 'pmc samples by the counters'],
    ['PMU=intel-v2 EVENTS=cswitch COUNTERS=nonsense', 'no counter called nonsense'],
    ['PMU=intel-v2 EVENTS=cswitch COUNTERS=instructions,Instructions', 'asked for twice'],
    ['PMU=intel-v1 EVENTS=cswitch COUNTERS=instructions,cycles,branches',
     'more counters than there are: 2'],
    ['PMU=intel-v2 EVENTS=cswitch,syscall,interrupt,ready COUNTERS=cycles',
     'counters go with four'],
    ['PMU=intel-v1 EVENTS=pmc COUNTERS=instructions,cycles', 'cannot count all of these at once'];
# Each instruction is stepped.
my ($hung) = trace($threads, 'TIMEOUT=1 PMU=intel-v2,step EVENTS=cswitch COUNTERS=branches');
is($hung, 124, 'a program that does not end in time leaves no trace');
my $one_port = `$threads PMU=none ARGS=trace=cswitch tests/tools/run 2>&1 </dev/null`;
like($one_port, qr/^# FAIL trace: there is no second serial port$/m,
     'refused: a machine with one serial port');
done_testing;
