#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# What a run leaves: what a terminal shows, the log, no machine, whatever ends it. One test each of
# make soak, of make help and of the mutants that make mutants N= makes. What boot/deps says where
# it can install nothing.
use strict;
use warnings;
use Test::More;
use lib 'tests/tools';
use Mutants;
use Pretend;

my $mixed = "\n# kernel\nTAP version 13\n1..5\nok 1 - a.one\n# remark\n"
    . "ok 2 - a.two # SKIP needs 2 CPUs\n# tests/harness/test.c:7: x = 1, want 2\n"
    . "not ok 3 - a.three\nok 4 - b.one # SKIP needs 2 CPUs\nok 5 - b.two\n"
    . "# 2 passed, 1 failed, 2 skipped, 9 checks\n# FAIL 1 of 5\n";
pretend($mixed, 'exit 35');
my (undef, $output) = run_it('ACCEL=tcg');
like($output, qr/\Q$mixed\E\z/, 'a pipe gets the stream as it came');
$output = `TERM=xterm NO_COLOR= ACCEL=tcg script -qec tests/tools/run /dev/null 2>&1 </dev/null`;
my $plain = $output =~ s/\r\n/\n/gr =~ s/[^\n]*\r\e\[K//gr;
like($plain, qr/\A# machine: .*\n\n\Q@{[<<'END']}\E\z/, 'a terminal gets what did not pass');
# kernel
TAP version 13
1..5
# tests/harness/test.c:7: x = 1, want 2
not ok 3 - a.three
# 2 passed, 1 failed, 2 skipped, 9 checks
# FAIL 1 of 5
END
like(scalar `cat $dir/run.log`, qr/^# machine: .*\n\Q$mixed\E\z/, 'the log is whole');

# Waits until the file has a process and, if it is to be gone, until that is gone.
sub process
{
    my ($gone) = @_;
    for (1 .. 1200) {
        my $pid = -s "$dir/pid" ? `cat $dir/pid` : 0;
        return 1 if $pid && (!$gone || !kill 0, $pid);
        select undef, undef, undef, 0.1;
    }
    return 0;
}

pretend($two, "echo \$\$ > $dir/pid; exec sleep 60");
file("$dir/one.t", "#!/bin/sh\nACCEL=tcg tests/tools/run > /dev/null\n", 0755);
for (['', 'ACCEL=tcg TIMEOUT=1 exec tests/tools/run'], ['INT', 'ACCEL=tcg exec tests/tools/run'],
     ['KILL', 'ACCEL=tcg exec tests/tools/run'], ['TERM', "exec prove $dir/one.t"]) {
    my ($signal, $command) = @$_;
    unlink "$dir/pid";
    my $pid = fork // die;
    exec '/bin/sh', '-c', "$command >/dev/null 2>&1 </dev/null" if !$pid;
    process(0);
    kill $signal => $pid if $signal;
    waitpid $pid, 0;
    ok(process(1), 'no machine stays after ' . ($signal ? "SIG$signal" : 'a hang'));
}

# Its second round fails, or none does.
$ENV{ACCEL} = 'tcg';
file("$dir/good", $good);
file("$dir/bad", $good =~ s/ok 2/not ok 2/r =~ s/3 passed, 0/2 passed, 1/r =~ s/PASS/FAIL/r);
pretend('', "case \"\$*\" in *phase=2*) cat $dir/bad; exit 35 ;; esac; cat $dir/good; exit 33");
my $soak = 'tests/machines/soak';
like(scalar `LOAD=0 N=1 $soak`, qr/\A# soak: 2 runs, 0 of them .*\n\z/, 'soak: the same');
like(scalar `LOAD=0 N=2 $soak`, qr/^    > not ok 2 - a\.two\n.*^# soak: 4 runs, 2 of/ms,
     'soak: another');

my @help = split /\n/, `make -s help`;
ok(@help > 10 && @help <= 24 && !grep({ length > 80 } @help),
   'make help fits a screen of 24 lines of 80 columns') or diag("@help");
like(scalar `make -s help-all`, qr/make mutants.*TIMEOUT=.*amd-zen5.*haswell.*lostpmi/s,
     'make help-all has variables, models, machines, quirks, commands');
# What the operators make of each line.
my $source = <<'END';
int head = 7;
NTSTATUS take(struct lock *at, uint64_t mask)
{
    KIRQL irql = lock_acquire(at);
    if (at->next < LAST && !at->used)
        return STATUS_NO_MEMORY;
    *at = (struct lock){ .next = 1, .mask = masks[cpu] & 0xff };
    at->next = mask & 2;
    at->last = at->tried < TRIES;
    at->off = mask > LAST ? mask - LAST : LAST - mask;
    forget(at); /* a comment < stays */
    lock_release(at, irql);
    print("a < b\n");
    return at->mask & ~mask << 1;
}
END
my %becomes = map { ("$_->[2]: $_->[4]" => $_->[0]) } Mutants::candidates('a.c', $source);
is(join("\n", map { "$_ ($becomes{$_})" } sort keys %becomes), <<'END' =~ s/\n\z//r, 'operators');
10: ; (assignment left out)
10: forget(at); (neighbours swapped)
11: ; (call left out)
11: lock_release(at, irql); (neighbours swapped)
12: ; (release left out on the way out)
14: return 0; (another result)
14: return at->mask & mask << 1; (mask inverted)
14: return at->mask & ~mask << 2; (mask or shift one off)
14: return at->mask & ~mask >> 1; (shifted the other way)
14: return at->mask | ~mask << 1; (bits joined otherwise)
4: KIRQL irql = irql_raise(DISPATCH_LEVEL); (lock left out)
5: if (!(at->next < LAST && !at->used)) (condition negated)
5: if (at->next < LAST || !at->used) (and for or)
5: if (at->next <= LAST && !at->used) (bound off by one)
6: ; (way out left out)
6: return STATUS_INVALID_PARAMETER; (another status)
7: *at = (struct lock){ .mask = masks[cpu] & 0xff }; (field not copied)
7: *at = (struct lock){ .next = 1, .mask = masks[cpu] & 0x7f }; (mask or shift one off)
7: *at = (struct lock){ .next = 1, .mask = masks[cpu] | 0xff }; (bits joined otherwise)
7: *at = (struct lock){ .next = 1, .mask = masks[cpu_number()] & 0xff }; (another CPU in scope)
7: *at = (struct lock){ .next = 2, .mask = masks[cpu] & 0xff }; (another constant)
7: at->next = mask & 2; (neighbours swapped)
8: ; (assignment left out)
8: at->next = mask & 3; (another constant)
8: at->next = mask | 2; (bits joined otherwise)
8: at->next |= mask & 2; (|= for =)
9: ; (assignment left out)
END
my ($lock) = grep { $_->[0] eq 'lock left out' } Mutants::candidates('a.c', $source);
is(Mutants::changed($lock, $source), $source =~ s/lock_acquire\(at\)/irql_raise(DISPATCH_LEVEL)/r
       =~ s/lock_release\(at, irql\)/irql_lower(irql)/r, 'a lock and its releases go together');


# A host with these commands, and what its apt-get, or another manager of packages, does: the one
# line of boot/deps.
sub deps
{
    my ($what, $user, $apt, $sudo, $manager) = @_;
    system "rm -rf $dir/host; mkdir $dir/host";
    symlink "/usr/bin/$_", "$dir/host/$_" for qw(cut df grep head mkdir mktemp rm sort tee env);
    file("$dir/host/id", "#!/bin/sh\necho $user\n", 0755);
    file("$dir/host/dpkg-query", "#!/bin/sh\n", 0755);
    file("$dir/host/" . ($manager // 'apt-get'), "#!/bin/sh\n$apt\n", 0755) if $apt;
    file("$dir/host/sudo", "#!/bin/sh\nexec \"\$@\"\n", 0755) if $sudo;
    return scalar `PATH=$dir/host QEMU= WIN_CC= BUILD=$dir boot/deps $what 2>/dev/null`;
}

like(deps('check run', 0),
     qr/\Arun needs binutils gcc .* qemu-system-x86: make deps WITH=run .*\n\z/,
     'what is missing, and what installs it');
unlike(deps('check run', 0), qr/bochs|gdb|clang|xorriso/, 'a run needs no tools of others');
like(deps('check dlls', 0), qr/\Adlls needs .*libwine .*: make deps WITH=dlls /,
     'libraries of Wine');
is(deps('check clean help', 0), '', 'what needs no tool stops for none');
like(deps('install run', 0), qr/\AThere is no apt-get, dnf or pacman here: .*nasm.*\n\z/,
     'no apt-get');
like(deps('install run', 1000, 'exit 1'), qr/\AThere is no sudo here: as root, apt-get .*\n\z/,
     'no sudo');
like(deps('install run', 1000, 'echo E: Unable to locate package gcc; exit 100', 1),
     qr/\A.*did not install .*Unable to locate.*: install it by hand.*\n\z/, 'no package');
like(deps('install run', 0, 'echo "E: You don\'t have enough free space in /."; exit 100'),
     qr/\A.*the disk is full.*\n\z/, 'a full disk');
like(deps('check run iso', 0, ':', 0, 'dnf'),
     qr/\Arun needs binutils gcc mingw64-gcc nasm perl qemu-system-x86-core: /, "Fedora's names");
like(deps('check run', 0, ':', 0, 'pacman'),
     qr/\Arun needs binutils gcc mingw-w64-gcc nasm perl qemu-system-x86: /, "Arch's names");
unlike(deps('check dlls bochs', 0, ':', 0, 'pacman'), qr/libwine|bochs/,
       'there is no such package');
{
    local $ENV{CROSS} = 'x86_64-linux-gnu-';
    like(deps('check run', 0, ':'), qr/ binutils-x86-64-linux-gnu .*gcc-x86-64-linux-gnu /,
         'a host of another architecture');
}
# One that apt-get has not keeps no other away.
deps('install test', 0, 'case "$*" in *zbar-tools*) exit 100 ;; *install*) echo "$*" >>'
     . "$dir/installed ;; esac");
like(scalar `cat $dir/installed`, qr/ nasm\n/, 'each alone, where all at once cannot be had');
system "mkdir '$dir/a b'; cp Makefile '$dir/a b'";
like(scalar `make -s -C '$dir/a b' 2>&1`,
     qr/\A.*CURDIR=\S+a b: make wants a path without a space .*\n\z/, 'a path with a space');
like(scalar `make -s PROGRAM="it's.c" 2>&1`, qr/\A.* PROGRAM=it's\.c: make wants a path .*\n\z/,
     'a path with a mark');
like(scalar `make -s BUILD=/proc/none 2>&1`, qr/\A.* BUILD=\S+ cannot be written: .*\n\z/,
     'a folder that cannot be written');
done_testing;
