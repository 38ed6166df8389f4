/* SPDX-License-Identifier: MIT */
/* KPROFILE_SOURCE by vendor: numbers and names as Windows' HALs give them, slips of spelling
 * included; what counts them, by family of processors.
 *
 * NT: Windows programs the codes of 2003 on every AMD processor. Here a number keeps its meaning:
 * where a later family counts it by another code that code is used, and where it counts nothing, or
 * something else, the source is unsupported. Of the general sources Windows has those that were architectural in
 * 2003 and calls the others unsupported; here they are what the family's event table has (Intel's data and instruction
 * caches and floating point stay unsupported, as there). LbrInserts (20h) needs last branch records, which nothing
 * here drives; of TimerFixed (24h) nothing but its limits is known: both are unsupported.
 *
 * Sources: numbers and codes as studied in Windows 10; AMD BIOS and Kernel Developer's Guides and
 * Processor Programming References, "Core performance monitor counters". */
#include "hal/source.h"
#include "pmu/pmu.h"

#define EVENT(e) .event = (e), .last_family = 0xff
#define FIXED(e, n) .event = (e), .fixed = PMU_FIX(n), .last_family = 0xff

/* General sources that mean the same on every processor: supported where its family's table has the event. */
#define OF_EVERY_VENDOR \
    { .id = 0x03, .name = "PipelineDry", EVENT(PMU_PIPELINE_DRY) }, \
    { .id = 0x04, .name = "LoadInstructions", EVENT(PMU_LOADS) }, \
    { .id = 0x05, .name = "PipelineFrozen", EVENT(PMU_PIPELINE_FROZEN) }, \
    { .id = 0x07, .name = "TotalNonissues", EVENT(PMU_NONISSUES) }, \
    { .id = 0x0a, .name = "CacheMisses", EVENT(PMU_LLC_MISSES) }, \
    { .id = 0x0c, .name = "StoreInstructions", EVENT(PMU_STORES) }, \
    { .id = 0x0f, .name = "2Issue", EVENT(PMU_ISSUE_2) }, \
    { .id = 0x10, .name = "3Issue", EVENT(PMU_ISSUE_3) }, \
    { .id = 0x11, .name = "4Issue", EVENT(PMU_ISSUE_4) }, \
    { .id = 0x13, .name = "TotalCycles", EVENT(PMU_CYCLES) }, \
    { .id = 0x17, .name = "LoadLinkedIssues", EVENT(PMU_LOCKED) }

static const struct source_row intel[] = {
    OF_EVERY_VENDOR,
    { .id = 0x02, .name = "TotalIssues", EVENT(PMU_INSTRUCTIONS) },
    { .id = 0x06, .name = "BranchInstructions", EVENT(PMU_BRANCHES) },
    { .id = 0x0b, .name = "BranchMispredictions", EVENT(PMU_BRANCH_MISSES) },
    { .id = 0x19, .name = "UnhaltedCoreCycles", EVENT(PMU_CYCLES) },
    { .id = 0x1a, .name = "InstructionRetired", EVENT(PMU_INSTRUCTIONS) },
    { .id = 0x1b, .name = "UnhaltedReferenceCycles", EVENT(PMU_BUS_CYCLES) },
    { .id = 0x1c, .name = "LLCReference", EVENT(PMU_LLC_REFERENCES) },
    { .id = 0x1d, .name = "LLCMisses", EVENT(PMU_LLC_MISSES) },
    { .id = 0x1e, .name = "BranchInstructionRetired", EVENT(PMU_BRANCHES) },
    { .id = 0x1f, .name = "BranchMispredictsRetired", EVENT(PMU_BRANCH_MISSES) },
    { .id = 0x21, .name = "InstructionsRetiredFixed", FIXED(PMU_INSTRUCTIONS, 0) },
    { .id = 0x22, .name = "UnhaltedCoreCyclesFixed", FIXED(PMU_CYCLES, 1) },
    { .id = 0x23, .name = "UnhaltedReferenceCyclesFixed", FIXED(PMU_REF_CYCLES, 2) },
};

#define RAW(number, text, code_, umask_, families) \
    { .id = (number), .name = (text), .event = PMU_EVENT_COUNT, .code = (code_), \
      .umask = (umask_), families }
#define ALL .last_family = 0xff
#define TO_16H .last_family = 0x16
#define TO_ZEN2 .last_family = 0x17
#define ZEN1_2 .first_family = 0x17, .last_family = 0x17
#define ZEN .first_family = 0x17, .last_family = 0xff
#define ZEN3_ON .first_family = 0x19, .last_family = 0xff

static const struct source_row amd[] = {
    OF_EVERY_VENDOR,
    RAW(0x02, "TotalIssues", 0xc0, 0x00, ALL),
    RAW(0x06, "BranchInstructions", 0xc2, 0x00, ALL),
    RAW(0x08, "DcacheMisses", 0x41, 0x00, TO_16H),
    RAW(0x08, "DcacheMisses", 0x60, 0xc8, ZEN1_2),
    RAW(0x08, "DcacheMisses", 0x44, 0x5f, ZEN3_ON), /* fills from all but extension memory */
    RAW(0x09, "IcacheMisses", 0x81, 0x00, TO_ZEN2),
    RAW(0x09, "IcacheMisses", 0x18e, 0x18, ZEN3_ON),
    RAW(0x0b, "BranchMispredictions", 0xc3, 0x00, ALL),
    RAW(0x0d, "FpInstructions", 0xcb, 0x0f, TO_16H),
    RAW(0x0d, "FpInstructions", 0xcb, 0x07, ZEN),
    RAW(0x14, "IcacheIssues", 0x80, 0x00, TO_ZEN2),
    RAW(0x14, "IcacheIssues", 0x18e, 0x1f, ZEN3_ON),
    RAW(0x15, "DcacheAccesses", 0x40, 0x00, TO_16H),
    RAW(0x15, "DcacheAccesses", 0x29, 0x07, ZEN),
    RAW(0x19, "FPDispatchedFPUOps", 0x00, 0x3f, TO_16H),
    RAW(0x1a, "FPDispatchedFPUOpsAddExcludeJunk", 0x00, 0x01, TO_16H),
    RAW(0x1b, "FPDispatchedFPUOpsMulExcludeJunk", 0x00, 0x02, TO_16H),
    RAW(0x1c, "FPDispatchedFPUOpsStoreExcludeJunk", 0x00, 0x04, TO_16H),
    RAW(0x1d, "FPDispatchedFPUOpsAddJunk", 0x00, 0x08, TO_16H),
    RAW(0x1e, "FPDispatchedFPUOpsMulJunk", 0x00, 0x10, TO_16H),
    RAW(0x1f, "FPDispatchedFPUOpsStoreJunk", 0x00, 0x20, TO_16H),
    RAW(0x20, "FPCyclesNoFPUOpsRetired", 0x01, 0x00, TO_16H),
    RAW(0x21, "FPDispatchedFPUOpsWithFastFlag", 0x02, 0x00, TO_16H),
    RAW(0x22, "LSSegmentRegisterLoad", 0x20, 0x7f, TO_16H),
    RAW(0x23, "LSSegmentRegisterLoadES", 0x20, 0x01, TO_16H),
    RAW(0x24, "LSSegmentRegisterLoadCS", 0x20, 0x02, TO_16H),
    RAW(0x25, "LSSegmentRegisterLoadSS", 0x20, 0x04, TO_16H),
    RAW(0x26, "LSSegmentRegisterLoadDS", 0x20, 0x08, TO_16H),
    RAW(0x27, "LSSegmentRegisterLoadFS", 0x20, 0x10, TO_16H),
    RAW(0x28, "LSSegmentRegisterLoadGS", 0x20, 0x20, TO_16H),
    RAW(0x29, "LSSegmentRegisterLoadHS", 0x20, 0x40, TO_16H),
    RAW(0x2a, "LSResyncBySelfModifyingCode", 0x21, 0x00, TO_16H),
    RAW(0x2b, "LSResyncBySnoop", 0x22, 0x00, TO_16H),
    RAW(0x2c, "LSBuffer2Full", 0x23, 0x00, TO_16H),
    RAW(0x2d, "LSLockedOperation", 0x24, 0x00, TO_16H),
    RAW(0x2e, "LSLateCancelOperation", 0x25, 0x00, TO_16H),
    RAW(0x2f, "LSRetiredCFLUSH", 0x26, 0x00, TO_16H),
    RAW(0x30, "LSRetiredCPUID", 0x27, 0x00, TO_16H),
    RAW(0x31, "DCAccess", 0x40, 0x00, TO_ZEN2),
    RAW(0x32, "DCMiss", 0x41, 0x00, TO_16H),
    RAW(0x33, "DCRefillFromL2", 0x42, 0x1f, TO_16H),
    RAW(0x34, "DCRefillFromL2Invalid", 0x42, 0x01, TO_16H),
    RAW(0x35, "DCRefillFromL2Shared", 0x42, 0x02, TO_16H),
    RAW(0x36, "DCRefillFromL2Exclusive", 0x42, 0x04, TO_16H),
    RAW(0x37, "DCRefillFromL2Owner", 0x42, 0x08, TO_16H),
    RAW(0x38, "DCRefillFromL2Modified", 0x42, 0x10, TO_16H),
    RAW(0x39, "DCRefillFromSystem", 0x43, 0x1f, TO_16H),
    RAW(0x3a, "DCRefillFromSystemInvalid", 0x43, 0x01, TO_16H),
    RAW(0x3b, "DCRefillFromSystemShared", 0x43, 0x02, TO_16H),
    RAW(0x3c, "DCRefillFromSystemExclusive", 0x43, 0x04, TO_16H),
    RAW(0x3d, "DCRefillFromSystemOwner", 0x43, 0x08, TO_16H),
    RAW(0x3e, "DCRefillFromSystemModified", 0x43, 0x10, TO_16H),
    RAW(0x3f, "DCRefillCopyBack", 0x44, 0x1f, TO_16H),
    RAW(0x40, "DCRefillCopyBackInvalid", 0x44, 0x01, TO_16H),
    RAW(0x41, "DCRefillCopyBackShared", 0x44, 0x02, TO_16H),
    RAW(0x42, "DCRefillCopyBackExclusive", 0x44, 0x04, TO_16H),
    RAW(0x43, "DCRefillCopyBackOwner", 0x44, 0x08, TO_16H),
    RAW(0x44, "DCRefillCopyBackModified", 0x44, 0x10, TO_16H),
    RAW(0x45, "DCL1DTLBMissL2DTLBHit", 0x45, 0x07, TO_16H),
    RAW(0x46, "DCL1DTLBMissL2DTLBMiss", 0x46, 0x07, TO_16H),
    RAW(0x47, "DCMisaligndDataReference", 0x47, 0x00, TO_16H),
    RAW(0x48, "DCLateCancelOfAccess", 0x48, 0x00, TO_16H),
    RAW(0x49, "DCEarlyCancelOfAccess", 0x49, 0x00, TO_16H),
    RAW(0x4a, "DCOneBitECCError", 0x4a, 0x03, TO_16H),
    RAW(0x4b, "DCOneBitECCErrorScrubberError", 0x4a, 0x01, TO_16H),
    RAW(0x4c, "DCOneBitECCErrorPiggybackScrubberError", 0x4a, 0x02, TO_16H),
    RAW(0x4d, "DCDispatchedPrefetchInstructions", 0x4b, 0x07, TO_16H),
    RAW(0x4e, "DCDispatchedPrefetchInstructionsLoad", 0x4b, 0x01, TO_16H),
    RAW(0x4f, "DCDispatchedPrefetchInstructionsStore", 0x4b, 0x02, TO_16H),
    RAW(0x50, "DCDispatchedPrefetchInstructionsNTA", 0x4b, 0x04, TO_16H),
    RAW(0x51, "BUInternalL2Request", 0x7d, 0x1f, TO_16H),
    RAW(0x52, "BUInternalL2RequestICFill", 0x7d, 0x01, TO_16H),
    RAW(0x53, "BUInternalL2RequestDCFill", 0x7d, 0x02, TO_16H),
    RAW(0x54, "BUInternalL2RequestTLBReload", 0x7d, 0x04, TO_16H),
    RAW(0x55, "BUInternalL2RequestTagSnoopRequest", 0x7d, 0x08, TO_16H),
    RAW(0x56, "BUInternalL2RequestCancelledRequest", 0x7d, 0x10, TO_16H),
    RAW(0x57, "BUFillRequestMissedInL2", 0x7e, 0x07, TO_16H),
    RAW(0x58, "BUFillRequestMissedInL2ICFill", 0x7e, 0x01, TO_16H),
    RAW(0x59, "BUFillRequestMissedInL2DCFill", 0x7e, 0x02, TO_16H),
    RAW(0x5a, "BUFillRequestMissedInL2TLBLoad", 0x7e, 0x04, TO_16H),
    RAW(0x5b, "BUFillIntoL2", 0x7f, 0x03, TO_16H),
    RAW(0x5c, "BUFillIntoL2DirtyL2Victim", 0x7f, 0x01, TO_16H),
    RAW(0x5d, "BUFillIntoL2VictimFromL1", 0x7f, 0x02, TO_16H),
    RAW(0x5e, "ICFetch", 0x80, 0x00, TO_ZEN2),
    RAW(0x5f, "ICMiss", 0x81, 0x00, TO_ZEN2),
    RAW(0x60, "ICRefillFromL2", 0x82, 0x00, ALL),
    RAW(0x61, "ICRefillFromSystem", 0x83, 0x00, ALL),
    RAW(0x62, "ICL1TLBMissL2TLBHit", 0x84, 0x00, ALL),
    RAW(0x63, "ICL1TLBMissL2TLBMiss", 0x85, 0x03, TO_16H),
    RAW(0x64, "ICResyncBySnoop", 0x86, 0x00, TO_16H),
    RAW(0x65, "ICInstructionFetchStall", 0x87, 0x00, TO_16H),
    RAW(0x66, "ICReturnStackHit", 0x88, 0x00, TO_16H),
    RAW(0x67, "ICReturnStackOverflow", 0x89, 0x00, TO_16H),
    RAW(0x68, "FRRetiredx86Instructions", 0xc0, 0x00, ALL),
    RAW(0x69, "FRRetireduops", 0xc1, 0x00, ALL),
    RAW(0x6a, "FRRetiredBranches", 0xc2, 0x00, ALL),
    RAW(0x6b, "FRRetiredBranchesMispredicted", 0xc3, 0x00, ALL),
    RAW(0x6c, "FRRetiredTakenBranches", 0xc4, 0x00, ALL),
    RAW(0x6d, "FRRetiredTakenBranchesMispredicted", 0xc5, 0x00, ALL),
    RAW(0x6e, "FRRetiredFarControlTransfers", 0xc6, 0x00, TO_16H),
    RAW(0x6f, "FRRetiredResyncsNonControlTransferBranches", 0xc7, 0x00, TO_16H),
    RAW(0x70, "FRRetiredNearReturns", 0xc8, 0x00, ALL),
    RAW(0x71, "FRRetiredNearReturnsMispredicted", 0xc9, 0x00, ALL),
    RAW(0x72, "FRRetiredTakenBranchMispredictedByAddressMiscompare", 0xca, 0x00, TO_16H),
    RAW(0x73, "FRRetiredFPUInstructions", 0xcb, 0x0f, TO_16H),
    RAW(0x74, "FRRetiredFPUInstructionsx87", 0xcb, 0x01, TO_16H),
    RAW(0x75, "FRRetiredFPUInstructionsMMXAnd3DNow", 0xcb, 0x02, TO_16H),
    RAW(0x76, "FRRetiredFPUInstructionsPackedSSEAndSSE2", 0xcb, 0x04, TO_16H),
    RAW(0x77, "FRRetiredFPUInstructionsScalarSSEAndSSE2", 0xcb, 0x08, TO_16H),
    RAW(0x78, "FRRetiredFastpathDoubleOpInstructions", 0xcc, 0x07, TO_16H),
    RAW(0x79, "FRRetiredFastpathDoubleOpInstructionsLowOpInPosition0", 0xcc, 0x01, TO_16H),
    RAW(0x7a, "FRRetiredFastpathDoubleOpInstructionsLowOpInPosition1", 0xcc, 0x02, TO_16H),
    RAW(0x7b, "FRRetiredFastpathDoubleOpInstructionsLowOpInPosition2", 0xcc, 0x04, TO_16H),
    RAW(0x7c, "FRInterruptsMaskedCycles", 0xcd, 0x00, TO_16H),
    RAW(0x7d, "FRInterruptsMaskedWhilePendingCycles", 0xce, 0x00, TO_16H),
    RAW(0x7e, "FRTakenHardwareInterrupts", 0xcf, 0x00, TO_16H),
    RAW(0x7f, "FRNothingToDispatch", 0xd0, 0x00, TO_16H),
    RAW(0x80, "FRDispatchStalls", 0xd1, 0x00, TO_16H),
    RAW(0x81, "FRDispatchStallsFromBranchAbortToRetire", 0xd2, 0x00, TO_16H),
    RAW(0x82, "FRDispatchStallsForSerialization", 0xd3, 0x00, TO_16H),
    RAW(0x83, "FRDispachStallsForSegmentLoad", 0xd4, 0x00, TO_16H),
    RAW(0x84, "FRDispatchStallsWhenReorderBufferFull", 0xd5, 0x00, TO_16H),
    RAW(0x85, "FRDispatchStallsWhenReservationStationsFull", 0xd6, 0x00, TO_16H),
    RAW(0x86, "FRDispatchStallsWhenFPUFull", 0xd7, 0x00, TO_16H),
    RAW(0x87, "FRDispatchStallsWhenLSFull", 0xd8, 0x00, TO_16H),
    RAW(0x88, "FRDispatchStallsWhenWaitingForAllQuiet", 0xd9, 0x00, TO_16H),
    RAW(0x89, "FRDispatchStallsWhenFarControlOrResyncBranchPending", 0xda, 0x00, TO_16H),
    RAW(0x8a, "FRFPUExceptions", 0xdb, 0x0f, TO_16H),
    RAW(0x8b, "FRFPUExcpetionsx87ReclassMicroFaults", 0xdb, 0x01, TO_16H),
    RAW(0x8c, "FRFPUExceptionsSSERetypeMicroFaults", 0xdb, 0x02, TO_16H),
    RAW(0x8d, "FRFPUExceptionsSSEReclassMicroFaults", 0xdb, 0x04, TO_16H),
    RAW(0x8e, "FRFPUExceptionsSSEAndx87MicroTraps", 0xdb, 0x08, TO_16H),
    RAW(0x8f, "FRNumberOfBreakPointsForDR0", 0xdc, 0x00, TO_16H),
    RAW(0x90, "FRNumberOfBreakPointsForDR1", 0xdd, 0x00, TO_16H),
    RAW(0x91, "FRNumberOfBreakPointsForDR2", 0xde, 0x00, TO_16H),
    RAW(0x92, "FRNumberOfBreakPointsForDR3", 0xdf, 0x00, TO_16H),
    RAW(0x93, "NBMemoryControllerPageAccessEvent", 0xe0, 0x07, TO_16H),
    RAW(0x94, "NBMemoryControllerPageAccessEventPageHit", 0xe0, 0x01, TO_16H),
    RAW(0x95, "NBMemoryControllerPageAccessEventPageMiss", 0xe0, 0x02, TO_16H),
    RAW(0x96, "NBMemoryControllerPageAccessEventPageConflict", 0xe0, 0x04, TO_16H),
    RAW(0x97, "NBMemoryControllerPageTableOverflow", 0xe1, 0x00, TO_16H),
    RAW(0x98, "NBMemoryControllerDRAMCommandSlotsMissed", 0xe2, 0x00, TO_16H),
    RAW(0x99, "NBMemoryControllerTurnAround", 0xe3, 0x07, TO_16H),
    RAW(0x9a, "NBMemoryControllerTurnAroundDIMM", 0xe3, 0x01, TO_16H),
    RAW(0x9b, "NBMemoryControllerTurnAroundReadToWrite", 0xe3, 0x02, TO_16H),
    RAW(0x9c, "NBMemoryControllerTurnAroundWriteToRead", 0xe3, 0x04, TO_16H),
    RAW(0x9d, "NBMemoryControllerBypassCounter", 0xe4, 0x0f, TO_16H),
    RAW(0x9e, "NBMemoryControllerBypassCounterHighPriority", 0xe4, 0x01, TO_16H),
    RAW(0x9f, "NBMemoryControllerBypassCounterLowPriority", 0xe4, 0x02, TO_16H),
    RAW(0xa0, "NBMemoryControllerBypassCounterDRAMControllerInterface", 0xe4, 0x04, TO_16H),
    RAW(0xa1, "NBMemoryControllerBypassCounterDRAMControllerQueue", 0xe4, 0x08, TO_16H),
    RAW(0xa2, "NBSizedCommands", 0xeb, 0x7f, TO_16H),
    RAW(0xa3, "NBSizedCommandsNonPostWrSzByte", 0xeb, 0x01, TO_16H),
    RAW(0xa4, "NBSizedCommandsNonPostWrSzDword", 0xeb, 0x02, TO_16H),
    RAW(0xa5, "NBSizedCommandsWrSzByte", 0xeb, 0x04, TO_16H),
    RAW(0xa6, "NBSizedCommandsWrSzDword", 0xeb, 0x08, TO_16H),
    RAW(0xa7, "NBSizedCommandsRdSzByte", 0xeb, 0x10, TO_16H),
    RAW(0xa8, "NBSizedCommandsRdSzDword", 0xeb, 0x20, TO_16H),
    RAW(0xa9, "NBSizedCommandsRdModWr", 0xeb, 0x40, TO_16H),
    RAW(0xaa, "NBProbeResult", 0xec, 0x0f, TO_16H),
    RAW(0xab, "NBProbeResultMiss", 0xec, 0x01, TO_16H),
    RAW(0xac, "NBProbeResultHit", 0xec, 0x02, TO_16H),
    RAW(0xad, "NBProbeResultHitDirtyWithoutMemoryCanceL", 0xec, 0x04, TO_16H),
    RAW(0xae, "NBProbeResultHitDirtyWithMemoryCancel", 0xec, 0x08, TO_16H),
    RAW(0xaf, "NBHyperTransportBus0Bandwidth", 0xf6, 0x0f, TO_16H),
    RAW(0xb0, "NBHyperTransportBus0BandwidthCommandSent", 0xf6, 0x01, TO_16H),
    RAW(0xb1, "NBHyperTransportBus0BandwidthDataSent", 0xf6, 0x02, TO_16H),
    RAW(0xb2, "NBHyperTransportBus0BandwidthBufferReleaseSent", 0xf6, 0x04, TO_16H),
    RAW(0xb3, "NBHyperTransportBug0BandwidthNopSent", 0xf6, 0x08, TO_16H),
    RAW(0xb4, "NBHyperTransportBus1Bandwidth", 0xf7, 0x0f, TO_16H),
    RAW(0xb5, "NBHyperTransportBus1BandwidthCommandSent", 0xf7, 0x01, TO_16H),
    RAW(0xb6, "NBHyperTransportBus1BandwidthDataSent", 0xf7, 0x02, TO_16H),
    RAW(0xb7, "NBHyperTransportBus1BandwidthBufferReleaseSent", 0xf7, 0x04, TO_16H),
    RAW(0xb8, "NBHyperTransportBus1BandwidthNopSent", 0xf7, 0x08, TO_16H),
    RAW(0xb9, "NBHyperTransportBus2Bandwidth", 0xf8, 0x0f, TO_16H),
    RAW(0xba, "NBHyperTransportBus2BandwidthCommandSent", 0xf8, 0x01, TO_16H),
    RAW(0xbb, "NBHyperTransportBus2BandwidthDataSent", 0xf8, 0x02, TO_16H),
    RAW(0xbc, "NBHyperTransportBus2BandwidthBufferReleaseSent", 0xf8, 0x04, TO_16H),
    RAW(0xbd, "NBHyperTransportBus2BandwidthNopSen", 0xf8, 0x08, TO_16H),
    RAW(0xbe, "BUCleanToDirty", 0x63, 0x10, TO_16H),
    RAW(0xbf, "BUSharedToDirty", 0x63, 0x20, TO_16H),
};

/* Windows' HAL takes none of Intel's events where CPUID denies the first of them. */
const struct source_set source_sets[] = {
    { "intel", intel, sizeof intel / sizeof *intel, PMU_BIT(PMU_CYCLES), 0x25 },
    { "amd", amd, sizeof amd / sizeof *amd, 0, 0xc0 },
    { 0 },
};
