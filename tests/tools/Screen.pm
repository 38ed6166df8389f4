# SPDX-License-Identifier: MIT
# What a machine's screen shows, read back from screen dumps, which stay in the machine's folder.
package Screen;
use strict;
use warnings FATAL => 'all';
use Exporter 'import';
our @EXPORT = qw(screen_text code_faults pixels_text);

sub read_font
{
    my %letter_of;
    my $code = 32;
    for (split /\n/, Text::content('kernel/console/font.c')) {
        my @lines = /0x([0-9a-f]{2})/g;
        $letter_of{join ' ', map { hex } @lines} = chr $code++ if @lines == 8;
    }
    return \%letter_of;
}

# The dots of one cell as numbers, one a line; what is not the colour of the cell's last column is
# ink.
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
    } 1 .. 8;
    return (join(' ', @lines), unpack 'H*', $ink);
}

# The picture with a QR code beside the text painted over; letters have no line of white as its
# margin.
sub without_code
{
    my ($pixels, $width) = @_;
    my $at = index $pixels, "\xff" x 180;
    return $pixels if $at < 0;
    my ($x, $y) = (int(($at + 2) / 3) % $width, int($at / 3 / $width));
    my $side = $width - $x;
    substr $pixels, 3 * ($_ * $width + $x), 3 * $side, "\0" x (3 * $side) for $y .. $y + $side - 1;
    return $pixels;
}

# What zbarimg reads in the last screen dump of this name; its lines.
sub screen_code
{
    my ($machine, $name) = @_;
    return split /\n/, `zbarimg --nodbus -q --raw '$machine->{dir}/$name.ppm' 2>&1`;
}

# Reads a framebuffer: [text, colour of its first letter] of each line.
sub pixels_text
{
    my ($pixels, $width, $height) = @_;
    my $letter_of = read_font();
    my $plain = without_code($$pixels, $width);
    my $sx = int($width / 480) || 1;
    my $sy = $sx == 1 && $height >= 480 ? 2 : $sx;
    return map {
        my ($row, $text, $colour) = ($_, '', '');
        for my $column (0 .. int($width / (6 * $sx)) - 1) {
            my ($dots, $ink) =
                cell_dots(\$plain, $width, $column * 6 * $sx, $row * 10 * $sy, $sx, $sy);
            $text .= $letter_of->{$dots} // "\x7f";
            $colour ||= $ink;
        }
        [$text =~ s/ +\z//r, $colour];
    } 0 .. int($height / (10 * $sy)) - 1;
}

# VGA text, from video memory: a letter and its colours in each cell. That the picture shows cells
# as they are is proved by its QR code.
sub read_vga
{
    my ($memory) = @_;
    return map {
        my @cells = map { [unpack 'aC'] } unpack '(a2)80', substr $memory, 160 * $_, 160;
        $_->[0] =~ tr/\xdb\xdc\xdf/ / for @cells;    # of a QR code
        my ($first) = grep { $_->[0] ne ' ' } @cells;
        [join('', map { $_->[0] } @cells) =~ s/ +\z//r, $first ? $first->[1] : ''];
    } 0 .. 24;
}

# The screen of the stopped machine, line by line: [text, colour of its first letter].
sub screen_text
{
    my ($machine, $name) = @_;
    my ($dump, $memory) = map { "$machine->{dir}/$name.$_" } qw(ppm text);
    unlink $dump, $memory;
    $machine->monitor("screendump $dump");
    $machine->monitor("pmemsave 0xb8000 4000 \"$memory\"");    # without quotes a division
    my ($width, $height, $pixels) = Text::content($dump) =~ /^P6\n(\d+) (\d+)\n255\n(.*)\z/s
        or return;
    return $width == 720 ? read_vga(Text::content($memory))
        : pixels_text(\$pixels, $width, $height);
}

# The build's number, as tests/harness/summary.c makes it of the code.
sub build_id
{
    my ($build) = @_;
    system('objcopy', '-O', 'binary', '-j', '.text', "$build/ntpmu.elf", "$build/ntpmu.text") == 0
        or die "no code in $build/ntpmu.elf\n";
    my ($id, $code) = (0, Text::content("$build/ntpmu.text"));
    $code .= "\0" x (-length($code) % 4096);
    use integer;
    $id = ($id ^ $_) * -7_046_029_254_386_353_131 for unpack 'q<*', $code;
    return sprintf '%08x', $id >> 32 & 0xffffffff;
}

# What is wrong with the QR code in the dump of the last page: it must say what the log says.
sub code_faults
{
    my ($machine, $build, $failed) = @_;
    my @lines = screen_code($machine, 'end');
    my $log = $machine->serial;
    my ($totals) = $log =~ /^# (\d+ passed, \d+ failed, \d+ skipped, \d+ checks)$/m
        or return 'no totals';
    my ($word, $bytes, $crc) = $log =~ /^# (PASS|FAIL|NONE) .*\[(\d+) bytes, crc32 (\w+)\]$/m
        or return 'no verdict';
    my ($efi, $cpus, $mb) = ($log =~ /^# board: .*; UEFI /m ? 'UEFI' : 'BIOS',
                             $log =~ /^# running: (\d+) CPU.* (\d+) MB/m);
    my @numbers = $totals =~ /\d+/g;
    my $first = "ntpmu1 $word " . join('/', @numbers[0 .. 2]) . " $numbers[3] $bytes:$crc";
    my $second = join ' ', build_id($build), $efi, qr/\d+M/, $cpus,
        $log =~ /^# vpmu: /m ? 'ntpmu-vpmu' : 'TCGTCGTCGTCG';
    my @wrong = ($lines[0] // '') eq $first ? () : "line 1 is not '$first'";
    push @wrong, "line 2 is not '$second'" if ($lines[1] // '') !~ /^$second$/;
    push @wrong, 'line 3 is not the PMU'
        if ($lines[2] // '') !~ /^\w+\.\w+\.\w+ [a-z]+\d+ \d+x\d+\+\d+x\d+\Q$failed\E$/;
    push @wrong, 'line 4 is not the CPU'    # which may be cut
        if index 'QEMU TCG CPU version 2.5+', $lines[3] // '-';
    return @wrong ? ('the QR code:', @wrong, @lines) : ();
}
1;
