/* SPDX-License-Identifier: MIT */
/* Streams: standard input, output and error. NT: there are no files; opening one fails with ENOENT,
 * and standard input is at its end. */
#include "msvcrt.h"

#define STREAMS 20 /* as many as Windows has at &__iob_func()[0]; three are open */
#define OPEN 3
#define ROOM 512
#define HELD 0x1000     /* in _flag: a message is being written */
#define BUFFERED 0x2000 /* the program asked for a buffer */

#undef _iob
FILE _iob[STREAMS];
static CRITICAL_SECTION locks[OPEN];
static char rooms[OPEN][ROOM];

FILE *__iob_func(void) { return _iob; }
FILE *__acrt_iob_func(unsigned number) { return &_iob[number]; }

static bool is_stream(FILE *stream)
{
    if (!stream)
        wrong(EINVAL);
    return stream;
}

void streams_begin(void)
{
    for (int i = 0; i < OPEN; i++) {
        InitializeCriticalSection(&locks[i]);
        _iob[i] = (FILE){ ._ptr = rooms[i],
                          ._base = rooms[i],
                          ._bufsiz = ROOM,
                          ._file = i,
                          ._flag = i ? _IOWRT : _IOREAD };
    }
}

static bool is_open(const FILE *stream)
{
    return stream >= _iob && stream < _iob + OPEN && stream->_flag;
}

void stream_lock(FILE *stream)
{
    if (stream >= _iob && stream < _iob + OPEN)
        EnterCriticalSection(&locks[stream - _iob]);
}

void stream_unlock(FILE *stream)
{
    if (stream >= _iob && stream < _iob + OPEN)
        LeaveCriticalSection(&locks[stream - _iob]);
}

void _lock_file(FILE *stream) { stream_lock(stream); }
void _unlock_file(FILE *stream) { stream_unlock(stream); }

static int flush_stream(FILE *stream)
{
    DWORD left = (DWORD)(stream->_ptr - stream->_base), written;
    stream->_ptr = stream->_base;
    if (!left)
        return 0;
    HANDLE handle = GetStdHandle(stream->_file == 2 ? STD_ERROR_HANDLE : STD_OUTPUT_HANDLE);
    if (WriteFile(handle, stream->_base, left, &written, NULL))
        return 0;
    stream->_flag |= _IOERR;
    return EOF;
}

void streams_end(void)
{
    for (int i = 1; i < OPEN; i++)
        flush_stream(&_iob[i]);
}

static bool put_byte(FILE *stream, char c)
{
    if (!is_open(stream) || !(stream->_flag & _IOWRT)) {
        stream->_flag |= _IOERR;
        errno = EBADF;
        return false;
    }
    *stream->_ptr++ = c;
    return stream->_ptr < stream->_base + stream->_bufsiz || flush_stream(stream) == 0;
}

static void settle(FILE *stream)
{
    if (is_open(stream) && stream->_flag & _IOWRT && !(stream->_flag & (HELD | BUFFERED)))
        flush_stream(stream);
}

void stream_hold(FILE *stream)
{
    stream_lock(stream);
    stream->_flag |= HELD;
}

void stream_let_go(FILE *stream)
{
    stream->_flag &= ~HELD;
    settle(stream);
    stream_unlock(stream);
}

size_t stream_write(FILE *stream, const char *text, size_t size)
{
    size_t done = 0;
    if (!is_stream(stream))
        return 0;
    stream_lock(stream);
    while (done < size && put_byte(stream, text[done]))
        done++;
    settle(stream);
    stream_unlock(stream);
    return done;
}

/* --- Output. --- */

int fputc(int c, FILE *stream)
{
    char byte = (char)c;
    return stream_write(stream, &byte, 1) ? (unsigned char)c : EOF;
}

int putc(int c, FILE *stream) { return fputc(c, stream); }
int putchar(int c) { return fputc(c, stdout); }

int fputs(const char *text, FILE *stream)
{
    if (!text) {
        wrong(EINVAL);
        return EOF;
    }
    size_t size = strlen(text);
    return stream_write(stream, text, size) == size ? 0 : EOF;
}

int puts(const char *text)
{
    stream_hold(stdout);
    int result = fputs(text, stdout) == EOF ? EOF : fputc('\n', stdout);
    stream_let_go(stdout);
    return result;
}

size_t fwrite(const void *from, size_t size, size_t count, FILE *stream)
{
    size_t bytes;
    if (!size || !count)
        return 0;
    if (!from || __builtin_mul_overflow(size, count, &bytes)) {
        wrong(EINVAL);
        return 0;
    }
    return stream_write(stream, from, bytes) / size;
}

int fflush(FILE *stream)
{
    int result = 0;
    for (int i = 1; i < OPEN; i++)
        if (!stream || stream == &_iob[i]) {
            stream_lock(&_iob[i]);
            result |= flush_stream(&_iob[i]);
            stream_unlock(&_iob[i]);
        }
    return result;
}

int setvbuf(FILE *stream, char *buffer, int mode, size_t size)
{
    if (!is_stream(stream) || !is_open(stream))
        return -1;
    if ((mode != _IONBF && mode != _IOFBF && mode != _IOLBF) || (buffer && size > INT_MAX)) {
        wrong(EINVAL);
        return -1;
    }
    stream_lock(stream);
    flush_stream(stream);
    stream->_flag &= ~BUFFERED;
    if (mode != _IONBF)
        stream->_flag |= BUFFERED;
    if (mode != _IONBF && buffer && size) {
        stream->_base = stream->_ptr = buffer;
        stream->_bufsiz = (int)size;
    }
    stream_unlock(stream);
    return 0;
}

void setbuf(FILE *stream, char *buffer)
{
    setvbuf(stream, buffer, buffer ? _IOFBF : _IONBF, BUFSIZ);
}

/* --- Input: none. --- */

int stream_read(FILE *stream)
{
    if (!is_stream(stream))
        return EOF;
    if (stream->_cnt) {
        stream->_cnt = 0;
        return stream->_charbuf;
    }
    stream->_flag |= _IOEOF;
    return EOF;
}

int fgetc(FILE *stream)
{
    int c = stream_read(stream);
    return c == EOF ? EOF : c & 0xff;
}

int getc(FILE *stream) { return fgetc(stream); }
int getchar(void) { return fgetc(stdin); }

int ungetc(int c, FILE *stream)
{
    if (!is_stream(stream) || c == EOF || stream->_cnt)
        return EOF;
    stream->_charbuf = c;
    stream->_cnt = 1;
    stream->_flag &= ~_IOEOF;
    return c;
}

char *fgets(char *text, int room, FILE *stream)
{
    int n = 0;
    if (!text || room <= 0 || !stream) {
        wrong(EINVAL);
        return NULL;
    }
    for (int c; n + 1 < room && (c = fgetc(stream)) != EOF;) {
        text[n++] = (char)c;
        if (c == '\n')
            break;
    }
    text[n] = 0;
    return n ? text : NULL;
}

char *gets(char *text)
{
    (void)text;
    stdin->_flag |= _IOEOF;
    return NULL;
}

size_t fread(void *to, size_t size, size_t count, FILE *stream)
{
    size_t n = 0, bytes;
    if (!size || !count)
        return 0;
    if (!to || !stream || __builtin_mul_overflow(size, count, &bytes)) {
        wrong(EINVAL);
        return 0;
    }
    for (int c; n < bytes && (c = fgetc(stream)) != EOF;)
        ((char *)to)[n++] = (char)c;
    return n / size;
}

/* --- State. --- */

int feof(FILE *stream) { return is_stream(stream) ? stream->_flag & _IOEOF : 0; }
int ferror(FILE *stream) { return is_stream(stream) ? stream->_flag & _IOERR : 0; }
void clearerr(FILE *stream)
{
    if (is_stream(stream))
        stream->_flag &= ~(_IOEOF | _IOERR);
}
int _fileno(FILE *stream) { return is_stream(stream) && is_open(stream) ? stream->_file : -1; }

int fclose(FILE *stream)
{
    if (!is_stream(stream) || !is_open(stream))
        return EOF;
    int result = fflush(stream);
    stream->_flag = 0;
    return result;
}

int _fcloseall(void) { return 0; }

static int no_seek(FILE *stream)
{
    if (is_stream(stream))
        errno = ESPIPE;
    return -1;
}

int fseek(FILE *stream, long offset, int from)
{
    (void)offset, (void)from;
    return no_seek(stream);
}
int _fseeki64(FILE *stream, long long offset, int from)
{
    (void)offset, (void)from;
    return no_seek(stream);
}
long ftell(FILE *stream) { return no_seek(stream); }
long long _ftelli64(FILE *stream) { return no_seek(stream); }
int fgetpos(FILE *stream, fpos_t *position)
{
    (void)position;
    return no_seek(stream);
}
int fsetpos(FILE *stream, const fpos_t *position)
{
    (void)position;
    return no_seek(stream);
}
void rewind(FILE *stream) { clearerr(stream); }

/* NT: there are no files, and none can be made. */
static FILE *no_file(int mode)
{
    errno = mode == 'w' || mode == 'a' ? EACCES : ENOENT;
    return NULL;
}

FILE *fopen(const char *name, const char *mode)
{
    (void)name;
    return no_file(*mode);
}
FILE *_wfopen(const wchar_t *name, const wchar_t *mode)
{
    (void)name;
    return no_file(*mode);
}
FILE *freopen(const char *name, const char *mode, FILE *stream)
{
    (void)name, (void)stream;
    return no_file(*mode);
}
FILE *tmpfile(void) { return no_file('w'); }
int remove(const char *name)
{
    (void)name;
    no_file('r');
    return -1;
}
int rename(const char *from, const char *to)
{
    (void)from, (void)to;
    no_file('r');
    return -1;
}

FILE *_fdopen(int file, const char *mode)
{
    (void)mode;
    return file >= 0 && file < OPEN ? &_iob[file] : no_file('r');
}

void perror(const char *text)
{
    int error = errno;
    if (text && *text)
        fprintf(stderr, "%s: ", text);
    fprintf(stderr, "%s\n", strerror(error));
}
