#include "tools/gemvjit_tune/results.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/common/output.h"
#include "tools/common/table.h"

namespace gemvjit::tools {
namespace {

using Json = nlohmann::ordered_json;

// "warps_k=16 stages=2 pdl": what differs from the defaults.
std::string short_text(const Configuration& configuration) {
  std::string text;
  const Json tile = tile_to_json(configuration.tile);
  for (const auto& [name, value] : tile.items()) {
    text += fmt::format("{}={} ", name, value.dump());
  }
  return text + (configuration.pdl ? "pdl" : "no pdl");
}

std::string remark(const CaseResult& result) {
  const Choice& choice = result.choice;
  if (!result.problem.empty()) return "FAILED " + result.problem;
  std::string text = !choice.found ? "no configuration works" : choice.kept ? "kept" : "";
  if (choice.failed > 0) {
    text += fmt::format("{}{} excluded, first: {}", text.empty() ? "" : "; ", choice.failed, choice.first_failure);
  }
  return text;
}

Json configuration_json(const Configuration& configuration) {
  return {{"tile", tile_to_json(configuration.tile)}, {"pdl", configuration.pdl}};
}

}  // namespace

void print_results(const RunReport& report) {
  using Align = Table::Align;
  Table table({{"case", Align::left},
               {"us", Align::right},
               {"+-", Align::right},
               {"alternative", Align::right},
               {"tried", Align::right},
               {"configuration", Align::left},
               {"", Align::left}});
  int excluded = 0;
  for (const CaseResult& r : report.results) {
    excluded += r.choice.failed;
    table.add_row({r.tune_case.text(), r.choice.found ? fmt::format("{:.2f}", r.choice.best.us) : "-",
                   r.choice.found ? fmt::format("{:.2f}", r.choice.best.spread_us) : "-",
                   r.alternative_us > 0 ? fmt::format("{:.2f} {}", r.alternative_us, r.alternative) : "-",
                   fmt::format("{}", r.choice.candidates),
                   r.choice.found ? short_text(r.choice.best.configuration) : "-", remark(r)});
  }
  fmt::print("{}{} cases finished, {} left, {} configurations excluded\n", table.text(), report.results.size(),
             report.unfinished, excluded);
}

void print_results_json(const RunReport& report) {
  Json document = {{"cases", Json::array()}};
  for (const CaseResult& r : report.results) {
    Json one = case_to_json(r.tune_case);
    one["found"] = r.choice.found;
    if (r.choice.found) {
      one.update(configuration_json(r.choice.best.configuration));
      one["time_us"] = r.choice.best.us;
      one["spread_us"] = r.choice.best.spread_us;
      one["kept"] = r.choice.kept;
    }
    one["alternative_us"] = r.alternative_us;
    one["alternative"] = r.alternative;
    one["candidates"] = r.choice.candidates;
    one["excluded"] = r.choice.failed;
    one["first_failure"] = r.choice.first_failure;
    one["problem"] = r.problem;
    document["cases"].push_back(one);
  }
  document["unfinished"] = report.unfinished;
  document["out_of_time"] = report.out_of_time;
  document["device_failures"] = report.device_failures;
  print_json(document);
}

void print_list(const std::vector<ListedCase>& cases, const Machine& machine) {
  for (const ListedCase& one : cases) {
    fmt::print("{}: {} candidates\n", one.tune_case.text(), one.seeds.size());
    for (const Configuration& seed : one.seeds) {
      fmt::print("  {:8.2f}  {}\n", model_us(one.tune_case, machine, seed.tile), short_text(seed));
    }
  }
}

void print_list_json(const std::vector<ListedCase>& cases, const Machine& machine) {
  Json document = {{"arch", machine.arch.text()}, {"sm_count", machine.sm_count}, {"cases", Json::array()}};
  for (const ListedCase& one : cases) {
    Json listed = case_to_json(one.tune_case);
    listed["candidates"] = Json::array();
    for (const Configuration& seed : one.seeds) {
      Json candidate = configuration_json(seed);
      candidate["model_us"] = std::round(model_us(one.tune_case, machine, seed.tile) * 1e3) / 1e3;
      listed["candidates"].push_back(candidate);
    }
    document["cases"].push_back(listed);
  }
  print_json(document);
}

std::vector<MeasuredEntry> table_entries(const RunReport& report) {
  std::vector<MeasuredEntry> entries;
  for (const CaseResult& r : report.results) {
    if (!r.choice.found) continue;
    MeasuredEntry entry;
    entry.tune_case = r.tune_case;
    entry.configuration = r.choice.best.configuration;
    entry.time_us = r.choice.best.us, entry.spread_us = r.choice.best.spread_us;
    entry.samples = r.choice.best.samples, entry.candidates = r.choice.candidates;
    entry.alternative_us = r.alternative_us, entry.alternative = r.alternative;
    entry.provenance = r.provenance;
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace gemvjit::tools
