// The end of the process while threads of this library are at work.
//
// exit() and a return from main() run the destructors of NVRTC, OpenSSL and libcurl, whether or not a thread is within
// one of them: it would go on in what is no more. So, before those destructors, a handler of exit()
//   1. has process_is_ending() say so: nothing new is compiled, and no callback of the caller's is called any more;
//   2. runs what run_at_exit() was given, such as the last uploads, which bound their time themselves;
//   3. refuses calls into those libraries, and waits up to most_wait_at_exit for those under way;
//   4. where some still are, flushes stdout and stderr and leaves by _exit() with the status that exit() was given.
// The destructors are those of the whole process, so this may not be undone: the object that this code lies in
// (libgemvjit.so, or a plugin that the static library was linked into) is never unmapped once watch_process_end() was
// called. dlclose() then closes a handle and runs nothing.
//
// _exit(), quick_exit() and signals run no destructors, and none of this. Threads: any function from any thread.
#pragma once

#include <chrono>

namespace gemvjit {

inline constexpr std::chrono::seconds most_wait_at_exit{10};

// Registers the handler, which runs before what was registered earlier and after what is later. So call it again after
// a library was opened or has done something for the first time: its own destructors have been registered by then.
void watch_process_end();

// `finish` is called once at exit(), in step 2. At most 4 in a process; false if there is no room.
bool run_at_exit(void (*finish)());

// From the begin of exit() on.
bool process_is_ending();

// A call into a library with destructors: make one, see whether it is allowed(), keep it until the call is over. Cheap.
class LibraryCall {
 public:
  LibraryCall();
  ~LibraryCall();
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;
  bool allowed() const { return allowed_; }

 private:
  bool allowed_;
};

}  // namespace gemvjit
