# SPDX-License-Identifier: MIT
# What a person sees of a run on a terminal: progress in place, a line for each group when it is
# done, failures in full, then the skips by reason. Lines are those of the stream, in its order;
# everything else of the log is left out.
package Progress;
use strict;
use warnings;
use Time::HiRes 'time';

use constant { CLEAR => "\r\e[K", WINDOW_SIZE => 0x5413 };    # Linux: TIOCGWINSZ

sub new
{
    my $in_place = ($ENV{TERM} // 'dumb') ne 'dumb';
    return bless {
        colour => $in_place && !length($ENV{NO_COLOR} // ''),
        in_place => $in_place, begun => time, drawn => 0,
        lines => [], group => '', name => '', plan => 0, done => 0, all => {},
        reasons => {}, number => {},
    }, shift;
}

sub paint
{
    my ($self, $colour, $text) = @_;
    return $self->{colour} ? "\e[${colour}m$text\e[0m" : $text;
}

sub say_line
{
    my ($self, $text) = @_;
    print $self->{drawn} ? CLEAR : '', "$text\n";
    $self->{drawn} = 0;
}

sub columns
{
    my $size = pack 'S4', 0;
    return ioctl(STDOUT, WINDOW_SIZE, $size) ? (unpack 'S4', $size)[1] || 80 : 80;
}

# The line that changes; at most ten times a second, or each write would be slower than the test.
sub draw
{
    my ($self, $now) = (shift, time);
    return if !$self->{in_place} || !$self->{plan} || $now - $self->{drawn} < 0.1;
    my $failed = $self->{all}{failed} // 0;
    my $text = sprintf '%d of %d, %d s, %d failed: %s', $self->{done}, $self->{plan},
        $now - $self->{begun}, $failed,
        $self->{name};
    print CLEAR, $self->paint($failed ? 31 : 36, substr $text, 0, columns() - 1);
    $self->{drawn} = $now;
}

sub end_group
{
    my ($self) = @_;
    my $n = $self->{number};
    return if !%$n;
    my $text = join ', ', map { "$n->{$_} $_" } grep { $n->{$_} } qw(passed failed skipped);
    $self->say_line(sprintf '%-24s %s', $self->{group},
                    $n->{failed} ? $self->paint(31, $text) : $text);
    $self->{number} = {};
}

sub test_ended
{
    my ($self, $line, $kind, $name, $reason) = @_;
    my ($group) = $name =~ /^([^.]*)/;
    $self->end_group if $group ne $self->{group};
    @$self{qw(group name)} = ($group, $name);
    $self->{done}++;
    $_->{$kind}++ for $self->{number}, $self->{all};
    $self->{reasons}{$reason}++ if $kind eq 'skipped';
    $self->say_line($self->paint(31, $_)) for $kind eq 'failed' ? (@{ $self->{lines} }, $line) : ();
    $self->{lines} = [];
    $self->draw;
}

sub line
{
    my ($self, $line) = @_;
    if ($line =~ /^(not )?ok \d+ - (\S+)(?: # SKIP (.*))?$/) {
        $self->test_ended($line, $1 ? 'failed' : defined $3 ? 'skipped' : 'passed', $2, $3);
    } elsif ($line =~ /^1\.\.(\d+)$/) {
        $self->{plan} = $1;
    } elsif ($self->{plan}) {
        push @{ $self->{lines} }, $line;
    } elsif ($line =~ /^# ?[^ ]/) {
        $self->say_line($line);
    }
}

# What no test's line followed, the skips by reason, the verdict.
sub finish
{
    my ($self, @verdict) = @_;
    $self->end_group;
    my @last = @{ $self->{lines} };
    my ($word) = map { /^# (PASS|FAIL|NONE|CRASH|HANG|BROKEN)\b/ } reverse @last, @verdict;
    my $colour = ($word // '') eq 'PASS' ? 32 : ($word // '') eq 'NONE' ? 33 : 31;
    my $reasons = $self->{reasons};
    $self->say_line(sprintf '%6d skipped: %s', $reasons->{$_}, $_)
        for sort { $reasons->{$b} <=> $reasons->{$a} || $a cmp $b } keys %$reasons;
    $self->say_line(/^# (?:PASS|FAIL|NONE|CRASH|HANG|BROKEN)\b/ ? $self->paint($colour, $_) : $_)
        for @last, @verdict;
}

1;
