#include "cache/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/files.h"

namespace gemvjit {
namespace {

constexpr std::string_view entry_suffix = ".entry";
constexpr std::size_t fan_out_digits = 2;
constexpr std::size_t digest_digits = 16;  // enough to tell apart what one key was ever compiled from

bool is_lower_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// The key's text without its architecture, which is the directory's name.
std::string key_text_without_arch(const KernelKey& key) {
  std::string text = key.text();
  text.resize(text.size() - key.arch.text().size() - 1);
  return text;
}

}  // namespace

std::string version_directory(const std::string& root) { return fmt::format("{}/v{}", root, entry_format_version); }

std::string arch_directory(const std::string& root, const Arch& arch) {
  return version_directory(root) + "/" + arch.text();
}

std::string entry_directory(const std::string& root, const EntryId& id) {
  return arch_directory(root, id.key.arch) + "/" + to_hex(id.digest).substr(0, fan_out_digits);
}

std::string entry_file_name(const EntryId& id) {
  return fmt::format("{}-{}{}", key_text_without_arch(id.key), to_hex(id.digest).substr(0, digest_digits),
                     entry_suffix);
}

std::string entry_path(const std::string& root, const EntryId& id) {
  return entry_directory(root, id) + "/" + entry_file_name(id);
}

bool is_entry_file_name(std::string_view name) {
  if (!name.ends_with(entry_suffix)) return false;
  name.remove_suffix(entry_suffix.size());
  if (name.size() <= digest_digits + 1) return false;
  const std::string_view digest = name.substr(name.size() - digest_digits);
  name.remove_suffix(digest_digits);
  if (!name.ends_with('-') || !is_lower_hex(digest)) return false;
  // `name` still ends in '-': with any architecture behind it, it must read as a key.
  return KernelKey::parse(std::string(name) + "sm_90").is_ok();
}

bool is_fan_out_name(std::string_view name) { return name.size() == fan_out_digits && is_lower_hex(name); }

bool is_temporary_file_name(std::string_view name) {
  if (!name.starts_with(temporary_file_prefix)) return false;
  name.remove_prefix(temporary_file_prefix.size());
  const std::size_t dash = name.find('-');
  if (dash == 0 || dash == std::string_view::npos) return false;
  const std::string_view pid = name.substr(0, dash);
  const std::string_view random = name.substr(dash + 1);
  return std::all_of(pid.begin(), pid.end(), [](char c) { return c >= '0' && c <= '9'; }) && random.size() == 16 &&
         is_lower_hex(random);
}

}  // namespace gemvjit
