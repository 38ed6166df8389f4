// SPDX-License-Identifier: MIT
// What a C++ program may expect: global constructors in order, destructors at the end, new,
// templates, doubles.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>
#include <evntcons.h>

struct traced {
    const char *name;
    explicit traced(const char *n) : name(n) { printf("begin %s\n", name); }
    virtual ~traced() { printf("end %s\n", name); }
};

static traced first("first"), second("second");

template <typename T> static T sum(const T *values, int n)
{
    T total = 0;
    for (int i = 0; i < n; i++)
        total += values[i];
    return total;
}

static DWORD WINAPI spin(LPVOID)
{
    for (;;)
        ;
}

int main()
{
    double *values = new double[1000];
    for (int i = 0; i < 1000; i++)
        values[i] = i / 8.0;
    printf("sum %.3f\n", sum(values, 1000));
    delete[] values;
    traced *dynamic = new traced("dynamic");
    delete dynamic;
    char *big = (char *)malloc(200000), *small = (char *)calloc(10, 10);
    memset(big, 'x', 200000);
    printf("memory %d %d\n", big[199999] == 'x', small[99] == 0);
    free(big);
    free(small);
    HMODULE none = LoadLibrary("user32.dll");
    printf("no library %d, error %u\n", none == NULL, GetLastError());
    FARPROC address = GetProcAddress(LoadLibrary("kernel32"), "NoSuchFunction");
    printf("no function %d, error %u\n", address == NULL, GetLastError());
    const WCHAR name[] = L"no session";
    EVENT_TRACE_PROPERTIES properties = {};
    properties.Wnode.BufferSize = sizeof properties;
    printf("no session: error %u\n",
           ControlTraceW(0, name, &properties, EVENT_TRACE_CONTROL_QUERY));
    static traced local("local");
    CreateThread(NULL, 0, spin, NULL, 0, NULL); // ends with the process
    Sleep(2);
}
