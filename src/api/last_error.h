// The calling thread's last failure, in two forms: a string for messages of any length (compiler logs), and a fixed
// buffer for the launch path, which must not allocate because a serving loop may meet M_NOT_COVERED at every step.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>

namespace gemvjit::api {

inline constexpr std::size_t short_error_size = 768;  // longer messages are cut

void set_last_error(std::string message);
char* begin_short_error();  // the fixed buffer, from now on the last error
const char* last_error();   // "" before any failure

template <typename... Args>
void set_short_error(fmt::format_string<Args...> format, Args&&... args) {
  char* buffer = begin_short_error();
  *fmt::format_to_n(buffer, short_error_size - 1, format, std::forward<Args>(args)...).out = '\0';
}

}  // namespace gemvjit::api
