#include "tools/common/bounded_json.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <vector>

#include "src/base/descriptor.h"
#include "src/base/json_depth.h"
#include "tools/common/printable.h"

namespace gemvjit::tools {
namespace {

using nlohmann::json;

Status bad(const std::string& path, std::string_view what) {
  return {StatusCode::invalid_argument, fmt::format("{}: {}", path, what)};
}

// O_NONBLOCK: opening a FIFO must not hang.
Status open_regular(const std::string& path, int& fd, std::uint64_t& bytes) {
  fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return {errno == ENOENT ? StatusCode::not_found : StatusCode::io_error,
            fmt::format("cannot open {}: {}", path, std::strerror(errno))};
  }
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return bad(path, "is not a regular file");
  }
  bytes = static_cast<std::uint64_t>(info.st_size);
  return {};
}

// Of at least that many bytes from there on.
bool read_exactly(int fd, std::uint64_t offset, void* data, std::size_t size) {
  char* out = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::pread(fd, out, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out += got;
    offset += static_cast<std::uint64_t>(got);
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

// Replaces Infinity, -Infinity and NaN outside strings by as many characters that are JSON, so that offsets in messages
// stay.
std::string without_python_numbers(std::string_view text) {
  std::string result(text);
  bool in_string = false;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (in_string) {
      if (result[i] == '\\') ++i;
      if (i < result.size() && result[i] == '"') in_string = false;
      continue;
    }
    if (result[i] == '"') in_string = true;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (result.compare(i, word.size(), word) != 0) continue;
      // A number that is no size; null has no room in NaN.
      result.replace(i, word.size(), word == "NaN" ? "0.5" : "null" + std::string(word.size() - 4, ' '));
      i += word.size() - 1;
      break;
    }
  }
  return result;
}

struct KeyTwice {
  std::string key;
};

}  // namespace

Result<json> parse_model_json(const std::string& path, std::string_view text) {
  if (json_nests_deeper_than(text, model_json_levels)) {
    return bad(path, fmt::format("is nested more than {} levels deep", model_json_levels));
  }
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto on_event = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw KeyTwice{parsed.get<std::string>()};
    }
    return true;
  };
  try {
    json document = json::parse(without_python_numbers(text), on_event, /*allow_exceptions=*/false);
    if (!document.is_object()) return bad(path, "is not a JSON object");
    return document;
  } catch (const KeyTwice& twice) {
    return bad(path, fmt::format("names '{}' twice", printable(twice.key)));
  }
}

Result<json> read_model_json(const std::string& path) {
  int fd = -1;
  std::uint64_t bytes = 0;
  GEMVJIT_TRY(open_regular(path, fd, bytes));
  const Descriptor file(fd);
  if (bytes > model_json_limit) {
    return bad(path, fmt::format("has {} bytes, more than the limit of {}", bytes, model_json_limit));
  }
  std::string text(bytes, '\0');
  if (!read_exactly(file.get(), 0, text.data(), text.size())) return bad(path, "cannot be read");
  return parse_model_json(path, text);
}

Status read_file_part(const std::string& path, std::uint64_t offset, std::size_t size, void* out) {
  int fd = -1;
  std::uint64_t bytes = 0;
  GEMVJIT_TRY(open_regular(path, fd, bytes));
  const Descriptor file(fd);
  if (offset > bytes || size > bytes - offset || !read_exactly(file.get(), offset, out, size)) {
    return {StatusCode::io_error, fmt::format("cannot read {} bytes at {} of {}", size, offset, path)};
  }
  return {};
}

}  // namespace gemvjit::tools
