/* SPDX-License-Identifier: MIT */
/* A driver as Microsoft's compiler makes it, without headers: clang compiles it for that target. It
 * begins by making its security cookie from KUSER_SHARED_DATA, checks the cookie in functions with
 * arrays, and has __try, __except and __finally. WinRing0x64.sys begins so. */
typedef long NTSTATUS;
typedef unsigned long ULONG;
typedef unsigned long long ULONG64;
typedef unsigned short WCHAR;
typedef struct {
    unsigned short length, maximum;
    WCHAR *buffer;
} UNICODE_STRING;

#define IMPORT __declspec(dllimport)
#define TICK_COUNT ((const volatile ULONG64 *)0xfffff78000000320)
#define DEFAULT_COOKIE 0x2b992ddfa232
#define UNLOAD 0x68 /* DRIVER_OBJECT */
#define NOINLINE __declspec(noinline)

IMPORT NTSTATUS IoCreateDevice(void *driver, ULONG extension, UNICODE_STRING *name, ULONG type,
                               ULONG characteristics, unsigned char exclusive, void **device);
IMPORT void IoDeleteDevice(void *device);
IMPORT NTSTATUS IoCreateSymbolicLink(UNICODE_STRING *link, UNICODE_STRING *name);
IMPORT NTSTATUS IoDeleteSymbolicLink(UNICODE_STRING *link);
IMPORT void RtlInitUnicodeString(UNICODE_STRING *string, const WCHAR *text);
IMPORT ULONG DbgPrint(const char *format, ...);
IMPORT void KeBugCheckEx(ULONG code, ULONG64 a, ULONG64 b, ULONG64 c, ULONG64 d);
IMPORT void ExRaiseStatus(NTSTATUS status);

ULONG64 __security_cookie = DEFAULT_COOKIE;

void __security_check_cookie(ULONG64 cookie);
void __security_check_cookie(ULONG64 cookie)
{
    if (cookie != __security_cookie)
        KeBugCheckEx(0xf7, cookie, __security_cookie, ~__security_cookie, 0);
}

static void *device;
static UNICODE_STRING name, link;

static NOINLINE void touch(int *volatile where) { *where = 1; }

static NOINLINE int guarded(int *where, NTSTATUS status)
{
    int passed = 0;
    __try {
        __try {
            touch(where);
            if (status)
                ExRaiseStatus(status);
            passed = 1;
        } __finally {
            passed += 10;
        }
    } __except (1) {
        passed += 100;
    }
    return passed;
}

/* With an array, which the cookie guards. */
static NOINLINE int copied(const WCHAR *from)
{
    WCHAR text[64];
    int i = 0;
    for (; from[i]; i++)
        text[i] = from[i];
    text[i] = 0;
    RtlInitUnicodeString(&name, text);
    return name.length;
}

static void unload(void *driver)
{
    (void)driver;
    IoDeleteSymbolicLink(&link);
    IoDeleteDevice(device);
    DbgPrint("msvc_driver goes\n");
}

/* Not a part of what sets the cookie, whose frame may not be guarded by it. */
static NOINLINE NTSTATUS start(void *driver)
{
    int there = 0, all = guarded(&there, 0), null = guarded((int *)8, 0),
        raised = guarded(&there, (NTSTATUS)0xc0000001);
    DbgPrint("tries %d %d %d, copied %d, %s cookie\n", all, null, raised, copied(L"text"),
             __security_cookie == DEFAULT_COOKIE ? "no" : "own");
    RtlInitUnicodeString(&name, L"\\Device\\Ring0");
    RtlInitUnicodeString(&link, L"\\DosDevices\\Ring0");
    NTSTATUS status = IoCreateDevice(driver, 0, &name, 40000, 0x100, 0, &device);
    if (status < 0)
        return status;
    *(void **)((char *)driver + UNLOAD) = (void *)unload;
    return IoCreateSymbolicLink(&link, &name);
}

NTSTATUS GsDriverEntry(void *driver, UNICODE_STRING *path);
NTSTATUS GsDriverEntry(void *driver, UNICODE_STRING *path)
{
    (void)path;
    if (!__security_cookie || __security_cookie == DEFAULT_COOKIE)
        __security_cookie = *TICK_COUNT ^ (ULONG64)&__security_cookie;
    return start(driver);
}
