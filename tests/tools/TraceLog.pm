# SPDX-License-Identifier: MIT
# A folder that make trace left, read by babeltrace2 for tests/tools/trace and tests/tools/report:
# which thread ran when on which CPU, what it counted, and when what else happened.
# tests/tools/report-fields describes the result.
package TraceLog;
use strict;
use warnings FATAL => 'all';
use File::Basename 'basename';
use Text;

# Of a trace: a page shall stay small.
use constant { SPANS_MAX => 4000, MARKS_MAX => 2000, STACKS_MAX => 40 };

sub is_trace { return -f "$_[0]/metadata" }

# The most frequent stacks first, each with how often it came.
sub most_frequent
{
    my ($times) = @_;
    my @stacks = sort { $times->{$b} <=> $times->{$a} || $a cmp $b } keys %$times;
    splice @stacks, STACKS_MAX if @stacks > STACKS_MAX;
    return map { { times => $times->{$_} + 0, addresses => [split ' '] } } @stacks;
}

# Of the trace's lines: for each CPU what it ran, [thread, from, to] in seconds since the first
# event, and the times of events that are no context switches; the stacks that followed events; by
# thread its switches and counts, which are what the CPU's counters grew by from the switch to it
# until the switch away from it.
sub read_lines
{
    my ($in) = @_;
    my (%cpu, %events, %stacks, %threads, $counters, $first, $last, $dropped);
    my ($spans, $marks) = (0, 0);
    while (defined(local $_ = <$in>)) {
        my ($time, $name, $cpu, $rest) = /^\[(\d+\.\d+)\] (\w+): \{ cpu_id = (\d+) \}, (.*)/
            or return;
        $last = $time - ($first //= $time);
        $events{$name}++;
        if ($name eq 'STACKWALK') {
            $stacks{ join ' ', $rest =~ /\[\d+\] = 0x(\w+)/g }++;
            next;
        }
        my $c = $cpu{$cpu} //= { spans => [], marks => [] };
        if ($name ne 'CONTEXTSWAP') {
            push @{ $c->{marks} }, $last + 0 if $marks++ < MARKS_MAX;
            next;
        }
        my ($context, $new, $old) =
            $rest =~ /^(?:\{ (.*?) \}, )?\{ NewThreadId = (\d+), OldThreadId = (\d+)/ or return;
        my %now = ($context // '') =~ /(\w+) = (\d+)/g;
        $counters = [($context // '') =~ /(\w+) = /g];
        $threads{$new}{switches}++;
        $threads{$old}{$_} += $now{$_} - $c->{now}{$_} for $c->{now} ? keys %now : ();
        $c->{now} = \%now;
        my $from = $c->{since} // 0;
        push @{ $c->{spans} }, [$old + 0, $from, $last + 0] if $old && $spans++ < SPANS_MAX;
        @$c{qw(since runs)} = ($last, $new);
    }
    for (grep { $_->{runs} } values %cpu) {
        push @{ $_->{spans} }, [$_->{runs} + 0, $_->{since} + 0, $last + 0] if $spans++ < SPANS_MAX;
    }
    $dropped = ($spans > SPANS_MAX && $spans - SPANS_MAX)
        + ($marks > MARKS_MAX && $marks - MARKS_MAX)
        + (keys %stacks > STACKS_MAX && keys(%stacks) - STACKS_MAX);
    my @cpus = map { { cpu => $_ + 0, spans => $cpu{$_}{spans}, marks => $cpu{$_}{marks} } }
        sort { $a <=> $b } keys %cpu;
    return { seconds => ($last // 0) + 0, events => \%events, cpus => \@cpus,
             threads => \%threads, counters => $counters // [],
             stacks => [most_frequent(\%stacks)], not_shown => $dropped + 0 };
}

# The trace as a structure; or nothing and why not. Then what babeltrace2 complains of.
sub load
{
    my ($folder) = @_;
    open my $in, '-|', "babeltrace2 --clock-seconds --no-delta '$folder' 2>'$folder.errors'"
        or return (undef, "babeltrace2: $!");
    my $trace = read_lines($in);
    my $ended = close $in;
    my $errors = Text::content("$folder.errors");
    unlink "$folder.errors";
    return (undef, 'babeltrace2 says what is not understood') if !$trace && $ended;
    return (undef, "babeltrace2 cannot read it: $errors" =~ s/\n.*//sr) if !$ended;
    $trace->{label} = basename($folder);
    return ($trace, $errors);
}

1;
