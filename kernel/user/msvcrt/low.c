/* SPDX-License-Identifier: MIT */
/* Files by number: 0, 1 and 2. */
#include "msvcrt.h"
#include <io.h>
#include <fcntl.h>
#include <sys/stat.h>

#define OPEN 3

static bool is_file(int file) { return file >= 0 && file < OPEN; }

static int bad(void)
{
    wrong(EBADF);
    return -1;
}

static int no_such_file(const void *name)
{
    if (name)
        errno = ENOENT;
    else
        wrong(EINVAL);
    return -1;
}

int _write(int file, const void *from, unsigned size)
{
    if (file != 1 && file != 2)
        return bad();
    if (!from && size) {
        wrong(EINVAL);
        return -1;
    }
    return (int)stream_write(&__iob_func()[file], from, size);
}

int _read(int file, void *to, unsigned size)
{
    (void)to, (void)size;
    return file == 0 ? 0 : bad();
}

int _close(int file) { return is_file(file) ? 0 : bad(); }
int _isatty(int file) { return is_file(file) || bad() > 0; }
int _setmode(int file, int mode)
{
    (void)mode;
    return is_file(file) ? _O_TEXT : bad();
}
int _commit(int file) { return is_file(file) ? 0 : bad(); }
int _dup(int file)
{
    if (!is_file(file))
        return bad();
    errno = EMFILE;
    return -1;
}
/* NT: what is open cannot become another file. */
int _dup2(int from, int to)
{
    if (!is_file(from) || to < 0)
        return bad();
    errno = EMFILE;
    return -1;
}

int _open(const char *name, int flags, ...)
{
    (void)flags;
    return no_such_file(name);
}
int _wopen(const wchar_t *name, int flags, ...)
{
    (void)flags;
    return no_such_file(name);
}
int _access(const char *name, int mode)
{
    (void)mode;
    return no_such_file(name);
}
int _unlink(const char *name) { return no_such_file(name); }

static int refuse_seek(int file)
{
    if (!is_file(file))
        return bad();
    errno = ESPIPE;
    return -1;
}

long _lseek(int file, long offset, int from)
{
    (void)offset, (void)from;
    return refuse_seek(file);
}
long long _lseeki64(int file, long long offset, int from)
{
    (void)offset, (void)from;
    return refuse_seek(file);
}
long long _telli64(int file) { return refuse_seek(file); }
long _filelength(int file) { return is_file(file) ? 0 : bad(); }
long long _filelengthi64(int file) { return is_file(file) ? 0 : bad(); }

int _fstat64(int file, struct _stat64 *stat)
{
    if (!is_file(file))
        return bad();
    *stat = (struct _stat64){ .st_mode = _S_IFCHR | _S_IREAD | _S_IWRITE, .st_nlink = 1 };
    return 0;
}

int _stat64(const char *name, struct _stat64 *stat)
{
    (void)stat;
    return no_such_file(name);
}

intptr_t _get_osfhandle(int file)
{
    static const DWORD names[] = { STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE };
    return is_file(file) ? (intptr_t)GetStdHandle(names[file]) : bad();
}
