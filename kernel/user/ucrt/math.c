/* SPDX-License-Identifier: MIT */
/* Functions of doubles and floats that ucrtbase has and neither msvcrt nor mingw-w64's library. */
#include "ucrt.h"
#include <float.h>
#include <math.h>

double nextafter(double x, double y)
{
    union {
        double value;
        int64_t bits;
    } u = { x };
    if (isnan(x) || isnan(y))
        return x + y;
    if (x == y)
        return y;
    if (x == 0)
        return copysign(0x1p-1074, y);
    u.bits += (x < y) == (x > 0) ? 1 : -1;
    return u.value;
}

float _hypotf(float x, float y) { return (float)hypotl(x, y); }
float _copysignf(float x, float sign) { return copysignf(x, sign); }
float _chgsignf(float x) { return -x; }
int _finitef(float x) { return isfinite(x); }
int _isnanf(float x) { return isnan(x); }
double _logb(double x) { return logb(x); }
double _scalb(double x, long n) { return scalbln(x, n); }

/* FP_NAN and its kin as Microsoft's <math.h> has them. */
#define KIND_NORMAL (-1)
#define KIND_SUBNORMAL (-2)
#define KIND_ZERO 0
#define KIND_INFINITE 1
#define KIND_NAN 2

static short kind(int class)
{
    switch (class) {
    case FP_NAN: return KIND_NAN;
    case FP_INFINITE: return KIND_INFINITE;
    case FP_ZERO: return KIND_ZERO;
    case FP_SUBNORMAL: return KIND_SUBNORMAL;
    default: return KIND_NORMAL;
    }
}

short _dclass(double x) { return kind(fpclassify(x)); }
short _fdclass(float x) { return kind(fpclassify(x)); }
short _dtest(const double *x) { return _dclass(*x); }
short _fdtest(const float *x) { return _fdclass(*x); }
int _dsign(double x) { return signbit(x) ? 0x8000 : 0; }
int _fdsign(float x) { return signbit(x) ? 0x8000 : 0; }

errno_t _controlfp_s(unsigned *now, unsigned value, unsigned mask)
{
    unsigned word = _controlfp(value, mask);
    if (now)
        *now = word;
    return 0;
}
