# SPDX-License-Identifier: MIT
# A machine that tests watch: QEMU with a monitor, and with QEMU's gdb server to stop it exactly
# where it shall be looked at. Its serial stream goes into a file. It does not outlive us, and what
# it waits for a busy host is not its time (Watch.pm).
package Machine;
use strict;
use warnings FATAL => 'all';
use IO::Socket::UNIX;
use POSIX 'WNOHANG';
use Time::HiRes qw(time sleep);
use Text;
use Watch;

use constant PAUSE => 0.02;    # seconds from look to look
$SIG{PIPE} = 'IGNORE';    # of a machine that ended

# The machine, stopped before its first instruction; it ends when it has had so many seconds. Its
# files are in the folder `dir`.
sub new
{
    my ($class, $dir, $seconds, @command) = @_;
    my $self = bless { dir => $dir, left => $seconds, last => { time => time, used => 0 } }, $class;
    mkdir $dir;
    unlink map { "$dir/$_" } qw(serial line monitor gdb);
    my @line = ('-chardev', "socket,id=line,path=$dir/line,server=on,wait=off,logfile=$dir/serial");
    push @line, qw(-serial chardev:line) if "@command" !~ /-serial/;
    push @command, @line, map { ('-chardev', "socket,id=$_,path=$dir/$_,server=on,wait=off") }
        qw(monitor gdb);
    push @command, qw(-mon chardev=monitor -gdb chardev:gdb -S -display none -no-reboot);
    my $us = $$;
    $self->{pid} = fork // die "fork: $!";
    if (!$self->{pid}) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', "$dir/output" or die "$dir/output: $!";
        open STDERR, '>&', \*STDOUT;
        Watch::follow($us) and do { exec @command };
        POSIX::_exit(2);
    }
    $self->{monitor} = $self->attach('monitor');
    $self->read_until('monitor', qr/\(qemu\) \z/);
    return $self;
}

sub attach
{
    my ($self, $name) = @_;
    while ($self->runs && !$self->late) {
        my $socket = IO::Socket::UNIX->new("$self->{dir}/$name");
        return $socket if $socket;
        sleep PAUSE;
    }
    my $output = Text::content("$self->{dir}/output");
    die "no $name: $output\n";
}

sub runs
{
    my ($self) = @_;
    $self->{status} = $?
        if !defined $self->{status} && waitpid($self->{pid}, WNOHANG) == $self->{pid};
    return !defined $self->{status};
}

# Whether it has had its time.
sub late
{
    my ($self) = @_;
    my $last = $self->{last};
    $self->{left} -= Watch::had($self->{pid}, $last) if time - $last->{time} >= Watch::LOOK;
    return $self->{left} <= 0;
}

# What comes from the monitor or gdb's side until it looks like that; undef if that does not come.
sub read_until
{
    my ($self, $name, $pattern) = @_;
    my $got = '';
    while ($got !~ $pattern) {
        return undef if $self->late;
        vec(my $bits = '', fileno $self->{$name}, 1) = 1;
        select $bits, undef, undef, Watch::LOOK or next;
        sysread $self->{$name}, my $chunk, 65536 or return undef;
        $got .= $chunk;
    }
    return $got;
}

# One line to QEMU's monitor; its answer.
sub monitor
{
    my ($self, $command) = @_;
    syswrite $self->{monitor}, "$command\n";
    return $self->read_until('monitor', qr/\(qemu\) \z/) // '';
}

# Types into the serial line. What the machine sends goes into the file all the same.
sub type
{
    my ($self, $text) = @_;
    syswrite $self->attach('line'), $text;
}

# One packet of gdb's remote protocol; the answer's text, undef if none comes (the machine ended,
# the time is over).
sub gdb
{
    my ($self, $text, $meanwhile) = @_;
    $self->{gdb} //= $self->attach('gdb');
    syswrite $self->{gdb}, sprintf '$%s#%02x', $text, unpack '%8C*', $text;
    $meanwhile->() if $meanwhile;
    my $answer = $self->read_until('gdb', qr/\$[^#]*#../) // return undef;
    syswrite $self->{gdb}, '+';
    return $answer =~ /\$([^#]*)#..\z/ ? $1 : undef;
}

# Runs the machine until some CPU reaches the address (hexadecimal), and stops all. False if that
# does not happen. `meanwhile` is called while it runs.
sub run_to
{
    my ($self, $address, $meanwhile) = @_;
    my $point = "1,$address,1";
    ($self->gdb("Z$point") // '') eq 'OK' or die "no breakpoint\n";
    my $stop = $self->gdb('c', $meanwhile) // return 0;
    $self->gdb("z$point") if $stop =~ /^T05/;
    return $stop =~ /^T05/;
}

# Lets it run.
sub go
{
    my ($self) = @_;
    return $self->monitor('cont') if !$self->{gdb};
    $self->gdb('D');
    close delete $self->{gdb};
}

# Whether the serial stream matched, from there on, before the machine ended or the time was over.
sub wait_for
{
    my ($self, $pattern, $from) = @_;
    my $matches = sub { substr($self->serial, $from // 0) =~ $pattern };
    while (!$matches->()) {
        return $matches->() if !$self->runs || $self->late;
        sleep PAUSE;
    }
    return 1;
}

# The serial stream so far, without carriage returns.
sub serial
{
    my ($self) = @_;
    return Text::content("$self->{dir}/serial") =~ tr/\r//dr;
}

# The seconds of processor time that its threads have used, to the nanosecond; 0: nobody says.
sub used
{
    my ($self) = @_;
    my $ns = 0;
    $ns += (split ' ', Text::content($_))[0] // 0 for glob "/proc/$self->{pid}/task/*/schedstat";
    return $ns / 1e9;
}

# Waits for the end; the exit status, -1 if it was killed or the time was over.
sub status
{
    my ($self) = @_;
    sleep PAUSE while $self->runs && !$self->late;
    my $status = $self->{status} // -1;
    return $status < 0 || $status & 127 ? -1 : $status >> 8;
}

sub DESTROY
{
    my ($self) = @_;
    local ($?, $!);
    return if !$self->runs;
    kill TERM => $self->{pid};
    waitpid $self->{pid}, 0;
}
1;
