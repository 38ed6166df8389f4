/* SPDX-License-Identifier: MIT */
/* The TEB (at GS) of each thread of ring 3 and the PEB of its process. Only the fields used here
 * have names. Shared by the kernel and ring 3. Sources: winternl.h's public parts, the community's
 * phnt headers for the rest. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WINDOWS_MAJOR 10 /* the version that we say we are */
#define WINDOWS_BUILD 19045
#define WINDOWS_PLATFORM 2
#define TEB_SIZE 0x2000
#define PEB_SIZE 0x1000
#define TLS_SLOTS 64
#define START_AT 0x800 /* in the PEB's page: struct start_information, ours */
#define START_NAME_MAX 64
#define START_LINE_MAX 512

/* The console's handles, which no object has. */
#define STANDARD_INPUT ((void *)3)
#define STANDARD_OUTPUT ((void *)7)
#define STANDARD_ERROR ((void *)11)

static inline bool is_output(const void *handle)
{
    return handle == STANDARD_OUTPUT || handle == STANDARD_ERROR;
}

struct teb {
    uint64_t exception_list, stack_base, stack_limit, subsystem, fiber_data, arbitrary;
    struct teb *self;
    uint64_t environment, process_id, thread_id, rpc;
    void **tls_vector; /* of modules with a TLS directory */
    struct peb *peb;
    uint32_t last_error, critical_sections_owned;
    uint8_t gap1[0x1478 - 0x70];
    uint64_t stack_region;
    void *tls_slots[TLS_SLOTS];
    void *tls_links[2];
    uint8_t gap2[0x1780 - 0x1690];
    void **tls_expansion;
    uint8_t gap3[0x17c8 - 0x1788];
    void **fls_slots;
    uint8_t gap4[0x1838 - 0x17d0];
    void *wait_event; /* from here on ours: of address.c */
};

struct peb {
    uint8_t inherited, read_image, being_debugged, bits, gap0[4];
    uint64_t mutant;
    void *image_base;
    void *ldr;
    void *parameters;
    uint64_t subsystem;
    void *heap;
    uint8_t gap1[0xb8 - 0x38];
    uint32_t processors, global_flag;
    uint8_t gap2[0x118 - 0xc0];
    uint32_t major, minor;
    uint16_t build, service_pack;
    uint32_t platform, image_subsystem, image_major, image_minor;
};

/* What ntdll gets from the kernel about the program it starts. */
struct start_information {
    uint64_t image_size, ntdll_base, ntdll_size;
    char name[START_NAME_MAX];
    char line[START_LINE_MAX];
};

#define AT(type, field, offset) _Static_assert(offsetof(struct type, field) == (offset), #field)
AT(teb, self, 0x30);
AT(teb, process_id, 0x40);
AT(teb, tls_vector, 0x58);
AT(teb, peb, 0x60);
AT(teb, last_error, 0x68);
AT(teb, stack_region, 0x1478);
AT(teb, tls_slots, 0x1480);
AT(teb, tls_expansion, 0x1780);
AT(teb, fls_slots, 0x17c8);
AT(teb, wait_event, 0x1838);
AT(peb, image_base, 0x10);
AT(peb, ldr, 0x18);
AT(peb, parameters, 0x20);
AT(peb, heap, 0x30);
AT(peb, processors, 0xb8);
AT(peb, major, 0x118);
AT(peb, image_subsystem, 0x128);
#undef AT
_Static_assert(sizeof(struct teb) <= TEB_SIZE && sizeof(struct peb) <= START_AT &&
                   sizeof(struct start_information) <= PEB_SIZE - START_AT,
               "they fit");
