/* SPDX-License-Identifier: MIT */
/* As x86intrin.h: <winnt.h> includes this, too. */
#pragma once
#include <x86intrin.h>
