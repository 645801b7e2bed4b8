#!/usr/bin/env bash
# Plants the faults of mutants.txt one at a time into a copy of the tree and demands that the named
# test fails for each. A fault whose text is not found exactly once, that does not compile, or that
# nothing catches is a failure of this script. Faults in AVX-512 kernels run by SIMDe where the
# processor lacks the set, and are skipped where SIMDe is not there either.
# usage: mutate.sh BUILD_DIR SOURCE_DIR [--only NAME_OR_NUMBER] [--keep DIR]
#   BUILD_DIR  a configured build: its compiler is used
#   --only     one mutant (its name, or its place in the list, from 1)
#   --keep     works in DIR and leaves it there, so that a second run is quicker
set -euo pipefail

usage() {
  echo "usage: mutate.sh BUILD_DIR SOURCE_DIR [--only NAME_OR_NUMBER] [--keep DIR]" >&2
  exit 2
}

[ $# -ge 2 ] || usage
build=$(cd "$1" && pwd)
source=$(cd "$2" && pwd)
shift 2
only= keep=
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage
  case $1 in
    --only) only=$2 ;;
    --keep) keep=$2 ;;
    *) usage ;;
  esac
  shift 2
done
list=$source/tests/mutation/mutants.txt
jobs=$(nproc 2>/dev/null || echo 2)

if [ -n "$keep" ]; then
  mkdir -p "$keep"
  work=$(cd "$keep" && pwd)
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
tree=$work/tree
out=$work/build

die() { echo "mutate: $*" >&2; exit 1; }

# ---- the list ----

names=() files=() tests=() needs=() changes=()       # changes: old US new RS old US new RS ...
us=$'\x1f' rs=$'\x1e'

read_list() {
  local line number=0 name= file= test= need= change= old= new= state=
  flush_pair() {
    [ -z "$state" ] || change+=${old%$'\n'}$us${new%$'\n'}$rs
    old= new= state=
  }
  flush() {
    [ -n "$name" ] || return 0
    flush_pair
    [ -n "$file" ] && [ -n "$test" ] && [ -n "$change" ] ||
      die "$list:$number: $name lacks file, old, new or test"
    names+=("$name") files+=("$file") tests+=("$test") needs+=("$need") changes+=("$change")
    name= file= test= need= change=
  }
  while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    case $line in
      '#'*) ;;
      '') flush ;;
      'name '*) name=${line#name } ;;
      'file '*) file=${line#file } ;;
      'test '*) test=${line#test } ;;
      'needs avx512') need=avx512 ;;
      'old' | 'old '*)
        [ "$state" != new ] || flush_pair
        state=old
        line=${line#old}
        old+=${line# }$'\n'
        ;;
      'new' | 'new '*)
        state=new
        line=${line#new}
        new+=${line# }$'\n'
        ;;
      *) die "$list:$number: unknown line: $line" ;;
    esac
  done <"$list"
  flush
}

# ---- the copy ----

# Files that did not change keep their time, so that a second run with --keep compiles little.
copy_tree() {
  local path
  mkdir -p "$work/new" "$tree"
  tar -C "$source" --exclude=./.git --exclude='./build*' -cf - . | tar -C "$work/new" -xf -
  (cd "$tree" && find . -type f) | while IFS= read -r path; do
    [ -e "$work/new/$path" ] || rm -f "${tree:?}/$path"
  done
  (cd "$work/new" && find . -type f) | while IFS= read -r path; do
    cmp -s "$work/new/$path" "$tree/$path" && continue
    mkdir -p "$(dirname "$tree/$path")"
    cp "$work/new/$path" "$tree/$path"
  done
  rm -rf "$work/new"
}

compiler= simde=OFF has_avx512=yes
configure() {
  compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
  if ! grep -q -w avx512_vnni /proc/cpuinfo; then
    echo '#include <simde/x86/avx512.h>' | "$compiler" -E - >/dev/null 2>&1 && simde=ON ||
      has_avx512=
  fi
  cmake -S "$tree" -B "$out" -G Ninja -DISO_TESTS=ON -DISO_SIMDE=$simde \
    -DCMAKE_C_COMPILER="$compiler" >"$work/configure.log" 2>&1 ||
    { cat "$work/configure.log" >&2; die "cmake failed"; }
}

compile() {  # TARGET...
  cmake --build "$out" --parallel "$jobs" --target "$@" >"$work/compile.log" 2>&1
}

# ---- tests ----

golden=
target_of() {  # TEST
  case $1 in
    golden\ * | suite\ *) echo isobit-test ;;
    unit\ *) echo "${1#unit }_test" ;;
    model_golden_test) echo golden_test ;;
    quick) echo isobit_static ;;
    *) die "unknown test: $1" ;;
  esac
}

run_quick() {
  # shellcheck disable=SC2046
  "$compiler" -std=c11 -O1 -I"$tree" "$tree/tests/mutation/quick.c" "$out/libisobit.a" \
    $(pkg-config --libs jansson libxxhash libpcre2-8 libutf8proc) -fopenmp -o "$work/quick" &&
    rm -rf "$work/quick-model" && timeout 60 "$work/quick" "$work/quick-model"
}

run_test() {  # TEST; the log is $work/test.log
  local program=$out/tests/isobit-test
  [ -x "$program" ] || program=$(find "$out" -name isobit-test -type f | head -n 1)
  case $1 in
    golden\ *) timeout 120 "$program" --golden "$golden" --op "${1#golden }" ;;
    suite\ *) timeout 120 "$program" --op "${1#suite }" ;;
    unit\ *) timeout 120 ctest --test-dir "$out" --no-tests=error --output-on-failure \
      -R "^unit\.${1#unit }\$" ;;
    # Two prompts of one checkpoint: all of them together are the business of ctest.
    model_golden_test) (cd "$work" && timeout 120 "$out/tests/golden_test" \
      "$tree"/tests/oracle/goldens/v41-1_{7,129}.json) ;;
    quick) run_quick ;;
  esac >"$work/test.log" 2>&1
}

# The committed golden table, or one of the unmutated tree where there is none yet.
find_golden() {
  golden=$tree/tests/golden/ops.golden
  [ ! -f "$golden" ] || return 0
  golden=$work/ops.golden
  "$(find "$out" -name isobit-test -type f | head -n 1)" --golden-write "$golden" >/dev/null
  echo "mutate: no tests/golden/ops.golden: hashes of the unmutated tree are used"
}

# ---- one mutant ----

plant() {  # INDEX; prints why not
  local index=$1 file=$tree/${files[$1]} text rest pair old new pairs
  [ -f "$file" ] || { echo "no such file: ${files[$index]}"; return 1; }
  cp "$file" "$work/healthy"
  text=$(cat "$file"; printf x)
  text=${text%x}
  pairs=${changes[$index]}
  while [ -n "$pairs" ]; do
    pair=${pairs%%"$rs"*}
    pairs=${pairs#*"$rs"}
    old=${pair%%"$us"*}
    new=${pair#*"$us"}
    rest=${text#*"$old"}
    [ "$rest" != "$text" ] || { echo "text not found: ${old%%$'\n'*}"; return 1; }
    [ "${rest#*"$old"}" = "$rest" ] || { echo "text found twice: ${old%%$'\n'*}"; return 1; }
    text=${text%%"$old"*}$new$rest
  done
  printf '%s' "$text" >"$file"
}

heal() { [ ! -f "$work/healthy" ] || cp "$work/healthy" "$tree/${files[$1]}"; }

judge() {  # INDEX; prints the verdict, fails when the mutant is not caught
  local index=$1 why target
  why=$(plant "$index") || { echo "FAILED: $why"; return 1; }
  target=$(target_of "${tests[$index]}")
  if ! compile "$target"; then
    grep -m 1 -E 'error|FAILED' "$work/compile.log" >"$work/line" || true
    echo "FAILED: does not compile: $(head -c 160 "$work/line")"
    return 1
  fi
  if run_test "${tests[$index]}"; then
    echo "FAILED: not caught by ${tests[$index]}"
    return 1
  fi
  echo "caught by ${tests[$index]}"
}

wanted() {  # INDEX
  [ -z "$only" ] || [ "$only" = "${names[$1]}" ] || [ "$only" = "$(($1 + 1))" ]
}

main() {
  local i bad=0 count=0 verdict seen=' ' start=$SECONDS targets=()
  read_list
  copy_tree
  configure
  for i in "${!names[@]}"; do
    wanted "$i" && targets+=("$(target_of "${tests[$i]}")")
  done
  [ ${#targets[@]} -gt 0 ] || die "no mutant is called $only"
  mapfile -t targets < <(printf '%s\n' "${targets[@]}" | sort -u)
  compile "${targets[@]}" || { tail -n 20 "$work/compile.log" >&2; die "the tree does not build"; }
  [[ " ${targets[*]} " != *" isobit-test "* ]] || find_golden
  for i in "${!names[@]}"; do            # what is to fail must pass first
    wanted "$i" || continue
    [[ $seen != *" ${tests[$i]}; "* ]] || continue
    seen+="${tests[$i]}; "
    run_test "${tests[$i]}" ||
      { tail -n 5 "$work/test.log" >&2; die "${tests[$i]} fails without a fault"; }
  done
  echo "mutate: ready after $((SECONDS - start)) s"
  for i in "${!names[@]}"; do
    wanted "$i" || continue
    if [ -n "${needs[$i]}" ] && [ -z "$has_avx512" ]; then
      printf '%3d  %-36s skipped: neither AVX-512 nor SIMDe\n' "$((i + 1))" "${names[$i]}"
      continue
    fi
    count=$((count + 1))
    rm -f "$work/healthy"
    verdict=$(judge "$i") || bad=$((bad + 1))
    heal "$i"
    printf '%3d  %-36s %s\n' "$((i + 1))" "${names[$i]}" "$verdict"
  done
  echo "mutate: $count mutants, $bad not caught, $((SECONDS - start)) s"
  [ "$bad" = 0 ]
}

main
