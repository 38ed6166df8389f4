# SPDX-License-Identifier: MIT
# An emulator that is none: tests/tools/run starts it, and it prints what a test wants. For the
# tests of the runner; its files are in a folder of its own, $dir.
package Pretend;
use strict;
use warnings;
use Environment;
use Exporter 'import';
use File::Temp 'tempdir';
use Test::More;
use Text;

our @EXPORT = qw($dir $start $two $good file pretend run_it judged);
our $dir = tempdir(CLEANUP => 1);
my $emulator = "$dir/qemu";
Environment::forget();
delete $ENV{ACCEL};
@ENV{qw(BUILD QEMU)} = ($dir, $emulator);

# Streams: of a machine that ended too early, and of one where all passed.
our $start = "\n# kernel\nTAP version 13\n1..3\nok 1 - a.one\n";
our $two = $start . "ok 2 - a.two\n";
our $good = $two . "ok 3 - a.three\n# 3 passed, 0 failed, 0 skipped, 9 checks\n# PASS\n";

sub file { return Text::save(@_) }

# An emulator that prints this and ends like that; asked for a list it names three tests.
sub pretend
{
    my ($stream, $end) = @_;
    $stream =~ s/\n/\r\n/g;
    file("$dir/stream", $stream);
    file($emulator, <<"SCRIPT", 0755);
#!/bin/sh
case "\$*" in
    *-append*list)
        printf 'a.one - first [x]\\r\\na.two - second\\r\\na.three - third\\r\\n'
        exit 33 ;;
    *-append*) echo "\$*" > $dir/arguments; cat $dir/stream; $end ;;
    *) test -e $dir/kvm_works && case "\$*" in *"\$(cat $dir/kvm_works)"*) ;; *) false ;; esac ;;
esac
SCRIPT
}

# Its exit status and what it prints.
sub run_it
{
    my ($variables) = @_;
    my $output = `$variables tests/tools/run 2>&1 </dev/null`;
    return ($? >> 8, $output);
}

# One test: with this stream and end the runner ends with that status and says that.
sub judged
{
    my ($name, $stream, $end, $status, $says, $variables) = @_;
    pretend($stream, $end);
    my ($got, $output) = run_it($variables // 'ACCEL=tcg');
    ok($got == $status && $output =~ $says, $name)
        or diag("exit status $got, want $status; output must match $says:\n$output");
}

file("$dir/ntpmu.bin", 'kernel');

1;
