# SPDX-License-Identifier: MIT
# Reads a trace file of Windows (.etl), strictly: what others' readers demand is demanded here, and
# what is wrong is a die. It shares nothing with Etl.pm, which writes such files. Sources: public
# readers of the format (snail, dissect.etl, TraceEvent), evntrace.h.
package EtlReader;
use strict;
use warnings FATAL => 'all';

# Sizes of the headers of records by the type byte of their marker.
my %head = (1 => 0x20, 2 => 0x20, 3 => 0x18, 4 => 0x18, 0x10 => 0x10, 0x11 => 0x10,
            0x14 => 0x30);

# { header => fields of the first record,
#   records => [{cpu, time, hook, version, counters, payload}] }
sub read_file
{
    my ($file) = @_;
    open my $in, '<:raw', $file or die "$file: $!";
    my $bytes = do { local $/; <$in> } // '';
    die 'a file that is shorter than a header' if length $bytes < 0x48;
    my $size = unpack 'V', $bytes;
    die "buffers of $size bytes" if $size < 1024 || length($bytes) % $size;
    my $count = length($bytes) / $size;
    my (@records, $header, %sequence, %last);
    my $flagged = 0; # buffers with lost events before them
    for my $k (0 .. $count - 1) {
        my $buffer = substr $bytes, $k * $size, $size;
        my ($own, $saved, undef, undef, undef, $sequence, $links) = unpack 'V4 Q< Q< Q<', $buffer;
        my ($cpu, undef, $state, $offset, $flags, $type) =
            unpack 'v v V V v v', substr $buffer, 0x28;
        die "buffer $k: $own bytes" if $own != $size;
        die "buffer $k: ends at $saved and at $offset" if $saved != $offset || $saved > $size;
        die "buffer $k: number $sequence" if $sequence >= $count || $sequence{$sequence}++;
        die "buffer $k: compressed, or linked" if $state & 0xffff || $links || $flags & 0x40;
        die "buffer $k: of type $type" if ($type == 4) != ($k == 0) || $type > 7;
        die "buffer $k: no processor index" if !($flags & 0x20);
        die sprintf 'buffer %d: flags of %x', $k, $flags if $flags & ~0x22 || ($flags & 2 && $type);
        $flagged += ($flags & 2) >> 1;
        my @in = records($k, substr($buffer, 0, $saved), $cpu);
        if (!$k) {
            my $first = shift @in;
            die 'the first record is not the header' if $first->{hook} || $first->{kind} > 2;
            $header = logfile_header($first->{payload}, $first->{time});
            my ($masks) = grep { $_->{hook} == 0x500 } @in or die 'no masks';
            $header->{masks} = [unpack 'V8', $masks->{payload}];
            die "$count buffers, the header says $header->{buffers}"
                if $count != $header->{buffers};
            next;
        }
        die "buffer $k: processor $cpu" if $cpu >= $header->{processors};
        for (@in) {
            die "buffer $k: not in order" if $type == 0 && $_->{time} < ($last{$cpu} // 0);
            $last{$cpu} = $_->{time} if $type == 0;
        }
        push @records, @in;
    }
    die "$flagged buffers after lost events, of which there are $header->{lost}"
        if $flagged ? !$header->{lost}
        : $header->{lost} && !$header->{buffers_lost} && !($header->{mode} & 2);
    return { header => $header, records => \@records };
}

sub records
{
    my ($k, $buffer, $cpu) = @_;
    my @records;
    for (my $at = 0x48; $at < length $buffer;) {
        my ($low, $kind, $mark) = unpack 'v C C', substr $buffer, $at;
        die sprintf 'buffer %d, byte %x: a marker of kind %x', $k, $at, $kind
            if $mark != 0xc0 || !$head{$kind};
        my $event = $kind == 0x14; # a program's: its size stands first, and it has no number
        my ($length, $hook) = $event ? ($low, 0) : unpack 'v v', substr $buffer, $at + 4;
        my $time = unpack 'Q<', substr $buffer, $at + ($kind < 0x10 || $event ? 0x10 : 8);
        my $counters = $kind >= 0x10 && !$event ? $low >> 8 & 7 : 0;
        my $begin = $head{$kind} + 8 * $counters;
        die "buffer $k: a record of $length bytes"
            if $length < $begin || $at + $length > length $buffer;
        push @records, { cpu => $cpu, time => $time, kind => $kind, version => $low & 0xff,
                         hook => $kind < 0x10 ? ($hook >> 8 | ($hook & 0xff) << 8) : $hook,
                         counters => [unpack "Q<$counters", substr $buffer, $at + $head{$kind}],
                         payload => substr $buffer, $at + $begin, $length - $begin };
        $at += ($length + 7) & ~7;
    }
    return @records;
}

# UTF-16 up to its NUL.
sub text
{
    my ($bytes) = @_;
    my $text = '';
    for (unpack 'v*', $bytes) { return $text if !$_; $text .= chr }
    die 'a text without an end';
}

sub logfile_header
{
    my ($p, $time) = @_;
    my %h = (time => $time);
    (my $size, @h{qw(major minor)}, undef, undef, @h{qw(build processors end resolution maximum)},
     $h{mode}, $h{buffers}, undef, $h{pointer}, $h{lost}, $h{mhz}) =
        unpack 'V C4 V V Q< V8', $p;
    @h{qw(boot frequency start clock buffers_lost)} = unpack 'Q<3 V2', substr $p, 0xf8;
    $h{session} = text(substr $p, 0x118);
    $h{file} = text(substr $p, 0x118 + 2 + 2 * length $h{session});
    die 'no clock that is known' if $h{clock} < 1 || $h{clock} > 3 || !$h{frequency};
    die 'pointers of 8 bytes' if $h{pointer} != 8;
    return \%h;
}

1;
