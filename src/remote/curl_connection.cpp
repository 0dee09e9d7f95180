#include "src/remote/curl_connection.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>
#include <vector>

#include "src/base/blocked_signal.h"

namespace gemvjit::curl {
namespace {

constexpr int poll_ms = 1000;

struct SocketAddress {  // struct curl_sockaddr
  int family, type, protocol;
  unsigned size;
  sockaddr address;
};

int open_socket(void*, int, SocketAddress* address) {
  return ::socket(address->family, address->type | SOCK_CLOEXEC, address->protocol);
}

// Descriptors that a child would inherit and that wake a thread: unix sockets and pipes.
std::vector<int> inheritable_wakers() {
  std::vector<int> found;
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return found;
  while (const dirent* entry = ::readdir(folder)) {
    int fd = -1;
    const char* const end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, fd).ec != std::errc() || fd < 0) continue;
    const int flags = ::fcntl(fd, F_GETFD);
    struct stat info {};
    if (flags < 0 || (flags & FD_CLOEXEC) != 0 || ::fstat(fd, &info) != 0) continue;
    int domain = 0;
    socklen_t size = sizeof domain;
    const bool is_unix =
        S_ISSOCK(info.st_mode) && ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
    if (is_unix || S_ISFIFO(info.st_mode)) found.push_back(fd);
  }
  ::closedir(folder);
  return found;
}

// Bytes that lie between the two ends, seen from either.
bool holds_bytes(int fd) {
  int unread = 0, unsent = 0;
  return (::ioctl(fd, FIONREAD, &unread) == 0 && unread > 0) || (::ioctl(fd, SIOCOUTQ, &unsent) == 0 && unsent > 0);
}

// Those of `made`, which came about while the handle did, that hold something once it was woken and nothing any more
// after it has looked are its own: another thread may have opened some meanwhile, and for a child.
void mark_wakers(const Api& api, Multi* multi, std::vector<int> made) {
  std::erase_if(made, holds_bytes);
  if (made.empty() || api.multi_wakeup(multi) != 0) return;
  std::erase_if(made, [](int fd) { return !holds_bytes(fd); });
  int ready = 0;
  (void)api.multi_poll(multi, nullptr, 0, 1, &ready);
  for (const int fd : made) {
    if (!holds_bytes(fd)) (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

Multi* open_multi(const Api& api) {
  try {
    const std::vector<int> before = inheritable_wakers();
    Multi* const multi = api.multi_init();
    if (multi == nullptr) return nullptr;
    std::vector<int> made = inheritable_wakers();
    std::erase_if(made, [&](int fd) { return std::find(before.begin(), before.end(), fd) != before.end(); });
    mark_wakers(api, multi, std::move(made));
    return multi;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

std::unique_ptr<Connection> Connection::open(std::shared_ptr<const Api> api) {
  Handle* const easy = api->easy_init();
  Multi* const multi = easy == nullptr ? nullptr : open_multi(*api);
  if (multi == nullptr) {
    if (easy != nullptr) api->easy_cleanup(easy);
    return nullptr;
  }
  return std::unique_ptr<Connection>(new Connection(std::move(api), easy, multi));
}

Connection::Connection(std::shared_ptr<const Api> api, Handle* easy, Multi* multi)
    : api_(std::move(api)), easy_(easy), multi_(multi) {
  reset();
}

Connection::~Connection() {
  const BlockedSignal no_sigpipe(SIGPIPE);  // the end of an encrypted connection is written to it
  api_->easy_cleanup(easy_);
  api_->multi_cleanup(multi_);
}

void Connection::reset() {
  api_->easy_reset(easy_);
  api_->easy_setopt(easy_, NOSIGNAL, 1L);  // signals are the host's
  api_->easy_setopt(easy_, OPENSOCKETFUNCTION, &open_socket);
}

// As curl_easy_perform() does it, which keeps such a second handle hidden.
int Connection::perform() {
  if (api_->multi_add_handle(multi_, easy_) != 0) return failed;
  int running = 1, ready = 0, failure = 0;
  while (running != 0 && failure == 0) {
    failure = api_->multi_perform(multi_, &running);
    if (failure == 0 && running != 0) failure = api_->multi_poll(multi_, nullptr, 0, poll_ms, &ready);
  }
  int code = failed, left = 0;
  while (const Message* const message = api_->multi_info_read(multi_, &left)) {
    if (message->kind == message_done) code = message->result;
  }
  api_->multi_remove_handle(multi_, easy_);
  return failure != 0 ? failed : code;
}

}  // namespace gemvjit::curl
