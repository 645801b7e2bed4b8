#!/usr/bin/env bash
# Proves that each rule of isobit-lint bites: plants one violation at a time into a copy of the tree
# and demands a line of that rule; the copy without one must be clean.
# usage: lint_test.sh ISOBIT_LINT SOURCE_DIR
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: lint_test.sh ISOBIT_LINT SOURCE_DIR" >&2; exit 2; }
lint=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree"
tar -C "$2" --exclude=./.git --exclude='./build*' -cf - . | tar -C "$work/tree" -xf -
cd "$work/tree"
passed=0 failed=0

if ! "$lint" . >"$work/out"; then
  cat "$work/out" >&2
  echo "lint_test: the tree is not clean" >&2
  exit 1
fi

# bites RULE FILE COMMAND...: COMMAND changes FILE; lint must then name RULE for FILE.
bites() {
  local rule=$1 file=$2
  shift 2
  [ ! -f "$file" ] || cp "$file" "$work/saved"
  "$@"
  if "$lint" . >"$work/out"; then
    echo "FAILED: $rule: nothing found"; failed=$((failed + 1))
  elif ! grep -qE "^$file(:[0-9]+)?: $rule: " "$work/out"; then
    echo "FAILED: $rule: found only: $(head -n 3 "$work/out")"; failed=$((failed + 1))
  else
    passed=$((passed + 1))
  fi
  if [ -f "$work/saved" ]; then mv "$work/saved" "$file"; else rm -f "$file"; fi
}
append() { printf '%s\n' "$2" >>"$1"; }           # FILE TEXT
prepend() { printf '%s\n%s\n' "$2" "$(cat "$1")" >"$1"; }
repeat() { for _ in $(seq "$2"); do printf '%s\n' "$3"; done >>"$1"; }    # FILE COUNT LINE
body() { { printf 'void f(void)\n{\n'; repeat /dev/stdout "$2" '    ;'; printf '}\n'; } >>"$1"; }

bites size-file core/op.c repeat core/op.c 500 '/* */'
bites size-function core/op.c body core/op.c 80
bites size-line core/op.c append core/op.c "/* $(seq -s ' ' 60) */"
bites size-parameters core/op.c append core/op.c \
  $'void f(int a, int b, int c, int d, int e, int g, int h)\n{\n}'
bites size-nesting core/op.c append core/op.c $'void f(void)\n{\n    {{{{{}}}}}\n}'
bites edge core/op.c prepend core/op.c '#include "model/config.h"'
bites edge text/bpe.c prepend text/bpe.c '#include "ggml-style-ops/ops.h"'
bites edge model/build.c prepend model/build.c '#include "backends/cpu/cpu.h"'
bites edge convert/shard.c prepend convert/shard.c '#include "model/build.h"'
bites edge core/op.c prepend core/op.c '#include "nowhere.h"'
bites door core/op.c prepend core/op.c '#include <jansson.h>'
bites door model/build.c prepend model/build.c '#include <math.h>'
bites door model/build.c append model/build.c '#pragma omp parallel'
bites alloc model/build.c append model/build.c 'void *f(void) { return malloc(1); }'
bites print core/op.c append core/op.c 'void f(void) { puts(""); }'
bites exit core/op.c append core/op.c 'void f(void) { exit(1); }'
bites getenv model/build.c append model/build.c 'char *f(void) { return getenv("X"); }'
bites libm ggml-style-ops/rope.c append ggml-style-ops/rope.c 'float f(float x) { return expf(x); }'
bites chance model/build.c append model/build.c 'int f(void) { return rand(); }'
bites fma ggml-style-ops/rope.c append ggml-style-ops/rope.c \
  'float f(float x) { return fmaf(x, x, x); }'
bites atomic core/op.c append core/op.c 'static _Atomic float f;'
bites long core/op.c append core/op.c 'static long f;'
bites underscore core/op.h append core/op.h 'extern int iso__x;'
bites note core/op.c append core/op.c '/* TO''DO: later */'
bites path docs/guide.md append docs/guide.md '/ho''me/someone'
bites host docs/guide.md append docs/guide.md 'https://py''pi.org'
bites fast cmake/tables.cmake append cmake/tables.cmake 'add_compile_options(-ffast''-math)'
bites api core/op.h append core/op.h 'ISO_''API void f(void);'
bites api core/isobit.h append core/isobit.h $'\nISO_API void iso_f(void);'
bites header core/new.h append core/new.h '#define X'
bites row ggml-style-ops/ops.def append ggml-style-ops/ops.def \
  'OP(new_op, 1, 1, none, PURE) /* y   7 */'
bites row ggml-style-ops/new_op.c append ggml-style-ops/new_op.c ''
bites row backends/cpu/kernels.def append backends/cpu/kernels.def \
  'KERNEL(rope, new, portable, PLAIN, any, 1)'
bites row ggml-style-ops/fusions.def append ggml-style-ops/fusions.def \
  'FUSION(new_fusion, rope, quant_fp8)'
bites row ggml-style-ops/fusions.def append ggml-style-ops/fusions.def \
  'FUSION(q_rope, rope, not_an_op)'
bites row backends/cpu/fused.def append backends/cpu/fused.def 'FUSED(q_rope, rows, 1)'
bites row backends/cpu/fused_new.c append backends/cpu/fused_new.c ''
bites contract ggml-style-ops/rope.c sed -i 's/^ \* Ranges: /  Range: /' ggml-style-ops/rope.c
bites ops-md docs/ops.md append docs/ops.md 'x'
bites allow tests/lint/lint_allow.txt append tests/lint/lint_allow.txt 'fma core/op.c not needed'

# Flags of translation units.
unit='{"directory": "/", "command": "cc -std=c11 FLAGS -c f.c", "file": "f.c"}'
flags() {
  printf '[\n%s\n]\n' "${unit/FLAGS/$1}" >"$work/flags.json"
  "$lint" . --flags "$work/flags.json"
}
flags '-ffp-contract=off' >"$work/out" && passed=$((passed + 1)) ||
  { echo "FAILED: flags: $(cat "$work/out")"; failed=$((failed + 1)); }
for wrong in '-O2' "-ffp-contract=off -ffast""-math" "-ffp-contract=off -Of""ast"; do
  if flags "$wrong" >"$work/out"; then
    echo "FAILED: flags: $wrong is accepted"; failed=$((failed + 1))
  else
    passed=$((passed + 1))
  fi
done
echo "lint_test: $passed passed, $failed failed"
[ "$failed" = 0 ]
