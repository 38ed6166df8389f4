#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# What a run leaves: the log, what a terminal shows, no machine, whatever ends it. And make help.
use strict;
use warnings;
use Test::More;
use lib 'tests/host';
use Pretend;
use Progress;

sub log_text
{
    open my $in, '<', "$dir/run.log" or return '';
    return join '', <$in>;
}
my $mixed = "\n# kernel\nTAP version 13\n1..5\nok 1 - a.one\n# remark\n"
    . "ok 2 - a.two # SKIP needs 2 CPUs\n# tests/harness/test.c:7: x = 1, want 2\n"
    . "not ok 3 - a.three\nok 4 - b.one # SKIP needs 2 CPUs\nok 5 - b.two\n"
    . "# 2 passed, 1 failed, 2 skipped, 9 checks\n# FAIL 1 of 5\n";
{
    pretend($mixed, 'exit 35');
    my (undef, $output) = run_it('ACCEL=tcg');
    like($output, qr/\Q$mixed\E\z/, 'a pipe gets the stream as it came');
    is(log_text(), $output, 'so does the log');
}
# What stands in place when a test has failed.
sub drawn
{
    local $ENV{TERM} = 'xterm';
    open my $screen, '>', \my $text or die;
    my $old = select $screen;
    my $progress = Progress->new;
    $progress->line($_) for $mixed =~ /^(1\.\.5|(?:not )?ok [12].*)$/mg;
    $progress->{drawn} = 0; # it is drawn ten times a second
    $progress->line('not ok 3 - a.three');
    select $old;
    return $text;
}

sub terminal
{
    my ($variables) = @_;
    unlink "$dir/run.log";
    my $environment = "env -u NO_COLOR -u TAP TERM=xterm $variables";
    my $output = `$environment script -qec 'ACCEL=tcg tests/run' /dev/null 2>&1 </dev/null`;
    return $output =~ s/\r\n/\n/gr;
}
{
    my $output = terminal('A=1');
    my $plain = $output =~ s/[^\n]*\r\e\[K//gr =~ s/\e\[\d*m//gr;
    my $machine = $plain =~ s/\A(# machine: .*\n)// ? $1 : '';
    like($machine, qr/^# machine: QEMU tcg/, 'a terminal: the machine first');
    is($plain, <<'END', 'then groups, failures in full, skips by reason, totals, verdict');
# kernel
# tests/harness/test.c:7: x = 1, want 2
not ok 3 - a.three
a                        1 passed, 1 failed, 1 skipped
b                        1 passed, 1 skipped
     2 skipped: needs 2 CPUs
# 2 passed, 1 failed, 2 skipped, 9 checks
# FAIL 1 of 5
END
    like($output, qr/\r\e\[K\e\[3\dm\d of 5, \d+ s, \d failed: /,
         'progress in place: of how many, seconds, failures');
    like($output, qr/\e\[31mnot ok 3 - a\.three\e\[0m/, 'a failure is red');
    like(log_text(), qr/^# machine: .*\n\Q$mixed\E\z/, 'the log is whole');
    like(drawn(), qr/\r\e\[K\e\[31m3 of 5, \d+ s, 1 failed: a\.three\e\[0m\z/,
         'a failure is counted there, in red');
    unlike(terminal('NO_COLOR=1'), qr/\e\[\d+m/, 'NO_COLOR: none');
    unlike(terminal('TERM=dumb'), qr/\e/, 'a terminal that knows no control sequences gets none');
    like(terminal('TAP=1'), qr/^# machine: .*\n\Q$mixed\E\z/, 'TAP=1: as in a pipe');
    pretend($start, 'exit 39');
    like(terminal('A=1'), qr/# CRASH the kernel panicked.*\(a\.two\)/,
         'a crash is named on a terminal too');
}

# No machine stays, whatever ends the run: a hang, signals, the end of the make or prove above.
sub gone
{
    my ($name) = @_;
    my $pid = `cat $dir/pid`;
    for (1 .. 100) {
        return pass($name) if $pid && !kill 0, $pid;
        select undef, undef, undef, 0.1;
    }
    kill KILL => $pid if $pid;
    fail("$name: process $pid stays");
}
sub wait_for_pid
{
    for (1 .. 200) {
        return if -s "$dir/pid";
        select undef, undef, undef, 0.1;
    }
}
pretend($two, "echo \$\$ > $dir/pid; exec sleep 60");
my $begun = time;
run_it('ACCEL=tcg TIMEOUT=1');
ok(time - $begun < 40, 'a machine that hung is not waited for');
gone('and it is gone');
file("$dir/one.t", "#!/bin/sh\nACCEL=tcg tests/run > /dev/null\n", 0755);
for (['INT', "ACCEL=tcg exec tests/run"], ['TERM', "ACCEL=tcg exec tests/run"],
     ['KILL', "ACCEL=tcg exec tests/run"],
     ['KILL', "exec prove $dir/one.t"], ['TERM', "exec prove $dir/one.t"]) {
    my ($signal, $command) = @$_;
    unlink "$dir/pid";
    my $pid = fork // die;
    exec '/bin/sh', '-c', "$command >/dev/null 2>&1 </dev/null" if !$pid;
    wait_for_pid();
    kill $signal => $pid;
    waitpid $pid, 0;
    gone("after SIG$signal to: $command" =~ s/\Q$dir\///r);
}
my @help = split /\n/, `make -s help`;
ok(@help > 10 && @help <= 24 && !grep({ length > 80 } @help),
   'make help fits a screen of 24 lines of 80 columns') or diag("@help");
like($help[$_], qr/^make /, "its line $_ is a command") for 0 .. 4;
my $all = `make -s help-all`;
like($all, qr/$_/, "make help-all tells of $_")
    for 'TIMEOUT=120', 'amd-zen5', 'lostpmi', 'haswell', 'make mutants';
done_testing;
