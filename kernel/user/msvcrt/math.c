/* SPDX-License-Identifier: MIT */
/* Functions of doubles that mingw-w64 leaves to this library: its long double ones, rounded. */
#include "msvcrt.h"
#include <float.h>
#include <math.h>

#define ROUNDED(name)                                                                              \
    double name(double x) { return (double)name##l(x); }
ROUNDED(acos)
ROUNDED(asin)
ROUNDED(atan)
ROUNDED(cosh)
ROUNDED(log10)
ROUNDED(sinh)
ROUNDED(tan)
ROUNDED(tanh)

double modf(double x, double *whole)
{
    *whole = trunc(x);
    return isinf(x) ? copysign(0, x) : copysign(x - *whole, x);
}

double frexp(double x, int *exponent)
{
    bool special = x == 0 || !isfinite(x);
    *exponent = special ? 0 : ilogb(x) + 1;
    return special ? x : scalbn(x, -*exponent);
}

/* mingw-w64's hypot calls this one. */
double _hypot(double x, double y) { return (double)hypotl(x, y); }
double _copysign(double x, double sign) { return copysign(x, sign); }
double _chgsign(double x) { return -x; }
int _finite(double x) { return isfinite(x); }
int _isnan(double x) { return isnan(x); }

int _fpclass(double x)
{
    bool minus = signbit(x);
    switch (fpclassify(x)) {
    case FP_NAN: return _FPCLASS_QNAN;
    case FP_INFINITE: return minus ? _FPCLASS_NINF : _FPCLASS_PINF;
    case FP_ZERO: return minus ? _FPCLASS_NZ : _FPCLASS_PZ;
    case FP_SUBNORMAL: return minus ? _FPCLASS_ND : _FPCLASS_PD;
    default: return minus ? _FPCLASS_NN : _FPCLASS_PN;
    }
}

/* The reports of mingw-w64's own functions have no other use. */
#undef __setusermatherr
void __setusermatherr(int(__cdecl *handler)(struct _exception *)) { (void)handler; }
void __mingw_raise_matherr(int type, const char *name, double a, double b, double result);
void __mingw_raise_matherr(int type, const char *name, double a, double b, double result)
{
    (void)name, (void)a, (void)b, (void)result;
    errno = type == _DOMAIN ? EDOM : ERANGE;
}

void _fpreset(void)
{
    unsigned mxcsr = 0x1f80;
    asm volatile("fninit\n\tldmxcsr %0" : : "m"(mxcsr));
}

unsigned _controlfp(unsigned value, unsigned mask)
{
    (void)value, (void)mask;
    return 0x9001f;
}
unsigned _clearfp(void) { return 0; }
unsigned _statusfp(void) { return 0; }
