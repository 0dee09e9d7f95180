# Writes OUT with the commit of the sources in SOURCE_DIR ("" without git, "-changed" at its end if files differ from
# it); only if that is news, so that nothing is rebuilt for the same commit.
execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed)
  set(commit "")
else()
  execute_process(COMMAND git -C ${SOURCE_DIR} status --porcelain --untracked-files=no OUTPUT_VARIABLE changed
                  ERROR_QUIET)
  if(changed)
    string(APPEND commit "-changed")
  endif()
endif()
set(text "#pragma once\nnamespace gemvjit {\ninline constexpr const char* build_commit = \"${commit}\";\n}\n")
set(before "")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUT} "${text}")
endif()
