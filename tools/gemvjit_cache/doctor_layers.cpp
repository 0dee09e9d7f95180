#include "tools/gemvjit_cache/doctor_layers.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cache/bundle.h"
#include "src/runtime/options.h"
#include "tools/cache_view/cache_refusal.h"
#include "tools/cache_view/layers.h"
#include "tools/cache_view/tool_settings.h"
#include "tools/common/human_units.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/signers.h"

namespace gemvjit::tools {
namespace {

using nlohmann::ordered_json;

std::string owner_text(uid_t uid) {
  const passwd* user = ::getpwuid(uid);
  return user == nullptr ? std::to_string(uid) : fmt::format("{} ({})", user->pw_name, uid);
}

// statfs(2) has these numbers; one that is not here is shown as it is.
std::string file_system_text(std::uint32_t type) {
  struct Row {
    std::uint32_t type;
    const char* name;
  };
  constexpr Row rows[] = {{0xEF53, "ext4"},        {0x58465342, "xfs"},  {0x9123683E, "btrfs"},   {0x01021994, "tmpfs"},
                          {0x794C7630, "overlay"}, {0x6969, "nfs"},      {0xFF534D42, "cifs"},    {0xFE534D42, "smb"},
                          {0x65735546, "fuse"},    {0x01021997, "9p"},   {0x0BD00BD0, "lustre"},  {0x47504653, "gpfs"},
                          {0x2FC12FC1, "zfs"},     {0x00C36400, "ceph"}, {0x73717368, "squashfs"}};
  for (const Row& row : rows) {
    if (row.type == type) return row.name;
  }
  return fmt::format("{:#x}", type);
}

// A cache on such a file system is compiled again after each start of the container or the machine.
std::string short_life_warning(const ordered_json& file_system) {
  if (file_system == "overlay") {
    return "on overlay: a container's own layer, gone with the container; put the cache on a volume, or bring a bundle";
  }
  if (file_system == "tmpfs") return "on tmpfs: in memory, gone when the machine or the container restarts";
  return "";
}

// Of the nearest folder that is there.
ordered_json future_file_system(std::string path) {
  struct statfs system {};
  while (::statfs(path.c_str(), &system) != 0) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos || path == "/") return nullptr;
    path.resize(slash == 0 ? 1 : slash);
  }
  return file_system_text(static_cast<std::uint32_t>(system.f_type));
}

ordered_json examine_path(const std::string& path, const char* kind, const std::string& named_by) {
  ordered_json layer{{"path", path}, {"kind", kind}, {"named_by", named_by}};
  layer.update(path_facts(path));
  const std::string problem = layer["problem"];
  layer["entries"] = nullptr;
  layer["signature"] = nullptr;
  layer["signer"] = nullptr;
  layer.erase("problem");
  layer["problem"] = problem;
  layer["warning"] = "";
  return layer;
}

}  // namespace

ordered_json path_facts(const std::string& path) {
  ordered_json facts{{"exists", false},       {"owner", nullptr},       {"mode", nullptr},
                     {"free_bytes", nullptr}, {"file_system", nullptr}, {"problem", ""}};
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) facts["problem"] = fmt::format("{}: {}", path, std::strerror(errno));
    return facts;
  }
  facts["exists"] = true;
  facts["owner"] = owner_text(info.st_uid);
  facts["mode"] = fmt::format("{:04o}", info.st_mode & 07777u);
  struct statvfs space {};
  if (::statvfs(path.c_str(), &space) == 0) {
    facts["free_bytes"] = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
  }
  struct statfs system {};
  if (::statfs(path.c_str(), &system) == 0) {
    facts["file_system"] = file_system_text(static_cast<std::uint32_t>(system.f_type));
  }
  return facts;
}

ordered_json examine_layers(const CacheArguments& arguments) {
  ordered_json layers = ordered_json::array();
  const CacheFolder folder = choose_cache_folder(arguments);
  if (!folder.path.empty()) {
    layers.push_back(examine_path(folder.path, "writable", folder.source));
    if (const Status safe = check_cache_folder(folder.path); !safe) layers.back()["problem"] = safe.message();
    layers.back()["warning"] = short_life_warning(future_file_system(folder.path));
  }
  const Result<SignatureOptions> options = resolve_signature_options(tool_environment());
  const Signatures signatures(options ? *options : SignatureOptions{}, Log::silent());
  for (const LayerView& view : open_layers()) {
    ordered_json layer = examine_path(view.path, view.kind(), "GEMVJIT_CACHE_RO");
    struct stat info {};
    if (::stat(view.path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {  // also one that the policy refuses
      if (const auto bundle = Bundle::open(view.path)) {
        layer["entries"] = (*bundle)->items().size();
        const SignatureFacts facts = signatures.examine(**bundle);
        layer["signature"] = signature_json(facts);
        layer["signer"] = facts.text();
      }
    }
    if (!view.problem) layer["problem"] = view.problem.message();
    layers.push_back(std::move(layer));
  }
  return layers;
}

void print_layers(const ordered_json& layers) {
  tell("Layers, in the order they are asked\n");
  for (const ordered_json& layer : layers) {
    std::string text = fmt::format("  {}: {}, from {}", layer["path"].get<std::string>(),
                                   layer["kind"].get<std::string>(), layer["named_by"].get<std::string>());
    if (layer["exists"] == true) {
      text += fmt::format(", owner {}, mode {}", layer["owner"].get<std::string>(), layer["mode"].get<std::string>());
    } else {
      text += ", not there yet";
    }
    if (!layer["entries"].is_null()) text += fmt::format(", {} entries", layer["entries"].get<std::size_t>());
    if (!layer["signer"].is_null()) text += ", " + layer["signer"].get<std::string>();
    if (!layer["free_bytes"].is_null()) {
      text += fmt::format(", {} free", human_bytes(layer["free_bytes"].get<std::uint64_t>()));
    }
    if (!layer["file_system"].is_null()) text += fmt::format(" on {}", layer["file_system"].get<std::string>());
    if (layer["problem"] != "") text += fmt::format(": {}", layer["problem"].get<std::string>());
    tell("{}\n", text);
    if (layer["warning"] != "") {
      print_state("    warning:", Paint::warning, fmt::format(" {}\n", layer["warning"].get<std::string>()));
    }
  }
}

}  // namespace gemvjit::tools
