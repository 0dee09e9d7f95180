# One target per room: gemvjit_<name>, a static library of all .cpp files in its folder (none below it).
#   gemvjit_room(<name> <folder> [DEPENDS <rooms>...])
# Rooms include each other from the repository root ("src/base/status.h"), so that a line shows its arrow.
function(gemvjit_compile_options target)
  target_compile_options(
    ${target} PRIVATE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wconversion -Wno-sign-conversion
                      # GCC 12 sees an overlap in `"text" + std::string` that is not there.
                      $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
                      $<$<BOOL:${GEMVJIT_WERROR}>:-Werror>)
  if(GEMVJIT_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${GEMVJIT_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${GEMVJIT_SANITIZE})
  endif()
endfunction()

function(gemvjit_room name folder)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
  add_library(gemvjit_${name} STATIC ${sources})
  target_include_directories(gemvjit_${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
  gemvjit_compile_options(gemvjit_${name})
  # Tests with sanitizers make hundreds of contexts: hashing sources and reading tables is most of their time.
  if(GEMVJIT_SANITIZE AND name MATCHES "^(base|compile|tuning)$")
    target_compile_options(gemvjit_${name} PRIVATE -O1)
  endif()
  gemvjit_precompile(gemvjit_${name} product)
  foreach(room IN LISTS ARG_DEPENDS)
    target_link_libraries(gemvjit_${name} PUBLIC gemvjit_${room})
  endforeach()
endfunction()

# A library that engines link: the objects of all rooms, only gemvjit_* visible.
function(gemvjit_library target type)
  set(objects "")
  foreach(room IN LISTS ARGN)
    list(APPEND objects $<TARGET_OBJECTS:gemvjit_${room}>)
  endforeach()
  add_library(${target} ${type} ${objects})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME gemvjit LINKER_LANGUAGE CXX)
  if(type STREQUAL "SHARED")
    set(script ${CMAKE_SOURCE_DIR}/cmake/gemvjit.version)
    target_link_options(${target} PRIVATE -Wl,--version-script=${script})
    if(NOT GEMVJIT_SANITIZE)  # the sanitizers' symbols are the program's
      target_link_options(${target} PRIVATE -Wl,--no-undefined)
    endif()
    set_target_properties(${target} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                                               LINK_DEPENDS ${script})
  endif()
  if(GEMVJIT_SANITIZE)
    target_link_options(${target} PUBLIC -fsanitize=${GEMVJIT_SANITIZE})
  endif()
endfunction()
