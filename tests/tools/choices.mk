# SPDX-License-Identifier: MIT
# Which tests run where, for the Makefile and for tests/machines/matrix.t: lines of NAME := words.

# What something costs, and how often it is sampled, is promised for the build that ships: left out
# elsewhere; and more of it where code is longer.
NOT_PROMISED := *,-*cost*,-profile_*,-pmu_faults*,-pmu_pmi_lost*,-vpmu*
NOT_SHIPPED := $(NOT_PROMISED),-etw_samples.with_counters,-kinds.journey,-lbr_stack.kinds

# Races want CPUs that run at once, on the host's clock: without what promises a time, and without
# the virtual PMU.
AT_ONCE := SMP=4 PMU=none ICOUNT=off TIMEOUT=600
NOT_TIMED := *,-*cost*,-dispatcher_time.timeouts

# The scripts that make test runs two at a time, the longest first; and those that run alone: one
# looks at the time that passes, one copies what is built, one runs three machines at a time.
TOGETHER := drivers programs blocks trace linux rr transparent quirks runner boot fuzz bench \
    report insn libpfm usb tools checks machine_check cpus streams
ALONE := image mutants matrix
