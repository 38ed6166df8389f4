# SPDX-License-Identifier: MIT
# Runs an emulator and hands on what it prints, until it ends or has had its time without progress.
# What counts is the time that the emulator had: while one of its threads runs or wants to, the
# processor time that it used; while all sleep, the time that passes. What it waits for a processor,
# for a disk, or is stopped, does not count, so a busy host makes no machine hang.
package Watch;
use strict;
use warnings FATAL => 'all';
use List::Util qw(max min);
use POSIX ();
use Time::HiRes 'time';

use constant { LOOK => 0.5,         # seconds from look to look
               LAST_WORDS => 2 };   # for an answer to `asks`
my $tick = 1 / (POSIX::sysconf(POSIX::_SC_CLK_TCK()) || 100);

# In a child: it does not outlive its parent, however that ends, for Linux kills it (prctl,
# PR_SET_PDEATHSIG, SIGKILL). False: it is too late.
sub follow
{
    my ($parent) = @_;
    syscall 157, 1, 9, 0, 0, 0 if "@{[(POSIX::uname())[0, 4]]}" eq 'Linux x86_64';
    return getppid == $parent;
}

sub start
{
    my ($stdin, @command) = @_;
    my $us = $$;
    my $pid = open my $stream, '-|';
    defined $pid or die "tests/tools/judge: cannot start $command[0]: $!\n";
    return ($pid, $stream) if $pid;
    open STDIN, '<', '/dev/null' or die "no /dev/null" if !$stdin;
    follow($us) and exec { $command[0] } @command;
    print STDERR "tests/tools/judge: cannot start $command[0]: $!\n";
    exec 'false';
}

# Of /proc/PID/stat the fields from the state on; in front of them the name.
sub fields
{
    my ($file) = @_;
    open my $in, '<', $file or return;
    my ($name, $rest) = do { local $/; <$in> // '' } =~ /\((.*)\) (.*)/s or return;
    return ($name, split ' ', $rest);
}

# Those whose end is to be ours: up to the make or prove that started all of this, if one did.
sub ancestors
{
    my (@up, $found);
    for (my $pid = getppid; $pid > 1;) {
        my ($name, undef, $parent) = fields("/proc/$pid/stat") or last;
        push @up, $pid;
        $found = @up if $name =~ /^(?:make|prove)$/;
        $pid = $parent;
    }
    return @up[0 .. ($found // 0) - 1];
}

# A process and all that it started.
sub family
{
    my ($pid) = @_;
    my @all = $pid;
    for my $file (glob "/proc/$pid/task/*/children") {
        open my $in, '<', $file or next;
        push @all, map { family($_) } split ' ', <$in> // '';
    }
    return @all;
}

# The seconds of processor time that these used, and whether none of them wants to run. Nothing if
# the host has no /proc.
sub used
{
    my ($used, $asleep);
    for my $pid (@_) {
        my @stat = fields("/proc/$pid/stat") or next;
        $used += ($stat[12] + $stat[13] + $stat[14] + $stat[15]) * $tick;
        for my $task (glob "/proc/$pid/task/*/stat") {
            my (undef, $state) = fields($task) or next;
            $asleep = ($asleep // 1) && $state !~ /[RDTt]/;
        }
    }
    return ($used, $asleep);
}

# The seconds that the emulator had since the last look, of which $last keeps when and how much. Of
# a look that comes late, for the host is busy, nobody knows how long all slept.
sub had
{
    my ($pid, $last) = @_;
    my $now = time;
    my ($used, $asleep) = used(family($pid));
    my ($passed, $ran) = ($now - $last->{time}, ($used // 0) - $last->{used});
    @$last{qw(time used)} = ($now, $used // 0);
    return min($passed, 2 * LOOK) if !defined $used || $asleep;
    return max(0, min($ran, $passed));
}

# Options: seconds without progress, 0: any number; take: gets each chunk, and says whether it is
# progress; asks: called once when it hangs, to ask it why; stopped: called before we end by a
# signal; stdin: the emulator reads ours. Returns (hung, wait status).
sub run
{
    my ($options, @command) = @_;
    my ($pid, $stream) = start($options->{stdin}, @command);
    my $stop = sub {
        kill KILL => family($pid);
        waitpid $pid, 0;
        $options->{stopped}->() if $options->{stopped};
        exit 130;
    };
    local @SIG{qw(INT TERM HUP PIPE)} = ($stop) x 4;
    my @above = ancestors();
    my $last = { time => time, used => 0 };
    my ($had, $hung) = (0, 0);
    while (!$hung) {
        $stop->() if grep { !-e "/proc/$_" } @above;
        $had += had($pid, $last) if time - $last->{time} >= LOOK;
        my $late = $options->{seconds} && $had >= $options->{seconds};
        vec(my $bits = '', fileno $stream, 1) = 1;
        if (select $bits, undef, undef, $late ? 0 : LOOK) { # what it printed before we looked, too
            my $n = sysread $stream, my $chunk, 65536;
            last if !$n;
            ($had, $late) = (0, 0) if $options->{take}->($chunk);
        }
        next if !$late;
        my $ask = delete $options->{asks};
        $hung = !$ask;
        next if $hung;
        $ask->();
        $had = $options->{seconds} - LAST_WORDS;
    }
    kill KILL => family($pid) if $hung;
    close $stream;
    return ($hung, $?);
}

1;
