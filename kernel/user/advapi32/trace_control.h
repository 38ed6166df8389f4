/* SPDX-License-Identifier: MIT */
/* Between the files of kernel/user/advapi32. */
#pragma once

/* Codes 1 to 5 of NtTraceControl; returns a Win32 code. Name NULL: the session of the handle. */
ULONG trace_control(ULONG code, TRACEHANDLE session, const WCHAR *name,
                    WMI_LOGGER_INFORMATION *info);
/* The GUID of a hook's group, as in a CLASSIC_EVENT_ID; NULL: it has none. */
const GUID *trace_group(USHORT hook);
