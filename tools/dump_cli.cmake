# One manual page or completion: cmake -DTOOL=program -DFORMAT=man -DOUT=file -P dump_cli.cmake
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${TOOL} --dump-cli ${FORMAT} OUTPUT_FILE ${OUT} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  file(REMOVE ${OUT})
  message(FATAL_ERROR "${TOOL} --dump-cli ${FORMAT} ended with ${result}")
endif()
