#include "tools/cache_view/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "src/base/files.h"
#include "src/base/json_depth.h"
#include "src/base/unique_keys.h"
#include "src/compile/specialize.h"
#include "tools/common/printable.h"
#include "tools/common/regular_file.h"

namespace gemvjit::tools {
namespace {

using nlohmann::json;

constexpr int most_levels = 8;  // a plan has 4

// Thrown and caught in this file only, as the JSON library does with its own.
[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

void require_fields(const json& object, const std::string& place, std::initializer_list<std::string_view> names) {
  if (!object.is_object()) fail(place + " must be an object");
  for (const std::string_view name : names) {
    if (!object.contains(name)) fail(fmt::format("{}: \"{}\" is missing", place, name));
  }
  for (const auto& [name, value] : object.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      fail(fmt::format("{}: unknown field \"{}\"", place, printable(name)));
    }
  }
}

std::string text_of(const json& value, const std::string& place) {
  if (!value.is_string()) fail(place + " must be a string");
  const auto& text = value.get_ref<const std::string&>();
  if (text.empty() || text.size() > kPlanTextLimit) {
    fail(fmt::format("{} must have 1 to {} bytes", place, kPlanTextLimit));
  }
  return text;
}

std::string hex_of(const json& value, const std::string& place) {
  std::string text = text_of(value, place);
  if (!parse_digest(text)) {
    fail(fmt::format("{} is \"{}\"; it must be 64 lower-case hex digits", place, printable(text)));
  }
  return text;
}

std::vector<std::string> sources_of(const json& list, const std::string& place) {
  if (!list.is_array()) fail(place + " must be a list");
  if (list.size() > kPlanSourceLimit) fail(fmt::format("{} must have at most {} texts", place, kPlanSourceLimit));
  std::vector<std::string> sources;
  for (const json& source : list) {
    sources.push_back(text_of(source, place));
    if (sources.size() > 1 && sources[sources.size() - 2] >= sources.back())
      fail(place + " must be sorted, without repeats");
  }
  return sources;
}

PlannedKernel kernel_of(const json& object, const std::string& place) {
  require_fields(object, place, {"key", "digest", "from"});
  const std::string text = text_of(object["key"], place + ".key");
  const auto key = KernelKey::parse(text);
  if (!key) fail(fmt::format("{}.key: {}", place, printable(key.status().message())));
  PlannedKernel kernel;
  kernel.id = {*key, *parse_digest(hex_of(object["digest"], place + ".digest"))};
  kernel.sources = sources_of(object["from"], place + ".from");
  return kernel;
}

void check_archs(const json& list, const Plan& plan) {
  if (!list.is_array()) fail("archs must be a list");
  std::vector<std::string> wanted;
  for (const Arch& arch : plan.archs()) wanted.push_back(arch.text());
  std::vector<std::string> found;
  for (const json& arch : list) found.push_back(text_of(arch, "archs"));
  if (wanted != found) fail("archs must be the targets of the keys, sorted, each once");
}

Plan plan_of(const json& document) {
  if (!document.is_object()) fail("a plan is an object");
  if (!document.contains("schema")) fail("\"schema\" is missing: this is no plan");
  const json& schema = document["schema"];
  if (!schema.is_number_integer() || schema != kPlanSchema) {
    fail(fmt::format("schema {} is not known to this version, which reads schema {}: use the tool that wrote it",
                     printable(schema.dump()), kPlanSchema));
  }
  require_fields(document, "the plan", {"schema", "made_by", "archs", "tuning_hash", "keys"});
  Plan plan;
  plan.made_by = text_of(document["made_by"], "made_by");
  plan.tuning_hash = hex_of(document["tuning_hash"], "tuning_hash");
  const json& keys = document["keys"];
  if (!keys.is_array()) fail("keys must be a list");
  if (keys.empty()) fail("keys is empty: a plan without a kernel");
  if (keys.size() > kPlanKeyLimit) fail(fmt::format("{} keys; at most {} are read", keys.size(), kPlanKeyLimit));
  std::string last;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    plan.kernels.push_back(kernel_of(keys[i], fmt::format("keys[{}]", i)));
    const std::string text = plan.kernels.back().id.key.text();
    if (text == last) fail(fmt::format("keys[{}]: {} is there twice", i, text));
    if (text < last) fail(fmt::format("keys[{}]: {} stands behind {}: keys must be sorted", i, text, last));
    last = text;
  }
  check_archs(document["archs"], plan);
  return plan;
}

std::string json_text(const std::string& text) {
  return json(text).dump(-1, ' ', true, json::error_handler_t::replace);
}

std::string list_text(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + json_text(text);
  return "[" + all + "]";
}

// At most `limit` bytes that are still whole UTF-8.
std::string cut(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  std::size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text;
}

void cut_sources(std::vector<std::string>& sources) {
  for (std::string& source : sources) {
    // What the file would hold, so that the limit is the reader's, too.
    source = json::parse(json_text(source)).get<std::string>();
    source = cut(source.empty() ? "(no name)" : source, kPlanTextLimit);
  }
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  if (sources.size() <= kPlanSourceLimit) return;
  const std::size_t more = sources.size() - (kPlanSourceLimit - 1);
  sources.resize(kPlanSourceLimit - 1);
  sources.push_back(fmt::format("and {} more", more));
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
}

}  // namespace

std::optional<Digest> parse_digest(std::string_view hex) {
  Digest digest{};
  if (!from_hex(hex, digest) || to_hex(digest) != hex) return std::nullopt;  // upper case is another text
  return digest;
}

std::vector<Arch> Plan::archs() const {
  std::set<Arch> all;
  for (const PlannedKernel& kernel : kernels) all.insert(kernel.id.key.arch);
  return {all.begin(), all.end()};
}

void normalize(Plan& plan) {
  std::vector<std::pair<std::string, PlannedKernel>> sorted;
  for (PlannedKernel& kernel : plan.kernels) sorted.emplace_back(kernel.id.key.text(), std::move(kernel));
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  plan.kernels.clear();
  for (auto& [text, kernel] : sorted) {
    if (!plan.kernels.empty() && plan.kernels.back().id.key == kernel.id.key) {
      std::vector<std::string>& known = plan.kernels.back().sources;
      known.insert(known.end(), kernel.sources.begin(), kernel.sources.end());
    } else {
      plan.kernels.push_back(std::move(kernel));
    }
  }
  for (PlannedKernel& kernel : plan.kernels) cut_sources(kernel.sources);
}

// A key a line, so that two plans can be compared line by line.
std::string write_plan(const Plan& plan) {
  std::vector<std::string> archs;
  for (const Arch& arch : plan.archs()) archs.push_back(arch.text());
  std::string text =
      fmt::format("{{\"schema\": {},\n \"made_by\": {},\n \"archs\": {},\n \"tuning_hash\": {},\n \"keys\": [",
                  kPlanSchema, json_text(plan.made_by), list_text(archs), json_text(plan.tuning_hash));
  const char* separator = "\n";
  for (const PlannedKernel& kernel : plan.kernels) {
    text += fmt::format("{}  {{\"key\": {}, \"digest\": {}, \"from\": {}}}", separator, json_text(kernel.id.key.text()),
                        json_text(to_hex(kernel.id.digest)), list_text(kernel.sources));
    separator = ",\n";
  }
  return text + "]}\n";
}

Result<Plan> parse_plan(std::string_view text) {
  if (json_nests_deeper_than(text, most_levels)) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("nested deeper than {} levels: this is no plan", most_levels));
  }
  try {
    return plan_of(parse_unique_keys(text));
  } catch (const KeyTwice& twice) {
    return Status(StatusCode::invalid_argument, fmt::format("\"{}\" is there twice", printable(twice.key)));
  } catch (const json::exception& error) {  // quotes the text
    return Status(StatusCode::invalid_argument, printable(json_error_text(error.what())));
  } catch (const std::exception& error) {
    return Status(StatusCode::invalid_argument, std::string(error.what()));
  }
}

Result<Plan> read_plan(const std::string& path) {
  const Result<std::string> text = RegularFile::read_all(path, kPlanSizeLimit);
  if (!text) return Status(text.status().code(), fmt::format("plan {}", printable(text.status().message())));
  Result<Plan> plan = parse_plan(*text);
  if (plan) return plan;
  return Status(plan.status().code(), fmt::format("plan {}: {}", printable(path), plan.status().message()));
}

Result<PlanFit> fit_plan(const Plan& plan) {
  PlanFit fit;
  for (const PlannedKernel& kernel : plan.kernels) {
    const Result<Recipe> recipe = specialize(kernel.id.key);
    if (!recipe) {
      return Status(StatusCode::invalid_argument, fmt::format("this version makes no kernel {}: {}",
                                                              kernel.id.key.text(), recipe.status().message()));
    }
    if (recipe->digest == kernel.id.digest) continue;
    if (fit.other_digests++ == 0) fit.first_other = kernel.id.key.text();
  }
  return fit;
}

Result<Plan> read_fitting_plan(const std::string& path, bool any_digest, std::string& warning) {
  GEMVJIT_TRY_ASSIGN(Plan plan, read_plan(path));
  const Result<PlanFit> fit = fit_plan(plan);
  if (!fit) return Status(fit.status().code(), fmt::format("plan {}: {}", printable(path), fit.status().message()));
  if (fit->other_digests == 0) return plan;
  const std::string what = fmt::format(
      "plan {} was made of other kernel sources, by {}: {} of its {} keys have other digests here, first {}",
      printable(path), printable(plan.made_by), fit->other_digests, plan.kernels.size(), fit->first_other);
  if (!any_digest) {
    return Status(StatusCode::invalid_argument,
                  what + "; write it anew with this version, or go by its keys alone with --any-digest");
  }
  warning = what + "; its keys count";
  return plan;
}

}  // namespace gemvjit::tools
