#include "src/catalog/kernel_flags.h"

namespace gemvjit {
namespace {

constexpr FlagField kFields[] = {
#define X(name, constant, shift, width, default_value, text) {#name, #constant, shift, width, default_value, text},
    GEMVJIT_KERNEL_FLAGS(X)
#undef X
};

// The fields must not overlap, and each default must fit its field.
constexpr bool fields_are_sound() {
  std::uint64_t used = 0;
  for (const FlagField& field : kFields) {
    const std::uint64_t mask = ((std::uint64_t{1} << field.width) - 1) << field.shift;
    if ((used & mask) != 0 || field.shift + field.width > 64 || field.default_value >> field.width != 0) return false;
    used |= mask;
  }
  return true;
}
static_assert(fields_are_sound());

}  // namespace

std::span<const FlagField> flag_fields() { return kFields; }

std::uint64_t named_flag_bits() {
  std::uint64_t used = 0;
  for (const FlagField& field : kFields) used |= ((std::uint64_t{1} << field.width) - 1) << field.shift;
  return used;
}

}  // namespace gemvjit
