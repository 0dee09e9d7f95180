#include "src/base/process_end.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace gemvjit {
namespace {

using Clock = std::chrono::steady_clock;

// Of no type with a destructor: threads look at them while the process ends.
enum Stage : int { running, ending, over };
std::atomic<int> stage{running};
std::atomic<int> calls{0};             // into libraries, of all threads
thread_local int calls_of_thread = 0;  // exit() may be called from within one: by a callback, or a signal's handler
thread_local bool is_ending_thread = false;
constexpr std::chrono::minutes most_wait_for_other{1};  // for uploads and calls under way
std::array<std::atomic<void (*)()>, 4> finishers{};

// While on_exit() is called: the C library's lock over its list would be held for ever in a child that is forked then.
pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;

void before_fork() { (void)::pthread_mutex_lock(&registering); }
void after_fork() { (void)::pthread_mutex_unlock(&registering); }
// The threads of the parent are not there in a child, so neither are their calls.
void in_child() {
  after_fork();
  calls.store(calls_of_thread);
}

void flush(std::FILE* file) {
  if (::ftrylockfile(file) != 0) return;  // a thread that reads or writes may have it for ever
  (void)::fflush_unlocked(file);
  ::funlockfile(file);
}

[[noreturn]] void leave(int status) {
  flush(stdout);
  flush(stderr);
  ::_exit(status);
}

// Whether `reached` says so in time.
template <typename Condition>
bool wait(std::chrono::milliseconds most, const Condition& reached) {
  const Clock::time_point latest = Clock::now() + most;
  while (!reached()) {
    if (Clock::now() >= latest) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// Registered more than once, and entered by several threads where several call exit().
void at_exit(int status, void*) {
  if (is_ending_thread) return;
  int before = running;
  if (!stage.compare_exchange_strong(before, ending)) {
    // Another thread is at it, and ends the process: two that run destructors side by side would crash.
    std::this_thread::sleep_for(most_wait_for_other);
    return;
  }
  is_ending_thread = true;
  for (const auto& finish : finishers) {
    if (void (*const function)() = finish.load()) function();
  }
  stage.store(over);
  if (!wait(most_wait_at_exit, [] { return calls.load() <= calls_of_thread; })) leave(status);
}

// Keeps the object that this code lies in mapped; false if that could not be done. The program itself always is.
bool stay_loaded() {
  Dl_info info{};
  link_map* object = nullptr;
  if (::dladdr1(reinterpret_cast<void*>(&at_exit), &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0) {
    return false;
  }
  if (object->l_name == nullptr || object->l_name[0] == '\0') return true;
  return ::dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != nullptr;
}

}  // namespace

void watch_process_end() {
  static const bool can_stay = stay_loaded() && ::pthread_atfork(before_fork, after_fork, in_child) == 0;
  // on_exit() and not atexit(), for the status, and since a dlclose() does not run it.
  if (!can_stay) return;
  (void)::pthread_mutex_lock(&registering);
  (void)::on_exit(at_exit, nullptr);
  (void)::pthread_mutex_unlock(&registering);
}

bool run_at_exit(void (*finish)()) {
  watch_process_end();
  for (auto& place : finishers) {
    void (*nothing)() = nullptr;
    if (place.compare_exchange_strong(nothing, finish)) return true;
  }
  return false;
}

bool process_is_ending() { return stage.load(std::memory_order_relaxed) != running; }

// First counted, then looked: the handler looks the other way round, so that one of the two sees the other.
LibraryCall::LibraryCall() {
  calls.fetch_add(1);
  ++calls_of_thread;
  allowed_ = stage.load() < over;
  if (allowed_) return;
  calls.fetch_sub(1);
  --calls_of_thread;
}

LibraryCall::~LibraryCall() {
  if (!allowed_) return;
  --calls_of_thread;
  calls.fetch_sub(1);
}

}  // namespace gemvjit
