/* SPDX-License-Identifier: MIT */
/* Also compiled for the host: both must print the same. */
#include <stdint.h>
#include <stdio.h>

int main(void)
{
    static const double numbers[] = { 0.0,         -0.0, 1.0,     -1.5,    0.1,
                                      2.5,         3.5,  0.05,    99.95,   999998.5,
                                      123456789.0, 1e-5, 1.0 / 3, 5e-324,  1.7976931348623157e308,
                                      1e22,        9.5,  0.5,     -2.0005, 1e15 };
    static const char *const formats[] = { "%f",       "%.0f",     "%.1f",   "%10.3f|",
                                           "%-12.2f|", "%+012.4f", "%e",     "%.0e",
                                           "%.15E",    "%g",       "%.3g",   "%#g",
                                           "%G",       "%.17g",    "% .20g", "%#.0f" };
    for (unsigned f = 0; f < sizeof formats / sizeof formats[0]; f++)
        for (unsigned n = 0; n < sizeof numbers / sizeof numbers[0]; n++) {
            printf(formats[f], numbers[n]);
            printf("\n");
        }
    printf("%f %F %e %5g| %-6g| %06f\n", 1.0 / 0.0, 1.0 / 0.0, -1.0 / 0.0,
           0.0 * (1.0 / 0.0) > 0 ? 1.0 : 1.0 / 0.0, 1.0 / 0.0, 1.0 / 0.0);
    printf("%d %i %u %x %X %o %c %s %%\n", -42, 42, 42u, 0xabcu, 0xabcu, 8u, 'c', "string");
    printf("%5d|%-5d|%05d|%+d|% d|%.3d|%5.3d|%-+5d|%.0d|\n", 42, 42, 42, 42, 42, 42, 42, 42, 0);
    printf("%#x %#o %#X %#x %08x %hhd %hd %hhu\n", 255u, 8u, 255u, 0u, 255u, 300, 70000, 511);
    printf("%lld %llu %llx %zu %jd\n", -5000000000ll, 18446744073709551615ull, 0x123456789abcdefull,
           sizeof(int), (intmax_t)-1);
    printf("%10s|%-10s|%.2s|%*d|%-*d|%.*f\n", "abc", "abc", "abc", 6, 7, 6, 7, 2, 1.005);
    char text[8];
    int n = snprintf(text, sizeof text, "%s", "longer than that");
    printf("%s %d\n", text, n);
    fprintf(stdout, "no newline at the end");
}
