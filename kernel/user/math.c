/* SPDX-License-Identifier: MIT */
/* <math.h> for programs, by single x87 instructions where they exist. */
#include "kernel/user/math.h"
#include <stdbool.h>
#include <stdint.h>

typedef long double extended;

double fabs(double x) { return __builtin_fabs(x); }

double sqrt(double x)
{
    double root;
    asm("sqrtsd %1, %0" : "=x"(root) : "x"(x));
    return root;
}

/* Rounding control is bits 11:10 of the control word: 4 down, 8 up, c towards 0. */
static double rounded(double x, uint16_t control)
{
    uint16_t old, wanted;
    extended value = x;
    asm("fnstcw %0" : "=m"(old));
    wanted = (uint16_t)((old & 0xf3ff) | control << 8);
    asm volatile("fldcw %1\n\tfrndint\n\tfldcw %2" : "+t"(value) : "m"(wanted), "m"(old));
    return (double)value;
}

double floor(double x) { return rounded(x, 4); }
double ceil(double x) { return rounded(x, 8); }
double trunc(double x) { return rounded(x, 12); }

/* Halves go away from 0. */
double round(double x)
{
    double whole = trunc(x);
    return fabs(x - whole) < 0.5 ? whole : whole + (x < 0 ? -1 : 1);
}

/* A remainder of many bits takes several steps: bit 10 of the status word says so. */
double fmod(double x, double y)
{
    extended value = x, divisor = y;
    uint16_t status = 0;
    do
        asm("fprem\n\tfnstsw %1" : "+t"(value), "=a"(status) : "u"(divisor));
    while (status & 0x400);
    return (double)value;
}

double fmin(double x, double y) { return isnan(x) || y < x ? y : x; }
double fmax(double x, double y) { return isnan(x) || y > x ? y : x; }

double hypot(double x, double y)
{
    extended sum = (extended)x * x + (extended)y * y, root;
    asm("fsqrt" : "=t"(root) : "0"(sum));
    return isinf(x) || isinf(y) ? INFINITY : (double)root;
}

/* factor * log2(x) */
static extended logarithm(extended x, extended factor)
{
    extended result;
    asm("fyl2x" : "=t"(result) : "0"(x), "u"(factor) : "st(1)");
    return result;
}

/* 2^x: F2XM1 takes -1 to 1, FSCALE the rest. */
static extended power_of_two(extended x)
{
    extended whole, part;
    if (x > 20000)
        return INFINITY;
    if (x < -20000)
        return 0;
    asm("frndint" : "=t"(whole) : "0"(x));
    part = x - whole;
    asm("f2xm1" : "+t"(part));
    part += 1;
    asm("fscale" : "+t"(part) : "u"(whole));
    return part;
}

static extended log2_e(void)
{
    extended value;
    asm("fldl2e" : "=t"(value));
    return value;
}

static extended log_of_2(bool decimal)
{
    extended value;
    if (decimal)
        asm("fldlg2" : "=t"(value));
    else
        asm("fldln2" : "=t"(value));
    return value;
}

double exp(double x) { return isnan(x) ? x : (double)power_of_two(x * log2_e()); }
double exp2(double x) { return isnan(x) ? x : (double)power_of_two(x); }
double log(double x) { return (double)logarithm(x, log_of_2(false)); }
double log2(double x) { return (double)logarithm(x, 1); }
double log10(double x) { return (double)logarithm(x, log_of_2(true)); }

double pow(double x, double y)
{
    bool whole = y == trunc(y), odd = whole && fabs(y) < 9007199254740992.0 && fmod(y, 2) != 0;
    if (y == 0 || x == 1)
        return 1;
    if (isnan(x) || isnan(y))
        return NAN;
    if (isinf(y))
        return fabs(x) == 1 ? 1 : (fabs(x) > 1) == (y > 0) ? INFINITY : 0;
    if (x == 0 || isinf(x)) {
        double size = (x == 0) == (y > 0) ? 0 : INFINITY;
        return odd && signbit(x) ? -size : size;
    }
    if (x < 0 && !whole)
        return NAN;
    double size = (double)power_of_two(logarithm(fabs(x), y));
    return x < 0 && odd ? -size : size;
}

/* Takes whole turns off a large angle: the range of FSIN is limited. */
static extended angle(double x)
{
    extended value = x, turn;
    uint16_t status = 0;
    if (fabs(x) < 1e9)
        return value;
    asm("fldpi" : "=t"(turn));
    turn *= 2;
    do
        asm("fprem1\n\tfnstsw %1" : "+t"(value), "=a"(status) : "u"(turn));
    while (status & 0x400);
    return value;
}

double sin(double x)
{
    extended value = angle(x);
    asm("fsin" : "+t"(value));
    return (double)value;
}

double cos(double x)
{
    extended value = angle(x);
    asm("fcos" : "+t"(value));
    return (double)value;
}

double tan(double x)
{
    extended value = angle(x), one;
    asm("fptan" : "=t"(one), "=u"(value) : "0"(value));
    return (double)value;
}

static extended arc(extended y, extended x)
{
    extended result;
    asm("fpatan" : "=t"(result) : "0"(x), "u"(y) : "st(1)");
    return result;
}

static extended other_side(double x)
{
    extended root, square = ((extended)1 - x) * ((extended)1 + x);
    asm("fsqrt" : "=t"(root) : "0"(square));
    return root;
}

double asin(double x) { return (double)arc(x, other_side(x)); }
double acos(double x) { return (double)arc(other_side(x), x); }
double atan(double x) { return (double)arc(x, 1); }
double atan2(double y, double x) { return (double)arc(y, x); }
