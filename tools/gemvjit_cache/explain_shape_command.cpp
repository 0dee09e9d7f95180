// gemvjit-cache explain N K M: which kernel a shape gets for M tokens, why, and what was rejected. Opens no cache and
// no NVRTC, and the driver only where no target is named.
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "src/catalog/arch.h"
#include "src/compile/specialize.h"
#include "src/tuning/selection.h"
#include "tools/cache_view/tool_settings.h"
#include "tools/common/printable.h"
#include "tools/gemvjit_cache/commands.h"
#include "tools/gemvjit_cache/target_names.h"

namespace gemvjit::tools {
namespace {

using nlohmann::ordered_json;

// A word on what is wrong with the text, or "".
std::string read_number(const std::string& text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range && end == text.data() + text.size()) {
    return fmt::format("{} is too large a number", printable(text));
  }
  return error == std::errc() && end == text.data() + text.size() ? ""
                                                                  : fmt::format("{} is no number", printable(text));
}

// The targets of --arch, or of the GPU here; all such as kernels are made for.
ExitCode served_targets(const std::string& name, std::vector<Arch>& targets) {
  if (const ExitCode code = read_targets(name.empty() ? "native" : name, targets); code != exit_done) return code;
  for (const Arch& arch : targets) {
    if (const auto facts = arch_facts(arch); !facts) {
      complain("--arch: " + facts.status().message());
      return exit_usage;
    }
  }
  return exit_done;
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
    tell("{}: none: {}\n", name, printable_line(one.detail));
  } else {
    const std::string verdict = one.is_chosen ? "chosen" : one.not_chosen ? "rejected" : "not needed";
    tell("{}: {}: {}\n  {}\n", name, verdict, one.key->text(), flags_text(one.key->flags));
    const Choice& choice = *one.choice;
    tell("  {}: {} ({})", reason_token(one.reason), reason_text(one.reason), printable(choice.provenance));
    if (const auto& n = choice.neighbour) {
      tell("; N={} K={}{}, distance {:.2f}", n->n, n->k, n->silu_mul ? " silu_mul" : "", n->distance);
    }
    if (choice.time_us > 0) tell("; {:.2f} us", choice.time_us);
    if (choice.alternative_us > 0) {
      tell(", {} {:.2f} us", choice.alternative.empty() ? "the best other way" : printable(choice.alternative),
           choice.alternative_us);
    }
    const LaunchConfig launch = launch_config(*describe_key(*one.key));
    tell("\n  {} CTAs of {} threads, clusters of {}, {} bytes of shared memory\n", launch.grid_x, launch.block_x,
         launch.cluster_x, launch.smem_bytes);
    if (one.without_pdl) tell("  {}: {}\n", reason_token(*one.without_pdl), reason_text(*one.without_pdl));
  }
  if (one.not_chosen) {
    tell("  rejected, {}: {}{}\n", reason_token(*one.not_chosen), reason_text(*one.not_chosen),
         one.detail.empty() ? "" : ": " + printable_line(one.detail));
  }
  for (const Rejected& r : one.rejected) {
    tell("  passed over, {}: {}: {}\n", reason_token(r.reason), printable_line(r.what),
         r.detail.empty() ? std::string(reason_text(r.reason)) : printable_line(r.detail));
  }
}

void print_selection(const Selection& selection, const Arch& arch, const std::string& table) {
  tell("target {}, table {}\n", arch.text(), table.empty() ? "none" : printable(table));
  if (selection.is_served) {
    tell("choice: {}\n", selection.nt == 0 ? "the one kernel" : fmt::format("nt {}", selection.nt));
  } else {
    // Where each nt has its own reason, they stand with the nts, below.
    const bool has_reason = selection.reason != Reason::none;
    tell("choice: none{}\n", has_reason
                                 ? fmt::format(", {}: {}", reason_token(selection.reason),
                                               selection.detail.empty() ? std::string(reason_text(selection.reason))
                                                                        : printable_line(selection.detail))
                                 : std::string(": no kernel serves it"));
  }
  for (const NtSelection& one : selection.kernels) print_kernel(one);
}

}  // namespace

ExitCode explain_shape(const CacheArguments& arguments) {
  std::int64_t n = 0, k = 0, m = 0;
  const std::vector<std::string>& words = arguments.selectors;
  std::string wrong = words.size() == 3 ? "" : fmt::format("{} words", words.size());
  std::int64_t* const numbers[] = {&n, &k, &m};
  for (std::size_t i = 0; wrong.empty() && i < 3; ++i) wrong = read_number(words[i], *numbers[i]);
  if (!wrong.empty()) {
    complain(fmt::format("{}; explain takes a key, the first digits of a digest, or three numbers N K M", wrong));
    return exit_usage;
  }
  std::vector<Arch> targets;
  if (const ExitCode code = served_targets(arguments.arch, targets); code != exit_done) return code;
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
    tell("{} N={} K={}{} M={}; tables {}\n", family_row(problem.family).name, n, k, problem.silu_mul ? " silu_mul" : "",
         m, tables->digest());
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
