/* SPDX-License-Identifier: MIT */
/* FormatMessage: texts of the errors that this system returns. NT: one language, no texts of the
 * caller's or of modules, hence no inserts. */
#include "kernel32.h"

static const struct {
    DWORD error;
    const char *text;
} messages[] = {
    { ERROR_SUCCESS, "The operation completed successfully." },
    { ERROR_INVALID_FUNCTION, "Incorrect function." },
    { ERROR_FILE_NOT_FOUND, "The system cannot find the file specified." },
    { ERROR_PATH_NOT_FOUND, "The system cannot find the path specified." },
    { ERROR_ACCESS_DENIED, "Access is denied." },
    { ERROR_INVALID_HANDLE, "The handle is invalid." },
    { ERROR_NOT_ENOUGH_MEMORY,
      "Not enough memory resources are available to process this command." },
    { ERROR_BAD_LENGTH, "The program issued a command but the command length is incorrect." },
    { ERROR_GEN_FAILURE, "A device attached to the system is not functioning." },
    { ERROR_NOT_SUPPORTED, "The request is not supported." },
    { ERROR_INVALID_PARAMETER, "The parameter is incorrect." },
    { ERROR_INSUFFICIENT_BUFFER, "The data area passed to a system call is too small." },
    { ERROR_INVALID_NAME, "The filename, directory name, or volume label syntax is incorrect." },
    { ERROR_MOD_NOT_FOUND, "The specified module could not be found." },
    { ERROR_PROC_NOT_FOUND, "The specified procedure could not be found." },
    { ERROR_BUSY, "The requested resource is in use." },
    { ERROR_ALREADY_EXISTS, "Cannot create a file when that file already exists." },
    { ERROR_BAD_EXE_FORMAT, "%1 is not a valid Win32 application." },
    { ERROR_ENVVAR_NOT_FOUND,
      "The system could not find the environment option that was entered." },
    { ERROR_MORE_DATA, "More data is available." },
    { WAIT_TIMEOUT, "The wait operation timed out." },
    { ERROR_NO_MORE_ITEMS, "No more data is available." },
    { ERROR_NOT_OWNER, "Attempt to release mutex not owned by caller." },
    { ERROR_TOO_MANY_POSTS, "Too many posts were made to a semaphore." },
    { ERROR_INVALID_ADDRESS, "Attempt to access invalid address." },
    { ERROR_NOACCESS, "Invalid access to memory location." },
    { ERROR_NOT_ALL_ASSIGNED,
      "Not all privileges or groups referenced are assigned to the caller." },
    { ERROR_NO_SUCH_PRIVILEGE, "A specified privilege does not exist." },
    { ERROR_PRIVILEGE_NOT_HELD, "A required privilege is not held by the client." },
    { ERROR_NO_SYSTEM_RESOURCES,
      "Insufficient system resources exist to complete the requested service." },
    { ERROR_TIMEOUT, "This operation returned because the timeout period expired." },
    { ERROR_WMI_INSTANCE_NOT_FOUND,
      "The instance name passed was not recognized as valid by a WMI data provider." },
};

static const char *text_of(DWORD error)
{
    for (unsigned i = 0; i < ARRAYSIZE(messages); i++)
        if (messages[i].error == error)
            return messages[i].text;
    return NULL;
}

/* ERROR_NOT_SUPPORTED: the text is the caller's or a module's. ERROR_MR_MID_NOT_FOUND: there is
 * none. ERROR_INSUFFICIENT_BUFFER, ERROR_NOT_ENOUGH_MEMORY. */
static DWORD give_message(DWORD flags, DWORD id, void *buffer, DWORD size, size_t character)
{
    const char *text = text_of(id);
    uint8_t *to = buffer;
    if (!(flags & FORMAT_MESSAGE_FROM_SYSTEM))
        return (DWORD)fail(ERROR_NOT_SUPPORTED);
    if (!text)
        return (DWORD)fail(ERROR_MR_MID_NOT_FOUND);
    const DWORD length = (DWORD)strlen(text) + 2;
    if (flags & FORMAT_MESSAGE_ALLOCATE_BUFFER) {
        size = length + 1 > size ? length + 1 : size;
        to = *(void **)buffer = LocalAlloc(0, size * character);
        if (!to)
            return (DWORD)fail(ERROR_NOT_ENOUGH_MEMORY);
    }
    if (length >= size)
        return (DWORD)fail(ERROR_INSUFFICIENT_BUFFER);
    for (DWORD i = 0; i <= length; i++) {
        const WCHAR c = (WCHAR)(i < length - 2 ? text[i] : "\r\n"[i - (length - 2)]);
        memcpy(to + i * character, &c, character);
    }
    return length;
}

DWORD WINAPI FormatMessageW(DWORD dwFlags, LPCVOID lpSource, DWORD dwMessageId, DWORD dwLanguageId,
                            LPWSTR lpBuffer, DWORD nSize, va_list *Arguments)
{
    return give_message(dwFlags, dwMessageId, lpBuffer, nSize, sizeof *lpBuffer);
}

DWORD WINAPI FormatMessageA(DWORD dwFlags, LPCVOID lpSource, DWORD dwMessageId, DWORD dwLanguageId,
                            LPSTR lpBuffer, DWORD nSize, va_list *Arguments)
{
    return give_message(dwFlags, dwMessageId, lpBuffer, nSize, sizeof *lpBuffer);
}
