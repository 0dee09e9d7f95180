#include "tools/cache_view/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "cache/entry_files.h"
#include "src/catalog/kernel_flags.h"
#include "tools/cache_view/cache_refusal.h"
#include "tools/cache_view/layers.h"

namespace gemvjit::tools {
namespace {

double distance(const KernelKey& a, const KernelKey& b) {
  const auto apart = [](std::int64_t x, std::int64_t y) {
    return std::fabs(std::log2(static_cast<double>(x) + 1) - std::log2(static_cast<double>(y) + 1));
  };
  return apart(a.n, b.n) + apart(a.k, b.k);
}

// How many differences() would give. Without making texts, since a check asks this of every pair.
std::size_t count_differences(const EntryId& wanted, const std::string& wanted_digest, const KnownEntry& found) {
  const KernelKey &a = wanted.key, &b = found.key;
  std::size_t count = 0;
  count += a.n != b.n;
  count += a.k != b.k;
  count += a.nt != b.nt;
  if (a.flags != b.flags) {
    for (const FlagField& field : flag_fields()) count += get_flag(a.flags, field) != get_flag(b.flags, field);
    count += ((a.flags ^ b.flags) & ~named_flag_bits()) != 0;
  }
  count += a.arch != b.arch;
  if (count == 0) count += !std::string_view(wanted_digest).starts_with(found.digest);
  return count;
}

// The key and the digits in an entry's file name, below a folder of the target.
std::optional<KnownEntry> read_name(const Folder& folder, const std::string& name, const std::string& arch) {
  const std::string stem = name.substr(0, name.rfind('.'));
  const std::size_t dash = stem.rfind('-');
  if (dash == std::string::npos) return std::nullopt;
  const auto key = KernelKey::parse(stem.substr(0, dash) + "-" + arch);
  if (!key) return std::nullopt;
  return KnownEntry{*key, stem.substr(dash + 1), folder.path_of(name)};
}

void add_folder(const std::string& root, const EntryGuard& guard, std::vector<KnownEntry>& entries) {
  const auto on_file = [&](const Folder& folder, const std::string& name, const std::string& arch) {
    if (auto entry = read_name(folder, name, arch)) entries.push_back(std::move(*entry));
  };
  (void)visit_entry_files(
      root, on_file, [](const std::string&, const Status&) {}, &guard);
}

}  // namespace

std::vector<Difference> differences(const EntryId& wanted, const KnownEntry& found) {
  std::vector<Difference> all;
  const auto add = [&](const char* field, const auto& a, const auto& b) {
    if (a != b) all.push_back({field, fmt::format("{}", a), fmt::format("{}", b)});
  };
  add("n", wanted.key.n, found.key.n);
  add("k", wanted.key.k, found.key.k);
  add("nt", wanted.key.nt, found.key.nt);
  for (const FlagField& field : flag_fields()) {
    add(field.name, get_flag(wanted.key.flags, field), get_flag(found.key.flags, field));
  }
  const std::uint64_t unnamed = ~named_flag_bits();
  if ((wanted.key.flags & unnamed) != (found.key.flags & unnamed)) {
    all.push_back({"flags", fmt::format("{:016x}", wanted.key.flags), fmt::format("{:016x}", found.key.flags)});
  }
  add("arch", wanted.key.arch.text(), found.key.arch.text());
  const std::string digest = to_hex(wanted.digest);
  if (all.empty() && !digest.starts_with(found.digest)) all.push_back({"recipe", digest, found.digest});
  return all;
}

std::optional<Nearest> find_nearest(const std::vector<KnownEntry>& entries, const EntryId& wanted) {
  const std::string digest = to_hex(wanted.digest);
  std::optional<std::size_t> best;
  std::tuple<std::size_t, double> best_rank;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::tuple rank(count_differences(wanted, digest, entries[i]), distance(wanted.key, entries[i].key));
    if (best && best_rank <= rank) continue;
    best = i;
    best_rank = rank;
  }
  if (!best) return std::nullopt;
  return Nearest{*best, differences(wanted, entries[*best])};
}

std::string first_difference_text(const Nearest& nearest) {
  if (nearest.differences.empty()) return "none: it is the same kernel";
  const Difference& first = nearest.differences.front();
  return fmt::format("{}: wanted {}, found {}{}", first.field, first.wanted, first.found,
                     first.field == "recipe" ? " (made of other kernel sources, options or entry format)" : "");
}

std::vector<KnownEntry> list_known_entries(const std::string& root) {
  std::vector<KnownEntry> entries;
  if (!root.empty()) add_folder(root, guard_of_root(root), entries);
  for (LayerView& view : open_layers()) {
    if (view.layer == nullptr) continue;
    if (!view.layer->is_bundle()) {
      add_folder(view.path, EntryGuard::of_layer(), entries);
      continue;
    }
    for (const ListedEntry& listed : list_layer(view)) {
      if (listed.entry) {
        entries.push_back({listed.entry->id.key, to_hex(listed.entry->id.digest), listed.path});
      }
    }
  }
  return entries;
}

}  // namespace gemvjit::tools
