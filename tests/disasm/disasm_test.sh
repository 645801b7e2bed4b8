#!/usr/bin/env bash
# disasm_test.sh BUILD SOURCE [PREFIX] [self]: what the compiler made of the library, by objdump.
#   1. Fused multiply-adds are in objects of tests/disasm/fma.txt only, and in each of those that
#      this build has (a name that no longer needs to be there is a failure).
#   2. No object calls a function of libm: numbers do not depend on the system's library.
# PREFIX: of the binutils, such as aarch64-linux-gnu-. self: planted objects must be caught.
set -euo pipefail

build=$1
source=$2
prefix=${3:-}
objects=$build/CMakeFiles/isobit_objects.dir
allowed=$source/tests/disasm/fma.txt
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failures=0

fail() {
  echo "FAIL $*"
  failures=$((failures + 1))
}

# x86: vfmadd132ps, vfnmsub231sd ...; aarch64: fmla, fmls, fmadd, fnmsub ..., fcmla.
fused='[[:space:]]v?fn?m(add|sub|addsub|subadd)[0-9]*[sp]?[sdh]?[[:space:]]'
fused+='|[[:space:]]fc?ml[as]l?2?[[:space:]]'

has_fused() { "${prefix}objdump" -d --no-show-raw-insn "$1" | grep -E "$fused" >/dev/null; }

# Names that the C library's libm offers, and the two that compilers make themselves.
libm_names() {
  local library
  library=$("${CC:-cc}" -print-file-name=libm.so.6)
  [ -e "$library" ] || { echo "disasm_test: no libm.so.6" >&2; exit 1; }
  nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/@.*//' | grep -E '^[a-z]' | sort -u
}

# check_object OBJECT NAME
check_object() {
  local calls
  if has_fused "$1"; then
    grep -q -x -F "$2" "$tmp/allowed" || fail "$2: a fused multiply-add"
  elif grep -q -x -F "$2" "$tmp/allowed"; then
    fail "$2: no fused multiply-add, yet listed in tests/disasm/fma.txt"
  fi
  calls=$("${prefix}nm" -u "$1" | awk '{ print $NF }' | sed 's/@.*//' | sort -u |
    comm -12 - "$tmp/libm" | tr '\n' ' ')
  [ -z "$calls" ] || fail "$2: calls of libm: $calls"
}

grep -v '^#' "$allowed" | sort >"$tmp/allowed"
libm_names >"$tmp/libm"
[ "$(wc -l <"$tmp/libm")" -gt 100 ] || { echo "disasm_test: libm has too few names" >&2; exit 1; }

if [ "${4:-}" = self ]; then
  printf 'float f(float a, float b, float c) { return __builtin_fmaf(a, b, c); }\n' >"$tmp/a.c"
  printf 'float expf(float); float f(float a) { return expf(a) * 2; }\n' >"$tmp/b.c"
  printf 'float f(float a, float b, float c) { return a * b + c; }\n' >"$tmp/c.c"
  flags=(-O2 -ffp-contract=off -fno-math-errno)
  [ "$(uname -m)" = x86_64 ] && flags+=(-mfma)
  for name in a b c; do "${CC:-cc}" "${flags[@]}" -c "$tmp/$name.c" -o "$tmp/$name.o"; done
  fail() { failures=$((failures + 1)); }
  check_object "$tmp/a.o" planted/fma.c
  check_object "$tmp/b.o" planted/expf.c
  [ "$failures" = 2 ] ||
    { echo "disasm_test: $failures of 2 planted objects were caught" >&2; exit 1; }
  check_object "$tmp/c.o" planted/plain.c
  check_object "$tmp/c.o" "$(head -n 1 "$tmp/allowed")"
  [ "$failures" = 3 ] || { echo "disasm_test: the list is not checked" >&2; exit 1; }
  echo "disasm_test: planted objects are caught"
  exit 0
fi

count=0
while IFS= read -r object; do
  name=${object#"$objects"/}
  check_object "$object" "${name%.o}"
  count=$((count + 1))
done < <(find "$objects" -name '*.c.o' | sort)
[ "$count" -gt 100 ] || fail "$objects: $count objects"
echo "disasm_test: $count objects, $(wc -l <"$tmp/libm") names of libm, $failures failures"
[ "$failures" = 0 ]
