#include "src/catalog/arch_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "src/catalog/arch.h"

namespace gemvjit {
namespace {

struct Generation {
  std::string_view name;
  std::vector<Arch> targets;
};

// Of several chips one name means all of them; Jetson and Thor modules have names of their own.
const std::vector<Generation>& generations() {
  static const std::vector<Generation> all = {
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

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
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

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

Status unknown(std::string_view text, const std::string& lower) {
  std::vector<std::string> names = {"native"};
  for (const Generation& generation : generations()) names.emplace_back(generation.name);
  std::string listed;
  for (const std::string& name : names) listed += ", " + name;
  for (const Arch& arch : tested_archs()) names.push_back(arch.text());
  // Nobody means anything by a text of megabytes, and the distance takes the product of the lengths.
  std::string nearest;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(std::string_view(lower).substr(0, 64), name);
    if (distance < least) least = distance, nearest = name;
  }
  return {StatusCode::invalid_argument,
          fmt::format("\"{}\" names no target; the nearest name is {}. Known are{}, and numbers such as sm_90a, 9.0a, "
                      "90a or compute_90a",
                      text.substr(0, 64), nearest, listed.substr(1))};
}

}  // namespace

Result<NamedTargets> parse_targets(std::string_view text) {
  const std::string lower = lower_case(text);
  if (lower == "native") return NamedTargets{};
  for (const Generation& generation : generations()) {
    if (generation.name == lower) return NamedTargets{generation.targets, ""};
  }
  const Arch arch = parse_number(lower);
  if (arch.sm == 0) return unknown(text, lower);
  NamedTargets named{{arch}, ""};
  const std::vector<Arch> first = possible_targets(arch.sm / 10, arch.sm % 10);
  if (arch.suffix == 0 && !first.empty() && first.front() != arch) {
    named.note = fmt::format("{} is the plain target; a device of {}.{} looks for {} first", arch.text(), arch.sm / 10,
                             arch.sm % 10, first.front().text());
  }
  return named;
}

}  // namespace gemvjit
