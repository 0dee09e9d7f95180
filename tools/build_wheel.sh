#!/usr/bin/env bash
# Builds the Python wheel from a finished build folder: the package of bindings/python with libgemvjit.so, gemvjit-warmup
# and gemvjit-cache inside. Needs no network: the Python named by GEMVJIT_PYTHON (default: that of tools/setup.sh, else
# python3) must have pip and setuptools 70.1 or newer.
#   tools/build_wheel.sh BUILD_DIR OUTPUT_DIR
set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
fail() {
  printf 'build_wheel: error: %s\n' "$*" >&2
  exit 1
}
[ $# = 2 ] || fail "usage: tools/build_wheel.sh BUILD_DIR OUTPUT_DIR"
BUILD="$1" OUTPUT="$2"
PYTHON="${GEMVJIT_PYTHON:-$ROOT/build/deps/venv/bin/python}"
[ -x "$PYTHON" ] || PYTHON="$(command -v python3)" || fail "no python3 found"
"$PYTHON" -c 'import setuptools.command.bdist_wheel' 2>/dev/null || fail "$PYTHON has no setuptools 70.1 or newer"
for file in libgemvjit.so bin/gemvjit-warmup bin/gemvjit-cache; do
  [ -f "$BUILD/$file" ] || fail "$BUILD/$file is missing: build the targets gemvjit, gemvjit-warmup and gemvjit-cache"
done

STAGE="$(mktemp -d)"
trap 'rm -rf "$STAGE"' EXIT
cp "$ROOT"/bindings/python/{pyproject.toml,setup.py,README.md} "$ROOT/LICENSE" "$STAGE"
mkdir -p "$STAGE"/gemvjit/{lib,bin} "$OUTPUT"
cp "$ROOT"/bindings/python/gemvjit/*.py "$STAGE/gemvjit"
install -m 755 "$BUILD/libgemvjit.so" "$STAGE/gemvjit/lib/libgemvjit.so.0" # its SONAME
install -m 755 "$BUILD"/bin/gemvjit-{warmup,cache} "$STAGE/gemvjit/bin"
strip --strip-unneeded "$STAGE"/gemvjit/lib/* "$STAGE"/gemvjit/bin/*
GEMVJIT_WHEEL_PLATFORM="$("$PYTHON" -B "$ROOT/bindings/python/platform_tag.py" "$STAGE"/gemvjit/lib/* "$STAGE"/gemvjit/bin/*)"
export GEMVJIT_WHEEL_PLATFORM
LOG="$STAGE/pip.log"
"$PYTHON" -m pip --disable-pip-version-check --no-input wheel --no-index --no-deps --no-build-isolation \
  --wheel-dir "$OUTPUT" "$STAGE" >"$LOG" 2>&1 </dev/null || {
  cat "$LOG" >&2
  fail "pip wheel failed"
}
printf '%s\n' "$OUTPUT"/gemvjit-*-py3-none-"$GEMVJIT_WHEEL_PLATFORM".whl
