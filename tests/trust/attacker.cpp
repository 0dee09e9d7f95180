// Another user who may write in the victim's folders, and uses it: puts links to folders and files that are not his in
// the place of what the victim makes, uses and removes. He changes nothing outside FOLDER himself; he cannot.
//
//   attacker watch|flip FOLDER --folder DIR... --file FILE... [--hard-link FILE] [--twin DIR] [--spoil] [--seed N]
//
// watch: hears of each new name below FOLDER from inotify and swaps what has it, by one of several techniques, mostly
//        putting it back a moment later, so that the victim gets on.
// flip:  swaps what is there already, to and fro, without waiting for anything; with --spoil it also damages entries and
//        fills the quarantine.
// Links lead to the same place within --twin (a folder like FOLDER), or to one of --folder or --file; --hard-link is a
// file that this user may make hard links of.
//
// Until SIGTERM; then everything is put back as far as possible, and what was done is counted in a line of JSON on
// stdout.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

volatile std::sig_atomic_t ended = 0;

struct Options {
  std::string root, hard_link, twin;
  std::vector<std::string> folders, files;
  bool spoil = false;
  unsigned seed = 1;
};

// How one thing was swapped, for putting it back.
enum class Technique { exchange, rename, unlink, hard_link, fifo, folder };
constexpr std::array<const char*, 6> technique_names = {"exchange", "rename", "unlink", "hard_link", "fifo", "folder"};

struct Swapped {
  Technique technique;
  std::string path, stolen;  // the original is at `stolen`; "": it is gone
  Clock::time_point due;
};

bool is_own(std::string_view name) { return name.starts_with("evil-"); }

// Nanoseconds: inodes are used again.
std::int64_t birth_of(const std::string& path) {
  struct statx info {};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BTIME, &info) != 0) return 0;
  return info.stx_btime.tv_sec * 1'000'000'000 + info.stx_btime.tv_nsec;
}

class Attacker {
 public:
  explicit Attacker(Options options) : options_(std::move(options)), random_(options_.seed) {}

  void watch();
  void flip();
  void print_counts() const {
    std::string text = "{";
    for (const auto& [name, count] : counts_) {
      text += (text.size() > 1 ? ", \"" : "\"") + name + "\": " + std::to_string(count);
    }
    std::puts((text + "}").c_str());
  }

 private:
  std::size_t below(std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_); }
  bool chance(unsigned percent) { return below(100) < percent; }
  void count(const std::string& what) { ++counts_[what]; }
  std::string absolute(const std::string& relative) const {
    return relative.empty() ? options_.root : options_.root + "/" + relative;
  }
  // A name for the attacker's own things beside `path`.
  std::string beside(const std::string& path) {
    return path.substr(0, path.rfind('/') + 1) + "evil-" + std::to_string(::getpid()) + "-" + std::to_string(next_++);
  }
  std::string target_of(const std::string& relative, bool folder);
  bool swap(const std::string& relative, bool folder, Technique technique, microseconds held);
  bool exchange(const std::string& path, const std::string& target, std::string& stolen);
  void put_back(const Swapped& swapped);
  void put_back_due(bool all);
  void on_new_name(const std::string& folder, const std::string& name);
  void add_watches(const std::string& relative, int depth);
  void collect(const std::string& relative, int depth);
  bool sweep(const std::string& path);
  void spoil();
  void fill_quarantine();
  bool write_garbage(const std::string& path);

  Options options_;
  std::mt19937 random_;
  std::map<std::string, std::uint64_t> counts_;
  std::vector<Swapped> swapped_;
  std::uint64_t next_ = 0;
  int inotify_ = -1;
  std::map<std::pair<ino_t, std::int64_t>, int> seen_;  // by inode and time of birth: how often it was swapped
  std::map<int, std::string> watched_;                  // by watch descriptor, relative to the root
  std::vector<std::string> folders_, entries_;          // what flip found, relative
};

// Where a link in the place of `relative` leads.
std::string Attacker::target_of(const std::string& relative, bool folder) {
  if (!options_.twin.empty() && chance(60)) return options_.twin + "/" + relative;
  const auto& list = folder ? options_.folders : options_.files;
  return list[below(list.size())];
}

// The link gets the name in one step, without a moment in which there is nothing.
bool Attacker::exchange(const std::string& path, const std::string& target, std::string& stolen) {
  stolen = beside(path);
  if (::symlink(target.c_str(), stolen.c_str()) != 0) return false;
  if (::renameat2(AT_FDCWD, stolen.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) return true;
  ::unlink(stolen.c_str());
  return false;
}

bool Attacker::swap(const std::string& relative, bool folder, Technique technique, microseconds held) {
  const std::string path = absolute(relative);
  const std::string target = target_of(relative, folder);
  Swapped made{technique, path, "", Clock::now() + held};
  bool done = false;
  if (technique == Technique::exchange) {
    done = exchange(path, target, made.stolen);
  } else {
    if (technique == Technique::unlink) {
      if (::unlink(path.c_str()) != 0) return false;
    } else {
      made.stolen = beside(path);
      if (::rename(path.c_str(), made.stolen.c_str()) != 0) return false;
    }
    switch (technique) {
      case Technique::hard_link:
        done = ::link(options_.hard_link.c_str(), path.c_str()) == 0;
        break;
      case Technique::fifo:
        done = ::mkfifo(path.c_str(), 0666) == 0;
        break;
      case Technique::folder:
        done = ::mkdir(path.c_str(), 0770) == 0;
        break;
      default:
        done = ::symlink(target.c_str(), path.c_str()) == 0;
    }
  }
  if (done) count(technique_names[static_cast<std::size_t>(technique)]);
  if (done || !made.stolen.empty()) swapped_.push_back(std::move(made));
  return done;
}

void Attacker::put_back(const Swapped& swapped) {
  const char* path = swapped.path.c_str();
  struct stat info {};
  if (swapped.stolen.empty()) {
    if (::lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) ::unlink(path);
    return;
  }
  const char* stolen = swapped.stolen.c_str();
  if (::lstat(stolen, &info) != 0 || S_ISLNK(info.st_mode)) {  // the other attacker had been there before
    ::unlink(stolen);
    return;
  }
  if (::renameat2(AT_FDCWD, stolen, AT_FDCWD, path, RENAME_EXCHANGE) != 0) {
    (void)::renameat2(AT_FDCWD, stolen, AT_FDCWD, path, RENAME_NOREPLACE);
  }
  // What has the name now was in the way: the attacker's, or what the victim has made meanwhile.
  if (::unlink(stolen) != 0 && errno != ENOENT) (void)::rmdir(stolen);
}

void Attacker::put_back_due(bool all) {
  const auto now = Clock::now();
  for (std::size_t i = swapped_.size(); i-- > 0;) {
    if (!all && swapped_[i].due > now) continue;
    put_back(swapped_[i]);
    swapped_.erase(swapped_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// -------------------------------------------------------------------------------------------------------------- watch

void Attacker::add_watches(const std::string& relative, int depth) {
  const std::string path = absolute(relative);
  const int watch = ::inotify_add_watch(inotify_, path.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW);
  if (watch < 0) return;
  watched_[watch] = relative;
  DIR* folder = depth > 0 ? ::opendir(path.c_str()) : nullptr;
  if (folder == nullptr) return;
  while (const dirent* item = ::readdir(folder)) {
    const std::string name = item->d_name;
    if (item->d_type != DT_DIR || name == "." || name == ".." || is_own(name)) continue;
    add_watches(relative.empty() ? name : relative + "/" + name, depth - 1);
  }
  ::closedir(folder);
}

void Attacker::on_new_name(const std::string& folder, const std::string& name) {
  if (is_own(name)) return;
  const std::string relative = folder.empty() ? name : folder + "/" + name;
  const std::string path = absolute(relative);
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    count("too_late");
    return;
  }
  // What is put back has a new name, too, but is no news: what the victim makes has at most two names in its life.
  if (++seen_[{info.st_ino, birth_of(path)}] > 2) return;
  if (S_ISDIR(info.st_mode)) {
    constexpr std::array ways = {Technique::exchange, Technique::rename, Technique::folder};
    if (chance(75)) swap(relative, true, ways[chance(10) ? 2 : below(2)], microseconds(below(3000)));
    add_watches(relative, 3);
  } else if (S_ISREG(info.st_mode) && chance(60)) {
    constexpr std::array ways = {Technique::exchange, Technique::rename, Technique::unlink, Technique::hard_link};
    Technique technique = chance(5) ? Technique::fifo : ways[below(ways.size())];
    if (technique == Technique::hard_link && options_.hard_link.empty()) technique = Technique::exchange;
    swap(relative, false, technique, microseconds(below(2000)));
  }
}

void Attacker::watch() {
  inotify_ = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (inotify_ < 0) {
    std::perror("inotify");
    std::exit(3);
  }
  add_watches("", 4);
  alignas(inotify_event) std::array<char, 65536> buffer;
  auto rewatch = Clock::now();
  while (ended == 0) {
    pollfd ready{inotify_, POLLIN, 0};
    (void)::poll(&ready, 1, swapped_.empty() ? 50 : 1);
    const ssize_t got = ::read(inotify_, buffer.data(), buffer.size());
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += static_cast<ssize_t>(sizeof *event + event->len);
      if ((event->mask & IN_IGNORED) != 0) watched_.erase(event->wd);
      const auto found = watched_.find(event->wd);
      if (event->len == 0 || found == watched_.end()) continue;
      count("events");
      on_new_name(std::string(found->second), event->name);
    }
    put_back_due(false);
    // A folder that was exchanged when it was new is found again here.
    if (Clock::now() > rewatch) {
      add_watches("", 4);
      rewatch = Clock::now() + milliseconds(100);
    }
  }
  put_back_due(true);
}

// --------------------------------------------------------------------------------------------------------------- flip

// Removes what has not changed for a second.
bool Attacker::sweep(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || std::time(nullptr) - info.st_ctim.tv_sec < 2) return false;
  std::error_code ignored;
  return std::filesystem::remove_all(path, ignored) > 0;
}

void Attacker::collect(const std::string& relative, int depth) {
  DIR* folder = ::opendir(absolute(relative).c_str());
  if (folder == nullptr) return;
  while (const dirent* item = ::readdir(folder)) {
    const std::string name = item->d_name;
    if (name == "." || name == "..") continue;
    const std::string path = relative.empty() ? name : relative + "/" + name;
    if (is_own(name)) {
      sweep(absolute(path));
    } else if (item->d_type == DT_LNK) {
      // Left over where both attackers were at one thing; the victim shall get on.
      if (sweep(absolute(path))) count("left_over");
    } else if (item->d_type == DT_DIR) {
      folders_.push_back(path);
      if (depth > 0 && name != "quarantine") collect(path, depth - 1);
    } else if (item->d_type == DT_REG) {
      entries_.push_back(path);
    }
  }
  ::closedir(folder);
}

bool Attacker::write_garbage(const std::string& path) {
  const std::string own = beside(path);
  const int fd = ::open(own.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0660);
  if (fd < 0) return false;
  (void)::fchmod(fd, 0660);
  const bool written = ::write(fd, "garbage", 7) == 7;
  ::close(fd);
  if (written && ::rename(own.c_str(), path.c_str()) == 0) return true;
  ::unlink(own.c_str());
  return false;
}

// So many that a victim who adds one wants to remove others.
void Attacker::fill_quarantine() {
  const std::string folder = absolute("v1/quarantine");
  (void)::mkdir(folder.c_str(), 0770);
  std::size_t there = 0;
  if (DIR* listed = ::opendir(folder.c_str())) {
    while (::readdir(listed) != nullptr) ++there;
    ::closedir(listed);
  }
  for (; there < 70; ++there) {
    std::array<char, 128> name{};  // of the form that is counted and pruned
    std::snprintf(name.data(), name.size(), "/%016llx-%d-n64-k64-nt1-f%016x-%016x.entry",
                  static_cast<unsigned long long>(next_++), static_cast<int>(::getpid()), 0u, 0u);
    if (!write_garbage(folder + name.data())) return;
    count("quarantine_filled");
  }
}

void Attacker::spoil() {
  fill_quarantine();
  if (entries_.empty()) return;
  const std::string one = absolute(entries_[below(entries_.size())]);
  const std::string other = absolute(entries_[below(entries_.size())]);
  struct stat info {};
  if (::lstat(one.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  if (chance(40) && one != other) {  // each a whole entry, under the other's name
    if (::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0) count("names_exchanged");
  } else if (write_garbage(one)) {
    count("entries_damaged");
  }
}

void Attacker::flip() {
  auto look = Clock::now();
  auto spoil_at = look;
  while (ended == 0) {
    if (Clock::now() >= look) {
      folders_.clear(), entries_.clear();
      collect("", 3);
      look = Clock::now() + milliseconds(20);
    }
    if (options_.spoil && Clock::now() >= spoil_at) {
      spoil();
      spoil_at = Clock::now() + milliseconds(30);
    }
    const bool folder = !folders_.empty() && (entries_.empty() || chance(75));
    const auto& list = folder ? folders_ : entries_;
    if (list.empty()) {
      std::this_thread::sleep_for(milliseconds(1));
      continue;
    }
    swap(list[below(list.size())], folder, Technique::exchange, microseconds(0));
    // Mostly a moment, so that a victim who has looked before meets it afterwards; now and then for longer.
    const auto until = Clock::now() + microseconds(chance(3) ? below(4000) : below(150));
    while (Clock::now() < until) continue;
    put_back_due(true);
    const auto pause = Clock::now() + microseconds(below(300));
    while (Clock::now() < pause) continue;
  }
  put_back_due(true);
}

bool parse(int argc, char** argv, Options& options) {
  if (argc < 3) return false;
  options.root = argv[2];
  for (int i = 3; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--spoil") {
      options.spoil = true;
      continue;
    }
    if (++i >= argc) return false;
    if (name == "--folder") {
      options.folders.emplace_back(argv[i]);
    } else if (name == "--file") {
      options.files.emplace_back(argv[i]);
    } else if (name == "--hard-link") {
      options.hard_link = argv[i];
    } else if (name == "--twin") {
      options.twin = argv[i];
    } else if (name == "--seed") {
      options.seed = static_cast<unsigned>(std::atoi(argv[i]));
    } else {
      return false;
    }
  }
  return !options.folders.empty() && !options.files.empty();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fputs("usage: attacker watch|flip FOLDER --folder DIR... --file FILE... (see its source)\n", stderr);
    return 2;
  }
  ::umask(0);
  struct sigaction action {};
  action.sa_handler = [](int) { ended = 1; };
  ::sigaction(SIGTERM, &action, nullptr);
  Attacker attacker(options);
  std::string_view(argv[1]) == "watch" ? attacker.watch() : attacker.flip();
  attacker.print_counts();
  return 0;
}
