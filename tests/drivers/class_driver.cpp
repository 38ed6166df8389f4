/* SPDX-License-Identifier: MIT */
/* A driver in C++, of two sources: class_driver.cpp+class_helper.c. */
#include <ntddk.h>

extern "C" {
DRIVER_INITIALIZE DriverEntry;
int helper(int n);
}

struct shape {
    virtual int area() const = 0;
};
struct square : shape {
    int side;
    explicit square(int n) : side(n) {}
    int area() const override { return helper(side); }
};

static VOID NTAPI unload(PDRIVER_OBJECT) {}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING)
{
    static const square seven(7);
    const shape *volatile any = &seven;
    DriverObject->DriverUnload = unload;
    DbgPrint("%s: %d\n", "area", any->area());
    return STATUS_SUCCESS;
}
