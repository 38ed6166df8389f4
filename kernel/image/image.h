/* SPDX-License-Identifier: MIT */
/* The executable images of this machine: libraries linked into the kernel, and modules of the
 * boot loader. Each is laid out once; processes share its read-only pages. */
#pragma once
#include "kernel/nt/nt.h"
#include "kernel/image/pe.h"

struct boot_info;
struct process;

#define IMAGE_NAME_MAX 64

struct image {
    char name[IMAGE_NAME_MAX]; /* without folders, lower case */
    const uint8_t *file;
    size_t file_size;
    const char *wrong; /* why it cannot be used; NULL: it can, or was not tried yet */
    struct pe pe;
    uint8_t *pages; /* laid out and relocated to `base`; NULL: not yet */
    uint64_t base;  /* its address in processes, if that range is free there */
};

/* Makes the list of images. At boot, before there are processes. */
void image_init(const struct boot_info *info);
/* By its name, in any case; NULL: there is none. */
struct image *image_find(const char *name, size_t length);
/* The n-th image that the boot loader brought; NULL: there are fewer. */
struct image *image_module(unsigned n);
/* The n-th image that was laid out, for a process or for the kernel; NULL: there are fewer. */
const struct image *image_laid_out(unsigned n);
/* Checks it and lays it out. NULL, or what is wrong with it. PASSIVE_LEVEL. */
const char *image_prepare(struct image *image);
/* Maps a prepared image into a process. STATUS_CONFLICTING_ADDRESSES: its place is taken and it
 * cannot be moved. STATUS_NO_MEMORY. PASSIVE_LEVEL. */
NTSTATUS image_map(struct image *image, struct process *process, uint64_t *base);
/* The prepared image around an address of a process, at its usual place; NULL: none. */
const struct image *image_at(const struct process *process, uint64_t address);
/* The address of what a prepared image exports, or 0. */
uint64_t image_export(const struct image *image, const char *name);

/* The service of LoadLibrary: maps the image of this name, without its imports. What the
 * boot loader brought, the program's own folder, comes before the kernel's libraries.
 * STATUS_ACCESS_VIOLATION; STATUS_DLL_NOT_FOUND; STATUS_INVALID_IMAGE_FORMAT, and one printed line;
 * image_map's. */
NTSTATUS load_image(PCSTR Name, SIZE_T Length, PVOID *Base, PSIZE_T Size);
