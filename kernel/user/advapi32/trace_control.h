/* SPDX-License-Identifier: MIT */
/* Between the files of kernel/user/advapi32. */
#pragma once

/* NtTraceControl's codes 1 to 5, as a Win32 code. A session by name, or if that is NULL by handle.
 */
ULONG trace_control(ULONG code, TRACEHANDLE session, const WCHAR *name,
                    WMI_LOGGER_INFORMATION *info);
/* For which kind of event a hook stands in a CLASSIC_EVENT_ID: NULL, or the GUID of its group. */
const GUID *trace_group(USHORT hook);
