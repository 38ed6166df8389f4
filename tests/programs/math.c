/* SPDX-License-Identifier: MIT */
/* Numbers that a C library on any host prints the same: tests/programs/programs.t compares. */
#include <math.h>
#include <stdio.h>

#define SHOW(call) printf(#call " %.13g\n", call)

static const double values[] = { 0.0, 1.0,   -1.0,    0.5,      -0.5,  1.5, 2.5,  -2.5, 3.0,
                                 0.1, 1e-10, 123.456, -123.456, 700.0, 1e6, 1e15, -1e15 };

int main(void)
{
    for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++) {
        double x = values[i];
        printf("x %.13g\n", x);
        SHOW(fabs(x));
        SHOW(floor(x));
        SHOW(ceil(x));
        SHOW(trunc(x));
        SHOW(round(x));
        SHOW(fmod(x, 0.3));
        SHOW(atan(x));
        SHOW(atan2(x, -2.0));
        SHOW(hypot(x, 3.0));
        if (fabs(x) < 1e9) {
            SHOW(sin(x));
            SHOW(cos(x));
            SHOW(tan(x));
        }
        SHOW(fmin(x, 0.7));
        SHOW(fmax(x, 0.7));
        if (x > 0) {
            SHOW(sqrt(x));
            SHOW(log(x));
            SHOW(log2(x));
            SHOW(log10(x));
            SHOW(pow(x, 0.37));
            SHOW(pow(x, -3.0));
        }
        if (fabs(x) <= 1) {
            SHOW(asin(x));
            SHOW(acos(x));
        }
        if (fabs(x) <= 700) {
            SHOW(exp(x));
            SHOW(exp2(x));
        }
    }
    SHOW(pow(-2.0, 3.0));
    SHOW(pow(-2.0, 4.0));
    SHOW(pow(0.0, -1.0));
    SHOW(pow(5.0, 0.0));
    SHOW(exp(800.0));
    SHOW(exp(-800.0));
    printf("%d %d %d %d\n", !!isnan(sqrt(-1.0)), !!isnan(pow(-2.0, 0.5)), !!isnan(log(-1.0)),
           !!isinf(log(0.0)));
    return 0;
}
