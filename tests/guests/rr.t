#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Debian's rr on the virtual PMU: it records a program with threads and signals, and the replay is
# the same. rr interrupts a program at an exact number of conditional branches, asks the PMU at its
# start whether it counts them exactly, and ends the replay where it is off by one. Others of the
# virtual PMU's models: prove -v tests/guests/rr.t :: haswell
use strict;
use warnings;
use File::Temp qw(tempdir);
use Test::More;
use lib 'tests/tools';
use Environment;

Environment::forget(qw(FILES COMMANDS PACKAGES ASK));
$ENV{TIMEOUT} = 600; # of one machine, from Linux's boot to its end
my $dir = tempdir(CLEANUP => 1);

# Four threads race for a word, and signals come wherever they are: what it prints is another in
# each run. Few branches and long stretches between them: to come to a signal rr begins 10,000
# branches before it on AMD's processors, and each stop takes milliseconds here.
open my $source, '>', "$dir/races.c" or die;
print $source <<'END';
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <x86intrin.h>

enum { THREADS = 4, PERIOD_US = 1000 };
static unsigned long rounds;
#define EIGHT(step) step step step step step step step step
static volatile unsigned long shared, round, signals, interrupted;

static void on_signal(int number)
{
    signals++;
    interrupted = interrupted * 31 + round + shared + (unsigned)number;
}

static void *race(void *own)
{
    for (unsigned long i = 0; i < rounds; i++) {
        round = i;
        EIGHT(EIGHT(EIGHT(EIGHT(shared = shared * 3 + (unsigned long)own;))))
    }
    return NULL;
}

int main(int count, char **words)
{
    rounds = count > 1 ? strtoul(words[1], NULL, 10) : 0;
    struct itimerval often = { { 0, PERIOD_US }, { 0, PERIOD_US } };
    pthread_t threads[THREADS];
    signal(SIGVTALRM, on_signal);
    setitimer(ITIMER_VIRTUAL, &often, NULL);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, race, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("TSC %llu word %lx signals %lu at %lx\n", __rdtsc(), shared, signals, interrupted);
}
END
close $source;
system("cc -O1 -pthread -o $dir/races $dir/races.c") == 0 or die 'cc fails';

my $commands = 'rr record races %d >/tmp/1 && rr replay -a >/tmp/2; '
    . 'status=$?; cat /tmp/1; cmp /tmp/1 /tmp/2 && [ $status = 0 ]';
for my $model (@ARGV ? @ARGV : qw(intel-v4 intel-v5 zen4)) {
    my $said = sprintf $commands, $model =~ /^intel/ ? 400 : 200;
    my $words = "PMU=$model PACKAGES=rr FILES=$dir/races COMMANDS='$said'";
    $said = `$words tests/guests/linux 2>&1 </dev/null`;
    plan skip_all => $1
        if $? >> 8 == 77 && !Test::More->builder->current_test && $said =~ /^# NONE (.*)/m;
    is($? >> 8, 0, "$model: rr records, and replays the same") or diag $said;
    like($said, qr/^TSC \d+ word \w+ signals [1-9]\d* at \w+\s*$/m,
         "$model: a program with threads and signals") or diag $said;
}

done_testing;
