#include "src/runtime/source_dump.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

#include "cache/root_safety.h"
#include "src/base/folder.h"
#include "src/base/write_access.h"

namespace gemvjit {
namespace {

Status examine(const Folder& folder) {
  GEMVJIT_TRY_ASSIGN(const struct stat info, folder.examine());
  const std::string danger = who_else_may_write(folder.descriptor(), info, {.user = ::geteuid()});
  if (danger.empty()) return Status::ok();
  return {StatusCode::io_error, fmt::format("{} is not used: {}", folder.path(), danger)};
}

Result<Folder> open_dump_dir(const std::string& path) {
  GEMVJIT_TRY(check_output_folder(path));
  GEMVJIT_TRY_ASSIGN(Folder folder, Folder::make(path, 0700));
  GEMVJIT_TRY(check_output_folder(path));
  GEMVJIT_TRY(examine(folder));
  return folder;
}

Result<Folder> open_below(const Folder& parent, const std::string& name) {
  GEMVJIT_TRY_ASSIGN(Folder folder, parent.make_folder(name, 0700));
  GEMVJIT_TRY(examine(folder));
  return folder;
}

// `name`: "options.txt" or "kernels/device/ptx.cuh", of the library's own sources.
Status write_below(const Folder& folder, std::string_view name, const std::string& text) {
  const std::size_t slash = name.find('/');
  if (slash == name.npos) return folder.publish(std::string(name), text.data(), text.size(), {}).status();
  GEMVJIT_TRY_ASSIGN(const Folder below, open_below(folder, std::string(name.substr(0, slash))));
  return write_below(below, name.substr(slash + 1), text);
}

}  // namespace

Result<std::string> dump_sources(const std::string& dump_dir, const Recipe& recipe) {
  GEMVJIT_TRY_ASSIGN(const Folder root, open_dump_dir(dump_dir));
  GEMVJIT_TRY_ASSIGN(const Folder folder, open_below(root, recipe.key.text()));
  std::string options;
  for (const std::string& option : recipe.options) options += option + "\n";
  GEMVJIT_TRY(write_below(folder, "options.txt", options));
  for (const SourceFile& source : recipe.sources) GEMVJIT_TRY(write_below(folder, source.name, source.text));
  return folder.path();
}

}  // namespace gemvjit
