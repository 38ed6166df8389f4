/* SPDX-License-Identifier: MIT */
/* A build with COVER=1, for make mutants: which places of the kernel each test reaches. In other
 * builds there is no such function. */
#pragma once

/* What was reached since it was last called; what many tests reach is no longer said. */
__attribute__((weak)) void cover_tell(const char *group, const char *name);
