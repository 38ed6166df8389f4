// SPDX-License-Identifier: MIT
// What C++17 programs use of the library: a pool of threads, futures, locks of each kind, regular
// expressions, random numbers, streams.
#include <any>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <functional>
#include <future>
#include <iomanip>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <random>
#include <regex>
#include <shared_mutex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

namespace
{

class Pool
{
  public:
    explicit Pool(unsigned threads)
    {
        for (unsigned i = 0; i < threads; i++)
            workers.emplace_back([this] { work(); });
    }
    ~Pool()
    {
        {
            std::lock_guard<std::mutex> guard(lock);
            stop = true;
        }
        more.notify_all();
        for (auto &worker : workers)
            worker.join();
    }
    template <class F> auto add(F function) -> std::future<decltype(function())>
    {
        auto task = std::make_shared<std::packaged_task<decltype(function())()>>(function);
        auto result = task->get_future();
        {
            std::lock_guard<std::mutex> guard(lock);
            jobs.emplace([task] { (*task)(); });
        }
        more.notify_one();
        return result;
    }

  private:
    void work()
    {
        for (;;) {
            std::function<void()> job;
            {
                std::unique_lock<std::mutex> guard(lock);
                more.wait(guard, [this] { return stop || !jobs.empty(); });
                if (jobs.empty())
                    return;
                job = std::move(jobs.front());
                jobs.pop();
            }
            job();
        }
    }
    std::vector<std::thread> workers;
    std::queue<std::function<void()>> jobs;
    std::mutex lock;
    std::condition_variable more;
    bool stop = false;
};

void threads()
{
    Pool pool(4);
    std::vector<std::future<int>> results;
    int sum = 0;
    for (int i = 0; i < 20; i++)
        results.push_back(pool.add([i] { return i * i; }));
    for (auto &result : results)
        sum += result.get();
    std::cout << "pool " << sum << "\n";

    auto later = std::async(std::launch::async, [] {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return 42;
    });
    std::cout << "async " << later.get() << "\n";

    std::promise<void> promise;
    auto future = promise.get_future();
    std::thread([&] {
        try {
            throw std::runtime_error("thrown");
        } catch (...) {
            promise.set_exception(std::current_exception());
        }
    }).join();
    try {
        future.get();
    } catch (const std::exception &e) {
        std::cout << "exception " << e.what() << "\n";
    }
}

void locks()
{
    std::shared_mutex shared;
    {
        std::shared_lock<std::shared_mutex> one(shared), two(shared);
    }
    std::unique_lock<std::shared_mutex> alone(shared);
    std::timed_mutex timed;
    bool got = true;
    timed.lock();
    std::thread([&] { got = timed.try_lock_for(std::chrono::milliseconds(3)); }).join();
    timed.unlock();
    std::once_flag once;
    int times = 0;
    for (int i = 0; i < 3; i++)
        std::call_once(once, [&] { times++; });
    thread_local int own = 5;
    std::thread([&] { own = 6; }).join();
    std::cout << "timed " << got << ", once " << times << ", own " << own << "\n";
}

void values()
{
    std::mt19937_64 generator(7);
    std::uniform_int_distribution<int> digit(0, 9);
    int sum = 0;
    for (int i = 0; i < 100; i++)
        sum += digit(generator);
    std::random_device device;
    const auto first = device(), second = device(), third = device();
    std::cout << "random " << sum << ", differ " << (first != second || second != third) << "\n";
    std::ostringstream text;
    text << std::fixed << std::setprecision(3) << 3.14159 << " " << std::hex << 255;
    std::smatch match;
    const std::string subject = "abc-123";
    std::cout << text.str() << " "
              << std::regex_match(subject, match, std::regex("([a-z]+)-(\\d+)")) << " " << match[2]
              << "\n";
    std::variant<int, std::string> variant = "x";
    std::any any = 5;
    std::optional<int> optional = 3;
    std::unordered_map<std::string, int> map;
    for (int i = 0; i < 1000; i++)
        map[std::to_string(i)] = i;
    const std::time_t start = 0;
    std::cout << variant.index() << std::any_cast<int>(any) << *optional << " " << map["77"] << " "
              << std::put_time(std::gmtime(&start), "%Y-%m-%d") << "\n";
}

} // namespace

int main()
{
    threads();
    locks();
    values();
    std::cout << std::thread::hardware_concurrency() << " processors\n";
    return 0;
}
