/* SPDX-License-Identifier: MIT */
/* Only for programs. They are compiled as hosted, so that main may end without a return; then the
 * compiler's own header would look for a C library's. */
#pragma once
#include <stdint-gcc.h>
