#!/usr/bin/env bash
# Builds the engine with the address and undefined-behaviour sanitizers and lets it play recorded games and odd input.
#
#     tools/sanitize.sh [PYTHON]
#
# PYTHON (by default .venv/bin/python) has the development packages. The games are those of the engine's tests,
# recorded if need be.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath -s "${1:-.venv/bin/python}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

games=$(cd engine/tests && "$python" -m conformance.cached)

cmake -S engine -B "$folder/build" -G Ninja -DPython_EXECUTABLE="$python" -DCMAKE_BUILD_TYPE=None \
  -DCMAKE_CXX_FLAGS='-O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer' > /dev/null
cmake --build "$folder/build" > "$folder/build.log" || { cat "$folder/build.log"; exit 1; }
cp -r engine/python/craftax_native "$folder/craftax_native"
cp "$folder"/build/_core*.so "$folder/craftax_native/"

# Python itself is not instrumented: the sanitizer comes first, sees every allocation, and leaves the interpreter's
# own leaks alone. An installed copy of the package, editable or not, gives way to this one.
sanitized() {
  LD_PRELOAD="$(gcc -print-file-name=libasan.so):$(gcc -print-file-name=libubsan.so)" PYTHONMALLOC=malloc \
    ASAN_OPTIONS=detect_leaks=0:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1 \
    PYTHONPATH="$folder:engine/tests" "$python" -c "
import runpy, sys
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != 'ScikitBuildRedirectingFinder']
import craftax_native
assert craftax_native._core.__file__.startswith('$folder'), craftax_native._core.__file__
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)" "$@"
}

sanitized conformance.compare "$games" --steps 60 --threads 2
sanitized pytest -q -c /dev/null -p no:cacheprovider engine/tests/test_fuzz.py
echo 'The sanitizers found nothing.'
