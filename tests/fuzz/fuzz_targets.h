// The functions that libFuzzer feeds with bytes (entry_fuzz, bundle_fuzz) and that fuzz_test feeds with mutations of
// good files. They abort where a reader does what it must not, and return 0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gemvjit {

int fuzz_entry(const std::uint8_t* data, std::size_t size);
int fuzz_bundle(const std::uint8_t* data, std::size_t size);

}  // namespace gemvjit
