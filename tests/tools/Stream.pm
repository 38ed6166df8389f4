# SPDX-License-Identifier: MIT
# The stream of results that a machine sends: TAP, the totals, a verdict with length and checksum.
# Takes it line by line, says where it contradicts itself, and keeps the results. tests/tools/judge
# reads a machine with it, tests/tools/RunLog.pm a log.
package Stream;
use strict;
use warnings;
use Compress::Raw::Zlib 'crc32';

use constant { BROKEN_MAX => 10, LINES_MAX => 10_000 };    # a stream may be endless

# results: of each test { name, result, reason, lines }, lines being what it printed; head: the
# lines before the plan; lines: those that no test's result followed yet; checked: length and
# checksum were right.
sub new
{
    return bless {
        version => 0, plan => undef, last => 0, last_name => '', totals => [], verdict => undef,
        count => { passed => 0, failed => 0, skipped => 0 }, broken => [],
        results => [], head => [], lines => [],
        summed => 0, bytes => 0, crc => 0, checked => 0,
    }, shift;
}

# What may reach a terminal, a log or a page.
sub printable
{
    my ($text) = @_;
    $text =~ tr/\r//d;
    $text =~ tr/\t\n\x20-\x7e/?/c;
    return $text;
}

sub broken
{
    my ($self, @what) = @_;
    push @{ $self->{broken} }, @what if @{ $self->{broken} } < BROKEN_MAX;
}

sub test_line
{
    my ($self, $not, $n, $name, $reason) = @_;
    my $result = $not ? 'failed' : defined $reason ? 'skipped' : 'passed';
    $self->broken("test $n comes before the plan") if !defined $self->{plan};
    $self->broken("test $n comes after test $self->{last}") if $n != $self->{last} + 1;
    @$self{qw(last last_name)} = ($n, $name);
    $self->{count}{$result}++;
    push @{ $self->{results} },
        { name => $name, result => $result, reason => $reason, lines => $self->{lines} }
        if @{ $self->{broken} } < BROKEN_MAX;
    $self->{lines} = [];
}

sub sum_up
{
    my ($self, $text) = @_;
    $self->{crc} = crc32($text, $self->{crc});
    $self->{bytes} += length $text;
}

# The kernel counts from the end of its first line to the begin of its last.
sub check_sum
{
    my ($self, $sent) = @_;
    my $found = sprintf '%d bytes, crc32 %08x', @$self{qw(bytes crc)};
    return $self->{checked} = 1 if $self->{summed} && $sent eq $found;
    $self->broken("the kernel sent $sent; here came $found");
}

sub other_line
{
    my ($self, $line) = @_;
    my $lines = $self->{defined $self->{plan} ? 'lines' : 'head'};
    push @$lines, $line if @$lines < LINES_MAX;
}

sub line
{
    my $self = shift;
    local $_ = shift;
    $self->check_sum($1) if /^# (?:PASS|FAIL|NONE)\b.* \[(\d+ bytes, crc32 [0-9a-f]{8})\]$/;
    $self->sum_up("$_\n") if $self->{summed};
    @$self{qw(summed bytes crc)} = (1, 0, 0) if /^# ntpmu: begin$/;
    return if $_ eq '';
    $self->broken("output after the verdict: $_") if $self->{verdict};
    if (/^TAP version 13$/) {
        $self->broken('a second TAP version line: the kernel started twice') if $self->{version}++;
    } elsif (/^1\.\.(\d+)$/) {
        $self->broken('the plan stands alone') if !$self->{version};
        $self->broken('a second plan') if defined $self->{plan};
        $self->{plan} = $1;
    } elsif (/^(not )?ok (\d+) - (\S+)(?: # SKIP (.*))?$/) {
        $self->test_line($1, $2, $3, $4);
    } elsif (/^(not )?ok\b/ || /^Bail out!/) {
        $self->broken("not understood: $_");
    } elsif (/^# (\d+) passed, (\d+) failed, (\d+) skipped, (\d+) checks$/) {
        @$self{qw(totals checks)} = ([$1, $2, $3], $4);
    } elsif (/^# (PASS|FAIL|NONE)\b/) {
        @$self{qw(verdict verdict_line)} = ($1, $_);
    } else {
        $self->other_line($_);
    }
}

# What the end of the stream lacks or denies; word is the verdict that the exit status stands for.
sub ending
{
    my ($self, $word) = @_;
    my ($plan, $last, $count, $verdict) = @$self{qw(plan last count verdict)};
    my ($seen, $said) = ("@$count{qw(passed failed skipped)}", "@{ $self->{totals} }");
    $self->broken('the plan is missing') if !defined $plan;
    $self->broken("$last of $plan tests ended") if defined $plan && $last != $plan;
    $self->broken('the line with the totals is missing') if $said eq '';
    $self->broken("passed, failed, skipped are $seen; the kernel says $said")
        if $said ne '' && $seen ne $said;
    return $self->broken('the verdict line is missing') if !$verdict;
    $self->broken('the verdict line is cut: it has no length and checksum')
        if $self->{summed} && $self->{verdict_line} !~ /\[\d+ bytes, crc32 [0-9a-f]{8}\]$/;
    $self->broken("the verdict is $verdict, the exit status says $word") if $verdict ne $word;
    $self->broken("the verdict is $verdict with $count->{failed} failed tests")
        if ($verdict eq 'FAIL') != !!$count->{failed};
}

# Names and reasons.
sub skips
{
    my ($self) = @_;
    return map { [@$_{qw(name reason)}] } grep { $_->{result} eq 'skipped' } @{ $self->{results} };
}

# Tests without a failure and without a skip.
sub passed { return map { $_->{name} } grep { $_->{result} eq 'passed' } @{ $_[0]{results} } }

1;
