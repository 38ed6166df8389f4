/* SPDX-License-Identifier: MIT */
/* Only for programs, which are compiled as hosted so that main may end without a return: the
 * compiler's own header would then look for a C library's. */
#pragma once
#include <stdint-gcc.h>
