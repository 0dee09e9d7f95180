# Tests written in Python. The environment that tools/setup.sh makes is preferred, since it has numpy and matplotlib;
# without numpy the quantizer's test is skipped, without matplotlib that of the pictures, without gguf that of the small
# model's example, saying why.
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
gemvjit_script_test(example_smollm2 examples/smollm2_test.py)
gemvjit_script_test(scenarios docs/scenarios_test.py)
gemvjit_script_test(readme docs/readme_test.py ${CMAKE_C_COMPILER} $<TARGET_FILE:gemvjit>)
gemvjit_script_test(examples docs/examples_test.py ${CMAKE_C_COMPILER} $<TARGET_FILE:gemvjit>)
# gemvjit_script_cases(<prefix> <script> <class>...): each class of a script that runs the tools, as a test of its own
function(gemvjit_script_cases prefix script)
  foreach(case IN LISTS ARGN)
    string(TOLOWER ${prefix}_${case} name)
    gemvjit_script_test(${name} ${script} ${CMAKE_BINARY_DIR}/bin ${case})
    set_tests_properties(${name} PROPERTIES LABELS nvrtc)
  endforeach()
endfunction()
if(GEMVJIT_BUILD_TOOLS)
  gemvjit_script_cases(recipes recipes/recipes_test.py Image Systemd Kubernetes)
  # The remote cache, against servers, which mostly wait. Skipped where a server is missing.
  gemvjit_script_cases(remote remote/remote_servers_test.py Nginx S3 Hosts)
  gemvjit_script_cases(remote remote/remote_faults_test.py Faults Uploads Slow Secrets)
  gemvjit_script_cases(remote remote/remote_load_test.py Burst Dead Evicted)
  set_tests_properties(remote_burst remote_dead PROPERTIES RUN_SERIAL TRUE)  # 32 processes, and times are taken
endif()

# The Python binding.
set(python_tests ../bindings/python/tests)
gemvjit_script_test(python_abi ${python_tests}/abi_test.py ${CMAKE_C_COMPILER} $<TARGET_FILE:gemvjit>)
gemvjit_script_test(python_functions ${python_tests}/functions_test.py $<TARGET_FILE:gemvjit>)
gemvjit_script_test(python_torch_cpu ${python_tests}/torch_cpu_test.py $<TARGET_FILE:gemvjit>)
gemvjit_script_test(python_docs ${python_tests}/docs_test.py $<TARGET_FILE:gemvjit>)
if(GEMVJIT_BUILD_TOOLS)
  gemvjit_script_test(python_wheel ${python_tests}/wheel_test.py ${CMAKE_BINARY_DIR})
endif()
