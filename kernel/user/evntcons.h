/* SPDX-License-Identifier: MIT */
/* What a consumer of events sees. Source: evntcons.h and evntprov.h of the Windows SDK. */
#pragma once
#include "evntrace.h"
#ifdef __cplusplus
#define _Static_assert static_assert
#endif

#define PROCESS_TRACE_MODE_REAL_TIME 0x00000100
#define PROCESS_TRACE_MODE_RAW_TIMESTAMP 0x00001000
#define PROCESS_TRACE_MODE_EVENT_RECORD 0x10000000

#define EVENT_HEADER_EXT_TYPE_PMC_COUNTERS 0x0008

#define EVENT_HEADER_FLAG_EXTENDED_INFO 0x0001
#define EVENT_HEADER_FLAG_NO_CPUTIME 0x0010
#define EVENT_HEADER_FLAG_64_BIT_HEADER 0x0040
#define EVENT_HEADER_FLAG_CLASSIC_HEADER 0x0100

typedef struct _EVENT_DESCRIPTOR {
    USHORT Id;
    UCHAR Version, Channel, Level, Opcode;
    USHORT Task;
    ULONGLONG Keyword;
} EVENT_DESCRIPTOR, *PEVENT_DESCRIPTOR;
ABI_SIZE(EVENT_DESCRIPTOR, 0x10);

typedef struct _EVENT_HEADER {
    USHORT Size;
    USHORT HeaderType;
    USHORT Flags;
    USHORT EventProperty;
    ULONG ThreadId, ProcessId;
    LARGE_INTEGER TimeStamp;
    GUID ProviderId;
    EVENT_DESCRIPTOR EventDescriptor;
    ULONG KernelTime, UserTime;
    GUID ActivityId;
} EVENT_HEADER, *PEVENT_HEADER;
ABI_SIZE(EVENT_HEADER, 0x50);
ABI_FIELD(EVENT_HEADER, EventDescriptor, 0x28);

typedef struct _EVENT_HEADER_EXTENDED_DATA_ITEM {
    USHORT Reserved1;
    USHORT ExtType;
    struct {
        USHORT Linkage : 1;
        USHORT Reserved2 : 15;
    };
    USHORT DataSize;
    ULONGLONG DataPtr;
} EVENT_HEADER_EXTENDED_DATA_ITEM, *PEVENT_HEADER_EXTENDED_DATA_ITEM;
ABI_SIZE(EVENT_HEADER_EXTENDED_DATA_ITEM, 0x10);
ABI_FIELD(EVENT_HEADER_EXTENDED_DATA_ITEM, DataSize, 6);

typedef struct _EVENT_EXTENDED_ITEM_PMC_COUNTERS {
    ULONG64 Counter[1];
} EVENT_EXTENDED_ITEM_PMC_COUNTERS, *PEVENT_EXTENDED_ITEM_PMC_COUNTERS;

typedef struct _EVENT_RECORD {
    EVENT_HEADER EventHeader;
    ETW_BUFFER_CONTEXT BufferContext;
    USHORT ExtendedDataCount;
    USHORT UserDataLength;
    PEVENT_HEADER_EXTENDED_DATA_ITEM ExtendedData;
    PVOID UserData;
    PVOID UserContext;
} EVENT_RECORD, *PEVENT_RECORD;
ABI_SIZE(EVENT_RECORD, 0x70);
ABI_FIELD(EVENT_RECORD, UserData, 0x60);

#ifdef __cplusplus
#undef _Static_assert
#endif
