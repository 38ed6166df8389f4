#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The image that `make iso` makes: machines of every kind start from it, and what their screens show
# is read back from screen dumps. tests/machines/image.t looks at what is in it. Two machines run at
# a time (JOBS=2); their files stay in build/boot-tests. Words on the command line choose:
# prove tests/machines/boot.t :: UEFI
#
# The machines count instructions (-icount): however busy the host, their time is their own. 4 ns
# for each are enough to wait for firmware, and few enough for the kernel's time limits; UEFI waits
# longer: 32 ns, and one group of tests.
use strict;
use warnings FATAL => 'all';
no warnings qw(qw portable);    # QEMU's options have commas, addresses 64 bits
use lib 'tests/tools';
use Environment;
use File::Path qw(make_path remove_tree);
use Test::More;
use Time::HiRes qw(time sleep);
use Machine;
use Screen;
use Text;

use constant {
    LOG_MAX => 60_000, # bytes, not verbose
    LONGEST => 400,    # seconds that a machine may have
};

my $build = $ENV{BUILD} // 'build';
my $iso = "$build/ntpmu.iso";
my $top = "$build/boot-tests";
delete @ENV{qw(MAKEFLAGS MFLAGS)};

my @all = qw(qemu-system-x86_64 -accel tcg -cpu max -m 256 -nic none);
my @plain = (@all, qw(-nodefaults -vga std)); # firmware and GRUB wait long for a floppy disk
my @qemu = (@plain, qw(-icount shift=2,sleep=off));
my @slow = (@plain, qw(-icount shift=5,sleep=off));
my @by_ns = (@plain, qw(-icount shift=0,sleep=off));    # what the virtual PMU wants
my @exit = qw(-device isa-debug-exit,iobase=0xf4,iosize=4);
my @cd = ('-cdrom', $iso);
my @stick = ('-drive', "if=none,id=stick,format=raw,readonly=on,file=$iso",
             qw(-device qemu-xhci -device usb-storage,drive=stick,bootindex=0));
my @uefi = (qw(-M q35 -drive if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd),
            qw(-drive if=pflash,format=raw,snapshot=on,file=/usr/share/OVMF/OVMF_VARS_4M.fd));
my @uefi_cd = (@uefi, '-drive', "if=none,id=cd,media=cdrom,readonly=on,file=$iso",
               qw(-device ide-cd,drive=cd,bootindex=0));
my @secure = (qw(-M q35,smm=on -global driver=cfi.pflash01,property=secure,value=on),
              map { s/CODE_4M/$&.secboot/r =~ s/VARS_4M/$&.ms/r } @uefi_cd[2 .. $#uefi_cd]);
my $dir;    # of the running machine
my $few = 'tests=traps*,sched*,vm*,ring3*,screen*';
my %address = map { /^(ffffffff\w+|0+1\w+) [tT] (\w+)$/ ? ($2 => $1) : () } `nm $build/ntpmu.elf`;

sub kernel { return ('-kernel', "$build/ntpmu.bin", '-append', @_) }

# Presses a key of QEMU's keyboard; "serial x": by serial line.
sub press
{
    my ($machine, $key) = @_;
    return $key =~ /^serial (.)/ ? $machine->type($1) : $machine->monitor("sendkey $key");
}

# Chooses entries of GRUB's menus by their keys, each when its own menu is there, which may be drawn
# twice: a key that comes early may be lost.
sub choose
{
    my ($machine, @keys) = @_;
    my $from = 0;
    for my $key (@keys) {
        my $letter = $key eq 'ret' ? 't' : substr $key, -1;
        $machine->wait_for(qr/ highlighted.*\b$letter - /s, $from) or return "no menu with $letter";
        $from = length $machine->serial;
        press($machine, $key);
    }
    return;
}

# A machine that leaves a verdict by serial line: what tests/tools/judge or we find wrong with it.
# `lists`: which skips may be.
sub boots
{
    my ($want, @arguments) = @_;
    my $machine = Machine->new($dir, LONGEST, @{ $want->{machine} // \@qemu }, @exit, @arguments);
    $machine->go;
    my @wrong = choose($machine, @{ $want->{keys} // [] });
    return (@wrong, stream_faults($machine->status, $machine->serial, %$want));
}

# Nobody chooses. GRUB asks the firmware for a key again and again, and by this clock less often; so
# only the start is looked at.
sub counts_down
{
    my $machine = Machine->new($dir, LONGEST, @all, qw(-icount shift=7,sleep=off), @cd);
    $machine->run_to($address{init_thread}) or return ('no start', $machine->serial);
    my ($log, $seconds) = ($machine->serial, '');
    $seconds .= $1 while $log =~ /executed automatically in (\d)s/g;
    return $seconds eq '3210' && $log =~ /^# ntpmu: boot by multiboot 1, command line ""$/m
        ? () : $log;
}

# By the menu, up to the first test of a group: what the log has said by then.
sub begins
{
    my ($keys, $group, $says, @arguments) = @_;
    my $machine = Machine->new($dir, LONGEST, @arguments);
    my @wrong;
    my ($end) = sort grep { /^test_${group}_/ } keys %address;
    $machine->run_to($address{$end}, sub { @wrong = choose($machine, @$keys) })
        or push @wrong, 'no end';
    my $log = $machine->serial;
    push @wrong, map { $log =~ /$_/m ? () : "not $_" } @$says;
    return @wrong || $log =~ /^not ok/m ? (@wrong, substr $log, -1500) : ();
}

sub stream_faults
{
    my ($status, $log, %want) = @_;
    my $word = $want{verdict} // 'NONE';
    my @wrong = map { $log =~ /$_/m ? () : "does not match $_" } '^# \d+ passed, 0 failed',
        "^# $word ", @{ $want{has} // [] };
    my $skips = 'tcg one ' . ($want{lists} // '');
    my $shown = "cat $dir/serial; exit $status";
    my $judged = `TIMEOUT=20 SKIPS='$skips' tests/tools/judge sh -c '$shown'`;
    push @wrong, "tests/tools/judge says $?" if $? >> 8 != ($word eq 'PASS' ? 0 : 77);
    my ($bytes) = $log =~ /\[(\d+) bytes, crc32 /;
    push @wrong, "a log of $bytes bytes"
        if ($bytes // 0) > LOG_MAX && $log !~ /^# ntpmu: boot .*verbose/m;
    push @wrong, grep { /^(?:not ok|# (?:BROKEN|CRASH|FAIL|tests))/ } split /^/, $judged if @wrong;
    return (@wrong, @wrong ? substr $log, -1500 : ());
}

my $rest = qr/\d+ of \d+   \d+%   \d+ s   \d+ failed, \d+ skipped/;

# Text that lines may have ended in anywhere.
sub flat { return $_[0] =~ s/\s+//gr }

# Looks at the screen at the start, in the middle and at the end.
sub shows
{
    my ($kind, $keys, @arguments) = @_;
    my $machine = Machine->new($dir, LONGEST, @arguments);
    my (%lines, %text, @wrong);
    my $look = sub {
        my ($name) = @_;
        $lines{$name} = [screen_text($machine, $name)];
        $text{$name} = join "\n", map { $_->[0] } @{ $lines{$name} };
        push @wrong, "$name: a letter cannot be read" if $text{$name} =~ /\x7f/;
        return \$text{$name};
    };
    my $choose = sub { push @wrong, choose($machine, @$keys) };
    $machine->run_to($address{init_thread}, $choose)
        or return ('no start', substr $machine->serial, -1500);
    push @wrong, 'start: no first line' if ${ $look->('start') } !~ /^# ntpmu: begin$/m;
    push @wrong, 'start: no machine' if $text{start} !~ /^# running: /m;
    my ($middle) = sort grep { /^test_sched_/ } keys %address;
    $machine->run_to($address{$middle}) or return ('no middle', substr $machine->serial, -1500);
    push @wrong, 'middle: no ok' if ${ $look->('middle') } !~ /^ok \d+ - \w+\.\w+/m;
    push @wrong, 'middle: no progress in the last line' if $text{middle} !~ /\n $rest   \w+\.\w+\z/;
    $machine->run_to($address{serial_received})
        or return ('no last page', substr $machine->serial, -1500);
    my ($totals) = $machine->serial =~ /^# (\d+ passed, \d+ failed, \d+ skipped, \d+ checks)$/m;
    push @wrong, 'end: no status line' if ${ $look->('end') } !~ /Any key restarts the machine\.\z/;
    push @wrong, "end: no $_" for grep { $text{end} !~ /^$_/m }
        'Machine  (BIOS|UEFI), \d+ MB', 'CPU      \w', 'PMU      \w',
        '# (PASS|NONE) ';
    push @wrong, 'end: no totals' if !$totals || index(flat($text{end}), flat($totals)) < 0;
    push @wrong, code_faults($machine, $build, '');
    push @wrong, "not $kind" if $machine->serial !~ /^# screen: \d+ x \d+ $kind at /m;
    my %colour = map { ($_->[0] =~ /# SKIP/ ? 'skip' : $_->[0] =~ /^ok \d/ ? 'ok' : '') => $_->[1] }
        @{ $lines{middle} };
    push @wrong, 'ok and SKIP look the same' if ($colour{ok} // 1) eq ($colour{skip} // 2);
    return (@wrong, @wrong ? map { "$_:\n$text{$_}" } sort keys %text : ());
}

# The last page of a machine whose command line chooses a test that fails: it names it, with its
# line. Then a key.
sub ends_with_key
{
    my ($key) = @_;
    my $machine = Machine->new($dir, LONGEST, @qemu, kernel('tests=selfcheck.fail,selfcheck.pass'));
    $machine->run_to($address{serial_received}) or return ('no end', $machine->serial);
    my $text = join "\n", map { $_->[0] } screen_text($machine, 'end');
    my $page = qr{1passed,1failed,.*?\#FAIL1of2tests.*
                  \#tests/harness/selfcheck\.c:\d+:.*want3.*notok1-selfcheck\.failTheend}x;
    my @wrong = flat($text) =~ $page
        ? () : ('the last page does not name what failed', $text);
    push @wrong, code_faults($machine, $build, ' selfcheck.fail');
    my %colour = map { $_->[0] => $_->[1] } screen_text($machine, 'end');
    push @wrong, 'what failed is not red' if ($colour{'not ok 1 - selfcheck.fail'} // 0) != 0x0c;
    $machine->monitor("o/b $_") for '0x64 0xd3', '0x60 1'; # the mouse's byte, not the keyboard's
    $machine->go;
    sleep 1;
    push @wrong, 'it did not wait for a key' if !$machine->runs;
    press($machine, $key);
    my $status = $machine->status;    # with -no-reboot QEMU ends
    return (@wrong, $status == 0 ? () : "exit status $status after the key");
}

# More tests fail than a QR code on a text screen, and the page, can hold: the rest is counted.
sub many_failures
{
    my $failing = 'selfcheck.fail,selfcheck.empty,selfcheck_leaves.irql,selfcheck_leaves.f*';
    my $machine = Machine->new($dir, LONGEST, @qemu, kernel("tests=$failing"));
    $machine->run_to($address{serial_received}) or return ('no end', $machine->serial);
    my $text = join "\n", map { $_->[0] } screen_text($machine, 'end');
    my @wrong = $text =~ /^and \d+ lines more, by serial$/m ? ()
        : ('the last page does not count what it leaves out', $text);
    return (@wrong, code_faults($machine, $build, ' selfcheck.empty selfcheck.fail +5'));
}

# No serial port: the screen is all there is. GRUB must not wait for the port either. Two keys
# choose a group of tests, whenever the menu comes.
sub no_uart
{
    my (@arguments) = @_;
    my $machine = Machine->new($dir, LONGEST, @qemu, @arguments, qw(-serial none));
    my $choose = sub {
        for (my @keys = qw(o k); $machine->monitor('info status') =~ /running/; sleep 1) {
            press($machine, $keys[0]);
            @keys = reverse @keys;
        }
    };
    $machine->run_to($address{init_thread}, $choose) or return 'no start';
    $machine->run_to($address{serial_received}) or return 'no end';
    my $text = join "\n", map { $_->[0] } screen_text($machine, 'end');
    return $text =~ /^\d+ passed, 0 failed.*\n# NONE .*restarts/ms ? () : $text;
}

# A panic prints registers and names the functions that led to it.
sub panics
{
    my ($test, $pattern) = @_;
    my $machine = Machine->new($dir, LONGEST, @qemu, @exit, kernel("tests=selfcheck.$test"));
    $machine->go;
    my ($status, $log) = ($machine->status, $machine->serial);
    return $status == 39 && $log =~ $pattern ? () : ("exit status $status", substr $log, -1500);
}

# The argument of the function whose first instruction the machine reached.
sub argument
{
    my ($machine) = @_;
    return unpack 'H*', reverse pack 'H*', substr $machine->gdb('g'), 5 * 16, 16;    # RDI
}

# Puts bytes where the machine has them in its virtual memory.
sub poke
{
    my ($machine, $at, $bytes) = @_;
    $machine->gdb(sprintf 'M%s,%x:%s', $at, length $bytes, unpack 'H*', $bytes) eq 'OK'
        or die "cannot write to memory\n";
}

# A machine whose page is like `page`. It ends by a key, or by itself if that is '', with this exit
# status.
sub restarts
{
    my ($page, $key, $want, $line, $early, @arguments) = @_;
    my $machine = Machine->new($dir, LONGEST, @qemu, kernel("tests=selfcheck.pass $line"),
                               @arguments);
    $early->($machine) if $early;
    $machine->run_to($address{serial_received}) or return ('no end', $machine->serial);
    my $text = join "\n", map { $_->[0] } screen_text($machine, 'end');
    my @wrong = $text =~ $page ? () : $text;
    $machine->go;
    press($machine, $key) if $key;
    my $status = $machine->status;    # with -no-reboot QEMU ends
    return (@wrong, $status == $want ? () : "exit status $status");
}

# An FADT whose reset register is the port of a device that ends QEMU with status 2 * 2Ah + 1.
# Before acpi_read the tables are read once for the console.
sub odd_reset
{
    my ($machine) = @_;
    $machine->run_to($address{$_}) or die "no $_\n" for qw(acpi_read acpi_parse_fadt);
    my $table = argument($machine);
    poke($machine, sprintf('%x', hex($table) + 116), pack 'C4 Q< C', 1, 8, 0, 1, 0x501, 0x2a);
}

# Memory of the loader's map begins higher, in the middle of page 8000h: other CPUs start in another
# page, or where the map has none, not at all.
sub low_memory
{
    my ($start, @says) = @_;
    my $machine = Machine->new($dir, LONGEST, @qemu, @exit, kernel('tests=smp*'), qw(-smp 3));
    $machine->run_to($address{move_reach}) or die "no move_reach\n";
    my $first = `nm $build/ntpmu.elf` =~ /^(\w+) \w boot_info$/m ? hex($1) + 512 : die;
    poke($machine, sprintf('%x', $first), pack 'Q< Q<', $start, 0x9f000 - $start);
    $machine->go;
    $machine->status;
    my $log = $machine->serial;
    return map { $log =~ $_ ? () : "not $_:\n$log" } qr/^# \d+ passed, 0 failed/m, @says;
}

# A machine whose loader announces a framebuffer above 4 GB, as no loader here would: put in where
# the kernel reads it. What the kernel draws there is read from memory: the first lines before the
# kernel has page tables of its own, and the last page.
sub high_framebuffer
{
    my ($address, $width, $height) = (5 << 30, 800, 600);
    my ($pixels, @wrong);
    my $machine = Machine->new($dir, LONGEST, @by_ns, kernel("vpmu=amd-v2 $few"), qw(-m 6G));
    my $read = sub {
        $machine->monitor(sprintf 'pmemsave 0x%x %d "%s"', $address, 4 * $width * $height,
                          "$dir/pixels");
        $pixels = Text::content("$dir/pixels") =~ s/(.)(.)(.)./$3$2$1/gsr;
        return join "\n", map { $_->[0] } pixels_text(\$pixels, $width, $height);
    };
    $machine->run_to($address{move_reach}) or die "no move_reach\n";
    poke($machine, argument($machine),
         pack 'Q< V3 C4', $address, 4 * $width, $width, $height, 2, 16, 8, 0);
    $machine->run_to($address{vm_init}) or die "no vm_init\n";
    push @wrong, 'the first line is missing' if $read->() !~ /^# ntpmu: begin$/m;
    $machine->run_to($address{serial_received}) or die 'no end: ', $machine->serial;
    my $text = $read->();
    Text::save("$dir/end.ppm", "P6\n$width $height\n255\n$pixels");
    push @wrong, $text if $text !~ /^\d+ passed, 0 failed.*\n# PASS .*restarts/ms;
    # A screen has 150 x 29 cells of 30 stores each.
    push @wrong, 'what a scroll costs' if $machine->serial !~ /^# screen: (\d+) scrolls, (\d+) /m
        || !$1 || !$2 || $2 > 150 * 29 * 30;
    return (@wrong, code_faults($machine, $build, ''));
}

# gdb as `make debug` starts it, on a port of its own, with a program of ring 3.
sub debugs
{
    my $port = 20000 + $$ % 10000;
    my $machine = 'PROGRAM=tests/samples/inline.c PMU=amd-v2';
    my $log = `make -s debug BUILD=$build GDB_PORT=$port $machine \\
        GDB_ARGS="-batch -ex 'hbreak main' -ex continue -ex backtrace" </dev/null 2>&1`;
    return $log =~ /^Breakpoint 1, kernel_main .* at kernel\/main\.c:\d+$/ms
        && $log =~ /^#0 +main \(\) at tests\/samples\/inline\.c:\d+$/m
        ? () : $log;
}

# `make iso` with a program, its library and a driver; the menu's first entry runs them.
sub program_on_stick
{
    my $windows = "$Environment::WIN_CC -O2 -s";
    system "echo 'int answer(void) { return 42; }' >$dir/own.c;"
        . " echo 'int answer(void); int main(int n, char **v) { return answer() - 40 - n; }'"
        . " >$dir/main.c; $windows -shared -o $dir/own.dll $dir/own.c &&"
        . " $windows -o $dir/brought.exe $dir/main.c $dir/own.dll";
    my $made = `make -s iso BUILD=$build PROGRAM=$dir/brought.exe PROGRAM_ARGS=one \\
        DLL=$dir/own.dll DRIVER=tests/samples/hello_driver.c </dev/null 2>&1`;
    my @drive = map { s/\Q$iso\E/$build\/program\/ntpmu.iso/r } @stick;
    my $machine = Machine->new($dir, LONGEST, @plain, @exit, @drive);
    $machine->go;
    my ($status, $log) = ($machine->status, $machine->serial);
    return $status == 33 && $log =~ /^.*hello_driver goes$/m
        && $log =~ /^# PASS the program ended with 0$/m ? () : ($made, substr $log, -1500);
}

# The emulator's own log of interrupts knows whether an NMI (vector 2) was taken. `want` has the
# rest, as for boots().
sub nmis
{
    my ($taken, $want, @arguments) = @_;
    my $machine = Machine->new($dir, LONGEST, @{ $want->{machine} // \@qemu }, @exit, @arguments,
                               '-d', 'int', '-D', "$dir/interrupts");
    $machine->go;
    my @wrong = stream_faults($machine->status, $machine->serial, %$want);
    my $found = () = Text::content("$dir/interrupts") =~ /^ *\d+: v=02 /mg;
    unlink "$dir/interrupts";
    push @wrong, "$found NMIs" if !$taken != !$found;
    return @wrong;
}

# A machine that lacks something, started directly: `has` must be said, nothing fails.
sub degraded
{
    my ($line, $has, @arguments) = @_;
    return boots({ has => $has }, kernel($line), @arguments);
}

my @jobs = (
    ['SeaBIOS, CD, 1 CPU: GRUB waits three seconds, then starts', \&counts_down],
    ['SeaBIOS, USB stick, 4 CPUs, verbose', sub {
        begins(['s'], 'copy', ['^# running: 4 CPUs,', '^# clock\.\w+: \w', '^ok ',
                              'command line "verbose"'], @qemu, @stick, qw(-smp 4)) }],
    ['SeaBIOS, USB stick, a program with its library and a driver', \&program_on_stick],
    ['SeaBIOS, CD, the virtual PMU by the menu: it counts', sub {
        begins([qw(u i)], 'dispatcher', ['^# pmu: intel version 2, ', '^ok \d+ - cost\.\w+\s*$'],
               @by_ns, @cd) }],
    ['SeaBIOS, CD, 2 CPUs, the safe entry: one CPU', sub {
        begins(['f'], 'copy', ['^# running: 1 CPU,', '^# safe: ', '^ok '], @qemu, @cd,
               qw(-smp 2)) }],
    ['SeaBIOS, CD, no screen: the menu by serial line', sub {
        boots({ keys => ['serial o', 'serial k'],
                has => ['^# ntpmu: boot by multiboot 1.*sched\*', '^# screen: none'] },
              @cd, qw(-vga none)) }],
    ['OVMF, USB stick, 2 CPUs, neither screen nor keyboard', sub {
        boots({ keys => ['serial o', 'serial k'], machine => \@slow,
                has => ['^# ntpmu: boot by multiboot 2', '^# running: 2 CPUs,', '^# screen: none',
                        '^# board: QEMU .*; UEFI .*(?:EFI Development Kit II|EDK II)'] },
              @uefi, @stick, qw(-smp 2 -vga none)) }],
    ['OVMF, CD: the framebuffer shows all', sub { shows('pixels', [qw(o k)], @slow, @uefi_cd) }],
    ['OVMF with enrolled keys says what doc/machines.md says of it', sub {
        my $machine = Machine->new($dir, LONGEST, @plain, @secure);
        $machine->go;
        return $machine->wait_for(qr/^BdsDxe: failed to load .*: Access Denied$/m) ? ()
            : ('no Access Denied', substr $machine->serial, -1500) }],
    ['SeaBIOS, CD: VGA text shows all', sub { shows('characters', ['ret'], @qemu, @cd) }],
    ['SeaBIOS, CD: graphics by the menu show all', sub { shows('pixels', ['g'], @qemu, @cd) }],
    ['the last page names what failed; a key restarts the machine', sub { ends_with_key('spc') }],
    ['more failures than fit are counted', \&many_failures],
    ['no PS/2 keyboard: the page counts down, then the machine restarts', sub {
        restarts(qr/No keyboard is seen: a restart in 1 s\.\z/, '', 0, 'restart=1', undef,
                 qw(-machine pc,i8042=off)) }],
    ["firmware's reset register is the first that is tried", sub {
        restarts(qr/Any key restarts the machine\.\z/, 'spc', 85, '', \&odd_reset,
                 qw(-machine q35 -device isa-debug-exit,iobase=0x501,iosize=1)) }],
    ['a panic shows registers and names functions', sub {
        panics('panic',
               qr/^\#\ PANIC\ .*on\ purpose\n\#\ rsp\ .*\n\#\ backtrace:\n
                  \#\ +\w+\ test_selfcheck_panic\+0x\w+\n\#\ +\w+\ run_body\+/mx) }],
    ['an exception in ring 0 too', sub {
        panics('exception',
               qr/^\#\ PANIC\ .*exception\ 14,\ error\ 2,\ address\ ffffffff80000010\n
                  (?:\#\ r.*\n){3}\#\ +\w+\ test_selfcheck_exception\+/mx) }],
    ['make debug: gdb knows the kernel and ring 3', \&debugs],
    ['no UART: the screen is enough', sub { no_uart(@cd) }],
    ['a framebuffer above 4 GB, with the virtual PMU', \&high_framebuffer],
    ['page 8000h is not memory: CPUs start elsewhere', sub {
        low_memory(0x8800, qr/^# smp: page 8000 is not free: CPUs start at 9000$/m,
                   qr/^# running: 3 CPUs,/m) }],
    ['the console is the second port, by serial=', sub {
        boots({}, kernel("serial=2 $few"), qw(-serial null -serial chardev:line)) }],
    ['the console is the first port where serial= names none, or one without a UART', sub {
        map { degraded("serial=$_->[0] $few", ["^# serial: not the console.*: $_->[1]\$"]) }
            [3, 'no UART is there'], [5, 'a number from 1 to 4 is wanted'],
            [22, 'a number .*'] }],
    ["the console is the port that firmware's table names", sub {
        Text::save("$dir/spcr", pack 'a4 V C2 a6 a8 V a4 V C4 C4 Q< x28', 'SPCR', 80, 2, 0, 'ours',
                   'ours', 1, 'ours', 1, 0, 0, 0, 0, 1, 8, 0, 1, 0x2f8);
        boots({}, kernel($few), '-acpitable', "file=$dir/spcr",
              qw(-serial null -serial chardev:line)) }],
    ['a CPU of an unknown vendor', sub {
        degraded($few, ['no PMU'], qw(-cpu qemu64,vendor=WhoKnowsThis)) }],
    ['a corrupt command line', sub {
        degraded("\x01\xff== tests= vpmu= =x tests=,,* vpmu=nonsense " . 'y' x 400 . " $few",
                 ['^# boot: not understood, ignored: .*=x', 'nonsense']) }],
    ['NMIs are there where they may be',
     sub { nmis(1, {}, kernel('tests=traps*'), qw(-smp 2)) }],
    ['safe, with the virtual PMU: it steps, and has no NMI to give', sub {
        nmis(0, { verdict => 'PASS', lists => 'amd-v2', machine => \@by_ns,
                  has => ['^# vpmu: .*every counted instruction stepped',
                          '^ok \d+ - pmu_nmi\.gp0 # SKIP safe: no NMI'] },
             kernel('safe vpmu=amd-v2 tests=pmu_nmi*,pmu_pmi.*')) }],
    ['safe: not one NMI', sub {
        nmis(0, {}, kernel('safe pmi=nmi tests=traps*,smp*,sched*'), qw(-smp 2)) }],
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
    Text::save("$dir/wrong", join '', map { tr/\n -~/?/cr . "\n" } @wrong);
    POSIX::_exit(0);
}

@jobs = grep { my $job = $_; grep { $job->[0] =~ /$_/ } @ARGV } @jobs if @ARGV;
remove_tree($top);
make_path($top);
plan tests => scalar @jobs;
my (%running, %done);
my $next = 0;
for my $n (0 .. $#jobs) {
    while (!$done{$n}) {
        $running{ start($next) } = $next, $next++
            while $next < @jobs && keys %running < ($ENV{JOBS} // 2);
        my $pid = wait;
        $done{ delete $running{$pid} } = 1 if exists $running{$pid};
    }
    my $wrong = -e "$top/$n/wrong" ? Text::content("$top/$n/wrong") : 'no result';
    ok($wrong eq '', $jobs[$n][0]) or diag($wrong, "its files: $top/$n");
}
