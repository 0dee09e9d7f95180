// By LD_PRELOAD in any program: writes a line to the file named by GEMVJIT_WATCH_LOG for each call that opens, makes,
// renames, stamps, cuts or removes a file or changes its mode, and for each library that is opened:
//
//   "read PATH", "write PATH" (opened for writing, or made), "change PATH" (mkdir, rename, link, symlink, unlink,
//   chmod, truncate), "stamp PATH" (its times), "dlopen NAME"
//
// PATH is what the call was given; of one that was given a descriptor, the file's.
//
// What the loader and libc do within themselves does not pass here; strace sees that too, where there is one.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

int log_fd = -1;

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

__attribute__((constructor)) void open_log() {
  if (const char* file = std::getenv("GEMVJIT_WATCH_LOG")) {
    log_fd = real<int(const char*, int, ...)>("open")(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
}

void note(const char* what, const char* path) {
  if (log_fd < 0) return;
  char line[4200];
  const int size = std::snprintf(line, sizeof line, "%s %s\n", what, path == nullptr ? "" : path);
  if (size > 0) (void)!::write(log_fd, line, static_cast<std::size_t>(size));
}

void note_open(const char* path, int flags) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
  note(writes ? "write" : "read", path);
}

// The file of a descriptor.
struct PathOf {
  char text[4100];
  explicit PathOf(int fd) {
    char link[64];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t size = ::readlink(link, text, sizeof text - 1);
    text[size < 0 ? 0 : size] = '\0';
  }
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

#define OPEN(name)                                                     \
  EXPORT int name(const char* path, int flags, ...) {                  \
    va_list arguments;                                                 \
    va_start(arguments, flags);                                        \
    const mode_t mode = static_cast<mode_t>(va_arg(arguments, int));   \
    va_end(arguments);                                                 \
    note_open(path, flags);                                            \
    return real<int(const char*, int, ...)>(#name)(path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                \
  EXPORT int name(int folder, const char* path, int flags, ...) {                   \
    va_list arguments;                                                              \
    va_start(arguments, flags);                                                     \
    const mode_t mode = static_cast<mode_t>(va_arg(arguments, int));                \
    va_end(arguments);                                                              \
    note_open(path, flags);                                                         \
    return real<int(int, const char*, int, ...)>(#name)(folder, path, flags, mode); \
  }
OPENAT(openat)
OPENAT(openat64)

#define FOPEN(name)                                                      \
  EXPORT FILE* name(const char* path, const char* mode) {                \
    note(std::strpbrk(mode, "wa+") != nullptr ? "write" : "read", path); \
    return real<FILE*(const char*, const char*)>(#name)(path, mode);     \
  }
FOPEN(fopen)
FOPEN(fopen64)

EXPORT DIR* opendir(const char* path) {
  note("read", path);
  return real<DIR*(const char*)>("opendir")(path);
}

#define NOTE(what, name, parameters, arguments, path) \
  EXPORT int name parameters {                        \
    note(what, path);                                 \
    return real<int parameters>(#name) arguments;     \
  }
#define CHANGE(name, parameters, arguments, path) NOTE("change", name, parameters, arguments, path)
CHANGE(creat, (const char* path, mode_t mode), (path, mode), path)
CHANGE(mkdir, (const char* path, mode_t mode), (path, mode), path)
CHANGE(mkdirat, (int folder, const char* path, mode_t mode), (folder, path, mode), path)
CHANGE(rename, (const char* from, const char* to), (from, to), to)
CHANGE(renameat, (int a, const char* from, int b, const char* to), (a, from, b, to), to)
CHANGE(link, (const char* from, const char* to), (from, to), to)
CHANGE(linkat, (int a, const char* from, int b, const char* to, int flags), (a, from, b, to, flags), to)
CHANGE(symlink, (const char* from, const char* to), (from, to), to)
CHANGE(renameat2, (int a, const char* from, int b, const char* to, unsigned flags), (a, from, b, to, flags), to)
CHANGE(symlinkat, (const char* from, int folder, const char* to), (from, folder, to), to)
CHANGE(mkfifo, (const char* path, mode_t mode), (path, mode), path)
CHANGE(chmod, (const char* path, mode_t mode), (path, mode), path)
CHANGE(fchmod, (int fd, mode_t mode), (fd, mode), PathOf(fd).text)
CHANGE(fchmodat, (int folder, const char* path, mode_t mode, int flags), (folder, path, mode, flags), path)
CHANGE(truncate, (const char* path, off_t size), (path, size), path)
CHANGE(truncate64, (const char* path, off64_t size), (path, size), path)
CHANGE(ftruncate, (int fd, off_t size), (fd, size), PathOf(fd).text)
CHANGE(ftruncate64, (int fd, off64_t size), (fd, size), PathOf(fd).text)
CHANGE(rmdir, (const char* path), (path), path)
NOTE("stamp", utimensat, (int folder, const char* path, const timespec* times, int flags), (folder, path, times, flags),
     path)
NOTE("stamp", futimens, (int fd, const timespec* times), (fd, times), PathOf(fd).text)
CHANGE(unlink, (const char* path), (path), path)
CHANGE(unlinkat, (int folder, const char* path, int flags), (folder, path, flags), path)

EXPORT void* dlopen(const char* file, int flags) {
  note("dlopen", file);
  return real<void*(const char*, int)>("dlopen")(file, flags);
}
