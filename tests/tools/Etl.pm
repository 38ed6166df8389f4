# SPDX-License-Identifier: MIT
# The trace file that Windows would write (.etl): a row of buffers of one size, the first with what
# is known of the session. Sources: public readers of the format (snail, dissect.etl, TraceEvent),
# evntrace.h.
package Etl;
use strict;
use warnings FATAL => 'all';
no warnings 'portable'; # numbers of 64 bits
use Encode 'encode';

use constant BUFFER_HEADER => 0x48;

sub utf16 { return encode('UTF-16LE', "$_[0]\0") }

# Time stamps of the stream are the TSC, as are those of the file. A moment is 100 ns since 1601.
sub moment
{
    my ($trace, $tsc) = @_;
    my $begin = $trace->{begin};
    return int($begin->{time} + ($tsc - $begin->{tsc}) * 1e7 / $begin->{frequency});
}

sub padded { return $_[0] . "\0" x (-length($_[0]) & 7) }

# SYSTEM_TRACE_HEADER of 64 bits; PERFINFO_TRACE_HEADER.
sub system_record
{
    my ($time, $version, $hook, $payload) = @_;
    return padded(pack('v C C v v V V Q< V V', $version, 2, 0xc0, 0x20 + length $payload, $hook, 0,
                       0, $time, 0, 0) . $payload);
}

sub record
{
    my ($time, $version, $hook, $payload) = @_;
    return padded(pack('v C C v v Q<', $version, 0x11, 0xc0, 0x10 + length $payload, $hook, $time)
                  . $payload);
}

# A whole buffer. Readers take SavedOffset or Offset for its end.
sub etl_buffer
{
    my ($trace, $sequence, $type, $records, %of) = @_;
    my $size = $trace->{begin}{buffer};
    my $end = BUFFER_HEADER + length $records;
    die "a buffer of $end bytes, which has $size\n" if $end > $size;
    my $head = pack 'V3 l< q< q< Q< v v V V v v Q< Q<', $size, $end, $end, 0,
        $of{time} // $trace->{begin}{tsc}, $sequence, 0, $of{cpu} // 0, 1, 0, $end,
        0x20 | ($of{flags} // 0), $type, $trace->{begin}{time}, $trace->{begin}{tsc};
    return $head . $records . "\xff" x ($size - $end);
}

# TRACE_LOGFILE_HEADER, and the session's masks.
sub header_records
{
    my ($trace, $buffers, $name) = @_;
    my ($begin, $end) = @$trace{qw(begin end)};
    my $header =
        pack 'V C4 V2 Q< V9 Q<2', $begin->{buffer}, 10, 0, 1, 5, $begin->{build},
        $begin->{cpus}, moment($trace, $end->{end}), ($begin->{interval}[0][1] // 0),
        $begin->{maximum} // 0, $begin->{mode} // 1,
        $buffers, 1, 8, $end->{lost} & 0xffffffff, $begin->{frequency} / 1_000_000, 0, 0, 0;
    $header = substr($header, 0, 0x48) . "\0" x (0xf8 - 0x48)    # no time zone: UTC
        . pack 'Q<3 V2', $begin->{boot}, $begin->{frequency}, $begin->{time}, 1,
        $end->{lost_buffers} // 0;
    my @masks = map { @$_ } @{ $begin->{mask} };
    $header .= utf16($begin->{session} // 'ntpmu export') . utf16($name);
    return system_record($begin->{tsc}, 2, 0x0000, $header)
        . system_record($begin->{tsc}, 2, 0x0005, pack 'V9', (@masks, (0) x 8)[0 .. 7], 1);
}

# The threads of one moment, with names; DCStart or DCEnd.
sub thread_records
{
    my ($time, $hook, $threads) = @_;
    my @records;
    for (@$threads) {
        my ($process, $id, $base, $limit, $user_base, $start, $priority, @name) = @$_;
        push @records, record($time, 3, $hook, pack 'V2 Q<7 V C4', $process, $id,
                              (map { hex } $base, $limit, $user_base), 0, 0, hex $start, 0, 0,
                              $priority, 0, 0, 0);
        push @records, record($time, 2, 0x0548, pack('V2', $process, $id) . utf16("@name"))
            if @name;
    }
    return @records;
}

sub process_records
{
    my ($time, $hook, $program) = @_;
    my @processes = ([0, 'kernel', '']);
    push @processes, [4, $program =~ /^(\S+)/, $program] if ($program // '') ne '';
    return map {
        record($time, 4, $hook, pack('Q< V4 Q< V V Z*', $_->[0], $_->[0], 0, 0, 0, 0, 0, 0, $_->[1])
               . utf16($_->[2]) . utf16('') . utf16(''))
    } @processes;
}

# The counters' names, in the order of their values in front of payloads; intervals; the machine;
# what lives.
sub first_records
{
    my ($trace) = @_;
    my ($begin, $end) = @$trace{qw(begin end)};
    my ($time, @names) = ($begin->{tsc}, map { $_->[0] } @{ $begin->{counter} });
    my (undef, $model, $stepping) = my @processor = split / /, $begin->{processor};
    my $machine = pack('V5 a512 a268 Q< Q< v3 C2 V', $begin->{frequency} / 1_000_000,
                       $begin->{cpus}, $begin->{megabytes}, 4096, 65536, utf16('ntpmu'), '', 0,
                       0x7ffffffeffff, 9, $processor[0], $model << 8 | $stepping, 1, 1, 0);
    my $names = pack('V', scalar @names) . join '', map { utf16($_) } @names;
    return (record($time, 3, 0x0b0a, $machine), @names ? record($time, 2, 0x0f30, $names) : (),
            interval_records($time, 0x0f49, $begin->{interval}),
            process_records($time, 0x0303, $end->{program}),
            thread_records($time, 0x0503, $begin->{thread}));
}

sub interval_records
{
    my ($time, $hook, $intervals) = @_;
    return map {
        my ($source, $interval, $name) = @$_;
        record($time, 3, $hook, pack('V3', $source, $interval, $interval) . utf16($name));
    } @$intervals;
}

sub last_records
{
    my ($trace) = @_;
    my $end = $trace->{end};
    my $time = $end->{end};
    my @images = map {
        my ($base, $size, $checksum, $made, @name) = @$_;
        record($time, 3, 0x1404, pack('Q< Q< V3 C2 v Q< V4', hex $base, $size, 4, $checksum, $made,
                                      0, 0, 0, hex $base, 0, 0, 0, 0) . utf16("@name"));
    } @{ $end->{image} };
    return (interval_records($time, 0x0f4a, $end->{interval}), @images,
            process_records($time, 0x0304, $end->{program}),
            thread_records($time, 0x0504, $end->{thread}));
}

# Records in as few strings as fit into buffers.
sub grouped
{
    my ($size, @records) = @_;
    my @groups = ('');
    for (@records) {
        push @groups, '' if BUFFER_HEADER + length($groups[-1]) + length > $size;
        $groups[-1] .= $_;
    }
    return @groups;
}

# What the kernel sent stays byte for byte behind a header of the file's: sequence numbers are those
# of the file, and lost events are a flag.
sub buffers
{
    my ($trace, $name) = @_;
    my ($size, $n) = ($trace->{begin}{buffer}, 0);
    my @first = grouped($size, first_records($trace));
    my @last = grouped($size, last_records($trace));
    my @kept = @{ $trace->{buffers} };
    my $most = int(($trace->{begin}{maximum} // 0) * (1 << 20) / $size) - 1 - @first - @last;
    splice @kept, 0, @kept - $most if $most > 0 && @kept > $most; # circular: the newest
    my $count = 1 + @first + @kept + @last;
    return (etl_buffer($trace, $n++, 4, header_records($trace, $count, $name)),
            (map { etl_buffer($trace, $n++, 0, $_) } @first),
            (map { etl_buffer($trace, $n++, 0, substr($_->{bytes}, BUFFER_HEADER),
                              time => $_->{time}, cpu => $_->{cpu}, flags => $_->{flags} & 2) }
                @kept),
            (map { etl_buffer($trace, $n++, 1, $_, time => $trace->{end}{end}) } @last));
}

1;
