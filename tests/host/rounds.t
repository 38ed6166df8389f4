#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The tests of what starts many machines, tests/host/soak, fuzz-services, fuzz-images, matrix.t and
# programs.t, with an emulator that is none (Pretend.pm), and of fuzz-guest with a compiler that is
# none: what goes wrong in one of them is said, by name, and is the verdict.
use strict;
use warnings;
use Test::More;
use lib 'tests/host';
use Pretend;

# What a script says, must match all of that, and its exit status.
sub says
{
    my ($name, $command, $status, @patterns) = @_;
    my $output = `$command 2>&1 </dev/null`;
    my $got = $? >> 8;
    my @missing = grep { $output !~ $_ } @patterns;
    ok($got == $status && !@missing, $name)
        or diag("status $got, want $status\n", map({ "must match $_\n" } @missing), $output);
}

# An emulator that prints the streams in turn, and ends as each of them says.
sub in_turn
{
    my (@streams) = @_;
    for my $n (0 .. $#streams) {
        my ($stream, $end) = @{ $streams[$n] };
        file("$dir/stream-$n", $stream);
        file("$dir/end-$n", $end);
    }
    unlink "$dir/turn", "$dir/words";
    file($ENV{QEMU}, <<"SCRIPT", 0755);
#!/bin/sh
echo "\$*" >> $dir/words
n=\$(wc -l < $dir/words)
n=\$(((n - 1) % ${\scalar @streams}))
cat $dir/stream-\$n
. $dir/end-\$n
SCRIPT
}

my ($passed, $failed) = ('exit 33', 'exit 35');
my $other = $good =~ s/a\.two/a.six/r;
my $longer = $good =~ s/9 checks/10 checks/r =~ s/# kernel/# another kernel/r;
my $bad = $start . "not ok 2 - a.two\nok 3 - a.three\n"
    . "# 2 passed, 1 failed, 0 skipped, 9 checks\n# FAIL\n";
my $none = $start =~ s/ok 1 - a.one\n//r . join('', map { "ok $_ - a.$_ # SKIP no PMU\n" } 1 .. 3)
    . "# 0 passed, 0 failed, 3 skipped, 0 checks\n# NONE no PMU\n";
my $panic = [$two, 'exit 39'];
$ENV{ACCEL} = 'tcg';

# --- tests/host/soak.

my $soak = 'LOAD=0 N=2 tests/host/soak';
in_turn([$good, $passed]);
says('soak: the same each time', $soak, 0, qr/\A# soak: 4 runs, 0 of them .*\n\z/);
my @words = split /\n/, `cat $dir/words`;
ok(@words == 4 && $words[0] =~ /-smp 1 .*phase=1/ && $words[1] =~ /-smp 4 .*phase=1/
       && $words[2] =~ /-smp 1 .*phase=2/ && $words[3] =~ /-smp 4 .*phase=2/,
   'soak: with 1 and 4 CPUs, and another phase each round') or diag("@words");
in_turn([$good, $passed], [$good, $passed], [$longer, $passed], [$longer, $passed]);
says('soak: other numbers are the same', $soak, 0, qr/4 runs, 0 of them/);
in_turn([$good, $passed], [$good, $passed], [$other, $passed], [$good, $passed]);
says('soak: another test', $soak, 1, qr/^round 2, 1 CPU: status 0, see \S+\/soak\/1-2\.log$/m,
     qr/^    < ok 2 - a\.two$/m, qr/^    > ok 2 - a\.six$/m, qr/4 runs, 1 of them/);
in_turn([$good, $passed], [$good, $passed], [$good, $passed], [$bad, $failed]);
says('soak: a failure', $soak, 1, qr/^round 2, 4 CPU: status 1/m, qr/^    > not ok 2 - a\.two$/m,
     qr/4 runs, 1 of them/);
in_turn([$bad, $failed]);
says('soak: the same failure each time', $soak, 1, qr/4 runs, 4 of them/);
in_turn($panic);
says('soak: a panic each time', $soak, 1, qr/4 runs, 4 of them/);
in_turn([$none, 'exit 37']);
says('soak: nothing to count with, each time', "PMU=none $soak", 0, qr/4 runs, 0 of them/);
says("soak: $_", "$_ tests/host/soak", 2, qr/is no number/) for 'N=x', 'LOAD=-1', "N='' FIRST=a";

# --- tests/host/fuzz-services.

my $services = 'SEED=5 COUNT=2 tests/host/fuzz-services';
my $only = $start =~ s/1\.\.3/1..1/r . "# 1 passed, 0 failed, 0 skipped, 9 checks\n# PASS\n";
in_turn([$only, $passed]);
says('services: all right', $services, 0, qr/\A2 machines by seed 5, 0 failed\n\z/);
like(scalar `cat $dir/words`, qr/-smp 4 .*fuzz=5 tests=service_fuzz.*\n.*fuzz=6 tests=service_fuzz/,
     'services: a seed for each');
in_turn([$only, $passed], $panic);
says('services: one panics', $services, 1, qr/2 machines by seed 5, 1 failed/,
     qr/^again: make run PMU=\S+ SMP=4 ARGS=fuzz=6 TESTS=service_fuzz/m, qr/the kernel panicked/);
in_turn([$bad, $failed]);
says('services: both fail', $services, 1, qr/2 machines by seed 5, 2 failed/);

# --- tests/host/fuzz-images.

# The least that has headers, one section of code, and no directory.
my $image = pack 'a2 @60 V @128 a4 v2 x12 v2 @392 a8 V4 x12 V @512 a64', 'MZ', 128, "PE\0\0",
    0x8664, 1, 240, 0, '.text', 64, 4096, 64, 512, 0x60000020, 'code';
file("$dir/image.exe", $image);
my $images = "SEED=3 COUNT=4 BUILD=$dir tests/host/fuzz-images $dir/image.exe";
my $ended = [$start =~ s/TAP.*//sr . "# PASS the program ended with 0\n", $passed];
in_turn($ended, [$ended->[0] =~ s/PASS/FAIL/r, $failed]);
says('images: they end, well or not', $images, 0, qr/\A4 images, seed 3: 2 FAIL, 2 PASS\n\z/);
is("@{[glob \"$dir/fuzz/*\"]}", '', 'images: none of them stays');
in_turn($ended, $ended, $panic, $ended);
says('images: a panic', $images, 1, qr/^\S+\/fuzz\/image-3-3\.exe: status 99$/m,
     qr/^4 images, seed 3: 3 PASS, 1 nothing$/m);
is("@{[glob \"$dir/fuzz/*\"]}", "$dir/fuzz/image-3-3.exe", 'images: it stays');
in_turn([$ended->[0], 'exit 39']);
says('images: a panic behind the verdict', $images, 1, qr/^4 images, seed 3: 4 PASS$/m);
in_turn(["# PANIC here\n" . $ended->[0], $passed]);
says('images: a panic, whatever the verdict', $images, 1, qr/^4 images, seed 3: 4 PASS$/m);

# --- tests/host/fuzz-guest: fuzz-blocks is the first that is built.

my $guest = "SEED=1 COUNT=10 BUILD=$dir PATH=$dir/bin:\$PATH tests/host/fuzz-guest";
mkdir "$dir/bin";
for (['does not build', 'exit 1', 'does not build'], ['fails', 'exit 1', 'failed'],
     ['dies', 'kill -SEGV $$', 'failed']) {
    my ($what, $end, $says) = @$_;
    file("$dir/bin/gcc", $what eq 'does not build' ? "#!/bin/sh\n$end\n" : <<"SCRIPT", 0755);
#!/bin/sh
while [ "\$1" != -o ]; do shift; done
printf '#!/bin/sh\\n%s\\n' '$end' > "\$2"
chmod +x "\$2"
SCRIPT
    chmod 0755, "$dir/bin/gcc";
    my $output = `$guest 2>&1 </dev/null`;
    ok($? && $output =~ /^fuzz-blocks: $says$/m, "guest: a program that $what") or diag($output);
}

# --- tests/host/matrix.t: one stream is not what all these machines should say.

sub matrix
{
    my @names = @_;
    return "perl tests/host/matrix.t @{[map { qq('$_') } @names]}";
}
in_turn([$good, $passed]);
says('matrix: a machine whose tests pass', matrix('^q35'), 0, qr/^ok 2 - q35$/m);
says('matrix: each says what it misses',
     matrix('^q35', 'amd-v2: no test was lost', '^no ACPI', '^only the tests', '^no PMU, 1 CPU',
            '^1: a test fails', 'left is put back, PMU=intel-v5 SMP=1', 'a period of 6 ms, 1 CPU'),
     7, qr/^# 3 tests, 9 checks; want 300, 7000$/m, qr/^# must match .*# acpi: /m,
     qr/^# must not match \^ok .*\(\?!exact\)$/m, qr/^# exit status 0, want 77$/m,
     qr/^# exit status 0, want 1$/m, qr/^# 0 tests$/m, qr/^# 0 tests told how long they took$/m,
     qr/^# make run SMP=4 QEMU_ARGS='-machine acpi=off'/m);
in_turn([$bad, $failed]);
says('matrix: a machine with a failed test', matrix('^q35'), 1, qr/^# exit status 1, want 0$/m,
     qr/^# What failed:\n#     q35\n#  .*\n#         a\.two$/m);

# --- tests/host/programs.t.

mkdir "$dir/program";
file("$dir/program/static.exe", $image);
file("$dir/bin/make", "#!/bin/sh\nexit \$MADE\n", 0755);
my $program =
    "PROGRAMS=$dir PATH=$dir/bin:\$PATH perl tests/host/programs.t 'static.c PMU=none SMP=1'";
open my $in, '<', 'tests/host/programs.t' or die "tests/host/programs.t: $!";
my ($checks) = join('', <$in>) =~ /static\.c'.*?n(\d+) checks/ or die 'no such program';
my $said = "# running: 1 CPU\nwide\n$checks checks, 0 wrong\n# PASS the program ended with 0\n";
for (['ends well', $said, $passed, 0],
     ['finds something wrong', $said =~ s/0 wrong/1 wrong/r, $passed, 1],
     ['makes another number of checks', $said =~ s/\d+ checks/1 checks/r, $passed, 1],
     ['fails', $said =~ s/PASS/FAIL/r, $failed, 1], ['panics', $said, 'exit 39', 1]) {
    my ($what, $stream, $end, $status) = @$_;
    in_turn([$stream, $end]);
    says("programs: one that $what", "MADE=0 $program", $status);
}
in_turn([$said, $passed]);
says('programs: one that is not built', "MADE=1 $program", 1, qr/status -1, want 0/);
done_testing;
