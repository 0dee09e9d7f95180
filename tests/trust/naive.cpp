// A victim without care, who does by path what the cache does: what the attacker must be able to turn against it.
//
//   naive modes|prune|move|write|stamp FOLDER     FOLDER is a cache; until SIGTERM
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

namespace {

volatile std::sig_atomic_t ended = 0;

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  if (DIR* folder = ::opendir(path.c_str())) {
    while (const dirent* item = ::readdir(folder)) {
      if (item->d_name[0] != '.') names.emplace_back(item->d_name);
    }
    ::closedir(folder);
  }
  return names;
}

std::string entry_in(const std::string& root) {
  for (const std::string& arch : names_in(root + "/v1")) {
    if (!arch.starts_with("sm_")) continue;
    for (const std::string& fan : names_in(root + "/v1/" + arch)) {
      for (const std::string& name : names_in(root + "/v1/" + arch + "/" + fan)) {
        if (name.ends_with(".entry")) return root + "/v1/" + arch + "/" + fan + "/" + name;
      }
    }
  }
  return "";
}

// A new folder whose mode is set after it was made.
void modes(const std::string& root) {
  const std::string path = root + "/v1/.tmp-" + std::to_string(::getpid()) + "-0123456789abcdef";
  if (::mkdir(path.c_str(), 0700) != 0) return;
  struct stat info {};
  for (int i = 0; i < 20; ++i) (void)::stat(root.c_str(), &info);  // what a longer way to here takes
  (void)::chmod(path.c_str(), 02770);
  (void)::rmdir(path.c_str());
  (void)::unlink(path.c_str());
}

// The quarantine down to 64 files.
void prune(const std::string& root) {
  const std::string folder = root + "/v1/quarantine";
  const std::vector<std::string> names = names_in(folder);
  for (std::size_t i = 64; i < names.size(); ++i) (void)::unlink((folder + "/" + names[i]).c_str());
}

// An entry into the quarantine.
void move(const std::string& root) {
  const std::string entry = entry_in(root);
  if (entry.empty()) return;
  const std::string moved = root + "/v1/quarantine/naive-" + std::to_string(::getpid());
  if (::rename(entry.c_str(), moved.c_str()) == 0) (void)::rename(moved.c_str(), entry.c_str());
}

// The ledger, in place, wherever its name leads to.
void write(const std::string& root) {
  const int fd = ::open((root + "/v1/usage").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0660);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(fd, "naive", 5, 0);
  ::close(fd);
}

// The time at which an entry was used.
void stamp(const std::string& root) {
  const std::string entry = entry_in(root);
  const timespec times[2] = {{1'700'000'000, 0}, {0, UTIME_OMIT}};
  if (!entry.empty()) (void)::utimensat(AT_FDCWD, entry.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

struct Row {
  const char* name;
  void (*act)(const std::string& root);
};
constexpr Row rows[] = {{"modes", modes}, {"prune", prune}, {"move", move}, {"write", write}, {"stamp", stamp}};

}  // namespace

int main(int argc, char** argv) {
  struct sigaction action {};
  action.sa_handler = [](int) { ended = 1; };
  ::sigaction(SIGTERM, &action, nullptr);
  for (const Row& row : rows) {
    if (argc != 3 || std::string(argv[1]) != row.name) continue;
    while (ended == 0) row.act(argv[2]);
    return 0;
  }
  std::fputs("usage: naive modes|prune|move|write|stamp FOLDER\n", stderr);
  return 2;
}
