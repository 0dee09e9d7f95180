// "Did you mean": the known word that is nearest to a mistyped one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gemvjit {

// ASCII letters only.
std::string lower_case(std::string_view text);

// How many letters have to be put in, left out, replaced, or swapped with their neighbour to make one of the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

// "" if none is near: at most a third of the longer one's letters may differ, in any case one, whatever the case of
// letters. Of several that are as near the first.
std::string nearest_word(std::string_view mistyped, const std::vector<std::string>& words);

// " (did you mean WORD?)", or "".
std::string did_you_mean(std::string_view mistyped, const std::vector<std::string>& words);

}  // namespace gemvjit
