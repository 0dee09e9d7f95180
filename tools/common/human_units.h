// Numbers for people: "12.3 KiB", "4.2 s", "3 days".
#pragma once

#include <cstdint>
#include <string>

namespace gemvjit::tools {

std::string human_bytes(std::uint64_t bytes);
std::string human_seconds(double seconds);    // a duration: "240 ms", "4.2 s", "3:05 min"
std::string human_age(std::int64_t seconds);  // "12 s", "5 min", "3 h", "8 days"; "0 s" for a time ahead of now

}  // namespace gemvjit::tools
