#include "src/compile/specialize.h"

#include <fmt/format.h>

#include <mutex>
#include <unordered_map>

#include "embedded/embedded_kernel_sources.h"
#include "src/catalog/catalog.h"
#include "src/catalog/kernel_flags.h"
#include "src/compile/options.h"

namespace gemvjit {
namespace {

constexpr std::string_view kConfigName = "kernel_config.h";

const EmbeddedFile* find_source(std::string_view name) {
  for (const EmbeddedFile& file : embedded_kernel_sources()) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

std::string config_text(const KernelSpec& spec) {
  std::string text = fmt::format(
      "// Generated for {}.\n"
      "#pragma once\n"
      "namespace gemvjit {{\n"
      "inline constexpr long long kN = {};\n"
      "inline constexpr long long kK = {};\n"
      "inline constexpr int kNt = {};\n"
      "inline constexpr int kSmemBytes = {};\n",
      spec.key.text(), spec.key.n, spec.key.k, spec.key.nt, launch_config(spec).smem_bytes);
  for (const FlagField& field : flag_fields()) {
    text += fmt::format("inline constexpr int {} = {};\n", field.constant, get_flag(spec.key.flags, field));
  }
  return text + "}  // namespace gemvjit\n";
}

Digest recipe_digest(const Recipe& recipe) {
  Sha256 hash;
  hash.update_tagged("format", fmt::format("{}", entry_format_version));
  hash.update_tagged("key", recipe.key.text());
  hash.update_tagged("entry", recipe.entry_name);
  for (const SourceFile& source : recipe.sources) {
    hash.update_tagged("source", source.name);
    hash.update_tagged("text", source.text);
  }
  for (const std::string& option : recipe.options) hash.update_tagged("option", option);
  return hash.finish();
}

// Digests that were worked out before: hashing the sources is nearly all of specialize(), and a plan that is checked
// asks for each key twice. A digest follows from the key, so that remembering it changes no answer.
class DigestMemo {
 public:
  Digest of(const Recipe& recipe) {
    {
      const std::lock_guard lock(mutex_);
      const auto known = digests_.find(recipe.key);
      if (known != digests_.end()) return known->second;
    }
    const Digest digest = recipe_digest(recipe);
    const std::lock_guard lock(mutex_);
    if (digests_.size() >= most) digests_.clear();
    digests_.emplace(recipe.key, digest);
    return digest;
  }

 private:
  static constexpr std::size_t most = 8192;  // about 1 MB
  std::mutex mutex_;
  std::unordered_map<KernelKey, Digest, KernelKeyHash> digests_;
};

// Never destroyed: threads may run while the process ends.
DigestMemo& digest_memo() {
  static auto& memo = *new DigestMemo;
  return memo;
}

}  // namespace

Result<std::string> generate_kernel_config(const KernelKey& key) {
  GEMVJIT_TRY_ASSIGN(const KernelSpec spec, describe_key(key));
  return config_text(spec);
}

Result<Recipe> specialize(const KernelKey& key) {
  GEMVJIT_TRY_ASSIGN(const KernelSpec spec, describe_key(key));
  const FamilyRow& family = family_row(spec.family);
  Recipe recipe;
  recipe.key = key;
  recipe.entry_name = family.entry_name;
  for (const std::string_view name : family.sources) {
    const EmbeddedFile* file = find_source(name);
    if (file == nullptr) {
      return Status(StatusCode::internal_error, fmt::format("source {} of {} is not embedded", name, family.name));
    }
    recipe.sources.push_back({std::string(name), std::string(file->text)});
  }
  recipe.sources.push_back({std::string(kConfigName), config_text(spec)});
  recipe.options = nvrtc_options(key.arch);
  recipe.digest = digest_memo().of(recipe);
  return recipe;
}

}  // namespace gemvjit
