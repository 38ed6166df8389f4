/* SPDX-License-Identifier: MIT */
/* Bug checks: what a driver did wrong, by Windows' name and number. The machine ends. */
#pragma once
#include <stdint.h>

/* Codes and names as in bugcodes.h. The Makefile reads these lines. */
enum bug_code {
    IRQL_NOT_LESS_OR_EQUAL = 0x0a,
    SPIN_LOCK_ALREADY_OWNED = 0x0f,
    SPIN_LOCK_NOT_OWNED = 0x10,
    BAD_POOL_HEADER = 0x19,
    KMODE_EXCEPTION_NOT_HANDLED = 0x1e,
    MULTIPLE_IRP_COMPLETE_REQUESTS = 0x44,
    PAGE_FAULT_IN_NONPAGED_AREA = 0x50,
    SYSTEM_THREAD_EXCEPTION_NOT_HANDLED = 0x7e,
    UNEXPECTED_KERNEL_MODE_TRAP = 0x7f,
    ATTEMPTED_SWITCH_FROM_DPC = 0xb8,
    SPECIAL_POOL_DETECTED_MEMORY_CORRUPTION = 0xc1,
    BAD_POOL_CALLER = 0xc2,
    TIMER_OR_DPC_INVALID = 0xc7,
    IRQL_UNEXPECTED_VALUE = 0xc8,
    ATTEMPTED_WRITE_TO_READONLY_MEMORY = 0xbe,
    DRIVER_VERIFIER_IOMANAGER_VIOLATION = 0xc9,
    DRIVER_IRQL_NOT_LESS_OR_EQUAL = 0xd1,
    DRIVER_UNLOADED_WITHOUT_CANCELLING_PENDING_OPERATIONS = 0xce,
    CLOCK_WATCHDOG_TIMEOUT = 0x101,
    DPC_WATCHDOG_VIOLATION = 0x133,
    KERNEL_SECURITY_CHECK_FAILURE = 0x139,
};

struct trap_frame;

/* The name of a bug check above, or of a status of our headers. Any IRQL. */
const char *code_name(uint32_t code, const char *otherwise);
/* An exception that the driver did not handle. The frame of one that software raised has only
 * RIP. */
__attribute__((noreturn)) void bug_check_exception(uint64_t status, const struct trap_frame *frame,
                                                   uint64_t address);
/* The instruction that is to blame: the frame's, or its caller's where it is a call of what is no
 * code. */
uint64_t bug_check_place(const struct trap_frame *frame, uint64_t address);
/* Prints the code with its name, four parameters, what is wrong in words and the driver that
 * `where` is in; then ends the machine, as a panic where no driver has it, else by `# FAIL`. Any
 * IRQL. */
__attribute__((noreturn)) void bug_check_at(uint64_t where, unsigned code,
                                            const uint64_t parameters[4], const char *words);
/* bug_check_at the driver's call of the exported routine that finds the mistake. */
__attribute__((noreturn)) void bug_check(unsigned code, const uint64_t parameters[4],
                                         const char *words);
