# Tests written in Python. The environment that tools/setup.sh makes is preferred, since it has numpy and matplotlib;
# without numpy the quantizer's test is skipped, without matplotlib that of the pictures, saying why.
find_program(GEMVJIT_PYTHON NAMES python3 PATHS ${CMAKE_SOURCE_DIR}/build/deps/venv/bin NO_DEFAULT_PATH NO_CACHE)
if(NOT GEMVJIT_PYTHON)
  find_program(GEMVJIT_PYTHON NAMES python3 REQUIRED NO_CACHE)
endif()

# gemvjit_script_test(<name> <file> [arguments...])
function(gemvjit_script_test name file)
  add_test(NAME ${name} COMMAND ${GEMVJIT_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${ARGN})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)
endfunction()

gemvjit_script_test(layers layers/layers_test.py)
gemvjit_script_test(quantize quantize/quantize_test.py)
gemvjit_script_test(plot_bench_table plot/plot_bench_test.py Table)
gemvjit_script_test(plot_bench_pictures plot/plot_bench_test.py Pictures)
gemvjit_script_test(scenarios docs/scenarios_test.py)
gemvjit_script_test(readme docs/readme_test.py ${CMAKE_C_COMPILER} $<TARGET_FILE:gemvjit>)
