#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Traces out of the machine: what babeltrace2 reads of them, and what tests/trace says of streams
# that did not come whole.
use strict;
use warnings;
use Test::More;
use Compress::Raw::Zlib 'crc32';
use File::Path qw(make_path remove_tree);
use lib 'tests/host';
use Environment;

my $build = ($ENV{BUILD} // 'build') . '/traces';
Environment::forget(qw(EVENTS COUNTERS));
make_path($build);

sub read_all
{
    local $/;
    open my $in, '<', $_[0] or return '';
    return <$in> // '';
}

# --- Streams made by hand.

my $metadata = <<'END';
/* CTF 1.8 */
typealias integer { size = 64; align = 8; signed = false; } := u64;
clock { name = tsc; freq = 1000; };
typealias integer { size = 64; align = 8; signed = false; map = clock.tsc.value; } := tsc_t;
trace { major = 1; minor = 8; byte_order = le; };
stream {
    packet.context := struct {
        tsc_t timestamp_begin; tsc_t timestamp_end; u64 content_size; u64 packet_size;
        u64 packet_seq_num; u64 events_discarded; u64 cpu_id;
    };
    event.header := struct { u64 id; tsc_t timestamp; } align(64);
};
event { name = "IPI"; id = 1; fields := struct { u64 n; }; };
END

# Three events from a time on.
sub packet
{
    my ($time, $number, $cpu, $lost) = @_;
    my $events = pack 'Q<9', map { (1, $time + $_, $_) } 0 .. 2;
    return pack('Q<7', $time, $time + 2, 8 * 128, 8 * 128, $number, $lost, $cpu) . $events;
}

sub chunk
{
    my ($number, $kind, $cpu, $bytes) = @_;
    my $head = pack 'a4 V4', 'NCHK', $number, $kind, $cpu, length $bytes;
    return $head . pack('V', crc32($bytes, crc32($head))) . $bytes;
}

sub good_chunks
{
    my ($lost) = @_;
    return (chunk(0, 1, 0, $metadata), chunk(1, 2, 0, packet(100, 0, 0, 0)),
            chunk(2, 2, 1, packet(110, 0, 1, 0)),
            chunk(3, 2, 0, packet(120, 1, 0, $lost)), chunk(4, 3, 0, pack 'Q<3', 9, $lost, 77));
}

# Status and output of the splitter; what is left of the trace's folder.
sub split_stream
{
    my ($bytes) = @_;
    open my $out, '>:raw', "$build/stream" or die "$build/stream: $!";
    print { $out } $bytes;
    close $out;
    my $output = `tests/trace split $build/stream $build/split 2>&1`;
    return ($? >> 8, $output, -e "$build/split");
}

my ($status, $output, $there) = split_stream(join '', good_chunks(0));
my $events = `babeltrace2 --no-delta --clock-seconds $build/split 2>&1`;
is("$status $output", "0 # 9 events, 0 lost\n", 'a whole stream is split');
is(join(' ', sort map { s{.*/}{}r } glob "$build/split/*"), 'cpu0 cpu1 metadata',
   'into a file for each CPU and the metadata');
is(join(' ', $events =~ /^\[(\S+)\]/mg),
   join(' ', map { sprintf '%.9f', $_ / 1000 } 100 .. 102, 110 .. 112, 120 .. 122),
   'babeltrace2 reads its events in order, and warns of nothing') or diag($events);
($status, $output) = split_stream(join '', good_chunks(7));
is("$status $output", "0 # 9 events, 7 lost\n", 'events that the kernel lost are told');
like(`babeltrace2 $build/split 2>&1 >/dev/null`, qr/discarded 7 events/, 'by babeltrace2, too');

sub refused
{
    my ($name, $bytes, $why) = @_;
    my ($status, $output, $there) = split_stream($bytes);
    ok($status == 99 && $output =~ /^# BROKEN trace: .*$why/ && $output !~ /\n./ && !$there,
       "refused: $name")
        or diag("status $status, trace ", $there ? 'left' : 'not left', ": $output");
}

my @good = good_chunks(0);
my $all = join '', @good;
sub with
{
    my ($at, $bytes) = @_;
    my @chunks = @good;
    $chunks[$at] = $bytes;
    return join '', @chunks;
}
sub flipped { my ($bytes, $at) = @_; substr($bytes, $at, 1) ^= "\x10"; return $bytes }

refused('nothing', '', 'ends without an end, after 0 chunks');
refused('cut off in a chunk\'s head', substr($all, 0, length($good[0]) + 10), 'chunk 1: cut off');
refused('cut off in a chunk', substr($all, 0, length($good[0]) + 100), 'chunk 1: cut off');
refused('cut off between chunks', join('', @good[0 .. 2]), 'ends without an end, after 3 chunks');
refused('a byte changed in a packet', with(2, flipped($good[2], 50)), 'chunk 2: wrong checksum');
refused('a byte changed in the number', with(2, flipped($good[2], 4)), 'chunk 2: wrong checksum');
refused('a byte changed in the CPU', with(2, flipped($good[2], 12)), 'chunk 2: wrong checksum');
refused('a byte changed in the magic', with(2, flipped($good[2], 0)), 'chunk 2: no chunk begins');
refused('a length beyond all reason', with(2, pack 'a4 V5', 'NCHK', 2, 2, 0, 0xffffffff, 0),
        'chunk 2: no chunk begins');
refused('a byte too many', with(2, "$good[2]x"), 'chunk 3: no chunk begins');
refused('a byte too few', with(2, substr $good[2], 0, -1), 'chunk 2: wrong checksum');
refused('one missing', join('', @good[0, 1, 3, 4]), 'chunk 3 came where 2 should');
refused('two in the wrong order', join('', @good[0, 2, 1, 3, 4]), 'chunk 2 came where 1 should');
refused('one twice', join('', @good[0, 1, 1, 2]), 'chunk 1 came where 2 should');
refused('a packet before the metadata',
        chunk(0, 2, 0, packet(1, 0, 0, 0)) . chunk(1, 1, 0, $metadata), 'metadata come first');
refused('metadata twice', with(2, chunk(2, 1, 0, $metadata)), 'metadata come first, and once');
refused('a kind unknown', with(2, chunk(2, 9, 0, 'what?')), 'of a kind unknown');
refused('an end too short', with(4, chunk(4, 3, 0, pack 'Q<2', 9, 0)), 'an end that is none');
refused('something behind the end', "$all\n", 'something follows');

# --- Machines. Programs are built once, and each image kept where tests/trace looks for it.

sub built
{
    my ($program) = @_;
    my ($name) = $program =~ m{(\w+)\.c$};
    my $made = `make -s -j2 BUILD=$build PROGRAM=$program 2>&1 </dev/null`;
    BAIL_OUT($made) if $?;
    make_path("$build/$name/program");
    system 'cp', "$build/ntpmu.bin", "$build/$name";
    system 'cp', "$build/program/$name.exe", "$build/$name/program";
    return "BUILD=$build/$name PROGRAM=$program";
}
my $threads = built('tests/samples/threads.c');
my $calls = built('tests/programs/events.c');
my $sample = built('tests/samples/trace.c');
my $format = built('tests/programs/format.c');

# Runs with a trace; status, output, and the events as babeltrace2 tells them.
sub trace
{
    my ($program, $variables) = @_;
    my ($folder) = $program =~ /BUILD=(\S+)/;
    my $output = `TIMEOUT=600 $program $variables tests/trace 2>&1 </dev/null`;
    my $status = $? >> 8;
    my @events = -d "$folder/trace"
        ? `babeltrace2 --no-delta --clock-seconds $folder/trace 2>$folder/errors` : ();
    return ($status, $output, \@events, @events ? read_all("$folder/errors") : '');
}

# What each trace must be: the counts of the summary, no warning, times in order, and switches that
# follow each other: what a CPU switched to is what it switches from next.
sub check
{
    my ($program, $variables, @kinds) = @_;
    my ($status, $output, $events, $errors) = trace($program, $variables);
    my ($name) = $program =~ m{(\w+)\.c$};
    my ($told, $lost) = $output =~ /^# trace: \S+: (\d+) events of \d+ CPUs in \S+ s, (\d+) lost$/m;
    my (%seen, %time, %running, @wrong);
    for (@$events) {
        my ($time, $kind, $cpu) = /^\[(\S+)\] (\w+): \{ cpu_id = (\d+) \}/
            or push(@wrong, $_), next;
        $seen{$kind}++;
        push @wrong, "earlier than the one before: $_" if $time < ($time{$cpu} // 0);
        $time{$cpu} = $time;
        my ($new, $old) = /NewThreadId = (\d+), OldThreadId = (\d+)/ or next;
        push @wrong, "from $old, not $running{$cpu}: $_"
            if defined $running{$cpu} && $running{$cpu} != $old;
        $running{$cpu} = $new;
    }
    push @wrong, "no $_\n" for grep { !$seen{$_} } @kinds;
    push @wrong, "the summary's number of $_\n"
        for grep { $output !~ /^# +$seen{$_} $_$/m } keys %seen;
    ok($status == 0 && ($told // 0) == @$events && !$lost && $errors eq '' && !@wrong,
       "$name $variables: a trace, whole, without a warning")
        or diag("status $status\n$output$errors", @wrong > 5 ? @wrong[0 .. 4] : @wrong);
    return ($output, \%seen, $events);
}

# Rows of the summary: thread, switches, counts.
sub rows { return map { [split] } $_[0] =~ /^# +((?:\d+|idle|export) +\d+(?: +\d+)+)$/mg }

# What a thread counts by thread profiling, between two calls of its own, and what the trace counts
# of it in ring 3, from its first instruction to its last. Between lies ntdll's beginning and end of
# a thread: 2,300 instructions, more the more threads there are, and what a wait for the loader's
# lock costs.
for my $machine ('PMU=intel-v2', 'PMU=intel-v5 SMP=4', 'PMU=amd-v2 SMP=4') {
    my ($output) = check($threads, "$machine EVENTS=cswitch COUNTERS=instructions:u",
                         'CONTEXTSWAP');
    my @profiled = $output =~ /^thread \d: (\d+) instructions/mg;
    my @traced = sort { $a <=> $b } grep { $_ >= 1_000_000 } map { $_->[2] } rows($output);
    my @beside = map { ($traced[$_] // 0) - $profiled[$_] } 0 .. $#profiled;
    ok(@profiled == 8 && @traced == 8 && !(grep { $_ < 2000 || $_ > 6000 } @beside),
       "$machine: context switches give thread profiling's counts and what surrounds them")
        or diag("@beside\n$output");
}

# All kinds of events, with the maximum of hooks that carry counters.
my $counters = 'COUNTERS=instructions,cycles,TotalIssues';
my ($text, $seen) = check($threads, "PMU=intel-v5 SMP=4 EVENTS=cswitch,syscall,ready $counters",
                          qw(CONTEXTSWAP SYSCALL_ENTER SYSCALL_EXIT READY_THREAD));
is($seen->{SYSCALL_ENTER} - $seen->{SYSCALL_EXIT}, 9,
   'all system calls return but those that end eight threads and the process')
    or diag($text);
like($text, qr/^# +thread +switches +instructions +cycles +TotalIssues$/m,
     'counters have the names that were asked for');
is(scalar(grep { $_->[2] != $_->[4] } rows($text)), 0, 'two counters of the same event agree')
    or diag($text);
check($threads,
      'PMU=amd-ext SMP=2 EVENTS=thread,cswitch,ready,syscall,interrupt,ipi,profile COUNTERS=',
      qw(THREAD_CREATE THREAD_DELETE CONTEXTSWAP READY_THREAD SYSCALL_ENTER SYSCALL_EXIT INTERRUPT
         SAMPLED_PROFILE));
($text, $seen, my $list) = check($threads, 'PMU=amd-k7 EVENTS=cswitch,pmc COUNTERS=instructions',
                                 qw(CONTEXTSWAP PMC_INTERRUPT));
my ($counted, $samples) = (0, 0);
$counted += $_->[2] for rows($text);
# The table counts from the first switch to the last one.
my @swaps = grep { $list->[$_] =~ / CONTEXTSWAP: / } 0 .. $#$list;
$samples += / PMC_INTERRUPT: / for @$list[$swaps[0] .. $swaps[-1]];
cmp_ok(abs($samples - $counted / 65536), '<=', 1, 'one sample for each 65,536 instructions')
    or diag($text);

# Two sessions at once: what a program reads of its own with ProcessTrace is what comes out of the
# machine.
($text) = check($sample, 'PMU=intel-v5 SMP=4 EVENTS=cswitch COUNTERS=instructions', 'CONTEXTSWAP');
my %exported = map { $_->[2] => 1 } rows($text);
my @own = $text =~ /^thread \d: (\d+) instructions/mg;
is(scalar(grep { $exported{$_} } @own), 4,
   'a program counts by its own session what the exported trace has, exactly') or diag($text);

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

refused_trace('PMU=none EVENTS=cswitch COUNTERS=instructions', 'there is no PMU');
refused_trace('PMU=none EVENTS= COUNTERS=', 'no events are asked for');
refused_trace('PMU=none EVENTS=cswitch,nonsense COUNTERS=', 'no event is called nonsense');
refused_trace('PMU=none EVENTS=pmc COUNTERS=', 'pmc samples by the counters');
refused_trace('PMU=intel-v2 EVENTS=cswitch COUNTERS=nonsense', 'no counter called nonsense');
refused_trace('PMU=intel-v2 EVENTS=cswitch COUNTERS=instructions,Instructions', 'asked for twice');
refused_trace('PMU=intel-v1 EVENTS=cswitch COUNTERS=instructions,cycles,branches',
              'more counters than there are: 2');
refused_trace('PMU=intel-v2 EVENTS=cswitch,syscall,interrupt,ready COUNTERS=cycles',
              'counters go with four');
refused_trace('PMU=intel-v1 EVENTS=pmc COUNTERS=instructions,cycles',
              'cannot count all of these at once');
# branches make the virtual PMU step
my ($hung) = trace($threads, 'TIMEOUT=1 PMU=intel-v2 EVENTS=cswitch COUNTERS=branches');
is($hung, 124, 'a program that does not end in time leaves no trace');
my $one_port = `$threads PMU=none ARGS=trace=cswitch tests/run 2>&1 </dev/null`;
like($one_port, qr/^# FAIL trace: there is no second serial port$/m,
     'refused: a machine with one serial port');
remove_tree("$build/split");
done_testing;
