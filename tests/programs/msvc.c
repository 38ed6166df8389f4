/* SPDX-License-Identifier: MIT */
/* A program as Visual Studio makes it with /MD: clang compiles it for Microsoft's ABI, with __try
 * as a word of the language. The start below takes from vcruntime140.dll, the API sets of
 * ucrtbase.dll and kernel32.dll what Microsoft's own does. No header: none of theirs is here. */
typedef unsigned long DWORD;
typedef unsigned long long size_t;
typedef struct {
    DWORD code, flags;
    void *next, *address;
} RECORD;
typedef struct {
    RECORD *record;
    void *context;
} POINTERS;
typedef struct {
    void *first, *last, *end;
} TABLE;
typedef void ROUTINE(void);
typedef int CHECKED(void);

#define FROM __declspec(dllimport)
/* stdio, heap, utility, string */
FROM void *__acrt_iob_func(unsigned number);
FROM int __stdio_common_vfprintf(unsigned long long options, void *stream, const char *format,
                                 void *locale, __builtin_va_list args);
FROM int *__p__commode(void);
FROM int _set_fmode(int mode);
FROM void *malloc(size_t size);
FROM void free(void *block);
FROM int _set_new_mode(int mode);
FROM void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *));
FROM int strcmp(const char *a, const char *b);
/* math, locale */
FROM void __setusermatherr(int (*handler)(void *));
FROM int _configthreadlocale(int mode);
/* runtime */
FROM int _seh_filter_exe(DWORD code, POINTERS *pointers);
FROM void _set_app_type(int type);
FROM char **_get_initial_narrow_environment(void);
FROM void _initterm(ROUTINE **from, ROUTINE **end);
FROM int _initterm_e(CHECKED **from, CHECKED **end);
FROM __declspec(noreturn) void exit(int code);
FROM void _cexit(void);
FROM void _register_thread_local_exe_atexit_callback(void (*callback)(void *, DWORD, void *));
FROM int _initialize_onexit_table(TABLE *table);
FROM int _register_onexit_function(TABLE *table, CHECKED *function);
FROM int _execute_onexit_table(TABLE *table);
FROM int _crt_atexit(ROUTINE *function);
FROM int _configure_narrow_argv(int mode);
FROM int _initialize_narrow_environment(void);
FROM int *__p___argc(void);
FROM char ***__p___argv(void);
FROM void (*signal(int number, void (*handler)(int)))(int);
/* vcruntime140.dll */
FROM void *memcpy(void *to, const void *from, size_t size);
FROM void *memset(void *to, int value, size_t size);
FROM char *strstr(const char *text, const char *part);
FROM void **__current_exception(void);
FROM void __std_type_info_destroy_list(void *list);
FROM int __C_specific_handler(void);
/* kernel32.dll */
FROM void InitializeSListHead(void *head);
FROM int IsProcessorFeaturePresent(DWORD feature);
FROM int QueryPerformanceCounter(long long *count);
FROM void RaiseException(DWORD code, DWORD flags, DWORD count, const void *arguments);

unsigned long _exception_code(void);
void *_exception_info(void);
int _fltused;

static int wrong;

static void print(const char *format, ...)
{
    __builtin_va_list args;
    __builtin_va_start(args, format);
    __stdio_common_vfprintf(0, __acrt_iob_func(1), format, 0, args);
    __builtin_va_end(args);
}

static void is(int line, long long found, long long wanted)
{
    if (found != wanted)
        print("line %d: %lld, want %lld\n", line, found, wanted);
    wrong += found != wanted;
}
#define IS(found, wanted) is(__LINE__, (long long)(found), (long long)(wanted))

/* --- The program. --- */

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static volatile int finals;

/* clang guards calls, and no single accesses. */
__attribute__((noinline)) static void touch(volatile int *address) { *address = 1; }

static void handled(void)
{
    volatile DWORD code = 0;
    __try {
        __try {
            touch((int *)0x123);
        } __finally {
            finals++;
        }
    } __except (_exception_code() == 0xc0000005) {
        code = _exception_code();
    }
    IS(code, 0xc0000005);
    __try {
        RaiseException(0xe0000001, 0, 0, 0);
    } __except (((POINTERS *)_exception_info())->record->code == 0xe0000001) {
        code = 7;
    }
    IS(code, 7);
    ROUTINE *volatile nothing = 0;
    __try {
        nothing();
    } __except (((POINTERS *)_exception_info())->record->address == 0) {
        code = 8;
    }
    IS(code, 8);
    IS(finals, 1);
}

static volatile int signals;

static void on_signal(int number) { signals += number; }

static void at_exit(void) { print("atexit\n"); }

int main(int count, char **arguments)
{
    int numbers[] = { 5, 2, 9, 1 }, *copy = malloc(sizeof numbers);
    print("hello of %d: %s, %5.2f\n", count, arguments[1], 2.5);
    memcpy(copy, numbers, sizeof numbers);
    qsort(copy, 4, sizeof *copy, ascending);
    IS(copy[0] == 1 && copy[3] == 9, 1);
    free(copy);
    IS(strcmp(strstr("in a text", "a t"), "a text"), 0);
    handled();
    IS(*__current_exception() == 0, 1);
    signal(11, on_signal);
    RECORD record = { .code = 0xc0000005 };
    POINTERS pointers = { &record, 0 };
    IS(_seh_filter_exe(record.code, &pointers), -1);
    IS(signals, 11);
    IS(_seh_filter_exe(record.code, &pointers), 0);
    _crt_atexit(at_exit);
    return wrong;
}

/* --- The start: Microsoft's documents name its steps (initialization of the CRT). --- */

static int begun(void)
{
    print("initializer\n");
    return 0;
}
static void constructed(void) { print("constructor\n"); }
static CHECKED *checked[] = { 0, begun };
static ROUTINE *constructors[] = { 0, constructed };
static TABLE own;
static char list[16] __attribute__((aligned(16)));

static int destroyed(void)
{
    print("destructor\n");
    return 0;
}

static void end_thread(void *module, DWORD reason, void *reserved)
{
    (void)module, (void)reserved;
    print("thread's end %d\n", (int)reason);
}

static int start(void)
{
    long long cookie = 0;
    QueryPerformanceCounter(&cookie);
    IS(cookie != 0 && IsProcessorFeaturePresent(10), 1);
    _set_app_type(1);
    _set_fmode(0x4000);
    *__p__commode() = 0;
    _configthreadlocale(0);
    IS(_set_new_mode(0), 0);
    __setusermatherr(0);
    InitializeSListHead(list);
    IS(_initialize_onexit_table(&own), 0);
    IS(_configure_narrow_argv(1), 0);
    IS(_initialize_narrow_environment(), 0);
    IS(_initterm_e(checked, checked + 2), 0);
    _initterm(constructors, constructors + 2);
    IS(_register_onexit_function(&own, destroyed), 0);
    _register_thread_local_exe_atexit_callback(end_thread);
    IS(_get_initial_narrow_environment() != 0, 1);
    int code = main(*__p___argc(), *__p___argv());
    _execute_onexit_table(&own);
    __std_type_info_destroy_list(list);
    exit(code);
}

int mainCRTStartup(void)
{
    __try {
        return start();
    } __except (_seh_filter_exe(_exception_code(), _exception_info())) {
        return 99;
    }
}
