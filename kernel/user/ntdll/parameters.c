/* SPDX-License-Identifier: MIT */
/* The parameters of a process: its command line, its name, an environment. And its conditions on
 * the version of Windows. */
#include "ntdll.h"

/* RTL_USER_PROCESS_PARAMETERS; only these fields are used here. */
struct parameters {
    ULONG maximum_length, length, flags, debug_flags;
    HANDLE console;
    ULONG console_flags;
    HANDLE input, output, error;
    UNICODE_STRING folder;
    HANDLE folder_handle;
    UNICODE_STRING library_path, image, line;
    WCHAR *environment;
};
C_ASSERT(offsetof(struct parameters, line) == offsetof(RTL_USER_PROCESS_PARAMETERS, CommandLine));
C_ASSERT(offsetof(struct parameters, environment) == 0x80);

static UNICODE_STRING wide(const char *a, const char *b)
{
    SIZE_T n = strlen(a) + strlen(b), i = 0;
    WCHAR *buffer = heap_get(2 * n + 2);
    UNICODE_STRING string = { (USHORT)(2 * n), (USHORT)(2 * n + 2), buffer };
    for (; buffer && *a; a++)
        buffer[i++] = (unsigned char)*a;
    for (; buffer && *b; b++)
        buffer[i++] = (unsigned char)*b;
    return string;
}

NTSTATUS parameters_begin(const char *name, const char *line)
{
    static struct parameters parameters = { .maximum_length = sizeof parameters,
                                            .length = sizeof parameters,
                                            .flags = 1 };
    static WCHAR environment[] = L"OS=Windows_NT\0SystemDrive=C:\0SystemRoot=C:\\Windows\0"
                                 L"TEMP=C:\\Temp\0";
    parameters.folder = wide("C:\\", "");
    parameters.image = wide("C:\\", name);
    parameters.line = wide(line, "");
    parameters.environment = environment;
    parameters.input = (HANDLE)3;
    parameters.output = (HANDLE)7;
    parameters.error = (HANDLE)11;
    teb()->peb->parameters = &parameters;
    return parameters.image.Buffer && parameters.line.Buffer ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

/* Three bits for each field; of several fields the highest bit's. */
ULONGLONG NTAPI VerSetConditionMask(ULONGLONG ConditionMask, DWORD TypeMask, BYTE Condition)
{
    for (unsigned field = 8; field-- > 0;)
        if (TypeMask >> field & 1)
            return ConditionMask | (ULONGLONG)(Condition & 7) << 3 * field;
    return ConditionMask;
}
