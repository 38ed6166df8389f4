/* SPDX-License-Identifier: MIT */
/* Codes of the unwind data of images. Source: Microsoft's "x64 exception handling". */
#pragma once

enum operation {
    PUSH_REGISTER,
    ALLOCATE_LARGE,
    ALLOCATE_SMALL,
    SET_FRAME,
    SAVE_REGISTER,
    SAVE_REGISTER_FAR,
    EPILOGUE,
    SPARE,
    SAVE_XMM,
    SAVE_XMM_FAR,
    MACHINE_FRAME
};

/* How many slots an operation has; both numbers are of 4 bits. */
static inline unsigned unwind_slots(unsigned operation, unsigned info)
{
    switch (operation) {
    case ALLOCATE_LARGE: return info ? 3 : 2;
    case SAVE_REGISTER:
    case SAVE_XMM: return 2;
    case SAVE_REGISTER_FAR:
    case SAVE_XMM_FAR:
    case SPARE: return 3;
    default: return 1;
    }
}
