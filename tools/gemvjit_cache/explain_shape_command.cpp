// gemvjit-cache explain N K M: which kernel a shape gets for M tokens, why, and what was rejected. Opens no cache and
// no NVRTC, and the driver only where no target is named.
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "src/catalog/arch_names.h"
#include "src/compile/specialize.h"
#include "src/cuda/driver_api.h"
#include "src/tuning/selection.h"
#include "tools/cache_view/tool_settings.h"
#include "tools/common/printable.h"
#include "tools/gemvjit_cache/commands.h"

namespace gemvjit::tools {
namespace {

using nlohmann::ordered_json;

bool read_number(const std::string& text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// The target of the first device; nothing where there is none.
std::vector<Arch> native_targets() {
  const auto driver = cuda::load_driver("see which GPU is here");
  if (!driver) return {};
  CUdevice device = 0;
  int major = 0, minor = 0;
  const cuda::DriverApi& api = **driver;
  if (api.cuDeviceGet(&device, 0) != CUDA_SUCCESS) return {};
  if (api.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) != CUDA_SUCCESS) return {};
  if (api.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) != CUDA_SUCCESS) return {};
  std::vector<Arch> targets = possible_targets(major, minor);
  if (targets.size() > 1) targets.resize(1);
  return targets;
}

ExitCode read_targets(const std::string& name, std::vector<Arch>& targets) {
  if (!name.empty()) {
    const Result<NamedTargets> named = parse_targets(name);
    if (!named) {
      complain("--arch: " + named.status().message());
      return exit_usage;
    }
    targets = named->targets;
  }
  if (targets.empty()) targets = native_targets();
  for (const Arch& arch : targets) {
    if (const auto facts = arch_facts(arch); !facts) {
      complain("--arch: " + facts.status().message());
      return exit_usage;
    }
  }
  if (!targets.empty()) return exit_done;
  complain("no GPU was found, so the target is not known: name one, such as --arch sm_90a or --arch hopper");
  return exit_environment;
}

ordered_json tile_json(const TileConfig& tile) {
  ordered_json fields = ordered_json::object();
  for (const TileField& field : tile_fields()) fields[field.name] = tile.*field.member;
  return fields;
}

ordered_json token_or_null(const std::optional<Reason>& reason) {
  return reason ? ordered_json(reason_token(*reason)) : ordered_json(nullptr);
}

ordered_json kernel_json(const NtSelection& one) {
  ordered_json rejected = ordered_json::array();
  for (const Rejected& r : one.rejected) {
    rejected.push_back({{"reason", reason_token(r.reason)}, {"what", r.what}, {"detail", r.detail}});
  }
  ordered_json json{{"nt", one.nt},
                    {"chosen", one.is_chosen},
                    {"reason", reason_token(one.reason)},
                    {"not_chosen", token_or_null(one.not_chosen)},
                    {"detail", one.detail},
                    {"rejected", rejected}};
  if (!one.key) return json;
  const Choice& choice = *one.choice;
  const KernelSpec spec = *describe_key(*one.key);
  const LaunchConfig launch = launch_config(spec);
  const auto recipe = specialize(*one.key);
  json["key"] = one.key->text();
  json["digest"] = recipe ? to_hex(recipe->digest) : "";
  json["flags_text"] = flags_text(one.key->flags);
  json["tile"] = tile_json(choice.tile);
  json["grid"] = launch.grid_x;
  json["threads"] = launch.block_x;
  json["cluster"] = launch.cluster_x;
  json["smem_bytes"] = launch.smem_bytes;
  json["pdl"] = spec.pdl;
  json["without_pdl"] = token_or_null(one.without_pdl);
  json["provenance"] = choice.provenance;
  json["time_us"] = choice.time_us > 0 ? ordered_json(choice.time_us) : ordered_json(nullptr);
  json["alternative_us"] = choice.alternative_us > 0 ? ordered_json(choice.alternative_us) : ordered_json(nullptr);
  json["alternative"] = choice.alternative;
  json["neighbour"] = nullptr;
  if (const auto& n = choice.neighbour) {
    json["neighbour"] = {
        {"n", n->n}, {"k", n->k}, {"silu_mul", n->silu_mul}, {"distance", n->distance}, {"time_us", n->time_us}};
  }
  return json;
}

void print_kernel(const NtSelection& one) {
  const std::string name = one.nt == 0 ? "kernel" : fmt::format("nt {}", one.nt);
  if (!one.key) {
    fmt::print("{}: none: {}\n", name, one.detail);
  } else {
    const std::string verdict = one.is_chosen ? "chosen" : one.not_chosen ? "rejected" : "not needed";
    fmt::print("{}: {}: {}\n  {}\n", name, verdict, one.key->text(), flags_text(one.key->flags));
    const Choice& choice = *one.choice;
    fmt::print("  {}: {} ({})", reason_token(one.reason), reason_text(one.reason), choice.provenance);
    if (const auto& n = choice.neighbour) {
      fmt::print("; N={} K={}{}, distance {:.2f}", n->n, n->k, n->silu_mul ? " silu_mul" : "", n->distance);
    }
    if (choice.time_us > 0) fmt::print("; {:.2f} us", choice.time_us);
    if (choice.alternative_us > 0) {
      fmt::print(", {} {:.2f} us", choice.alternative.empty() ? "the best other way" : choice.alternative,
                 choice.alternative_us);
    }
    const LaunchConfig launch = launch_config(*describe_key(*one.key));
    fmt::print("\n  {} CTAs of {} threads, clusters of {}, {} bytes of shared memory\n", launch.grid_x, launch.block_x,
               launch.cluster_x, launch.smem_bytes);
    if (one.without_pdl) fmt::print("  {}: {}\n", reason_token(*one.without_pdl), reason_text(*one.without_pdl));
  }
  if (one.not_chosen) {
    fmt::print("  rejected, {}: {}{}\n", reason_token(*one.not_chosen), reason_text(*one.not_chosen),
               one.detail.empty() ? "" : ": " + one.detail);
  }
  for (const Rejected& r : one.rejected) {
    fmt::print("  passed over, {}: {}: {}\n", reason_token(r.reason), r.what,
               r.detail.empty() ? std::string(reason_text(r.reason)) : r.detail);
  }
}

void print_selection(const Selection& selection, const Arch& arch, const std::string& table) {
  fmt::print("target {}, table {}\n", arch.text(), table.empty() ? "none" : printable(table));
  if (selection.is_served) {
    fmt::print("choice: {}\n", selection.nt == 0 ? "the one kernel" : fmt::format("nt {}", selection.nt));
  } else {
    fmt::print("choice: none, {}: {}\n", reason_token(selection.reason),
               selection.detail.empty() ? std::string(reason_text(selection.reason)) : selection.detail);
  }
  for (const NtSelection& one : selection.kernels) print_kernel(one);
}

}  // namespace

ExitCode explain_shape(const CacheArguments& arguments) {
  std::int64_t n = 0, k = 0, m = 0;
  const std::vector<std::string>& words = arguments.selectors;
  if (words.size() != 3 || !read_number(words[0], n) || !read_number(words[1], k) || !read_number(words[2], m)) {
    complain("explain takes a key, the first digits of a digest, or three numbers N K M");
    return exit_usage;
  }
  std::vector<Arch> targets;
  if (const ExitCode code = read_targets(arguments.arch, targets); code != exit_done) return code;
  const std::string overlay = tool_environment()("GEMVJIT_TUNING_DIR").value_or("");
  const auto tables = TuningTables::load(overlay);
  if (!tables) {
    complain(tables.status().message());
    return exit_usage;
  }
  const Problem problem{arguments.bf16 ? Family::bf16_gemv : Family::nvfp4_gemv, n, k, arguments.silu,
                        !arguments.no_pdl};
  ordered_json selections = ordered_json::array();
  bool all_served = true;
  if (!arguments.json) {
    fmt::print("{} N={} K={}{} M={}; tables {}\n", family_row(problem.family).name, n, k,
               problem.silu_mul ? " silu_mul" : "", m, tables->digest());
  }
  for (const Arch& arch : targets) {
    const Selection selection = select_kernel(*tables, arch, problem, m, !arguments.tuned_only);
    all_served = all_served && selection.is_served;
    const std::string table = tables->table_name(arch);
    if (!arguments.json) {
      print_selection(selection, arch, table);
      continue;
    }
    ordered_json kernels = ordered_json::array();
    for (const NtSelection& one : selection.kernels) kernels.push_back(kernel_json(one));
    ordered_json nt = selection.is_served ? ordered_json(selection.nt) : ordered_json(nullptr);
    selections.push_back({{"arch", arch.text()},
                          {"table", table},
                          {"nt", nt},
                          {"reason", reason_token(selection.reason)},
                          {"detail", selection.detail},
                          {"kernels", kernels}});
  }
  if (arguments.json) {
    print_json({{"family", family_row(problem.family).name},
                {"n", n},
                {"k", k},
                {"m", m},
                {"silu_mul", problem.silu_mul},
                {"tables_hash", tables->digest()},
                {"selections", selections}});
  }
  return all_served ? exit_done : exit_nothing_found;
}

}  // namespace gemvjit::tools
