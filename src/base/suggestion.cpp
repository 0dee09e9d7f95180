#include "src/base/suggestion.h"

#include <fmt/format.h>

#include <algorithm>

namespace gemvjit {
namespace {

constexpr std::size_t longest = 64;  // what is longer is no typing error; also bounds the work

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return lower;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Rows of the usual table of distances between beginnings; a swap looks back two rows.
  std::vector<std::size_t> before, previous(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, previous[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = previous;
    previous = row;
  }
  return previous[b.size()];
}

std::string nearest_word(std::string_view mistyped, const std::vector<std::string>& words) {
  if (mistyped.empty() || mistyped.size() > longest) return "";
  const std::string typed = lower_case(mistyped);
  std::string nearest;
  std::size_t least = longest;
  for (const std::string& word : words) {
    const std::size_t distance = edit_distance(typed, lower_case(word));
    const std::size_t allowed = std::max<std::size_t>(1, std::max(typed.size(), word.size()) / 3);
    if (distance > allowed || distance >= least || distance >= word.size()) continue;
    least = distance;
    nearest = word;
  }
  return nearest;
}

std::string did_you_mean(std::string_view mistyped, const std::vector<std::string>& words) {
  const std::string word = nearest_word(mistyped, words);
  return word.empty() ? "" : fmt::format(" (did you mean {}?)", word);
}

}  // namespace gemvjit
