// The manual page of the configuration files, gemvjit-config(5), made from the library's table of options.
#pragma once

#include <string>

namespace gemvjit::tools {

std::string config_man_page();

}  // namespace gemvjit::tools
