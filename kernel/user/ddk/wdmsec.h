/* SPDX-License-Identifier: MIT */
/* wdmsec.h for DRIVER=file.c: there is no wdmsec.lib, and security descriptors have no effect. */
#pragma once
#include <ntddk.h>

#define SDDL_DEVOBJ(name, text)                                                                    \
    static const __attribute__((unused)) UNICODE_STRING SDDL_DEVOBJ_##name =                       \
        RTL_CONSTANT_STRING(L##text)
SDDL_DEVOBJ(KERNEL_ONLY, "D:P");
SDDL_DEVOBJ(SYS_ALL, "D:P(A;;GA;;;SY)");
SDDL_DEVOBJ(SYS_ALL_ADM_ALL, "D:P(A;;GA;;;SY)(A;;GA;;;BA)");
SDDL_DEVOBJ(SYS_ALL_ADM_RX, "D:P(A;;GA;;;SY)(A;;GRGX;;;BA)");
SDDL_DEVOBJ(SYS_ALL_ADM_RWX_WORLD_R, "D:P(A;;GA;;;SY)(A;;GRGWGX;;;BA)(A;;GR;;;WD)");
SDDL_DEVOBJ(SYS_ALL_ADM_RWX_WORLD_RW_RES_R,
            "D:P(A;;GA;;;SY)(A;;GRGWGX;;;BA)(A;;GRGW;;;WD)(A;;GR;;;RC)");
#define IoCreateDeviceSecure(driver, extension, name, type, flags, exclusive, sddl, guid, device)  \
    IoCreateDevice(driver, extension, name, type, flags, exclusive, device)
#define WdmlibIoCreateDeviceSecure IoCreateDeviceSecure
