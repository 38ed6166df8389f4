# SPDX-License-Identifier: MIT
# A machine whose serial stream and screen the tests watch: QEMU with a monitor, and the reading of screen dumps.
package Screen;
use strict;
use warnings FATAL => 'all';
use Exporter 'import';
use IO::Socket::UNIX;
use Time::HiRes qw(time sleep);
our @EXPORT = qw(watch monitor screen_text);

my ($socket, $pid);
END { kill KILL => $pid if $pid }    # or perl waits for it


# One line to QEMU's monitor; its answer.
sub monitor
{
    my ($command) = @_;
    print $socket "$command\n";
    my ($answer, $end) = ('', time + 20);
    while ($answer !~ /\(qemu\) \z/ && time < $end) {
        vec(my $bits = '', fileno $socket, 1) = 1;
        next if !select $bits, undef, undef, 0.5;
        sysread $socket, my $chunk, 65536 or last;
        $answer .= $chunk;
    }
    return $answer;
}

# Runs a machine until it ends, `until` matches or the time is over. Each of `at`, [pattern, sub], is called once with
# the machine stopped when the stream matches. Returns the serial stream (without carriage returns) and the exit status.
sub watch
{
    my ($dir, $seconds, $until, $at, @command) = @_;
    my @wait_for = @$at;
    unlink "$dir/monitor";
    $pid = open my $stream, '-|', @command, "@command" =~ /-serial/ ? () : ('-serial', 'stdio'), '-monitor', "unix:$dir/monitor,server=on,wait=off",
        '-display', 'none', '-no-reboot' or die "cannot start $command[0]: $!";
    my ($log, $end) = ('', time + $seconds);
    my $connect_end = time + 10;
    while (!($socket = IO::Socket::UNIX->new("$dir/monitor")) && time < $connect_end) {
        sleep 0.05;
    }
    $socket->autoflush(1) if $socket;
    monitor('info status') if $socket;
    while (time < $end) {
        vec(my $bits = '', fileno $stream, 1) = 1;
        if (select $bits, undef, undef, 0.2) {
            sysread $stream, my $chunk, 65536 or last;
            $log .= $chunk =~ tr/\r//dr;
        }
        while (@wait_for && $log =~ $wait_for[0][0]) {
            my $call = (shift @wait_for)->[1];
            monitor('stop');
            $call->($log);
            monitor('cont');
        }
        last if !@wait_for && $until && $log =~ $until;
    }
    kill KILL => $pid if $until || time >= $end;
    close $stream;
    undef $pid;
    return ($log, $? & 127 ? -1 : $? >> 8);
}

sub read_file
{
    my ($name) = @_;
    open my $in, '<:raw', $name or die "$name: $!";
    local $/;
    return scalar <$in>;
}

sub read_font
{
    my %letter_of;
    my $code = 32;
    for (split /\n/, read_file('kernel/font.c')) {
        my @lines = /0x([0-9a-f]{2})/g;
        $letter_of{join ' ', map { hex } @lines} = chr $code++ if @lines == 8;
    }
    return \%letter_of;
}

# The dots of one cell as numbers, one a line; what is not the colour of the cell's last column is ink.
sub cell_dots
{
    my ($pixels, $width, $x0, $y0, $sx, $sy) = @_;
    my $at = sub { substr $$pixels, 3 * (($y0 + $_[1] * $sy) * $width + $x0 + $_[0] * $sx), 3 };
    my $paper = $at->(5, 0);
    my $ink = '';
    my @lines = map {
        my ($y, $bits) = ($_, 0);
        for my $x (0 .. 4) {
            my $pixel = $at->($x, $y);
            $bits |= 0x10 >> $x, $ink = $pixel if $pixel ne $paper;
        }
        $bits;
    } 0 .. 7;
    return (join(' ', @lines), unpack 'H*', $ink);
}

# Reads a framebuffer: [text, colour of its first letter] of each line.
sub read_pixels
{
    my ($pixels, $width, $height) = @_;
    my $letter_of = read_font();
    my $sx = int($width / 480) || 1;
    my $sy = $sx == 1 && $height >= 400 ? 2 : $sx;
    return map {
        my ($row, $text, $colour) = ($_, '', '');
        for my $column (0 .. int($width / (6 * $sx)) - 1) {
            my ($dots, $ink) = cell_dots($pixels, $width, $column * 6 * $sx, $row * 8 * $sy, $sx, $sy);
            $text .= $letter_of->{$dots} // "\x7f";
            $colour ||= $ink;
        }
        [$text =~ s/ +\z//r, $colour];
    } 0 .. int($height / (8 * $sy)) - 1;
}

# VGA text: cells of 9 x 16 with the font of the video BIOS, which nobody gave us. Which letter a cell must show is read
# from video memory; the picture agrees if each letter always looks the same and no two letters look alike.
sub read_vga
{
    my ($pixels, $width, $memory) = @_;
    my (%look_of, %letter_of);
    return map {
        my ($row, $text, $colour) = ($_, '', '');
        for my $column (0 .. 79) {
            my ($letter, $attribute) = unpack 'CC', substr $memory, 2 * (80 * $row + $column), 2;
            my @lines = map { substr $$pixels, 3 * (($row * 16 + $_) * $width + $column * 9), 27 } 0 .. 15;
            my $paper = substr $lines[0], -3;
            my $look = join '', map { my $line = $_; map { substr($line, 3 * $_, 3) eq $paper ? 0 : 1 } 0 .. 8 } @lines;
            my $same = ($look_of{$letter} //= $look) eq $look && ($letter_of{$look} //= $letter) == $letter;
            $text .= $same ? chr $letter : "\x7f";
            $colour ||= $attribute if $letter != 32;
        }
        [$text =~ s/ +\z//r, $colour];
    } 0 .. 24;
}

# The screen of the stopped machine, line by line.
sub screen_text
{
    my ($dir) = @_;
    unlink "$dir/dump", "$dir/memory";
    monitor("screendump $dir/dump");
    monitor("pmemsave 0xb8000 4000 \"$dir/memory\"");    # without quotes a division
    for (1 .. 40) {
        last if -s "$dir/dump" && -s "$dir/memory";
        sleep 0.05;
    }
    my ($width, $height, $pixels) = read_file("$dir/dump") =~ /^P6\n(\d+) (\d+)\n255\n(.*)\z/s or return;
    return $width == 720 ? read_vga(\$pixels, $width, read_file("$dir/memory")) : read_pixels(\$pixels, $width, $height);
}
1;
