/* SPDX-License-Identifier: MIT */
/* Sends the buffers of a trace session through the second serial port, as they are. The host
 * (tests/tools/trace) makes Windows' trace file and a Common Trace Format trace of them. */
#pragma once
#include <stdbool.h>

/* Starts a session and the thread that sends it. `events`: thread, cswitch, ready, profile, pmc,
 * syscall, interrupt, ipi, separated by commas. `counters`: names of sources likewise, "" for none;
 * ":u" after a name counts ring 3 alone. Every record carries all of them. `stacks`, `branches`:
 * events that these follow; among those of branches, user and kernel: of that ring alone; calls: as
 * a call stack. Returns NULL, or the
 * reason of the failure; then nothing runs. PASSIVE_LEVEL. */
const char *trace_export_start(const char *events, const char *counters, const char *stacks,
                               const char *branches);
/* Ends the session and waits until all is sent. `facts`: lines that the host gets, too: images.
 * False: the port stopped accepting bytes. PASSIVE_LEVEL. */
bool trace_export_stop(const char *facts);
