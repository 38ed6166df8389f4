# SPDX-License-Identifier: MIT
# What the kernel sends of a trace session (kernel/etw/etw_export.c), and the two traces that are
# made of it: a file as Windows writes it (Etl.pm), and a folder in the Common Trace Format 1.8.
# Names and layouts of records are those of the kernel's headers, which this reads. What is wrong
# with a stream is a die with one line.
package Etw;
use strict;
use warnings FATAL => 'all';
no warnings 'portable'; # numbers of 64 bits
use Compress::Raw::Zlib 'crc32';
use File::Path qw(make_path remove_tree);
use Etl;
use Text;

use constant { BEGIN_TEXT => 1, BUFFER => 2, END_TEXT => 3, LONGEST => 64 << 20 };
use constant { BUFFER_HEADER => 0x48, RECORD_HEADER => 0x10, STACK => 0x1820, EVENT_HEADER => 0x30,
               BRANCHES => 0x10020, BRANCH => 0x18 };
# Their event has no hook but a GUID and a type; BRANCHES is our number for it.
my $branches = pack('V v v C8', 0x99134383, 0x5248, 0x43fc, 0x83, 0x4b, 0x52, 0x94, 0x54, 0xe7,
                    0x5d, 0xf3);

# --- The stream.

# The next chunk as kind and bytes.
sub next_chunk
{
    my ($in, $expected) = @_;
    my $got = read $in, my $head, 20;
    die "the stream ends without an end, after $expected chunks\n" if !$got;
    die "chunk $expected: cut off\n" if $got < 20;
    my ($magic, $number, $kind, $length, $crc) = unpack 'a4 V4', $head;
    die "chunk $expected: no chunk begins here\n" if $magic ne 'NCHK' || $length > LONGEST;
    my $bytes = '';
    die "chunk $expected: cut off\n" if $length && read($in, $bytes, $length) != $length;
    die "chunk $expected: wrong checksum\n" if crc32($bytes, crc32(substr $head, 0, 16)) != $crc;
    die "chunk $number came where $expected should\n" if $number != $expected;
    return ($kind, $bytes);
}

# Lines "name value...": those that stand once, by name; the others as lists of lists of words.
sub facts
{
    my ($text) = @_;
    my %facts = map { $_ => [] } qw(counter interval thread image mask);
    for (split /\n/, $text) {
        my ($name, @words) = split / /;
        if ($facts{$name}) { push @{ $facts{$name} }, \@words }
        else { $facts{$name} = "@words" }
    }
    return \%facts;
}

# A buffer without what its header says about memory, as { header fields, records => [...] }; a
# record is [hook, time, number of counters, version, place in the buffer, size].
sub parse_buffer
{
    my ($bytes, $n) = @_;
    die "chunk $n: a buffer without a header\n" if length $bytes < BUFFER_HEADER;
    my %b = (bytes => $bytes, records => []);
    (my $size, $b{end}, undef, undef, @b{qw(time number lost cpu)}, my @more) =
        unpack 'V3 l< q< q< Q< v v V V v', $bytes;
    $b{flags} = $more[3];
    die "chunk $n: a buffer of $b{end} bytes, sent " . length($bytes) . "\n"
        if $b{end} != length $bytes || $b{end} > $size;
    my $last = 0;
    for (my $at = BUFFER_HEADER; $at < $b{end};) {
        my ($marker, $length, $hook, $time) = unpack 'V v v Q<', substr $bytes, $at, RECORD_HEADER;
        if ($marker >> 16 == 0xc014) { # a program's event, or branches
            ($marker, $length) = (0xc0110000, $marker & 0xffff);
            ($time, my $guid) = unpack 'x16 Q< a16', substr $bytes, $at, 40;
            $hook = $guid eq $branches ? BRANCHES : 0;
        }
        die "chunk $n: no record at byte $at\n"
            if !defined $time || $marker >> 16 != 0xc011 || $length < RECORD_HEADER
            || $at + $length > $b{end};
        die "chunk $n: a record before an earlier one\n" if $time < $last;
        $last = $time;
        push @{ $b{records} }, [$hook, $time, $marker >> 8 & 7, $marker & 0xff, $at, $length];
        $at += ($length + 7) & ~7;
    }
    return \%b;
}

sub check_stream
{
    my ($trace) = @_;
    my ($begin, $end) = @$trace{qw(begin end)};
    for (qw(frequency tsc time boot build cpus megabytes processor buffer)) {
        die "the beginning says no $_\n" if !defined $begin->{$_};
    }
    for (qw(events lost exporter end)) {
        die "the end says no $_\n" if !defined $end->{$_};
    }
    die "$trace->{events} events came, the kernel sent $end->{events}\n"
        if $trace->{events} != $end->{events};
    @{ $begin->{$_} } or $begin->{$_} = $end->{$_} for qw(counter mask); # of a file: known late
    die "a file without a name\n"
        if defined $begin->{file} && $begin->{file} !~ /^\w[\w.-]{0,62}$/;
}

# All that came: the exported session, if there is one, and those with a file, in an array; each
# { begin => facts, end => facts, buffers => [...], events => n }.
sub read_stream
{
    my ($file) = @_;
    my (%stream, $exported);
    open my $in, '<:raw', $file or die "$file: $!\n";
    for (my $n = 0;; $n++) {
        my $all = $n && !grep { !$_->{end} } values %stream;
        last if $all && eof $in;
        my ($kind, $bytes) = eval { next_chunk($in, $n) };
        die $all ? "something follows the end\n" : $@ if $@;
        my ($id, $number) = ($kind >> 8, $stream{ $kind >> 8 });
        $kind &= 0xff;
        die "chunk $n: of a kind unknown\n" if $kind < BEGIN_TEXT || $kind > END_TEXT;
        die "chunk $n: the beginning comes first, and once\n" if ($kind == BEGIN_TEXT) == !!$number;
        my $trace = $stream{$id} //= { buffers => [], events => 0, number => {} };
        die "chunk $n: something follows the end\n" if $trace->{end};
        if ($kind == BEGIN_TEXT) { $trace->{begin} = facts($bytes) }
        elsif ($kind == END_TEXT) { $trace->{end} = facts($bytes) }
        else {
            my $b = parse_buffer($bytes, $n);
            my $expected = $trace->{number}{ $b->{cpu} }++ // 0;
            die "chunk $n: buffer $b->{number} of CPU $b->{cpu} came where $expected should\n"
                if $b->{number} != $expected;
            push @{ $trace->{buffers} }, $b;
            $trace->{events} += @{ $b->{records} };
        }
    }
    check_stream($stream{$_}) for sort { $a <=> $b } keys %stream;
    return map { $stream{$_} } sort { $a <=> $b } keys %stream;
}

# --- Layouts of records, from the kernel's headers.

# Kinds of records by the name of their number; their payloads.
my %payload = (
    WMI_LOG_TYPE_THREAD_CREATE => 'WMI_EXTENDED_THREAD_INFORMATION',
    WMI_LOG_TYPE_THREAD_DELETE => 'WMI_EXTENDED_THREAD_INFORMATION',
    PERFINFO_LOG_TYPE_CONTEXTSWAP => 'WMI_CONTEXTSWAP',
    PERFINFO_LOG_TYPE_READY_THREAD => 'ETW_READY_THREAD_EVENT',
    PERFINFO_LOG_TYPE_SAMPLED_PROFILE => 'PERFINFO_SAMPLED_PROFILE_INFORMATION',
    PERFINFO_LOG_TYPE_PMC_INTERRUPT => 'PERFINFO_PMC_SAMPLE_INFORMATION',
    PERFINFO_LOG_TYPE_SYSCALL_ENTER => 'PERFINFO_SYSCALL_ENTER_DATA',
    PERFINFO_LOG_TYPE_SYSCALL_EXIT => 'PERFINFO_SYSCALL_EXIT_DATA',
    PERFINFO_LOG_TYPE_INTERRUPT => 'PERFINFO_INTERRUPT_INFORMATION',
    PERFINFO_LOG_TYPE_DPC => 'PERFINFO_DPC_INFORMATION',
    PERFINFO_LOG_TYPE_TIMERDPC => 'PERFINFO_DPC_INFORMATION',
    PERFINFO_LOG_TYPE_SAMPLED_PROFILE_SET_INTERVAL => 'PERFINFO_SAMPLED_PROFILE_CONFIG',
    PERFINFO_LOG_TYPE_IPI => 'PERFINFO_DPC_INFORMATION',
    PERFINFO_LOG_TYPE_STACKWALK => 'ETW_STACK_WALK', # and addresses
    LAST_BRANCH_TYPE => 'ETW_LAST_BRANCH_RECORD',    # and branches
);
# Bits, sign, and base for numbers by their type.
my %type = (CHAR => [8, 'true', 10], UCHAR => [8, 'false', 10], USHORT => [16, 'false', 10],
            ULONG => [32, 'false', 10], NTSTATUS => [32, 'true', 16], ULONG64 => [64, 'false', 10],
            KAFFINITY => [64, 'false', 16], PVOID => [64, 'false', 16]);
my %enum_of = (OldWaitReason => 'KWAIT_REASON', OldWaitMode => 'MODE', OldState => 'KTHREAD_STATE');

# Hooks by number: name, structure, [type, field]..., bytes; the words of enumerations.
sub layouts
{
    my $text = join '', map { Text::content("kernel/nt/$_.h") } qw(nt nt_trace nt_etw);
    $text =~ s{/\*.*?\*/}{}gs;
    my %enum = (MODE => [qw(KernelMode UserMode)]);
    for my $name (qw(KWAIT_REASON KTHREAD_STATE)) {
        my ($words) = $text =~ /typedef enum _$name \{([^}]*)\}/ or die "$name is in no header\n";
        $enum{$name} = [grep { $_ ne 'MaximumWaitReason' } $words =~ /\w+/g];
    }
    my %hook;
    for my $symbol (keys %payload) {
        my ($id) = $text =~ /^#define $symbol (\w+)/m or die "$symbol is in no header\n";
        $id = sprintf '0x%x', BRANCHES if $symbol eq 'LAST_BRANCH_TYPE';
        my ($lines) = $text =~ /typedef struct [^{}]*_$payload{$symbol} \{([^}]*)\}/
            or die "$payload{$symbol} is in no header\n";
        my ($bytes, @fields) = 0;
        for (split /;/, $lines) {
            my ($type, $names) = /(\w+) ([\w, ]+)/ or next;
            for my $name (split /, */, $names) {
                push @fields, [$enum_of{$name} ? "enum $enum_of{$name}" : $type, $name];
                $bytes += ($type{$type} // die "$type has no size\n")->[0] / 8;
            }
        }
        $hook{ hex $id } = { name => $symbol =~ s/.*_LOG_TYPE_|_TYPE$//gr, bytes => $bytes,
                             structure => $payload{$symbol}, fields => \@fields };
    }
    $_->[1] eq 'StackProcess' and @$_ = ('USHORT', "$_->[1]; USHORT Depth")
        for @{ $hook{ +STACK }{fields} };
    $_->[1] eq 'Reserved' and $_->[1] = 'Depth' for @{ $hook{ +BRANCHES }{fields} };
    return (\%hook, \%enum);
}

# --- The Common Trace Format.

# How many addresses a record ends with, or branches.
sub depth
{
    my ($hook, $length) = @_;
    return ($length - RECORD_HEADER - 0x10) / 8 if $hook == STACK;
    return $hook == BRANCHES ? ($length - EVENT_HEADER - 0x18) / BRANCH : 0;
}

# babeltrace2 warns about fields of an event's header that it does not know, so the hook's number
# replaces the 8 bytes before each time stamp; the number of a stack's addresses stands in the upper
# half of its process's id. Of the longer header of branches the same two numbers are left, and the
# number of branches is in the last field before them.
sub ctf_packet
{
    my ($b) = @_;
    my ($bytes, $end, $last) = ('', 0, $b->{time});
    for (@{ $b->{records} }) {
        my ($hook, $time, undef, undef, $at, $length) = @$_;
        my $header = $hook == BRANCHES ? EVENT_HEADER : RECORD_HEADER;
        my $body = substr $b->{bytes}, $at + $header, $length - $header;
        substr $body, 0x0a, 2, pack 'v', depth($hook, $length) if $hook == STACK;
        substr $body, 0x14, 4, pack 'V', depth($hook, $length) if $hook == BRANCHES;
        $bytes .= pack('Q<2', $hook, $time) . $body;
        ($end, $last) = (length $bytes, $time);
        $bytes .= "\0" x (-length($bytes) & 7);
    }
    return pack('V V Q<7', 0xc1fc1fc1, 0, $b->{time}, $last, 8 * (0x40 + $end),
                8 * (0x40 + length $bytes), $b->{number}, $b->{lost}, $b->{cpu}) . $bytes;
}

sub ctf_metadata
{
    my ($trace, $hook, $enum) = @_;
    my @names = map { $_->[0] } @{ $trace->{begin}{counter} };
    my %counters;
    for my $r (map { @{ $_->{records} } } @{ $trace->{buffers} }) {
        my ($id, undef, $n, undef, undef, $length) = @$r;
        my $h = $hook->{$id} or die sprintf "a record of hook %04x, which no header names\n", $id;
        my $before = $counters{$id} //= $n;
        die "$h->{name}: $n counters, before $before\n" if $n != $before || $n && $n != @names;
        my $bytes = RECORD_HEADER + 8 * ($n + depth($id, $length)) + $h->{bytes};
        $bytes = EVENT_HEADER + BRANCH * int(depth($id, $length)) + $h->{bytes} if $id == BRANCHES;
        die "$h->{name}: a record of $length bytes, which should have $bytes\n"
            if $length != $bytes;
    }
    my $text = "/* CTF 1.8 */\n\nclock { name = \"tsc\"; description = \"time stamp counter\"; "
        . "freq = $trace->{begin}{frequency}; };\n\n";
    for (sort keys %type) {
        my ($bits, $signed, $base) = @{ $type{$_} };
        $text .= "typealias integer { size = $bits; align = 8; signed = $signed; base = $base; } "
            . ":= $_;\n";
    }
    $text .= 'typealias integer { size = 64; align = 8; signed = false; map = clock.tsc.value; } '
        . ":= tsc_t;\n";
    $text .= "enum $_ : UCHAR { " . join(', ', @{ $enum->{$_} }) . " };\n" for sort keys %$enum;
    $text .= <<'END';

trace {
    major = 1;
    minor = 8;
    byte_order = le;
    packet.header := struct { ULONG magic; ULONG stream_id; };
};

env { domain = "kernel"; tracer_name = "ntpmu"; };

stream {
    id = 0;
    packet.context := struct {
        tsc_t timestamp_begin;
        tsc_t timestamp_end;
        ULONG64 content_size;
        ULONG64 packet_size;
        ULONG64 packet_seq_num;
        ULONG64 events_discarded;
        ULONG64 cpu_id;
    };
    event.header := struct { ULONG64 id; tsc_t timestamp; } align(64);
};
END
    for my $id (sort { $a <=> $b } keys %$hook) {
        my $h = $hook->{$id};
        $text .= sprintf "\nevent {\n    name = \"%s\";\n    id = 0x%x;\n    stream_id = 0;\n",
            $h->{name}, $id;
        $text .= '    context := struct { ' . join(' ', map { "ULONG64 $_;" } @names) . " };\n"
            if $counters{$id};
        $text .= "    fields := struct { /* $h->{structure} */\n"
            . join('', map { "        $_->[0] $_->[1];\n" } @{ $h->{fields} })
            . ($id == STACK ? "        PVOID Stack[Depth];\n" : '')
            . ($id == BRANCHES
               ? "        struct { PVOID From; PVOID To; ULONG64 Reserved; } Branches[Depth];\n"
               : '')
            . "    };\n};\n";
    }
    return $text;
}

# --- Files. Nothing is left of what could not be written whole.

# FOLDER in the Common Trace Format and FOLDER.etl of the exported session, and beside them a file
# for each session that has one; returns what was read, the exported session first, if there is one.
sub make_traces
{
    my ($stream, $folder) = @_;
    remove_tree($folder, "$folder.part");
    unlink "$folder.etl";
    my @new;
    my @traces = eval {
        my @read = read_stream($stream);
        my ($hook, $enum) = layouts();
        my ($beside, $own) = $folder =~ m{^(.*/)?([^/]*)$};
        for my $trace (@read) {
            my $name = $trace->{begin}{file} // "$own.etl";
            $name = "$name.etl" if $name !~ /\.etl$/;
            die "a session's file has the name of the exported one's\n"
                if defined $trace->{begin}{file} && $name eq "$own.etl";
            $trace->{path} = ($beside // '') . $name;
            push @new, "$trace->{path}.part";
            Text::save($new[-1], join('', Etl::buffers($trace, $name)));
            next if defined $trace->{begin}{file};
            my %cpu;
            make_path("$folder.part", { error => \my $errors });
            die "$folder.part: " . (values %{ $errors->[0] })[0] . "\n" if @$errors;
            Text::save("$folder.part/metadata", ctf_metadata($trace, $hook, $enum));
            push @{ $cpu{ $_->{cpu} } }, $_ for @{ $trace->{buffers} };
            Text::save("$folder.part/cpu$_", join '', map { ctf_packet($_) } @{ $cpu{$_} })
                for keys %cpu;
        }
        @read;
    };
    my $why = $@;
    if (@traces && (!-d "$folder.part" || rename "$folder.part", $folder)
        && !grep { !rename "$_->{path}.part", $_->{path} } @traces) {
        return @traces;
    }
    $why ||= "$folder: $!\n";
    remove_tree($folder, "$folder.part");
    unlink @new;
    die $why;
}

1;
