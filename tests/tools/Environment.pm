# SPDX-License-Identifier: MIT
# What whoever starts a test may have set: a test chooses its machines itself. And what it makes.
package Environment;
use strict;
use warnings;
use Text;

my @VARIABLES = qw(MAKEFLAGS MFLAGS ACCEL PMU SMP TESTS ARGS MACHINE MEMORY TIMEOUT GDB LIST TAP
    QUICK QEMU_ARGS ICOUNT MIPS FIRMWARE PROGRAM PROGRAM_ARGS DRIVER BENCH PAYLOAD PAYLOAD_ARGS
    PAYLOAD_MODULES LINUX INITRD CMDLINE);

# Deletes the variables of make and of tests/tools/run, and these.
sub forget { delete @ENV{ @VARIABLES, @_ } }

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
