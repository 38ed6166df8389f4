#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The image that `make iso` makes: what is in it, that machines of every kind start from it, and what their
# screens show, read back from screen dumps. Two machines run at a time (JOBS=2).
use strict;
use warnings FATAL => 'all';
no warnings 'qw';    # QEMU's options have commas
use lib 'tests';
use File::Temp 'tempdir';
use Test::More;
use Time::HiRes 'time';
use Screen;

my $build = $ENV{BUILD} // 'build';
my $iso = "$build/ntpmu.iso";
my $top = tempdir(CLEANUP => 1);
delete @ENV{qw(MAKEFLAGS MFLAGS)};

my @qemu = qw(qemu-system-x86_64 -m 256 -accel tcg -cpu max);
my @exit = qw(-device isa-debug-exit,iobase=0xf4,iosize=4);
my @cd = ('-cdrom', $iso);
my @stick = ('-drive', "if=none,id=stick,format=raw,readonly=on,file=$iso",
             qw(-device qemu-xhci -device usb-storage,drive=stick,bootindex=0));
my $verdict = qr/^# (?:PASS|FAIL|NONE|PANIC).*\n/m;
my $dir;    # of the running machine

sub uefi
{
    system 'cp', '/usr/share/OVMF/OVMF_VARS_4M.fd', "$dir/vars";
    return (qw(-M q35 -drive if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd),
            '-drive', "if=pflash,format=raw,file=$dir/vars");
}

# Chooses entries of the menu by their letters.
sub choose
{
    my (@keys) = @_;
    return [qr/highlighted entry/, sub { monitor('cont'); monitor("sendkey $_"), select undef, undef, undef, 0.5 for @keys }];
}

# What a stream that ended well must have; returns what is wrong.
sub stream_faults
{
    my ($log, %want) = @_;
    my @wrong;
    push @wrong, 'no begin marker' if $log !~ /^# ntpmu: begin$/m;
    my ($passed, $failed) = $log =~ /^# (\d+) passed, (\d+) failed, \d+ skipped, \d+ checks$/m;
    push @wrong, 'no totals' if !defined $failed;
    push @wrong, "$failed failed" if $failed;
    push @wrong, 'nothing passed' if !$passed;
    push @wrong, 'no verdict with checksum' if $log !~ /^# (PASS|NONE) .* \[\d+ bytes, crc32 [0-9a-f]{8}\]$/m;
    push @wrong, "does not match $_" for grep { $log !~ /$_/m } @{ $want{has} // [] };
    return @wrong;
}

# A machine that leaves a verdict by serial line. Returns what is wrong.
sub boots
{
    my ($has, $keys, @arguments) = @_;
    my ($log, $status) = watch($dir, 100, undef, @$keys ? [choose(@$keys)] : [], @qemu, @exit, @arguments);
    my @wrong = stream_faults($log, has => $has);
    push @wrong, "exit status $status" if $status != 33 && $status != 37;
    return (@wrong, @wrong ? substr $log, -1500 : ());
}

# Looks at the screen at the start, in the middle and at the end, with the stream beside it.
sub shows
{
    my ($kind, $keys, @arguments) = @_;
    my (%screen, @wrong);
    my $look = sub { my ($name) = @_; sub { $screen{$name} = [screen_text($dir)] } };
    my ($log) = watch($dir, 100, $verdict, [
        @$keys ? choose(@$keys) : (),
        [qr/^1\.\.\d+\n/m, $look->('start')],
        [qr/^ok 70 .*\n/m, $look->('middle')],
        [$verdict, sub { monitor('cont'); select undef, undef, undef, 1.5; monitor('stop'); $look->('end')->() }],
    ], @qemu, @arguments);
    push @wrong, "no $_ screen" for grep { !$screen{$_} } qw(start middle end);
    return (@wrong, substr $log, -1500) if @wrong;
    my %text = map { $_ => join "\n", map { $_->[0] } @{ $screen{$_} } } keys %screen;
    push @wrong, "not $kind" if $log !~ /^# screen: \d+ x \d+ $kind at /m;
    push @wrong, "$_: a letter cannot be read" for grep { $text{$_} =~ /\x7f/ } sort keys %text;
    push @wrong, 'start: no first line' if $text{start} !~ /^# ntpmu: begin$/m;
    push @wrong, 'middle: no ok' if $text{middle} !~ /^ok \d+ - \w+\.\w+/m;
    push @wrong, 'middle: no progress in the last line'
        if $text{middle} !~ /\n \w+\.\w+   \d+ of \d+, \d+%   \d+ s   0 failed, \d+ skipped\z/;
    my ($totals) = $log =~ /^# (\d+ passed, \d+ failed, \d+ skipped, \d+ checks)$/m;
    push @wrong, "end: no $_" for grep { $text{end} !~ /^$_/m } 'Machine  \w+, \d+ MB', 'CPU      \w', 'PMU      \w',
        $totals // 'totals', '# (PASS|NONE) ';
    push @wrong, 'end: no word of the key' if $text{end} !~ /restarts/;
    my %colour = map { ($_->[0] =~ /# SKIP/ ? 'skip' : $_->[0] =~ /^ok \d/ ? 'ok' : '') => $_->[1] } @{ $screen{middle} };
    push @wrong, 'ok and SKIP look the same' if ($colour{ok} // 1) eq ($colour{skip} // 2);
    return (@wrong, @wrong ? map { "$_:\n$text{$_}" } sort keys %text : ());
}

# A key at the end restarts the machine: with -no-reboot QEMU ends.
sub reboots
{
    my ($log, $status) = watch($dir, 60, undef, [[qr/^# FAIL.*\n/m, sub {
        monitor('cont');
        select undef, undef, undef, 1;
        monitor('sendkey spc');
    }]], @qemu, '-kernel', "$build/ntpmu.bin", '-append', 'tests=selfcheck.fail,selfcheck.pass');
    return $status == 0 ? () : ("exit status $status", substr $log, -800);
}

# A failed test stands on the last page with its line.
sub summary_names_failures
{
    my $text = '';
    my ($log) = watch($dir, 60, qr/^# FAIL/m, [[qr/^# FAIL.*\n/m, sub {
        monitor('cont');
        select undef, undef, undef, 1.5;
        monitor('stop');
        $text = join "\n", map { $_->[0] } screen_text($dir);
    }]], @qemu, '-kernel', "$build/ntpmu.bin", '-append', 'tests=selfcheck.fail,selfcheck.pass');
    return $text =~ m{^1 passed, 1 failed.*\n# FAIL 1 of 2 tests\n\n# tests/selfcheck\.c:\d+: .*want 3.*\nnot ok 1 - selfcheck\.fail$}m
        ? () : ($text, substr $log, -800);
}

# No serial port: the screen is all there is. The menu must not wait for the port either.
sub no_uart
{
    my $text = '';
    watch($dir, 60, qr/^/, [[qr/^/, sub {
        my $end = time + 50;
        while ($text !~ /restarts/ && time < $end) {
            monitor('cont');
            select undef, undef, undef, 1;
            monitor('stop');
            $text = join "\n", map { $_->[0] } screen_text($dir);
        }
    }]], @qemu, @cd, qw(-serial none));
    return $text =~ /^\d+ passed, 0 failed.*\n# (PASS|NONE) .*restarts/ms ? () : $text;
}

# A panic names the functions that led to it.
sub panics
{
    my ($log, $status) = watch($dir, 40, undef, [], @qemu, @exit, '-kernel', "$build/ntpmu.bin", '-append', 'tests=selfcheck.panic');
    return $status == 39 && $log =~ /^# PANIC .*on purpose\n# backtrace:\n#   \w+ test_selfcheck_panic\+0x\w+\n#   \w+ run_body\+/m
        ? () : ("exit status $status", substr $log, -800);
}

my $few = "tests=traps*,sched*,vm*";
# A machine that lacks something, started directly: `has` must be said, nothing fails.
sub degraded
{
    my ($line, $has, @arguments) = @_;
    return boots($has, [], '-kernel', "$build/ntpmu.bin", '-append', $line, @arguments);
}

my @jobs = (
    ['SeaBIOS, CD, 1 CPU', sub { boots(['^# ntpmu: boot by multiboot 1'], [], @cd) }],
    ['SeaBIOS, USB stick, 4 CPUs, verbose', sub {
        boots(['4 running', '^# traps\.nmi: \w', 'command line "verbose"'], ['s'], @stick, '-smp', 4) }],
    ['SeaBIOS, CD, 2 CPUs, the safe entry: one CPU', sub { boots(['1 running', '^# safe: '], ['f'], @cd, '-smp', 2) }],
    ['SeaBIOS, CD, one group by the second menu', sub {
        boots(['^# ntpmu: boot by multiboot 1.*sched\*', '^ok \d+ - traps\.fixup$'], ['o', 'k'], @cd) }],
    ['OVMF, USB stick, 2 CPUs', sub { boots(['^# ntpmu: boot by multiboot 2', '2 running'], [], uefi(), @stick, '-smp', 2) }],
    ['OVMF, CD: the framebuffer shows all', sub { shows('pixels', [], uefi(), '-drive',
        "if=none,id=cd,media=cdrom,readonly=on,file=$iso", qw(-device ide-cd,drive=cd,bootindex=0)) }],
    ['SeaBIOS, CD: VGA text shows all', sub { shows('characters', [], @cd) }],
    ['SeaBIOS, CD: graphics by the menu show all', sub { shows('pixels', ['g'], @cd) }],
    ['a key restarts the machine', \&reboots],
    ['the last page names what failed', \&summary_names_failures],
    ['a panic names functions', \&panics],
    ['no VGA: no screen, the serial line is enough', sub { degraded($few, ['^# screen: none'], qw(-vga none)) }],
    ['no UART: the screen is enough', \&no_uart],
    ['no ACPI: one CPU', sub { degraded($few, ['^# acpi: no RSDP', '1 running'], qw(-machine acpi=off -smp 4)) }],
    ['no HPET', sub { degraded($few, [], qw(-machine hpet=off)) }],
    ['no HPET: the virtual PMU steps, and says so', sub {
        degraded("vpmu=intel-v2 $few", ['^# vpmu: .*no HPET'], qw(-machine hpet=off -icount shift=0,sleep=off)) }],
    ['32 MB', sub { degraded($few, ['memory: (2\d|3[01]) MB'], qw(-m 32)) }],
    ['16 CPUs', sub { degraded($few, ['16 running'], qw(-smp 16)) }],
    (map { my $cpu = $_; ["unknown CPU: $cpu", sub { degraded($few, ['no PMU'], '-cpu', $cpu) }] }
        'qemu64', 'qemu64,vendor=WhoKnowsThis', 'Nehalem,vendor=CentaurHauls'),
    ['a corrupt command line', sub { degraded("\x01\xff== tests= vpmu= =x tests=,,* vpmu=nonsense " . 'y' x 400 . " $few",
        ['^# boot: not understood, ignored: .*=x', 'nonsense']) }],
);

# --- the image itself

my @checks = (
    ['at most 5 MB', sub { my $size = -s $iso // 0; $size && $size <= 5_000_000 ? () : "$size bytes" }],
    ['one BIOS and one UEFI image', sub {
        my $report = `xorriso -indev $iso -report_el_torito plain 2>/dev/null`;
        $report =~ /BIOS.*\n.*UEFI/ ? () : $report }],
    ['the same bytes again', sub {
        sleep 2;
        system "boot/mkiso $build/ntpmu.bin $top/again.iso >/dev/null 2>&1";
        system("cmp $iso $top/again.iso") ? 'other bytes' : () }],
);

# Words on the command line choose: prove tests/boot.t :: UEFI
@jobs = grep { my $job = $_; grep { $job->[0] =~ /$_/ } @ARGV } @jobs if @ARGV;

# A job runs in a process of its own; what it finds wrong it leaves in a file.
sub start
{
    my ($n) = @_;
    my $pid = fork // die "fork: $!";
    return $pid if $pid;
    $dir = tempdir(CLEANUP => 1);
    my @wrong = eval { $jobs[$n][1]->() };
    push @wrong, "died: $@" if $@;
    open my $out, '>', "$top/$n" or die;
    print $out map { tr/\n -~/?/cr . "\n" } @wrong;
    close $out;
    exit 0;
}

plan tests => @checks + @jobs;
for (@checks) {
    my @wrong = $_->[1]->();
    ok(!@wrong, "image: $_->[0]") or diag(@wrong);
}
my (%running, %done);
my $next = 0;
for my $n (0 .. $#jobs) {
    while (!$done{$n}) {
        $running{start($next)} = $next, $next++ while $next < @jobs && keys %running < ($ENV{JOBS} // 2);
        my $pid = wait;
        $done{ delete $running{$pid} } = 1 if exists $running{$pid};
    }
    open my $in, '<', "$top/$n";
    my @wrong = $in ? <$in> : 'no result';
    ok(!@wrong, $jobs[$n][0]) or diag(@wrong);
}
