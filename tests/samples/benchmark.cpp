/* SPDX-License-Identifier: MIT */
/* Three ways to add up numbers, each with its time by std::chrono and, beside it, what the
 * processor's counters say: why one is slower than the other. */
#include <chrono>
#include <cstdio>
#include <list>
#include <numeric>
#include <vector>
#include <windows.h>
#include <winternl.h>

/* ntddk.h's, which a program cannot include together with windows.h. */
struct HARDWARE_COUNTER {
    HARDWARE_COUNTER_TYPE Type;
    ULONG Reserved;
    ULONG64 Index;
};
using SET = NTSTATUS NTAPI(HARDWARE_COUNTER *CounterArray, ULONG Count);

static const struct {
    const char *name;
    ULONG64 source;
} sources[] = { { "instructions", 2 }, { "cycles", 19 } };
constexpr int COUNT = sizeof sources / sizeof sources[0];

class Profile
{
    HANDLE handle_ = nullptr;

  public:
    Profile()
    {
        HARDWARE_COUNTER counters[COUNT];
        for (int i = 0; i < COUNT; i++)
            counters[i] = { PMCCounter, 0, sources[i].source };
        auto set = (SET *)(void *)GetProcAddress(LoadLibraryA("ntoskrnl.exe"),
                                                 "KeSetHardwareCounterConfiguration");
        if (!set || set(counters, COUNT))
            throw "no counters here";
        if (EnableThreadProfiling(GetCurrentThread(), THREAD_PROFILING_FLAG_DISPATCH,
                                  (1 << COUNT) - 1, &handle_))
            throw "EnableThreadProfiling failed";
    }
    ~Profile() { DisableThreadProfiling(handle_); }
    PERFORMANCE_DATA read() const
    {
        PERFORMANCE_DATA data = {};
        data.Size = sizeof data;
        data.Version = PERFORMANCE_DATA_VERSION;
        if (ReadThreadProfilingData(handle_, READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS, &data))
            throw "ReadThreadProfilingData failed";
        return data;
    }
};

template <typename Work> static void measure(const Profile &profile, const char *name, Work work)
{
    auto begin = std::chrono::steady_clock::now();
    PERFORMANCE_DATA before = profile.read();
    long long result = work();
    PERFORMANCE_DATA after = profile.read();
    std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    std::printf("%-8s %lld, %.0f us", name, result, time.count());
    for (int i = 0; i < COUNT; i++)
        std::printf(", %llu %s", after.HwCounters[i].Value - before.HwCounters[i].Value,
                    sources[i].name);
    std::printf("\n");
}

int main()
try {
    Profile profile;
    std::vector<int> array(100000);
    std::iota(array.begin(), array.end(), 1);
    std::list<int> list(array.begin(), array.end());
    measure(profile, "array", [&] { return std::accumulate(array.begin(), array.end(), 0ll); });
    measure(profile, "list", [&] { return std::accumulate(list.begin(), list.end(), 0ll); });
    measure(profile, "divide", [&] {
        long long sum = 0;
        for (int n : array)
            sum += 1000000007ll / n;
        return sum;
    });
} catch (const char *what) {
    std::fprintf(stderr, "%s\n", what);
    return 1;
}
