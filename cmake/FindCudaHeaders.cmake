# GEMVJIT_CUDA_HEADERS: folders that hold cuda.h and nvrtc.h. Only headers: nothing of CUDA is linked.
# Looks in GEMVJIT_CUDA_INCLUDE_DIR, CUDA_HOME, /usr/local/cuda*, and what tools/setup.sh fetched into the build folder.
file(GLOB toolkit_includes /usr/local/cuda/include /usr/local/cuda-*/include)
file(GLOB fetched_includes ${CMAKE_SOURCE_DIR}/build/deps/cuda/nvidia/*/include)
set(hints ${GEMVJIT_CUDA_INCLUDE_DIR} $ENV{CUDA_HOME}/include ${toolkit_includes} ${fetched_includes})
find_path(GEMVJIT_CUDA_H cuda.h HINTS ${hints} NO_CACHE)
find_path(GEMVJIT_NVRTC_H nvrtc.h HINTS ${hints} NO_CACHE)
if(NOT GEMVJIT_CUDA_H OR NOT GEMVJIT_NVRTC_H)
  message(FATAL_ERROR "cuda.h or nvrtc.h not found in: ${hints}. Run tools/setup.sh, or set GEMVJIT_CUDA_INCLUDE_DIR.")
endif()
set(GEMVJIT_CUDA_HEADERS ${GEMVJIT_CUDA_H} ${GEMVJIT_NVRTC_H})
list(REMOVE_DUPLICATES GEMVJIT_CUDA_HEADERS)
