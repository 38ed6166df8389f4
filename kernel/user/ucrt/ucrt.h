/* SPDX-License-Identifier: MIT */
/* What the files of ucrtbase share beside msvcrt's. mingw-w64's headers are msvcrt's here, so the
 * prototypes of what only ucrtbase has are in no header. */
#pragma once
#include "kernel/user/msvcrt/msvcrt.h"
#include <stdarg.h>
#include <stdint.h>

/* startup.c: a parameter is wrong. Returns only if the program's handler does. */
void _invalid_parameter_noinfo(void);
