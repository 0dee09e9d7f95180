// Damage as disks, networks and interrupted copies do it: bit flips, truncations, splices of two files, noise.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace gemvjit::test {

using MutationBytes = std::vector<std::uint8_t>;

// A mutation of `whole`, which is not empty; `other` is another file of the same kind. May equal `whole` by chance.
inline MutationBytes mutate(const MutationBytes& whole, const MutationBytes& other, std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random()) % limit; };
  const auto at = [](std::size_t index) { return static_cast<std::ptrdiff_t>(index); };
  MutationBytes bytes = whole;
  switch (below(6)) {
    case 0: {  // one bit
      const std::size_t bit = below(8 * bytes.size());
      bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ (1u << (bit % 8)));
      break;
    }
    case 1:  // several bits
      for (std::size_t i = 2 + below(30); i > 0; --i) {
        const std::size_t bit = below(8 * bytes.size());
        bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ (1u << (bit % 8)));
      }
      break;
    case 2:
      bytes.resize(below(bytes.size()));
      break;   // cut off
    case 3: {  // the beginning of one, the end of the other
      const std::size_t cut = below(std::min(bytes.size(), other.size()));
      bytes.resize(cut);
      bytes.insert(bytes.end(), other.begin() + at(cut), other.end());
      break;
    }
    case 4: {  // a run of zeros, as a hole that was never written
      const std::size_t begin = below(bytes.size());
      const std::size_t end = begin + below(bytes.size() - begin) + 1;
      std::fill(bytes.begin() + at(begin), bytes.begin() + at(end), std::uint8_t{0});
      break;
    }
    default:  // bytes behind the end
      for (std::size_t i = 1 + below(100); i > 0; --i) bytes.push_back(static_cast<std::uint8_t>(random()));
      break;
  }
  return bytes;
}

}  // namespace gemvjit::test
