/* SPDX-License-Identifier: MIT */
#include "cookie.h"

int main(void) { return cookie_is_set() ? 0 : 1; }
