#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# What `make usb` does to a file, a loop device and disks that exist only in a folder made here,
# refusals first.
use strict;
use warnings FATAL => 'all';
use File::Path 'make_path';
use File::Temp 'tempdir';
use Test::More;
use lib 'tests/tools';
use Text;

my $dir = tempdir(CLEANUP => 1);
delete @ENV{qw(MAKEFLAGS MFLAGS)};
my $image = "$dir/image";
our $as = '';    # the command that runs others as somebody else

# Whether the device begins with the image.
sub holds { my ($dev, $what) = @_; return index(Text::content($dev), Text::content($what)) == 0 }

# A disk of the pretended system: a file named as the device, and its folder in /sys.
sub disk
{
    my ($name, %has) = @_;
    my $sys = "$dir/host/sys/class/block/$name";
    make_path("$sys/device", map { "$sys/$_" } @{ $has{folders} // [] });
    Text::save("$dir/$name", 'old' x 20000);
    Text::save("$sys/$_", $has{$_}) for grep { $_ ne 'folders' } keys %has;
    Text::save("$sys/device/model", "Stick 3000\n");
}

sub refused
{
    my ($name, $dev, $says, $answer) = @_;
    my $before = Text::content($dev);
    my $output = `echo "@{[$answer // 'yes']}" | ROOT=$dir/host $as boot/mkusb $image '$dev' 2>&1`;
    ok($? >> 8 == 1 && $output =~ $says && $output =~ /nothing was written$/
       && Text::content($dev) eq $before, "refused: $name")
        or diag("status $?: $output");
}

sub written
{
    my ($name, $dev, $says) = @_;
    my $output = `echo yes | ROOT=$dir/host boot/mkusb $image '$dev' 2>&1`;
    ok($? == 0 && $output =~ $says && holds($dev, $image), "written: $name")
        or diag("status $?: $output");
}

Text::save($image, join '', map { chr rand 256 } 1 .. 40000);
make_path("$dir/host/proc");
disk('sdx', removable => "1\n", size => "117\n", ro => "0\n");
disk('sdy', removable => "0\n", size => "117\n", ro => "0\n");
disk('sdz', removable => "1\n", size => "117\n", ro => "1\n");
disk('sdm', removable => "1\n", size => "117\n", ro => "0\n", folders => ['sdm1']);
disk('sdh', removable => "1\n", size => "117\n", ro => "0\n", folders => ['holders/dm-0']);
disk('sds', removable => "1\n", size => "10\n", ro => "0\n");
disk('sdx1', removable => "1\n", size => "117\n", partition => "1\n");
Text::save("$dir/host/proc/mounts", "/dev/sdm1 /media/holiday vfat rw 0 0\n");
Text::save("$dir/host/proc/swaps", '');
Text::save("$dir/small", 'x');
Text::save("$dir/large", 'x' x 50000);

refused('no DEV', '', qr/say which disk/);
refused('a DEV that does not exist', "$dir/none", qr/does not exist/);
refused('a folder', "$dir/host", qr/neither a disk nor a file/);
refused('a character device', '/dev/null', qr/neither a disk nor a file/);
refused('a partition', "$dir/sdx1", qr/a partition, not a whole disk/);
refused('a fixed disk, by its model', "$dir/sdy", qr/Stick 3000.*not a removable disk/);
refused('a write-protected stick', "$dir/sdz", qr/write-protected/);
refused('a stick with a mounted partition', "$dir/sdm", qr{/dev/sdm1 is mounted on /media/holiday});
refused('a stick that something holds', "$dir/sdh", qr/used by dm-0/);
refused('a small stick', "$dir/sds", qr/too small: 5120 bytes, 40000 are needed/);
refused('a small file', "$dir/small", qr/too small/);
refused('no yes', "$dir/sdx", qr/Stick 3000.*the answer was not yes/s, 'y');
# Root may read and write anything: then as somebody else.
{
    local $as = $> == 0 ? 'setpriv --reuid=65534 --regid=65534 --clear-groups' : '';
    chmod 0755, $dir;
    chmod 0200, "$dir/sdx";
    refused('an unreadable DEV', "$dir/sdx", qr/cannot be read and written by you/);
    chmod 0444, "$dir/sdx";
    refused('a DEV that may not be written', "$dir/sdx", qr/cannot be read and written by you/);
    chmod 0644, "$dir/sdx";
}

# A disk that fails: programs that stand before the real ones.
sub failed
{
    my ($name, $program, $script, $says) = @_;
    Text::save("$dir/broken/$program", "#!/bin/sh\n$script\n", 0755);
    my $output =
        `echo yes | PATH=$dir/broken:\$PATH ROOT=$dir/host boot/mkusb $image $dir/large 2>&1`;
    ok($? >> 8 == 1 && $output =~ $says && $output !~ /Done/, "fails: $name")
        or diag("status $?: $output");
    unlink "$dir/broken/$program";
}
make_path("$dir/broken");
failed('a disk that cannot be written', 'dd', 'exit 1', qr/writing to \S+ failed/);
failed('a disk that keeps nothing', 'dd', 'exit 0', qr/does not hold what was written/);
failed('a disk that cannot be read back', 'cmp', 'echo cmp: Input/output error; exit 2',
       qr/Input.*does not hold what was written/s);
written('a stick', "$dir/sdx", qr/Stick 3000.*Done: 40000 bytes written and compared/s);
written('a file', "$dir/large", qr/a file.*Done/s);
is(length Text::content("$dir/large"), 50000, 'what lies after the image stays');

SKIP: {
    my $loop = $> == 0 ? `losetup -f --show $dir/large 2>/dev/null` : '';
    chomp $loop;
    skip 'no loop device to be had here', 1 if !$loop;
    my $output = `echo yes | boot/mkusb $image $loop 2>&1`;
    ok($? == 0 && $output =~ /a loop device.*Done/s, 'written: a loop device') or diag($output);
    system "losetup -d $loop";
}
# As a user starts it.
my $iso = ($ENV{BUILD} // 'build') . '/ntpmu.iso';
Text::save("$dir/stick", 'x' x 6_000_000);
my $made = `echo yes | make -s usb DEV=$dir/stick 2>&1`;
ok($? == 0 && $made =~ /Done/ && holds("$dir/stick", $iso), 'make usb DEV=file') or diag($made);
$made = `make -s usb DEV= </dev/null 2>&1`;
ok($? != 0 && $made =~ /say which disk/, 'make usb without DEV') or diag($made);
done_testing;
