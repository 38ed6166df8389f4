#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Streams of traces made by hand: the two traces that tests/tools/trace makes of them, what our
# reader of .etl files demands, and what tests/tools/trace says of streams that did not come whole.
use strict;
use warnings;
use Test::More;
use Compress::Raw::Zlib 'crc32';
use File::Path qw(make_path remove_tree);
use lib 'tests/tools';
use EtlReader;
use Text;

my $build = ($ENV{BUILD} // 'build') . '/streams';
make_path($build);

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
my $end = "events 4\nlost %d\nexporter 1\nend 2000\nprogram a.exe b\nimage 400000 8192 3 5 a.exe\n";

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
    Text::save("$build/stream", $bytes);
    my $output = `tests/tools/trace split $build/stream $build/split 2>&1`;
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

my $etl = Text::content("$build/split.etl");
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
is(join(' ', unpack 'Q< Q< V3', $of{0x1404}{payload}), "@{[0x400000]} 8192 4 3 5",
   'an image has its place, checksum and time');
# What the reader demands: each demand is seen refusing. The third buffer is CPU 0's first.
my $third = 2 * 2048;
for (['is cut short', -1, '', 'buffers of 2048 bytes'],
     ['lacks its last buffer', 5 * 2048, '', '5 buffers, the header says 6'],
     ['has a buffer of another size', $third, "\0\4", 'buffer 2: 1024 bytes'],
     ['has a number twice', $third + 0x18, "\1", 'buffer 2: number 1'],
     ['has a number beyond the last', $third + 0x18, "\6", 'buffer 2: number 6'],
     ['has two ends', $third + 4, "\xa0", 'buffer 2: ends at 160 and at 168'],
     ['ends in a record', $third + 4, "\xa0\0\0\0", 'buffer 2: a record of 48', 0x30],
     ['has links', $third + 0x20, "\1", 'buffer 2: compressed, or linked'],
     ['is compressed', $third + 0x2c, "\2", 'buffer 2: compressed, or linked'],
     ['has a processor too many', $third + 0x28, "\2", 'buffer 2: processor 2'],
     ['has no header', 0x36, "\0", 'buffer 0: of type 0'],
     ['has two headers', $third + 0x36, "\4", 'buffer 2: of type 4'],
     ['begins with a record of another header', 0x4a, "\x11", 'the first record is not the header'],
     ['begins with another record', 0x4e, "\5", 'the first record is not the header'],
     ['has a record without a marker', $third + 0x4b, "\0", 'byte 48: a marker of kind 11'],
     ['has a shorter record', $third + 0x4c, "\x14", 'buffer 2: a record of 20 bytes'],
     ['has times out of order', $third + 0x50, "\xff", 'buffer 2: not in order']) {
    my ($what, $at, $bytes, $why, $again) = @$_;
    my $damaged = $etl;
    if (length $bytes) {
        substr $damaged, $at, length $bytes, $bytes;
        substr $damaged, $third + $again, length $bytes, $bytes if $again;
    } else {
        $damaged = substr $etl, 0, $at;
    }
    Text::save("$build/damaged.etl", $damaged);
    ok(!eval { EtlReader::read_file("$build/damaged.etl") } && $@ =~ /$why/,
       "the reader refuses a file that $what") or diag($@ || 'it was read');
}

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
    Text::save("$build/stream", $all);
    remove_tree("$build/full");
    make_path("$build/full");
    symlink '/dev/full', "$build/full/split.etl.part" or die "$build/full: $!";
    my $output = `tests/tools/trace split $build/stream $build/full/split 2>&1`;
    ok($? >> 8 == 99 && $output =~ /^# BROKEN trace: .*No space left/ && !-e "$build/full/split",
       'a full disk leaves no trace')
        or diag("status $?: $output");
}
remove_tree($build);
done_testing;
