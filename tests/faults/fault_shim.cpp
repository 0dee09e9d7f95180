#include "tests/faults/fault_shim.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int max_descriptors = 4096;

// Plain memory and atomics only: these functions run before main, in forked children and in signal-tight places.
char folder[4096];
std::atomic<bool> armed = false;
std::atomic<long> calls = 0;
long fault_at = 0;
int fault_kind = fault_none;
int fault_errno = 0;
bool fault_lasting = false;
std::atomic<const char*> hit = nullptr;
std::atomic<bool> constant_random = false;
std::atomic<bool> skip_fsync = false;
std::atomic<bool> watched[max_descriptors];
std::atomic<const char*> never = "";
std::atomic<int> never_errno = 0;

constexpr int max_trace = 256;
std::atomic<const char*> trace[max_trace];
std::atomic<int> trace_size = 0;

void note(const char* text) {
  const int index = trace_size++;
  if (index < max_trace) trace[index] = text;
}

// Literals, so that nothing is allocated here.
const char* name_with_flags(const char* name, int flags) {
  if ((flags & O_CREAT) != 0) return (flags & O_EXCL) != 0 ? "open O_CREAT O_EXCL" : "open O_CREAT";
  if ((flags & O_DIRECTORY) != 0) return "open O_DIRECTORY";
  return (flags & O_NOFOLLOW) != 0 ? "open O_NOFOLLOW" : name;
}

template <typename Function>
Function* real(Function*& slot, const char* name) {
  if (slot == nullptr) slot = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  return slot;
}

bool is_watched(int fd) { return fd >= 0 && fd < max_descriptors && watched[fd]; }

bool is_below(const char* path) {
  const std::size_t length = std::strlen(folder);
  return length > 0 && std::strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

// Of a folder above the watched one, only some names lead below it.
bool is_below(int directory_fd, const char* path) {
  if (path[0] == '/') return is_below(path);
  if (!armed || directory_fd < 0 || is_watched(directory_fd)) return is_watched(directory_fd);
  char link[32], whole[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", directory_fd);
  const ssize_t size = readlink(link, whole, sizeof whole - 1);
  const std::size_t length = std::strlen(path);
  if (size <= 0 || static_cast<std::size_t>(size) + length + 2 > sizeof whole) return false;
  char* end = whole + (size == 1 ? 0 : size);  // "/" alone has its slash already
  *end++ = '/';
  std::memcpy(end, path, length + 1);
  return is_below(whole);
}

int note_open(int fd, bool below) {
  if (fd >= 0 && fd < max_descriptors) watched[fd] = below;
  return fd;
}

// What shall happen at this call, which is counted here.
int next_fault(const char* name, bool below, const char* noted = nullptr) {
  if (!armed || !below) return fault_none;
  note(noted == nullptr ? name : noted);
  const long number = ++calls;
  if (number == fault_at) {
    hit = name;
    if (fault_kind == fault_kill_before) kill(getpid(), SIGKILL);
    return fault_kind;
  }
  const bool again = fault_lasting && number > fault_at && hit.load() != nullptr && std::strcmp(hit, name) == 0;
  return again ? fault_error : fault_none;
}

bool is_never(const char* name) {
  const std::size_t length = std::strlen(name);
  for (const char* at = never; (at = std::strstr(at, name)) != nullptr; at += length) {
    const bool begins = at == never.load() || at[-1] == ',';
    if (begins && (at[length] == ',' || at[length] == '\0')) return true;
  }
  return false;
}

template <typename Call>
auto with_fault(int fault, Call call) -> decltype(call()) {
  if (fault == fault_error) {
    errno = fault_errno;
    return -1;
  }
  const auto result = call();
  if (fault == fault_kill_after) kill(getpid(), SIGKILL);
  if (fault == fault_lost_reply) {
    errno = fault_errno;
    return -1;
  }
  return result;
}

ssize_t transfer(const char* name, int fd, std::size_t size, ssize_t (*call)(int, void*, std::size_t, off_t),
                 void* buffer, off_t offset) {
  const int fault = next_fault(name, is_watched(fd));
  if (fault == fault_end) return 0;
  if (fault == fault_short) size = std::min(size, std::max<std::size_t>(1, size / 2));
  return with_fault(fault, [&] { return call(fd, buffer, size, offset); });
}

int kind_of(const char* name) {
  static const char* const names[] = {"none", "error", "lost_reply", "short", "end", "kill_before", "kill_after"};
  for (int i = 0; i < 7; ++i) {
    if (name != nullptr && std::strcmp(name, names[i]) == 0) return i;
  }
  return fault_none;
}

long number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::atol(text);
}

__attribute__((constructor)) void arm_from_environment() {
  constant_random = number_in("GEMVJIT_FAULT_RANDOM") != 0;
  skip_fsync = number_in("GEMVJIT_FAULT_SKIP_FSYNC") != 0;
  const char* below = std::getenv("GEMVJIT_FAULT_FOLDER");
  if (below == nullptr) return;
  fault_shim_arm(below, number_in("GEMVJIT_FAULT_AT"), kind_of(std::getenv("GEMVJIT_FAULT_KIND")),
                 static_cast<int>(number_in("GEMVJIT_FAULT_ERRNO")),
                 static_cast<int>(number_in("GEMVJIT_FAULT_LASTING")));
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void fault_shim_arm(const char* below, long at, int kind, int error, int lasting) {
  armed = false;
  std::strncpy(folder, below, sizeof folder - 1);
  for (auto& fd : watched) fd = false;
  calls = 0;
  fault_at = at;
  fault_kind = kind;
  fault_errno = error;
  fault_lasting = lasting != 0;
  for (auto& line : trace) line = nullptr;
  trace_size = 0;
  hit = nullptr;
  armed = true;
}

EXPORT long fault_shim_disarm() {
  armed = false;
  return calls;
}

EXPORT const char* fault_shim_trace(int index) {
  return index >= 0 && index < max_trace ? trace[index].load() : nullptr;
}

EXPORT void fault_shim_note(const char* text) {
  if (armed) note(text);
}

EXPORT const char* fault_shim_hit() { return hit == nullptr ? "" : hit.load(); }

EXPORT void fault_shim_never(const char* names, int error) {
  never = names;
  never_errno = error;
}

EXPORT void fault_shim_constant_random(int on) { constant_random = on != 0; }

EXPORT void fault_shim_skip_fsync(int on) { skip_fsync = on != 0; }

// Calls that open a file.
static int open_below(const char* name, bool below, int (*call)(int, const char*, int, mode_t), int directory_fd,
                      const char* path, int flags, mode_t mode) {
  const int fault = next_fault(name, below, name_with_flags(name, flags));
  if (fault == fault_lost_reply) {  // the file may have been made, its descriptor never arrived
    const int fd = call(directory_fd, path, flags, mode);
    if (fd >= 0) close(fd);
    errno = fault_errno;
    return -1;
  }
  return note_open(with_fault(fault, [&] { return call(directory_fd, path, flags, mode); }), below);
}

static int real_openat(int directory_fd, const char* path, int flags, mode_t mode) {
  static int (*slot)(int, const char*, int, ...) = nullptr;
  return real(slot, "openat")(directory_fd, path, flags, mode);
}

static mode_t mode_argument(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(arguments, int)) : 0;
}

#define OPEN(name)                                                                       \
  EXPORT int name(const char* path, int flags, ...) {                                    \
    va_list arguments;                                                                   \
    va_start(arguments, flags);                                                          \
    const mode_t mode = mode_argument(flags, arguments);                                 \
    va_end(arguments);                                                                   \
    return open_below("open", is_below(path), real_openat, AT_FDCWD, path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                                         \
  EXPORT int name(int directory_fd, const char* path, int flags, ...) {                                      \
    va_list arguments;                                                                                       \
    va_start(arguments, flags);                                                                              \
    const mode_t mode = mode_argument(flags, arguments);                                                     \
    va_end(arguments);                                                                                       \
    return open_below("openat", is_below(directory_fd, path), real_openat, directory_fd, path, flags, mode); \
  }
OPENAT(openat)
OPENAT(openat64)

EXPORT int close(int fd) {
  static int (*slot)(int) = nullptr;
  const bool below = is_watched(fd);
  int fault = next_fault("close", below);
  if (fault == fault_error) fault = fault_lost_reply;  // the descriptor is gone even where close() fails
  if (fd >= 0 && fd < max_descriptors) watched[fd] = false;
  return with_fault(fault, [&] { return real(slot, "close")(fd); });
}

// Calls that move bytes.
EXPORT ssize_t read(int fd, void* buffer, std::size_t size) {
  const auto call = [](int from, void* to, std::size_t bytes, off_t) {
    static ssize_t (*slot)(int, void*, std::size_t) = nullptr;
    return real(slot, "read")(from, to, bytes);
  };
  return transfer("read", fd, size, call, buffer, 0);
}

EXPORT ssize_t write(int fd, const void* buffer, std::size_t size) {
  const auto call = [](int to, void* from, std::size_t bytes, off_t) {
    static ssize_t (*slot)(int, const void*, std::size_t) = nullptr;
    return real(slot, "write")(to, from, bytes);
  };
  return transfer("write", fd, size, call, const_cast<void*>(buffer), 0);
}

static ssize_t real_pread(int fd, void* buffer, std::size_t size, off_t offset) {
  static ssize_t (*slot)(int, void*, std::size_t, off_t) = nullptr;
  return real(slot, "pread")(fd, buffer, size, offset);
}

EXPORT ssize_t pread(int fd, void* buffer, std::size_t size, off_t offset) {
  return transfer("pread", fd, size, real_pread, buffer, offset);
}

EXPORT ssize_t pread64(int fd, void* buffer, std::size_t size, off_t offset) {
  return transfer("pread", fd, size, real_pread, buffer, offset);
}

EXPORT ssize_t getrandom(void* buffer, std::size_t size, unsigned flags) {
  static ssize_t (*slot)(void*, std::size_t, unsigned) = nullptr;
  if (!constant_random) return real(slot, "getrandom")(buffer, size, flags);
  std::memset(buffer, 0x5a, size);
  return static_cast<ssize_t>(size);
}

// The others: what makes a call one of ours, then the call.
#define WRAP(name, parameters, arguments, below)                                      \
  EXPORT int name parameters {                                                        \
    static int(*slot) parameters = nullptr;                                           \
    return with_fault(next_fault(#name, below), [&] {                                 \
      if (!armed || !(below) || !is_never(#name)) return real(slot, #name) arguments; \
      errno = never_errno;                                                            \
      return -1;                                                                      \
    });                                                                               \
  }
EXPORT int fsync(int fd) {
  static int (*slot)(int) = nullptr;
  return with_fault(next_fault("fsync", is_watched(fd)), [&] { return skip_fsync ? 0 : real(slot, "fsync")(fd); });
}

WRAP(fchmod, (int fd, mode_t mode), (fd, mode), is_watched(fd))
WRAP(fchown, (int fd, uid_t user, gid_t group), (fd, user, group), is_watched(fd))
WRAP(mkdirat, (int fd, const char* path, mode_t mode), (fd, path, mode), is_below(fd, path))
WRAP(futimens, (int fd, const struct timespec* times), (fd, times), is_watched(fd))
WRAP(link, (const char* from, const char* to), (from, to), is_below(from) || is_below(to))
WRAP(linkat, (int a, const char* from, int b, const char* to, int flags), (a, from, b, to, flags),
     is_below(a, from) || is_below(b, to))
WRAP(rename, (const char* from, const char* to), (from, to), is_below(from) || is_below(to))
WRAP(renameat, (int a, const char* from, int b, const char* to), (a, from, b, to), is_below(a, from) || is_below(b, to))
WRAP(renameat2, (int a, const char* from, int b, const char* to, unsigned flags), (a, from, b, to, flags),
     is_below(a, from) || is_below(b, to))
WRAP(unlink, (const char* path), (path), is_below(path))
WRAP(unlinkat, (int fd, const char* path, int flags), (fd, path, flags), is_below(fd, path))
WRAP(access, (const char* path, int mode), (path, mode), is_below(path))
WRAP(stat, (const char* path, struct stat* info), (path, info), is_below(path))
WRAP(lstat, (const char* path, struct stat* info), (path, info), is_below(path))
WRAP(fstat, (int fd, struct stat* info), (fd, info), is_watched(fd))
WRAP(fstatat, (int fd, const char* path, struct stat* info, int flags), (fd, path, info, flags), is_below(fd, path))
WRAP(stat64, (const char* path, struct stat64* info), (path, info), is_below(path))
WRAP(lstat64, (const char* path, struct stat64* info), (path, info), is_below(path))
WRAP(fstat64, (int fd, struct stat64* info), (fd, info), is_watched(fd))
WRAP(fstatat64, (int fd, const char* path, struct stat64* info, int flags), (fd, path, info, flags), is_below(fd, path))
