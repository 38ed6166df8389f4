# SPDX-License-Identifier: MIT
# Pictures for tests/tools/report: SVG in the page, of numbers that the logs have and of nothing
# else. Colours are classes, one for each log.
package Picture;
use strict;
use warnings;
use List::Util qw(max min sum);

use constant { WIDTH => 840, LABEL => 380, BAR => 14, GAP => 6, BINS => 24, COLOURS => 10 };

my %entity = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;', '"' => '&quot;', "'" => '&#39;');

# Text for a page. A log is hostile.
sub escape
{
    my ($text) = @_;
    $text =~ s/([&<>"'])/$entity{$1}/g;
    return $text;
}

sub svg
{
    my ($height, @inside) = @_;
    return sprintf qq(<svg width="%d" height="%d" role="img">\n%s</svg>\n), WIDTH, $height,
        join '', @inside;
}

sub text
{
    my ($x, $y, $anchor, $text) = @_;
    return sprintf qq(<text x="%d" y="%d" text-anchor="%s">%s</text>\n), $x, $y, $anchor,
        escape($text);
}

sub rect
{
    my ($x, $y, $width, $height, $class, $title) = @_;
    return sprintf qq(<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s">)
        . "<title>%s</title></rect>\n", $x, $y, $width, $height, $class, escape($title);
}

sub colour { return 'c' . $_[0] % COLOURS }

sub mark
{
    my $rect = '<rect x="0" y="0" width="12" height="12" class="' . colour($_[0]) . '"></rect>';
    return qq(<svg width="12" height="12">$rect</svg>);
}

# Lines of bars. A line is [label, bars]; a bar [class, from, to, what stands after it].
sub bars
{
    my @lines = @_;
    my @ends = map { @$_[1, 2] } map { @{ $_->[1] } } @lines;
    my ($low, $high) = (min(0, @ends), max(1, @ends));
    my $scale = (WIDTH - LABEL - 110) / ($high - $low);
    my ($y, @inside) = (GAP);
    for (@lines) {
        my ($label, $bars) = @$_;
        push @inside, text(LABEL - 8, $y + BAR - 3, 'end', $label);
        for (@$bars) {
            my ($class, $from, $to, $says) = @$_;
            my ($x, $wide) = (LABEL + ($from - $low) * $scale, ($to - $from) * $scale);
            push @inside, rect($x, $y, max($wide, 1.5), BAR - 2, $class, "$label: $says"),
                text($x + $wide + 5, $y + BAR - 3, 'start', $says);
            $y += BAR;
        }
        $y += GAP;
    }
    return svg($y, @inside);
}

# What an operation costs on each machine.
sub costs
{
    my @logs = @_;
    my (%bars, @order);
    for my $i (0 .. $#logs) {
        for (@{ $logs[$i]{measured}{cost} }) {
            my $key = "$_->{test}\n$_->{name}";
            my $says = $_->{least} == $_->{most} ? $_->{most} : "$_->{least} to $_->{most}";
            push @order, [$key, $_->{test} =~ s/\..*//r . ": $_->{name}"] if !$bars{$key};
            push @{ $bars{$key} }, [colour($i), 0, $_->{most}, $says];
        }
    }
    return @order ? bars(map { [$_->[1], $bars{ $_->[0] }] } @order) : ();
}

# Functions by their share of the samples; a name may be too long for the picture.
sub samples
{
    my ($i, @pictures) = @_;
    return map {
        my @lines = map {
            my $bar = [colour($i), 0, $_->{percent}, "$_->{percent} %"];
            [substr($_->{name}, 0, 40), [$bar]];
        } @{ $_->{bars} };
        { title => $_->{title}, svg => bars(@lines) };
    } @pictures;
}

sub overcounts
{
    my ($i, @all) = @_;
    return if !@all;
    my @lines = map {
        my $says = "$_->{least} to $_->{most}; $_->{exact} of $_->{regions} exact";
        [$_->{test}, [[colour($i), $_->{least}, $_->{most}, $says]]]
    } @all;
    return bars(@lines);
}

# How often each value came, by ranges; those that only say "at least" in grey.
sub distribution
{
    my ($i, $sure, $beyond) = @_;
    my @all = (@$sure, @$beyond) or return;
    my ($low, %bin) = min(@all);
    my $step = int((max(@all) - $low) / BINS) + 1;
    $bin{ int(($_ - $low) / $step) }[0]++ for @$sure;
    $bin{ int(($_ - $low) / $step) }[1]++ for @$beyond;
    return bars(map {
        my ($from, $n, $at_least) = ($low + $_ * $step, @{ $bin{$_} });
        [$step == 1 ? $from : "$from to " . ($from + $step - 1),
         [$n ? [colour($i), 0, $n, "$n times"] : (),
          $at_least ? ['beyond', 0, $at_least, "at least, $at_least times"] : ()]];
    } sort { $a <=> $b } keys %bin);
}

# What ran when: a line for each CPU, a colour for each thread, the busiest first; below it marks of
# other events.
sub time_line
{
    my ($trace) = @_;
    my (%busy, @inside);
    $busy{ $_->[0] } += $_->[2] - $_->[1] for map { @{ $_->{spans} } } @{ $trace->{cpus} };
    my @threads = sort { $busy{$b} <=> $busy{$a} || $a <=> $b } keys %busy;
    my %rank = map { $threads[$_] => $_ } 0 .. $#threads;
    my ($left, $y) = (60, GAP);
    my $scale = (WIDTH - $left - 10) / ($trace->{seconds} || 1);
    for my $cpu (@{ $trace->{cpus} }) {
        push @inside, text($left - 8, $y + 15, 'end', "CPU $cpu->{cpu}");
        for (@{ $cpu->{spans} }) {
            my ($thread, $from, $to) = @$_;
            push @inside, rect($left + $from * $scale, $y, max(($to - $from) * $scale, 0.3), 20,
                               colour($rank{$thread}),
                               sprintf 'thread %d: %.6f s to %.6f s', $thread, $from, $to);
        }
        push @inside, sprintf '<rect x="%.1f" y="%d" width="0.5" height="5" class="beyond"></rect>',
            $left + $_ * $scale, $y + 22
            for @{ $cpu->{marks} };
        $y += 32;
    }
    push @inside, text($left, $y + 12, 'start', '0 s'),
        text(WIDTH - 10, $y + 12, 'end', sprintf '%.6f s', $trace->{seconds});
    my @legend = map { mark($rank{$_}) . sprintf ' thread %d: %.3f ms', $_, 1000 * $busy{$_} }
        splice @threads, 0, COLOURS;
    return { svg => svg($y + 20, @inside), legend => '<p>' . join(' &#160; ', @legend) . "</p>\n" };
}

1;
