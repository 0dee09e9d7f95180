#!/usr/bin/env bash
# Sets up, builds with warnings as errors, and runs every test through ctest. Arguments go to ctest:
#   tools/test.sh -R cache
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

trap 'echo "test: stopped: the step above failed" >&2' ERR
cd "$GEMVJIT_ROOT"
echo "test: building in build/ci"
setup_newer_nvrtc
setup_configure ci
cmake --build --preset ci
trap - ERR
exec ctest --test-dir build/ci --output-on-failure -j2 "$@"
