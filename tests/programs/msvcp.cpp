// SPDX-License-Identifier: MIT
// A C++ program as Visual Studio makes it with /MD: exceptions, streams and types by
// msvcp140.dll, vcruntime140.dll and ucrtbase.dll. clang compiles it for Microsoft's ABI. There are
// no headers of theirs here; what <exception> and <iostream> have stands below.
#define FROM __declspec(dllimport)
typedef decltype(sizeof 0) size_t;

extern "C" {
FROM void *malloc(size_t size);
FROM void free(void *block);
FROM int _configure_narrow_argv(int mode);
FROM void _initterm(void (**from)(), void (**end)());
FROM int _crt_atexit(void (*function)());
FROM __declspec(noreturn) void exit(int code);
FROM size_t _beginthreadex(void *security, unsigned size, unsigned (*start)(void *), void *argument,
                           unsigned flags, unsigned *id);
FROM void __std_exception_copy(const void *from, void *to);
FROM void __std_exception_destroy(void *data);
FROM const char *__std_type_info_name(void *data, void *list);
FROM unsigned WaitForSingleObject(void *handle, unsigned ms);
FROM int GetExitCodeThread(void *thread, unsigned *code);
int _fltused;
extern void *const type_info_functions[1] __asm__("??_7type_info@@6B@");
void *const type_info_functions[1] = {};
}

void *operator new(size_t size) { return malloc(size); }
void operator delete(void *block) noexcept { free(block); }

namespace std
{
class exception
{
    struct {
        const char *what = nullptr;
        bool owned = false;
    } data;

  public:
    exception(const char *text) noexcept { data.what = text; }
    exception(const exception &other) noexcept { __std_exception_copy(&other.data, &data); }
    virtual ~exception() { __std_exception_destroy(&data); }
    virtual const char *what() const { return data.what; }
};
class logic_error : public exception
{
  public:
    using exception::exception;
};
class out_of_range : public logic_error
{
  public:
    using logic_error::logic_error;
};
[[noreturn]] FROM void _Xout_of_range(const char *text);
FROM int uncaught_exceptions();

template <class C> struct char_traits;
class ios_base;
template <class C, class T> class FROM basic_ostream
{
  public:
    typedef basic_ostream self;
    self &operator<<(int value);
    self &operator<<(double value);
    self &operator<<(const void *value);
    self &put(C character);
    self &write(const C *text, long long size);
    self &flush();
};
typedef basic_ostream<char, char_traits<char>> ostream;
extern FROM ostream cout;
} // namespace std

static std::ostream &operator<<(std::ostream &stream, const char *text)
{
    return stream.write(text, static_cast<long long>(__builtin_strlen(text)));
}

static int destroyed;
struct counted {
    int value;
    explicit counted(int value) : value(value) {}
    ~counted() { destroyed += value; }
};

struct own : std::logic_error {
    using std::logic_error::logic_error;
    counted inside{ 1000 };
    const char *what() const override { return "own"; }
};

static void fail(int how)
{
    counted local(how);
    if (how == 1)
        throw 7;
    if (how == 2)
        throw own("never seen");
    if (how == 3)
        std::_Xout_of_range("thrown by the library");
    if (how == 4)
        throw "text";
}

static int handle(int how)
{
    counted local(10);
    try {
        fail(how);
    } catch (int value) {
        return value;
    } catch (const std::out_of_range &e) {
        std::cout << "out of range: " << e.what() << "\n";
        return 3;
    } catch (const std::exception &e) {
        std::cout << "exception: " << e.what() << "\n";
        return 2;
    } catch (...) {
        try {
            throw;
        } catch (const char *text) {
            counted nested(100);
            std::cout << "again: " << text << "\n";
            throw 44;
        }
    }
    return 0;
}

// An exception of another thread, by what vcruntime140.dll keeps for it.
static unsigned work(void *value)
{
    try {
        throw *static_cast<int *>(value);
    } catch (int caught) {
        return static_cast<unsigned>(caught);
    }
}

static void in_thread()
{
    int nine = 9;
    unsigned code = 0;
    void *thread = reinterpret_cast<void *>(_beginthreadex(nullptr, 0, work, &nine, 0, nullptr));
    WaitForSingleObject(thread, ~0u);
    GetExitCodeThread(thread, &code);
    std::cout << "thread " << static_cast<int>(code) << "\n";
}

static counted global(5);
static void at_exit()
{
    std::cout << "at exit\n";
    std::cout.flush();
}

int main()
{
    std::cout << "a stream: " << 42 << " " << 2.5 << " global " << global.value << "\n";
    for (int how = 0; how < 4; how++)
        std::cout << "handled " << handle(how) << ", destroyed " << destroyed << "\n";
    try {
        handle(4);
    } catch (int value) {
        std::cout << "out of a handler " << value << ", destroyed " << destroyed << ", uncaught "
                  << std::uncaught_exceptions() << "\n";
    }
    in_thread();
    return 0;
}

typedef void routine();
#pragma section(".CRT$XCA", long, read)
#pragma section(".CRT$XCZ", long, read)
__declspec(allocate(".CRT$XCA")) routine *first[] = { nullptr };
__declspec(allocate(".CRT$XCZ")) routine *last[] = { nullptr };
extern "C" int atexit(routine *function) { return _crt_atexit(function); }

extern "C" int mainCRTStartup()
{
    _configure_narrow_argv(1);
    _initterm(first, last);
    _crt_atexit(at_exit);
    exit(main());
}
