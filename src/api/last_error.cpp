#include "src/api/last_error.h"

namespace gemvjit::api {
namespace {

thread_local std::string long_message;
thread_local char short_message[short_error_size];
thread_local const char* current = "";

}  // namespace

void set_last_error(std::string message) {
  long_message = std::move(message);
  current = long_message.c_str();
}

char* begin_short_error() {
  current = short_message;
  return short_message;
}

const char* last_error() { return current; }

}  // namespace gemvjit::api
