#!/usr/bin/env bash
# trace_test.sh ISOBIT WAY...: one tiny model run by several programs and instruction sets; the hash
# of every node of every step, and the logits, must be the same bytes.
#   WAY: NAME:PROGRAM:OPTIONS, such as "avx2:build/isobit:--cpu avx2". The first is what the others
#   are compared with. ISOBIT writes the model.
set -euo pipefail

isobit=$1
shift
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failures=0
compared=0

# run_way PRESET SEED NAME PROGRAM OPTIONS
run_way() {
  local program options
  read -r -a program <<<"$4"
  read -r -a options <<<"$5"
  "${program[@]}" run -m "$tmp/$1.$2" -p "In the beginning, the little fox said: who goes there?" \
    -n 4 --temperature 0 --threads 2 "${options[@]}" --trace "$tmp/$3.trace" \
    --logits "$tmp/$3.logits" >"$tmp/$3.out" 2>"$tmp/$3.err" ||
    { cat "$tmp/$3.err"; echo "FAIL $1: $3 does not run"; exit 1; }
}

same() { cmp -s "$1.trace" "$2.trace" && cmp -s "$1.logits" "$2.logits"; }

for preset in v41 v41-wide; do
  "$isobit" tiny --preset "$preset" --seed 1 "$tmp/$preset.1" >/dev/null
  first=
  for way in "$@"; do
    IFS=: read -r name program options <<<"$way"
    run_way "$preset" 1 "$name" "$program" "$options"
    if [ -z "$first" ]; then
      first=$name
      nodes=$(wc -l <"$tmp/$first.trace")
      echo "$preset: $nodes hashes, trace $(sha256sum "$tmp/$first.trace" | cut -c1-32)"
      [ "$nodes" -gt 500 ] || { echo "FAIL $preset: a trace of $nodes lines"; exit 1; }
      continue
    fi
    compared=$((compared + 1))
    if same "$tmp/$first" "$tmp/$name"; then
      echo "same  $preset: $first, $name"
    else
      diff "$tmp/$first.trace" "$tmp/$name.trace" | head -n 4 || true
      echo "FAIL $preset: $first and $name differ"
      failures=$((failures + 1))
    fi
  done
done

# The comparison sees a difference: another seed's model.
IFS=: read -r name program options <<<"$1"
"$isobit" tiny --preset v41 --seed 2 "$tmp/v41.2" >/dev/null
run_way v41 1 one "$program" "$options"
run_way v41 2 two "$program" "$options"
same "$tmp/one" "$tmp/two" && { echo "FAIL two models, one trace"; failures=$((failures + 1)); }

[ "$compared" -gt 0 ] || { echo "FAIL nothing to compare"; failures=1; }
[ "$failures" = 0 ]
