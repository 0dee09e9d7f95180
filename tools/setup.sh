#!/usr/bin/env bash
# Prepares a machine to build gemvjit: compiler and libraries from apt; the CUDA headers and NVRTC from PyPI where no
# CUDA toolkit is found; a Python environment for the scripts. But for apt's packages all of it lies in build/deps.
#
# Run it, or source it (as quickstart.sh and test.sh do). When sourced it sets
#   GEMVJIT_ROOT        the checkout
#   GEMVJIT_PYTHON      a Python that has numpy, and matplotlib where that could be installed
#   GEMVJIT_CMAKE_ARGS  array of further arguments for cmake's configure step
# A second run finds everything in place and needs no network.

set -euo pipefail

GEMVJIT_ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
GEMVJIT_PYTHON="$GEMVJIT_ROOT/build/deps/venv/bin/python"
GEMVJIT_CMAKE_ARGS=()

# Versions that were tested together. nvidia-cuda-runtime is the wheel that holds cuda.h.
CUDA_WHEELS=(nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-runtime==13.0.96)
NVDISASM_WHEEL=nvidia-cuda-nvdisasm==13.2.78 # the oldest on PyPI; reads cubins of 13.0
NEWER_NVRTC_WHEEL=nvidia-cuda-nvrtc==13.5.37 # the newest 13.x, beside the one that is used: for tests only
CUDA_OLDEST=12090 # as CUDA_VERSION in cuda.h
NUMPY_WHEEL='numpy>=1.24,<3'
MATPLOTLIB_WHEEL='matplotlib>=3.6,<4' # for tools/plot_bench.py only
GGUF_WHEEL='gguf>=0.17,<1'            # for examples/decode/smollm2.py only
SETUPTOOLS_WHEEL='setuptools>=70.1,<81' # for tools/build_wheel.sh only
KUBERNETES_WHEELS=('pyyaml>=6,<7' 'kubernetes-validate>=1.30') # for the test of examples/kubernetes only
MOTO_WHEELS=('moto[s3]>=5,<6' flask flask-cors) # for tests/remote only; moto[server] has the same and 180 MB more
APT_PACKAGES=(ca-certificates cmake g++ libcli11-dev libfmt-dev libgmock-dev libgtest-dev libspdlog-dev
  ninja-build nlohmann-json3-dev python3 python3-venv)

setup_say() { printf 'setup: %s\n' "$*" >&2; }
setup_fail() {
  printf 'setup: error: %s\n' "$*" >&2
  exit 1
}

# setup_quietly LOG WHAT COMMAND...: runs it, showing its output only when it fails.
setup_quietly() {
  local log="$1" what="$2"
  shift 2
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    setup_fail "$what failed; the whole output is in $log"
  fi
}

setup_apt() {
  command -v dpkg-query >/dev/null || {
    setup_say "no dpkg here: taking for granted what Debian calls ${APT_PACKAGES[*]}"
    return 0
  }
  local installed missing=() package
  installed=" $(dpkg-query -W -f '${db:Status-Status}:${Package} ' "${APT_PACKAGES[@]}" 2>/dev/null || true) "
  for package in "${APT_PACKAGES[@]}"; do
    [[ "$installed" == *" installed:$package "* ]] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ]; then
    setup_fail "packages are missing and this is not root. Run: apt-get install --no-install-recommends ${missing[*]}"
  fi
  setup_say "installing from apt: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # An update that fails for one source may still have brought what is needed: the install decides.
  apt-get update >"$DEPS/apt-update.log" 2>&1 </dev/null ||
    setup_say "apt-get update reported errors ($DEPS/apt-update.log)"
  setup_quietly "$DEPS/apt-install.log" "apt-get install ${missing[*]}" \
    apt-get install -y --no-install-recommends "${missing[@]}"
}

# setup_optional COMMAND PACKAGE...: tries to install the packages if there is no such command, and says nothing if that
# fails: for checks that are left out where their tool cannot be had.
setup_optional() {
  local wanted="$1" log="$GEMVJIT_ROOT/build/deps/apt-$1.log"
  shift
  command -v "$wanted" >/dev/null && return 0
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
  setup_say "installing from apt: $*"
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >"$log" 2>&1 </dev/null || true
}

# Sets CLANG to a clang++, installed from apt if need be and possible, and CLANG_CMAKE_ARGS to what makes cmake take it;
# "" and nothing if there is none.
setup_clang() {
  setup_optional clang++-14 clang-14 libclang-rt-14-dev
  CLANG=$(command -v clang++-14 || command -v clang++ || true)
  CLANG_CMAKE_ARGS=()
  [ -z "$CLANG" ] || CLANG_CMAKE_ARGS=("-DCMAKE_CXX_COMPILER=$CLANG" "-DCMAKE_C_COMPILER=${CLANG/++/}")
}

# How programs with sanitizers behave: a leak or a finding fails them.
setup_sanitizer_options() {
  # The libraries that tests preload come before the sanitizer's own in some programs.
  export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1:verify_asan_link_order=0}
  export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
  # exit() joins no thread of the library's: one may be within a request (src/base/process_end.h).
  export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:report_thread_leaks=0}
}

# setup_configure PRESET ARGUMENTS...: cmake's configure step, whose output is shown only when it fails.
setup_configure() {
  local preset="$1"
  shift
  setup_quietly "$GEMVJIT_ROOT/build/deps/configure-$preset.log" "cmake --preset $preset" \
    cmake --preset "$preset" "${GEMVJIT_CMAKE_ARGS[@]}" "$@"
}

# Debian's own Python is not for pip, so the wheels go into an environment of ours. /usr/bin/python3 first: another
# python3 in PATH may be a shim whose target changes.
setup_python() {
  if ! "$GEMVJIT_PYTHON" -c 'import numpy' 2>/dev/null; then
    local python=/usr/bin/python3
    [ -x "$python" ] || python="$(command -v python3)" || setup_fail "no python3 found"
    setup_say "making a Python environment with numpy in build/deps/venv"
    rm -rf "$DEPS/venv"
    setup_quietly "$DEPS/venv.log" "$python -m venv" "$python" -m venv "$DEPS/venv"
    setup_pip numpy install "$NUMPY_WHEEL"
  fi
  # No reason to stop a build where these cannot be had.
  setup_optional_wheels matplotlib matplotlib "$MATPLOTLIB_WHEEL"
  setup_optional_wheels gguf gguf "$GGUF_WHEEL"
  setup_optional_wheels setuptools setuptools.command.bdist_wheel "$SETUPTOOLS_WHEEL"
  setup_optional_wheels kubernetes-validate kubernetes_validate "${KUBERNETES_WHEELS[@]}"
}

# setup_optional_wheels NAME MODULE WHEEL...: into the environment, if that can be done.
setup_optional_wheels() {
  local name="$1" module="$2"
  shift 2
  "$GEMVJIT_PYTHON" -c "import $module" 2>/dev/null && return 0
  setup_say "adding $name to it"
  (setup_pip "$name" install "$@") || setup_say "going on without $name: the tests that need it are skipped"
}

# setup_pip NAME ARGUMENTS...: pip, with the log kept as pip-NAME.log.
setup_pip() {
  local name="$1"
  shift
  setup_quietly "$DEPS/pip-$name.log" "pip $*" \
    "$GEMVJIT_PYTHON" -m pip --disable-pip-version-check --no-input "$@"
}

# Whether folder $1 is the root of a CUDA toolkit that is new enough: cuda.h, nvrtc.h and libnvrtc.
setup_is_toolkit() {
  local version libraries
  [ -n "$1" ] && [ -f "$1/include/cuda.h" ] && [ -f "$1/include/nvrtc.h" ] || return 1
  version="$(sed -n 's/^#define CUDA_VERSION \([0-9]*\).*/\1/p' "$1/include/cuda.h")"
  [ "${version:-0}" -ge "$CUDA_OLDEST" ] || return 1
  libraries=("$1"/lib64/libnvrtc.so* "$1"/lib/libnvrtc.so* "$1"/targets/*/lib/libnvrtc.so*)
  local library
  for library in "${libraries[@]}"; do
    [ -e "$library" ] && return 0
  done
  return 1
}

# What the wheels bring: NVRTC and headers where there is no toolkit, and nvdisasm for the tests that read machine code.
setup_cuda() {
  local root toolkit='' wanted=() wheel
  for root in "${CUDA_HOME:-}" /usr/local/cuda /usr/local/cuda-*; do
    if setup_is_toolkit "$root"; then
      toolkit="$root"
      break
    fi
  done
  [ -n "$toolkit" ] || wanted+=("${CUDA_WHEELS[@]}")
  [ -x "$toolkit/bin/nvdisasm" ] || command -v nvdisasm >/dev/null || wanted+=("$NVDISASM_WHEEL")

  # wheels.txt says what is there; it may be more than what is wanted now.
  local stamp="$DEPS/cuda/wheels.txt"
  for wheel in "${wanted[@]}"; do
    grep -qxF "$wheel" "$stamp" 2>/dev/null && continue
    setup_say "fetching from PyPI into build/deps/cuda: ${wanted[*]}"
    rm -rf "$DEPS/cuda" "$DEPS/cuda.new"
    setup_pip cuda install --no-deps --target "$DEPS/cuda.new" "${wanted[@]}"
    rm -f "$DEPS"/cuda.new/nvidia/*/lib/*.alt.so.* # a second build of the compiler, not used
    printf '%s\n' "${wanted[@]}" >"$DEPS/cuda.new/wheels.txt"
    mv "$DEPS/cuda.new" "$DEPS/cuda"
    break
  done

  # Named, since an older toolkit may stand beside it.
  local headers=("$DEPS"/cuda/nvidia/*/include/cuda.h)
  [ -z "$toolkit" ] || headers=("$toolkit/include/cuda.h")
  [ -f "${headers[0]}" ] || setup_fail "the wheels hold no cuda.h; remove $DEPS/cuda and try again"
  GEMVJIT_CMAKE_ARGS+=("-DGEMVJIT_CUDA_INCLUDE_DIR=$(dirname "${headers[0]}")")
}

# A second, newer NVRTC for the tests of what only it can do; test.sh asks for it. Without it they are skipped, with the
# reason. 58 MB.
setup_newer_nvrtc() {
  local DEPS="$GEMVJIT_ROOT/build/deps"
  local folder="$DEPS/newer_nvrtc"
  grep -qxF "$NEWER_NVRTC_WHEEL" "$folder/wheel.txt" 2>/dev/null && return 0
  setup_say "fetching $NEWER_NVRTC_WHEEL from PyPI into build/deps/newer_nvrtc, for tests"
  rm -rf "$folder" "$folder.new"
  (setup_pip newer_nvrtc install --no-deps --target "$folder.new" "$NEWER_NVRTC_WHEEL") || {
    setup_say "going on without it: tests of a second NVRTC are skipped"
    return 0
  }
  rm -f "$folder.new"/nvidia/*/lib/*.alt.so*
  printf '%s\n' "$NEWER_NVRTC_WHEEL" >"$folder.new/wheel.txt"
  mv "$folder.new" "$folder"
}

# The servers that the remote cache is tested against: nginx from apt, moto (S3) into the Python environment, 107 MB.
# test.sh asks for them; where one cannot be had, its tests are skipped, with the reason.
setup_remote_servers() {
  local DEPS="$GEMVJIT_ROOT/build/deps"
  PATH="$PATH:/usr/sbin" setup_optional nginx nginx
  setup_optional_wheels moto moto.server "${MOTO_WHEELS[@]}"
}

setup_all() {
  local DEPS="$GEMVJIT_ROOT/build/deps"
  mkdir -p "$DEPS" || setup_fail "cannot write $DEPS"
  # Two commands may start at once; the second waits and then finds everything done.
  local lock
  exec {lock}>"$DEPS/.lock"
  flock "$lock"
  setup_apt
  setup_python
  setup_cuda
  exec {lock}>&-
}

setup_all
