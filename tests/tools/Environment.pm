# SPDX-License-Identifier: MIT
# What whoever starts a test may have set: a test chooses its machines itself. And what it makes.
package Environment;
use strict;
use warnings;
use List::Util 'max';
use Text;

my @VARIABLES = qw(MAKEFLAGS MFLAGS ACCEL PMU SMP TESTS ARGS MACHINE MEMORY TIMEOUT GDB LIST TAP
    QUICK QEMU_ARGS ICOUNT MIPS FIRMWARE PROGRAM PROGRAM_ARGS DRIVER BENCH PAYLOAD PAYLOAD_ARGS
    PAYLOAD_MODULES LINUX INITRD CMDLINE);

# mingw-w64's compilers, as the Makefile chooses them.
my $posix = `command -v x86_64-w64-mingw32-gcc-posix 2>&1` ? '-posix' : '';
our ($WIN_CC, $WIN_CXX) = map { "x86_64-w64-mingw32-$_$posix" } qw(gcc g++);

# Where its headers for drivers are: of Debian and Arch, of Fedora.
our ($DDK) = grep { -d }
    map { "/usr/x86_64-w64-mingw32/$_/ddk" } qw(include sys-root/mingw/include);

# Of programs for the host: -Werror in CI alone, for who tests may have a newer compiler.
our $WERROR = $ENV{HOST_WERROR} // '';

# Deletes the variables of make and of tests/tools/run, and these. What KVM is here is the host's
# affair: it decides no verdict.
sub forget
{
    delete @ENV{ @VARIABLES, @_ };
    $ENV{ACCEL} = 'tcg';
}

# How many times slower this processor is, now, than that of which limits of processor time were
# promised, which needs 0.36 s for this loop of Perl; at least 1.
sub slower
{
    my ($start, $x) = ((times)[0], 1);
    $x = ($x * 1103515245 + 12345) & 0x7fffffff for 1 .. 10_000_000;
    return max(1, ((times)[0] - $start) / 0.36);
}

# Another build begins with these parts, which are the same there: make makes only the rest.
sub begin
{
    my ($build, @parts) = @_;
    my $from = $ENV{BUILD} // 'build';
    return if $build eq $from;
    system("make -s BUILD=$from </dev/null && mkdir -p $build && "
            . "cp -rpu @{[map { qq($from/$_) } @parts]} $build") == 0
        or die "cannot begin $build";
}

# Makes PROGRAM= and DRIVER= of these words; an image needs the kernel alone. Not again what was
# last made under its name of the same text. What make says if it fails.
my %made;
sub make
{
    my ($build, $words) = @_;
    my @files = map { split } grep { defined } $words =~ /(?:PROGRAM|DRIVER)=(?:'([^']*)'|(\S+))/g;
    my %text;
    for (grep { !/\.(?:exe|sys)$/ } @files) {
        my ($name) = m{([^/]+)\.\w+$};
        $text{"$build $name"} = join '', "$_\n", -f $_ ? Text::lines($_) : rand;
    }
    return '' if $made{$build} && !grep { ($made{$_} // '') ne $text{$_} } keys %text;
    begin($build, qw(boot hal kernel pmu tests dll layout.inc ring3.o ntpmu.elf ntpmu.bin))
        if !$made{$build};
    my $said = `make -s BUILD=$build $words 2>&1 </dev/null`;
    return $said || 'make fails' if $?;
    %made = (%made, $build => 1, %text);
    return '';
}

1;
