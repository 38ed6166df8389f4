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
use EtlReader;

my $build = ($ENV{BUILD} // 'build') . '/traces';
Environment::forget(qw(EVENTS COUNTERS STACKS BRANCHES));
make_path($build);

sub save
{
    my ($file, $bytes) = @_;
    open my $out, '>:raw', $file or die "$file: $!";
    print { $out } $bytes;
    close $out or die "$file: $!";
}

sub read_all
{
    local $/;
    open my $in, '<', $_[0] or return '';
    return <$in> // '';
}

# --- Streams made by hand.

my $begin = <<'END';
frequency 1000000000
tsc 1000
time 132223104000000000
boot 132223104000000000
build 19045
cpus 2
megabytes 256
processor 6 126 5
buffer 2048
counter instructions_u
mask 0
mask 4
interval 0 10000 Timer
thread 0 1 FFFFF800 FFFFF000 0 FFFFFFFF81000000 8 boot
END
my $end = "events 4\nlost %d\nexporter 1\nend 2000\nprogram a.exe b\nimage 400000 8192 a.exe\n";

# A context switch with one counter.
sub switch
{
    my ($time, $new, $old, $count) = @_;
    return pack 'V v v Q< Q< V V C4 C4 V V', 0xc0110104, 0x30, 0x524, $time, $count, $new, $old, 8,
        8, 0, 0, 5, 1, 5, 0, 0, 0;
}

# A buffer of a CPU, as the kernel sends it.
sub buffer
{
    my ($cpu, $number, $lost, @records) = @_;
    my $records = join '', @records;
    my $end = 0x48 + length $records;
    my $time = unpack 'Q<', substr $records, 8;
    return pack('V3 l< q< q< Q< v v V V v v Q< Q<', 2048, $end, $end, 0, $time - 1, $number, $lost,
                $cpu, 1, 0, $end, $lost ? 0x22 : 0x20, 0, 0, 1000) . $records;
}

sub chunk
{
    my ($number, $kind, $bytes) = @_;
    my $head = pack 'a4 V3', 'NCHK', $number, $kind, length $bytes;
    return $head . pack('V', crc32($bytes, crc32($head))) . $bytes;
}

my @switches = (switch(1100, 4, 0, 10), switch(1200, 0, 4, 30), switch(1150, 8, 0, 5),
                switch(1300, 4, 0, 31));
sub good_chunks
{
    my ($lost) = @_;
    return (chunk(0, 1, $begin), chunk(1, 2, buffer(0, 0, 0, @switches[0, 1])),
            chunk(2, 2, buffer(1, 0, 0, $switches[2])),
            chunk(3, 2, buffer(0, 1, $lost, $switches[3])), chunk(4, 3, sprintf $end, $lost));
}

# Status and output of the splitter; what is left of the traces.
sub split_stream
{
    my ($bytes) = @_;
    save("$build/stream", $bytes);
    my $output = `tests/trace split $build/stream $build/split 2>&1`;
    return ($? >> 8, $output, grep { -e } glob "$build/split $build/split.*");
}

my ($status, $output) = split_stream(join '', good_chunks(0));
my $events = `babeltrace2 --no-delta --clock-seconds $build/split 2>&1`;
is("$status $output", "0 # 4 events, 0 lost\n", 'a whole stream is split');
is(join(' ', sort map { s{.*/}{}r } glob "$build/split/*"), 'cpu0 cpu1 metadata',
   'into a file for each CPU and the metadata');
is(join(' ', $events =~ /^\[(\S+)\]/mg),
   join(' ', map { sprintf '%.9f', $_ / 1e9 } 1100, 1150, 1200, 1300),
   'babeltrace2 reads its events in order, and warns of nothing') or diag($events);
like($events, qr/instructions_u = 30 \}, \{ NewThreadId = 0, OldThreadId = 4, .*"Suspended"/,
     'with names for counters, fields and numbers');

# --- The file of Windows. Its bytes, from the format's description and not from the writer.

my $etl = read_all("$build/split.etl");
is(length $etl, 6 * 2048, 'six buffers: header, what is there, three, what was there');
is(unpack('H*', substr $etl, 0, 0x48),
   '00080000' . unpack('H*', substr $etl, 4, 4) . unpack('H*', substr $etl, 4, 4) . '00000000'
   . 'e803000000000000' . '0000000000000000' . '0000000000000000' . '0000' . '0100' . '00000000'
   . unpack('H*', substr $etl, 4, 4) . '2000' . '0400' . unpack('H*', pack 'Q<', 132223104000000000)
   . 'e803000000000000', 'the header of the first buffer');
is(unpack('H*', substr $etl, 0x48, 0x38),
   '020002c0' . unpack('H*', pack 'v', 0x20 + 0x118 + 2 * 13 + 2 * 10) . '000000000000' . '00000000'
   . 'e80300000000000000000000' . '00000000' . '00080000' . '0a000105' . '654a0000' . '02000000'
   . unpack('H*', pack 'Q<', 132223104000000000 + 10), 'the first record');
is(unpack('H*', substr $etl, 2 * 2048 + 0x48, 0x60), unpack('H*', "$switches[0]$switches[1]"),
   'records are those that came, byte for byte');
my $read = EtlReader::read_file("$build/split.etl");
is(join(' ', map { "$_->{cpu}:$_->{time}:@{ $_->{counters} }" } grep { $_->{hook} == 0x524 }
        @{ $read->{records} }), '0:1100:10 0:1200:30 1:1150:5 0:1300:31',
   'our own reader finds them');
is(join(' ', @{ $read->{header} }{qw(processors lost frequency start time session file mhz)}),
   '2 0 1000000000 132223104000000000 1000 ntpmu export split.etl 1000',
   'the header says whose they are');
my %of = map { $_->{hook} => $_ } reverse @{ $read->{records} };
is(unpack('V', $of{0xf30}{payload}) . EtlReader::text(substr $of{0xf30}{payload}, 4),
   '1instructions_u', 'the counters have names');
is(join(' ', map { sprintf '%x', $_->{hook} } grep { $_->{hook} != 0x524 } @{ $read->{records} }),
   'b0a f30 f49 303 303 503 548 1404 304 304',
   'machine, counters, intervals, processes, threads, images');
is(EtlReader::text(substr $of{0x1404}{payload}, 0x38), 'a.exe', 'an image has its name');
my $damaged = $etl;
for (0 .. 3) { substr $damaged, 2048 * $_ + 4, 1, chr(ord(substr $damaged, 2048 * $_ + 4, 1) ^ 4) }
save("$build/damaged.etl", $damaged);
ok(!eval { EtlReader::read_file("$build/damaged.etl") },
   'the reader refuses a file with other ends');

($status, $output) = split_stream(join '', good_chunks(7));
is("$status $output", "0 # 4 events, 7 lost\n", 'events that the kernel lost are reported');
like(`babeltrace2 $build/split 2>&1 >/dev/null`, qr/discarded 7 events/, 'by babeltrace2, too');
is(EtlReader::read_file("$build/split.etl")->{header}{lost}, 7, 'and by the .etl');
my @lossy = good_chunks(7);
split_stream(join '', @lossy[0 .. 3], chunk(4, 3, sprintf "${end}lost_buffers 2\n", 7));
is(EtlReader::read_file("$build/split.etl")->{header}{buffers_lost}, 2, 'with its lost buffers');
($status, $output) = split_stream(chunk(0, 1, $begin) . chunk(1, 3, $end =~ s/4/0/r =~ s/%d/0/r));
is("$status $output", "0 # 0 events, 0 lost\n", 'a trace without events is one');
ok(eval { EtlReader::read_file("$build/split.etl") }, 'whose .etl can be read') or diag($@);

# Two sessions in one stream: the second has a circular file of 1 MB, of which 511 buffers remain.
my @two = (chunk(0, 1, $begin),
           chunk(1, 1 | 1 << 8, $begin =~ s/^counter.*\n|^mask.*\n//mgr
                     . "session ring\nfile ring.etl\nmode 2\nmaximum 1\n"));
push @two, chunk(2 + $_, 2 | 1 << 8, buffer(0, $_, 0, switch(1100 + $_, 1, 2, $_))) for 0 .. 599;
push @two, chunk(602, 2, buffer(0, 0, 0, switch(1100, 1, 2, 3))),
    chunk(603, 3 | 1 << 8, $end =~ s/4/600/r =~ s/%d/0/r . "counter cycles\nmask 1\n"),
    chunk(604, 3, $end =~ s/4/1/r =~ s/%d/0/r);
($status, $output) = split_stream(join '', @two);
my $ring = eval { EtlReader::read_file("$build/ring.etl") } // { header => {}, records => [] };
my @swaps_of_ring = grep { $_->{hook} == 0x524 } @{ $ring->{records} };
is(join(' ', $status, -s "$build/ring.etl", map({ $_ // '' } @{ $ring->{header} }{qw(session maximum
         mode)}), scalar(@swaps_of_ring), $swaps_of_ring[-1]{time} // 0),
   '0 1048576 ring 1 2 ' . (512 - 3) . ' 1699', 'a circular file keeps its size and the newest')
    or diag("$output$@");
is(scalar(@{ EtlReader::read_file("$build/split.etl")->{records} }) > 1, 1,
   'beside the exported session');
unlink "$build/ring.etl";

sub refused
{
    my ($name, $bytes, $why) = @_;
    my ($status, $output, @left) = split_stream($bytes);
    ok($status == 99 && $output =~ /^# BROKEN trace: .*$why/ && $output !~ /\n./ && !@left,
       "refused: $name")
        or diag("status $status, left: @left: $output");
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
refused('a byte changed in a buffer', with(2, flipped($good[2], 50)), 'chunk 2: wrong checksum');
refused('a byte changed in the number', with(2, flipped($good[2], 4)), 'chunk 2: wrong checksum');
refused('a byte changed in the magic', with(2, flipped($good[2], 0)), 'chunk 2: no chunk begins');
refused('a length beyond all reason', with(2, pack 'a4 V4', 'NCHK', 2, 2, 0xffffffff, 0),
        'chunk 2: no chunk begins');
refused('a byte too many', with(2, "$good[2]x"), 'chunk 3: no chunk begins');
refused('a byte too few', with(2, substr $good[2], 0, -1), 'chunk 2: wrong checksum');
refused('one missing', join('', @good[0, 1, 3, 4]), 'chunk 3 came where 2 should');
refused('two in the wrong order', join('', @good[0, 2, 1, 3, 4]), 'chunk 2 came where 1 should');
refused('one twice', join('', @good[0, 1, 1, 2]), 'chunk 1 came where 2 should');
refused('buffers of a CPU in the wrong order', with(3, chunk(3, 2, buffer(0, 2, 0, $switches[3]))),
        'buffer 2 of CPU 0 came where 1 should');
refused('a buffer before the beginning',
        chunk(0, 2, buffer(0, 0, 0, $switches[0])) . chunk(1, 1, $begin),
        'the beginning comes first');
refused('the beginning twice', with(2, chunk(2, 1, $begin)), 'the beginning comes first, and once');
refused('a beginning without a frequency', with(0, chunk(0, 1, $begin =~ s/frequency/f/r)),
        'says no frequency');
refused('a kind unknown', with(2, chunk(2, 9, 'what?')), 'of a kind unknown');
refused('a buffer that says another size',
        with(2, chunk(2, 2, buffer(1, 0, 0, $switches[2]) . 'x' x 8)),
        'a buffer of 120 bytes, sent 128');
refused('a record that is none', with(2, chunk(2, 2, buffer(1, 0, 0, flipped($switches[2], 2)))),
        'no record at byte 72');
refused('a record of another size',
        with(2, chunk(2, 2, buffer(1, 0, 0, switch(1150, 1, 2, 3) =~ s/^(.{4})./$1\x2c/sr))),
        'CONTEXTSWAP: a record of 44 bytes, which should have 48');
refused('records in the wrong order', with(1, chunk(1, 2, buffer(0, 0, 0, @switches[1, 0]))),
        'a record before an earlier one');
refused('fewer events than were sent', with(2, chunk(2, 2, buffer(1, 0, 0, @switches[2, 2]))),
        '5 events came, the kernel sent 4');
refused('an end too short', with(4, chunk(4, 3, "events 4\n")), 'the end says no lost');
refused('something after the end', "$all\n", 'something follows');
SKIP: {
    skip 'no device that is full', 1 if !-w '/dev/full';
    save("$build/stream", $all);
    remove_tree("$build/full");
    make_path("$build/full");
    symlink '/dev/full', "$build/full/split.etl.part" or die "$build/full: $!";
    my $output = `tests/trace split $build/stream $build/full/split 2>&1`;
    ok($? >> 8 == 99 && $output =~ /^# BROKEN trace: .*No space left/ && !-e "$build/full/split",
       'a full disk leaves no trace')
        or diag("status $?: $output");
}

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

# The .etl of the same run, read by our own reader: kinds of events by name, and what each thread
# counted, by the differences between context switches.
sub read_etl
{
    my ($folder) = @_;
    my $etl = EtlReader::read_file("$folder/trace.etl");
    my %name = (0x501 => 'THREAD_CREATE', 0x502 => 'THREAD_DELETE', 0x524 => 'CONTEXTSWAP',
                0x532 => 'READY_THREAD', 0xf2e => 'SAMPLED_PROFILE', 0xf2f => 'PMC_INTERRUPT',
                0xf33 => 'SYSCALL_ENTER', 0xf34 => 'SYSCALL_EXIT', 0xf43 => 'INTERRUPT',
                0xf48 => 'SAMPLED_PROFILE_SET_INTERVAL', 0xf5b => 'IPI', 0x1820 => 'STACKWALK');
    my (%seen, %last, %thread);
    for (@{ $etl->{records} }) {
        $seen{ $name{ $_->{hook} } }++ if $name{ $_->{hook} };
        next if $_->{hook} != 0x524;
        my ($new, $old) = unpack 'V V', $_->{payload};
        $thread{$new}{switches}++;
        for my $i (0 .. $#{ $_->{counters} }) {
            $thread{$old}{counts}[$i] += $_->{counters}[$i] - $last{ $_->{cpu} }[$i]
                if $last{ $_->{cpu} };
        }
        $last{ $_->{cpu} } = $_->{counters};
    }
    return ($etl, \%seen, \%thread);
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
    my ($folder) = $program =~ /BUILD=(\S+)/;
    my ($etl, $etl_seen, $thread) = eval { read_etl($folder) };
    push @wrong, "the .etl: $@" if !$etl;
    push @wrong, "the .etl has " . ($etl_seen->{$_} // 0) . " of $seen{$_} $_\n"
        for grep { ($etl_seen->{$_} // 0) != $seen{$_} } keys %seen;
    for (grep { $_->[0] =~ /^\d/ } rows($output)) {
        my ($id, undef, @counts) = @$_;
        my @own = map { $_ // 0 } @{ $thread->{$id}{counts} }[0 .. $#counts];
        push @wrong, "the .etl counts @own for thread $id, the summary @counts\n"
            if "@own" ne "@counts";
    }
    my ($cpus) = $output =~ /^# running: (\d+) CPU.*?/m;
    push @wrong, "the .etl's header has other processors\n"
        if ($etl->{header}{processors} // 0) != $cpus || $etl->{header}{lost} != $lost;
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

# Sessions with log files: one with a counter, a sequential one that ended at its size, a circular
# one with the newest calls.
my $log_file = built('tests/programs/log_file.c');
my ($made) = trace($log_file, 'PMU=intel-v5 SMP=2 EVENTS=none');
my ($folder) = $log_file =~ /BUILD=(\S+)/;
my %log = map { $_ => eval { EtlReader::read_file("$folder/$_.etl") } } qw(counted full ring);
my @with = grep { @{ $_->{counters} } } @{ $log{counted}{records} // [] };
my ($names_record) = grep { $_->{hook} == 0xf30 } @{ $log{counted}{records} // [] };
ok($made == 0 && @with > 4 && !(grep { $_->{hook} != 0x524 } @with) && $names_record
       && EtlReader::text(substr $names_record->{payload}, 4) eq 'TotalIssues'
       && $log{counted}{header}{session} eq 'C:\traces\counted.etl',
   'a session with a log file: its counters, their name, its name') or diag($@);
is(join('', map { $_->{payload} } grep { $_->{kind} == 0x14 } @{ $log{counted}{records} // [] }),
   "midnight\0", "a program's own event in it");
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
my ($full_end, $ring_begin) = map { my $hooks = $log{$_}{records}; my @t = sort { $a <=> $b }
        map { $_->{time} } grep { $_->{hook} == 0xf33 } @$hooks; $_ eq 'full' ? $t[-1] : $t[0] }
    qw(full ring);
cmp_ok($full_end, '<', $ring_begin, 'the first calls are in the one, the last ones in the other');

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
refused_trace('PMU=none EVENTS=cswitch COUNTERS= STACKS=ready', 'stacks of ready need that event');
refused_trace('PMU=none EVENTS=cswitch COUNTERS= STACKS=other', 'no event is called other');
refused_trace('PMU=intel-v6 EVENTS=cswitch COUNTERS= BRANCHES=ready',
              'branches of ready need that event');
refused_trace('PMU=none EVENTS=cswitch COUNTERS= BRANCHES=cswitch',
              'a processor has no list of last branches');
refused_trace('PMU=amd-v2 EVENTS=cswitch COUNTERS= BRANCHES=cswitch,calls',
              'leaves nothing out like that');
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
