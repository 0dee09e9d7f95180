# Headers of libraries that most sources include, parsed once a target instead of once a file: 40 % of the time of a build
# without optimization. They hide a missing #include, so a build whose headers have to be complete does without:
#   GEMVJIT_PRECOMPILE empty   no target
#                      all     every target
# For clang: GCC 12 then warns of what it sees in the library's own headers.
set(GEMVJIT_PRECOMPILE "" CACHE STRING "Targets with precompiled headers: empty or all")

# gemvjit_precompile(<target> tests|product): of a target without C sources. JSON where the target links it.
function(gemvjit_precompile target kind)
  if(NOT GEMVJIT_PRECOMPILE STREQUAL all)
    return()
  endif()
  # The test programs take one and the same.
  if(kind STREQUAL tests AND TARGET base_test AND NOT target MATCHES "^(base_test|gemvjit_test_support)$")
    target_precompile_headers(${target} REUSE_FROM base_test)
    return()
  endif()
  set(headers <algorithm> <functional> <map> <memory> <mutex> <optional> <set> <string> <vector> <fmt/format.h>)
  if(kind STREQUAL tests)
    list(APPEND headers <chrono> <filesystem> <fstream> <thread> <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>)
  endif()
  get_target_property(libraries ${target} LINK_LIBRARIES)
  if(nlohmann_json::nlohmann_json IN_LIST libraries)
    list(APPEND headers <nlohmann/json.hpp>)
  endif()
  list(REMOVE_DUPLICATES headers)
  target_precompile_headers(${target} PRIVATE ${headers})
endfunction()
