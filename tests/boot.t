#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The image that `make iso` makes: what is in it, that machines of every kind start from it, and what their screens
# show, read back from screen dumps. Two machines run at a time (JOBS=2); their files stay in build/boot.
# Words on the command line choose: prove tests/boot.t :: UEFI
#
# The machines count instructions (-icount): however busy the host, their time is their own. 8 ns are short enough
# for GRUB's three seconds to pass and long enough for the kernel's time limits.
use strict;
use warnings FATAL => 'all';
no warnings 'qw';    # QEMU's options have commas
use lib 'tests';
use File::Path qw(make_path remove_tree);
use Test::More;
use Time::HiRes qw(time sleep);
use Machine;
use Screen;

my $build = $ENV{BUILD} // 'build';
my $iso = "$build/ntpmu.iso";
my $top = "$build/boot-tests";
delete @ENV{qw(MAKEFLAGS MFLAGS)};

my @plain = qw(qemu-system-x86_64 -accel tcg -cpu max -m 256);
my @qemu = (@plain, qw(-icount shift=3,sleep=off));
my @exit = qw(-device isa-debug-exit,iobase=0xf4,iosize=4);
my @cd = ('-cdrom', $iso);
my @stick = ('-drive', "if=none,id=stick,format=raw,readonly=on,file=$iso",
             qw(-device qemu-xhci -device usb-storage,drive=stick,bootindex=0));
my @uefi = (qw(-M q35 -drive if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd),
            qw(-drive if=pflash,format=raw,snapshot=on,file=/usr/share/OVMF/OVMF_VARS_4M.fd));
my @uefi_cd = (@uefi, '-drive', "if=none,id=cd,media=cdrom,readonly=on,file=$iso", qw(-device ide-cd,drive=cd,bootindex=0));
my $dir;    # of the running machine
my %address = map { /^(ffffffff\w+|0+1\w+) [tT] (\w+)$/ ? ($2 => $1) : () } `nm $build/ntpmu.elf`;

sub kernel { return ('-kernel', "$build/ntpmu.bin", '-append', @_) }

# Chooses entries of GRUB's menu by their keys.
sub choose
{
    my ($machine, @keys) = @_;
    for my $n (1 .. @keys) {
        $machine->wait_for(qr/(?:is highlighted.*?){$n}/s) or return "menu $n does not come";
        $machine->monitor("sendkey $keys[$n - 1]");
    }
    return;
}

# A machine that leaves a verdict by serial line: what tests/judge or we find wrong with it. `lists`: which skips may be.
sub boots
{
    my ($want, @arguments) = @_;
    my $machine = Machine->new($dir, 150, @qemu, @exit, @arguments);
    $machine->go;
    my @wrong = choose($machine, @{ $want->{keys} // [] });
    return (@wrong, stream_faults($machine->status, $machine->serial, %$want));
}

sub stream_faults
{
    my ($status, $log, %want) = @_;
    my $word = $want{verdict} // 'NONE';
    my @wrong = map { $log =~ /$_/m ? () : "does not match $_" } '^# \d+ passed, 0 failed', "^# $word ", @{ $want{has} // [] };
    my $judged = `TIMEOUT=20 SKIPS='all tcg @{[$want{lists} // '']}' tests/judge sh -c 'cat $dir/serial; exit $status'`;
    push @wrong, "tests/judge says $?" if $? >> 8 != ($word eq 'PASS' ? 0 : 77);
    push @wrong, grep { /^(?:not ok|# (?:BROKEN|CRASH|FAIL|tests))/ } split /^/, $judged if @wrong;
    return (@wrong, @wrong ? substr $log, -1500 : ());
}

my $rest = qr/\d+ of \d+   \d+%   \d+ s   \d+ failed, \d+ skipped/;

# Looks at the screen at the start, in the middle and at the end.
sub shows
{
    my ($kind, $keys, @arguments) = @_;
    my $machine = Machine->new($dir, 150, @qemu, @arguments);
    my (%lines, %text, @wrong);
    my $look = sub {
        my ($name) = @_;
        $lines{$name} = [screen_text($machine, $name)];
        $text{$name} = join "\n", map { $_->[0] } @{ $lines{$name} };
        push @wrong, "$name: a letter cannot be read" if $text{$name} =~ /\x7f/;
        return \$text{$name};
    };
    my $choose = sub { push @wrong, choose($machine, @$keys) };
    $machine->run_to($address{init_thread}, $choose) or return ('no start', substr $machine->serial, -1500);
    push @wrong, 'start: no first line' if ${ $look->('start') } !~ /^# ntpmu: begin$/m;
    push @wrong, 'start: no machine' if $text{start} !~ /^# cpu: .*running/m;
    $machine->run_to($address{test_profile_source_list}) or return ('no middle', substr $machine->serial, -1500);
    push @wrong, 'middle: no ok' if ${ $look->('middle') } !~ /^ok \d+ - \w+\.\w+/m;
    push @wrong, 'middle: no progress in the last line' if $text{middle} !~ /\n $rest   \w+\.\w+\z/;
    $machine->run_to($address{serial_received}) or return ('no last page', substr $machine->serial, -1500);
    my ($totals) = $machine->serial =~ /^# (\d+ passed, \d+ failed, \d+ skipped, \d+ checks)$/m;
    push @wrong, 'end: no status line' if ${ $look->('end') } !~ /Any key restarts the machine\.\z/;
    push @wrong, "end: no $_" for grep { $text{end} !~ /^$_/m } 'Machine  (BIOS|UEFI), \d+ MB', 'CPU      \w', 'PMU      \w',
        $totals // 'totals', '# (PASS|NONE) ';
    push @wrong, "not $kind" if $machine->serial !~ /^# screen: \d+ x \d+ $kind at /m;
    my %colour = map { ($_->[0] =~ /# SKIP/ ? 'skip' : $_->[0] =~ /^ok \d/ ? 'ok' : '') => $_->[1] } @{ $lines{middle} };
    push @wrong, 'ok and SKIP look the same' if ($colour{ok} // 1) eq ($colour{skip} // 2);
    return (@wrong, @wrong ? map { "$_:\n$text{$_}" } sort keys %text : ());
}

# The last page of a machine whose command line chooses a test that fails: it names it, with its line. Then a key.
sub ends_with_key
{
    my ($key) = @_;
    my $machine = Machine->new($dir, 60, @qemu, kernel('tests=selfcheck.fail,selfcheck.pass'));
    $machine->run_to($address{serial_received}) or return ('no end', $machine->serial);
    my $text = join "\n", map { $_->[0] } screen_text($machine, 'end');
    my @wrong = $text =~ m{^1 passed, 1 failed.*\n# FAIL 1 of 2 tests\n\n# tests/selfcheck\.c:\d+: .*want 3.*\nnot ok 1 - selfcheck\.fail\n\n+ The end}m
        ? () : ('the last page does not name what failed', $text);
    $machine->go;
    sleep 0.5;
    push @wrong, 'it did not wait for a key' if !$machine->runs;
    $machine->monitor("sendkey $key");
    my $status = $machine->status;    # with -no-reboot QEMU ends
    return (@wrong, $status == 0 ? () : "exit status $status after the key");
}

# No serial port: the screen is all there is. GRUB must not wait for the port either.
sub no_uart
{
    my (@arguments) = @_;
    my $machine = Machine->new($dir, 150, @qemu, @arguments, qw(-serial none));
    $machine->run_to($address{serial_received}) or return 'no end';
    my $text = join "\n", map { $_->[0] } screen_text($machine, 'end');
    return $text =~ /^\d+ passed, 0 failed.*\n# NONE .*restarts/ms ? () : $text;
}

# A panic prints registers and names the functions that led to it.
sub panics
{
    my ($test, $pattern) = @_;
    my $machine = Machine->new($dir, 60, @qemu, @exit, kernel("tests=selfcheck.$test"));
    $machine->go;
    my ($status, $log) = ($machine->status, $machine->serial);
    return $status == 39 && $log =~ $pattern ? () : ("exit status $status", substr $log, -1500);
}

# The emulator's own log of interrupts knows whether an NMI (vector 2) was taken.
sub nmis
{
    my ($want, @arguments) = @_;
    my $machine = Machine->new($dir, 100, @qemu, @exit, @arguments, '-d', 'int', '-D', "$dir/interrupts");
    $machine->go;
    my ($status, $log) = ($machine->status, $machine->serial);
    my $found = () = Machine::read_file("$dir/interrupts") =~ /^ *\d+: v=02 /mg;
    unlink "$dir/interrupts";
    my @wrong = $log =~ /^# \d+ passed, 0 failed/m ? () : ("exit status $status", substr $log, -1500);
    push @wrong, "$found NMIs" if !$want != !$found;
    return @wrong;
}

my $few = 'tests=traps*,sched*,vm*,ring3*';
# A machine that lacks something, started directly: `has` must be said, nothing fails.
sub degraded
{
    my ($line, $has, @arguments) = @_;
    return boots({ has => $has }, kernel($line), @arguments);
}

my @jobs = (
    ['SeaBIOS, CD, 1 CPU: GRUB waits three seconds, then starts', sub { boots({ has => ['^# ntpmu: boot by multiboot 1, command line ""'] }, @cd) }],
    ['SeaBIOS, USB stick, 4 CPUs, verbose', sub {
        boots({ keys => ['s'], has => ['4 running', '^# traps\.nmi: \w', 'command line "verbose"'] }, @stick, qw(-smp 4)) }],
    ['SeaBIOS, CD, 2 CPUs, the safe entry: one CPU', sub {
        boots({ keys => ['f'], has => ['1 running', '^# safe: '] }, @cd, qw(-smp 2)) }],
    ['SeaBIOS, CD, one group by the second menu', sub {
        boots({ keys => ['o', 'k'], has => ['^# ntpmu: boot by multiboot 1.*sched\*', '^ok \d+ - traps\.fixup$'] }, @cd) }],
    ['OVMF, USB stick, 2 CPUs', sub {
        boots({ keys => ['ret'], has => ['^# ntpmu: boot by multiboot 2', '2 running'] }, @uefi, @stick, qw(-smp 2)) }],
    ['OVMF, USB stick, neither screen nor keyboard', sub { boots({ has => ['^# screen: none'] }, @uefi, @stick, qw(-vga none)) }],
    ['OVMF, CD: the framebuffer shows all', sub { shows('pixels', [], @uefi_cd) }],
    ['SeaBIOS, CD: VGA text shows all', sub { shows('characters', [], @cd) }],
    ['SeaBIOS, CD: graphics by the menu show all', sub { shows('pixels', ['g'], @cd) }],
    ['the last page names what failed; a key restarts the machine', sub { ends_with_key('spc') }],
    ['a panic names functions', sub {
        panics('panic', qr/^# PANIC .*on purpose\n# backtrace:\n#   \w+ test_selfcheck_panic\+0x\w+\n#   \w+ run_body\+/m) }],
    ['no UART: the screen is enough, SeaBIOS', sub { no_uart(@cd) }],
    ['no UART: the screen is enough, OVMF', sub { no_uart(@uefi, @stick) }],
    ['no VGA: no screen, the serial line is enough', sub { degraded($few, ['^# screen: none'], qw(-vga none)) }],
    ['no ACPI: one CPU', sub { degraded($few, ['^# acpi: no RSDP', '1 running'], qw(-machine acpi=off -smp 4)) }],
    ['no HPET', sub { degraded($few, [], qw(-machine hpet=off)) }],
    ['32 MB', sub { degraded($few, ['memory: (2\d|3[01]) MB'], qw(-m 32)) }],
    ['16 CPUs', sub { degraded($few, ['16 running'], qw(-smp 16)) }],
    (map { my $cpu = $_; ["unknown CPU: $cpu", sub { degraded($few, ['no PMU'], '-cpu', $cpu) }] }
        'qemu64', 'qemu64,vendor=WhoKnowsThis', 'Nehalem,vendor=CentaurHauls'),
    ['a corrupt command line', sub { degraded("\x01\xff== tests= vpmu= =x tests=,,* vpmu=nonsense " . 'y' x 400 . " $few",
        ['^# boot: not understood, ignored: .*=x', 'nonsense']) }],
    ['NMIs are there where they may be', sub { nmis(1, kernel('tests=traps*'), qw(-smp 2)) }],
    ['safe: not one NMI', sub { nmis(0, kernel('safe pmi=nmi tests=traps*,smp*,sched*'), qw(-smp 2)) }],
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

# A job runs in a process of its own; what it finds wrong it leaves in its folder.
sub start
{
    my ($n) = @_;
    my $pid = fork // die "fork: $!";
    return $pid if $pid;
    $dir = "$top/$n";
    mkdir $dir;
    my @wrong = eval { $jobs[$n][1]->() };
    push @wrong, "died: $@" if $@;
    open my $out, '>', "$dir/wrong" or die "$dir/wrong: $!";
    print $out map { tr/\n -~/?/cr . "\n" } @wrong;
    close $out;
    POSIX::_exit(0);
}

@jobs = grep { my $job = $_; grep { $job->[0] =~ /$_/ } @ARGV } @jobs if @ARGV;
remove_tree($top);
make_path($top);
plan tests => @checks + @jobs;
for (@checks) {
    my @wrong = $_->[1]->();
    ok(!@wrong, "image: $_->[0]") or diag(@wrong);
}
my (%running, %done);
my $next = 0;
for my $n (0 .. $#jobs) {
    while (!$done{$n}) {
        $running{ start($next) } = $next, $next++ while $next < @jobs && keys %running < ($ENV{JOBS} // 2);
        my $pid = wait;
        $done{ delete $running{$pid} } = 1 if exists $running{$pid};
    }
    my $wrong = -e "$top/$n/wrong" ? Machine::read_file("$top/$n/wrong") : 'no result';
    ok($wrong eq '', $jobs[$n][0]) or diag($wrong, "its files: $top/$n");
}
