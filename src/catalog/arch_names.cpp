#include "src/catalog/arch_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/suggestion.h"
#include "src/catalog/arch.h"

namespace gemvjit {
namespace {

struct Generation {
  std::string_view name;
  std::vector<Arch> targets;
};

// Of several chips one name means all of them; Jetson and Thor modules have names of their own.
const std::vector<Generation>& generations() {
  static const auto& all = *new std::vector<Generation>{  // threads may ask while the process ends
      {"ampere", {{80, 0}, {86, 0}}},
      {"orin", {{87, 0}}},
      {"ada", {{89, 0}}},
      {"hopper", {{90, 'a'}}},
      {"blackwell", {{100, 'a'}, {103, 'a'}, {120, 'a'}, {121, 'a'}}},
      {"blackwell-datacenter", {{100, 'a'}, {103, 'a'}}},
      {"blackwell-consumer", {{120, 'a'}, {121, 'a'}}},
      {"thor", {{110, 'a'}}},
  };
  return all;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "90a", "9.0a", "sm_90a", ...; sm 0 if it is none of these.
Arch parse_number(std::string_view text) {
  for (const std::string_view prefix : {"sm_", "compute_", "sm"}) {
    if (!text.starts_with(prefix)) continue;
    text.remove_prefix(prefix.size());
    break;
  }
  Arch arch;
  if (!text.empty() && (text.back() == 'a' || text.back() == 'f')) {
    arch.suffix = text.back();
    text.remove_suffix(1);
  }
  // The last digit is the minor number, with or without a point before it.
  const std::size_t point = text.find('.');
  std::string digits(text);
  if (point != std::string_view::npos) {
    if (point + 2 != text.size()) return {};
    digits.erase(point, 1);
  }
  const bool is_number = digits.size() >= 2 && digits.size() <= 4 && std::ranges::all_of(digits, is_digit);
  if (!is_number || digits[0] == '0') return {};
  for (const char digit : digits) arch.sm = 10 * arch.sm + (digit - '0');
  return arch;
}

Status unknown(std::string_view text) {
  std::vector<std::string> names = {"native"};
  for (const Generation& generation : generations()) names.emplace_back(generation.name);
  const std::string listed = fmt::format("{}", fmt::join(names, ", "));
  for (const Arch& arch : tested_archs()) names.push_back(arch.text());
  return {StatusCode::invalid_argument,
          fmt::format("\"{}\" names no target{}; known are {}, and numbers such as sm_90a, 9.0a, 90a or compute_90a",
                      text.substr(0, 64), did_you_mean(text, names), listed)};
}

}  // namespace

Result<NamedTargets> parse_targets(std::string_view text) {
  const std::string lower = lower_case(text);
  if (lower == "native") return NamedTargets{};
  for (const Generation& generation : generations()) {
    if (generation.name == lower) return NamedTargets{generation.targets, ""};
  }
  const Arch arch = parse_number(lower);
  if (arch.sm == 0) return unknown(text);
  NamedTargets named{{arch}, doubt_of(arch)};
  if (!named.note.empty()) return named;
  const std::vector<Arch> first = possible_targets(arch.sm / 10, arch.sm % 10);
  if (arch.suffix == 0 && !first.empty() && first.front() != arch) {
    named.note = fmt::format("{} is the plain target; a device of {}.{} looks for {} first", arch.text(), arch.sm / 10,
                             arch.sm % 10, first.front().text());
  }
  return named;
}

}  // namespace gemvjit
