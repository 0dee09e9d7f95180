// A program with rights that its user has not: set-user-ID, set-group-ID or file capabilities (AT_SECURE,
// getauxval(3)). Its environment is its user's, and must not choose what is loaded, read or written with those rights.
// This library asks by secure_getenv(), which finds nothing there; NVRTC and libcurl read some variables by themselves.
#pragma once

#include <initializer_list>
#include <string>

namespace gemvjit {

// The first of the variables that is set, in such a program; "" if none is, and in any other program.
std::string set_in_secure_program(std::initializer_list<const char*> variables);

}  // namespace gemvjit
