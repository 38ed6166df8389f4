/* SPDX-License-Identifier: MIT */
/* Checks of a payload: TAP on COM1, and its end. */
#pragma once
#include "tests/guests/guest.h"

static unsigned number, failures;

static void say_number(uint64_t v)
{
    char digits[24];
    unsigned n = sizeof digits;
    digits[--n] = 0;
    do
        digits[--n] = (char)('0' + v % 10);
    while (v /= 10);
    say(digits + n);
}

static void check_that(const char *name, uint64_t found, uint64_t wanted)
{
    number++;
    if (found != wanted) {
        failures++;
        say("# found ");
        say_number(found);
        say(", want ");
        say_number(wanted);
        say("\nnot ");
    }
    say("ok ");
    say_number(number);
    say(" - payload: ");
    say(name);
    say("\n");
}

static void finish_run(void)
{
    say("1..");
    say_number(number);
    say(failures ? "\n# FAIL payload\n" : "\n# PASS payload\n");
    end(failures ? 0x11 : 0x10);
}
