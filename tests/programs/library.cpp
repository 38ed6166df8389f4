// SPDX-License-Identifier: MIT
// What C++17's library brings: threads, locks, exceptions, clocks, futures, streams; all of it
// static.
#include <Windows.h>
#include <chrono>
#include <condition_variable>
#include <csetjmp>
#include <future>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

static thread_local int own = 5;

static void threads()
{
    std::mutex lock;
    std::condition_variable changed;
    std::vector<std::thread> all;
    int ready = 0;
    for (int i = 0; i < 4; i++)
        all.emplace_back([&, i] {
            own += i;
            std::unique_lock<std::mutex> held(lock);
            ready++;
            changed.notify_one();
        });
    {
        std::unique_lock<std::mutex> held(lock);
        changed.wait(held, [&] { return ready == 4; });
    }
    for (auto &thread : all)
        thread.join();
    std::cout << "ready " << ready << ", own " << own << std::endl;
}

int main()
{
    threads();
    try {
        throw std::runtime_error("thrown");
    } catch (const std::exception &e) {
        std::cout << e.what() << std::endl;
    }
    auto begin = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::chrono::duration<double, std::milli> slept = std::chrono::steady_clock::now() - begin;
    std::cout << "slept " << (slept.count() >= 20 && slept.count() < 60) << std::endl;
    auto answer = std::async(std::launch::async, [] { return 42; });
    std::cout << "answer " << answer.get() << std::endl;
    std::jmp_buf place;
    volatile int jumps = 0;
    if (setjmp(place) < 3) {
        jumps = jumps + 1;
        std::longjmp(place, jumps);
    }
    std::cout << "jumps " << jumps << std::endl;
    std::wcout << L"wide" << std::endl;
    std::cout << std::thread::hardware_concurrency() << " processors" << std::endl;
}
