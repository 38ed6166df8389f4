/* SPDX-License-Identifier: MIT */
/* Kinds of events and waits. Include nt.h or winternl.h first. */
#pragma once

typedef enum _EVENT_TYPE { NotificationEvent, SynchronizationEvent } EVENT_TYPE;
typedef enum _WAIT_TYPE { WaitAll, WaitAny } WAIT_TYPE;
