# SPDX-License-Identifier: MIT
# What whoever starts a test may have set: a test chooses its machines itself.
package Environment;
use strict;
use warnings;

my @VARIABLES = qw(MAKEFLAGS MFLAGS ACCEL PMU SMP TESTS ARGS MACHINE MEMORY TIMEOUT GDB LIST TAP
    QEMU_ARGS ICOUNT MIPS FIRMWARE PROGRAM PROGRAM_ARGS DRIVER BENCH PAYLOAD PAYLOAD_ARGS
    PAYLOAD_MODULES LINUX INITRD CMDLINE);

# Deletes the variables of make and of tests/run, and these.
sub forget { delete @ENV{ @VARIABLES, @_ } }

1;
