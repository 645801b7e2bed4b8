#!/usr/bin/env bash
# Installs a finished build into a temporary prefix and uses it from outside:
#   the external program by pkg-config (shared, static) and by find_package, and its output;
#   the shared library exports exactly the functions that isobit.h declares;
#   every global symbol of the static library begins with iso_.
# usage: install_test.sh BUILD_DIR SOURCE_DIR
set -euo pipefail

if [ $# -ne 2 ]; then
  echo "usage: install_test.sh BUILD_DIR SOURCE_DIR" >&2
  exit 2
fi
build=$(cd "$1" && pwd)
source=$(cd "$2" && pwd)
cc=${CC:-cc}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
prefix=$tmp/prefix

fail() { echo "install_test: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$prefix" >"$tmp/install.log" 2>&1 ||
  { cat "$tmp/install.log" >&2; fail "cmake --install failed"; }

# ---- what is installed ----
header=$prefix/include/isobit.h
[ -f "$header" ] || fail "no include/isobit.h"
[ "$(find "$prefix/include" -type f | wc -l)" = 1 ] || fail "more than one header is installed"
cmp -s "$header" "$source/core/isobit.h" || fail "the installed header differs from core/isobit.h"
[ -x "$prefix/bin/isobit" ] || fail "no bin/isobit"
shared=$(find "$prefix" -name 'libisobit.so' | head -n 1)
static=$(find "$prefix" -name 'libisobit.a' | head -n 1)
pc=$(find "$prefix" -name 'isobit.pc' | head -n 1)
[ -n "$shared" ] && [ -n "$static" ] && [ -n "$pc" ] || fail "a library or isobit.pc is missing"
libdir=$(dirname "$shared")
for text in LICENSE README.md; do
  [ -n "$(find "$prefix/share" -name "$text")" ] || fail "$text is not installed"
done

# ---- symbols ----
grep -oE '\biso_[a-z0-9_]+\(' "$header" | tr -d '(' | sort -u >"$tmp/named"
nm -D --defined-only "$shared" | awk '{ print $3 }' | sort -u >"$tmp/exported"
# A name of the header followed by '(' is a function, or a function type (iso_..._fn), which the
# library does not define.
grep -v '_fn$' "$tmp/named" >"$tmp/declared"
diff "$tmp/declared" "$tmp/exported" >"$tmp/diff" ||
  { cat "$tmp/diff" >&2; fail "'<': declared, not exported; '>': exported, not declared"; }
nm -g --defined-only "$static" 2>/dev/null | awk 'NF == 3 && $3 !~ /^iso_/ { print $3 }' \
  >"$tmp/foreign"
# Instrumentation adds symbols of its own.
grep -vE '^(__asan|__ubsan|__odr_asan|__sanitizer|DW\.ref)' "$tmp/foreign" >"$tmp/left" || true
[ ! -s "$tmp/left" ] || { cat "$tmp/left" >&2; fail "global symbols without the prefix iso_"; }

# ---- the external program, three ways ----
export PKG_CONFIG_PATH=$(dirname "$pc")${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
# A sanitized library needs the sanitizer's own runtime in the program.
sanitize=$(sed -n 's/^ISO_SANITIZE:[A-Z]*=//p' "$build/CMakeCache.txt")
flags=(-std=c11 -Wall -Wextra -Wpedantic -Werror ${sanitize:+-fsanitize=$sanitize})
pc_flags() { pkg-config --define-variable=prefix="$prefix" "$@" isobit; }

run() {
  local name=$1 line
  shift
  line=$("$@" "$tmp/model-$name") || fail "$name: the program failed"
  case $line in
    "isobit 0."*deepseek_v41*"next token "*) echo "$name: $line" ;;
    *) fail "$name: unexpected output: $line" ;;
  esac
}

# shellcheck disable=SC2046
"$cc" "${flags[@]}" $(pc_flags --cflags) "$source/tests/install/external.c" \
  $(pc_flags --libs) -o "$tmp/external-shared"
run shared env LD_LIBRARY_PATH="$libdir" "$tmp/external-shared"

# --static adds what the archive needs; of the two libraries only the archive is offered.
mkdir "$tmp/archive"
cp "$static" "$tmp/archive/"
# shellcheck disable=SC2046
"$cc" "${flags[@]}" $(pc_flags --cflags) "$source/tests/install/external.c" \
  "$tmp/archive/libisobit.a" \
  $(pc_flags --static --libs | sed 's/ *-lisobit\>//') -o "$tmp/external-static"
run static "$tmp/external-static"
if ldd "$tmp/external-static" | grep -q libisobit; then
  fail "the static program needs libisobit.so"
fi

cmake -G Ninja -S "$source/tests/install" -B "$tmp/project" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="${flags[*]}" >"$tmp/cmake.log" 2>&1 &&
  cmake --build "$tmp/project" >>"$tmp/cmake.log" 2>&1 ||
  { cat "$tmp/cmake.log" >&2; fail "find_package(isobit) failed"; }
run package "$tmp/project/external"
# ---- the header in C++ ----
cxx=${CXX:-c++}
if command -v "$cxx" >/dev/null; then
  "$cxx" -std=c++11 -Wall -Wextra -Wpedantic -Werror -I"$source" "$source/tests/header_test.cc" \
    -o "$tmp/header" && "$tmp/header" || fail "the header does not work in C++"
else
  echo "install_test: no C++ compiler, skipped header_test.cc"
fi
echo "install_test: ok, $(wc -l <"$tmp/exported") exported functions"
