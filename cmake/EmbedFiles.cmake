# gemvjit_embed(<target> NAMESPACE_NAME <name> ROOT <dir> FILES <relative paths>...)
#
# Generates <name>.h/.cpp with the files' contents as string_views:
#   namespace gemvjit { struct EmbeddedFile { std::string_view name, text, sha256; };
#                       std::span<const EmbeddedFile> <name>(); }
# and adds them to the target. Files are read at build time and regenerated when they change.
function(gemvjit_embed target)
  cmake_parse_arguments(ARG "" "NAME;ROOT" "FILES" ${ARGN})
  set(out_dir ${CMAKE_BINARY_DIR}/generated/embedded)
  set(out_cpp ${out_dir}/${ARG_NAME}.cpp)
  set(inputs "")
  foreach(file IN LISTS ARG_FILES)
    list(APPEND inputs ${ARG_ROOT}/${file})
  endforeach()
  string(REPLACE ";" "," files_argument "${ARG_FILES}")
  add_custom_command(
    OUTPUT ${out_cpp} ${out_dir}/${ARG_NAME}.h
    COMMAND ${CMAKE_COMMAND} -DNAME=${ARG_NAME} -DROOT=${ARG_ROOT} -DFILES=${files_argument} -DOUT_DIR=${out_dir}
            -P ${CMAKE_SOURCE_DIR}/cmake/embed_files_script.cmake
    DEPENDS ${inputs} ${CMAKE_SOURCE_DIR}/cmake/embed_files_script.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${out_cpp} ${out_dir}/${ARG_NAME}.h)
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated)
endfunction()
