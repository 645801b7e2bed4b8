#!/usr/bin/env bash
# cli_test: what a user meets at the command line: output, errors, exit codes.
# usage: cli_test.sh ISOBIT JSON_CHECK; works in a new folder below the current directory.
set -uo pipefail
isobit=$1 json_check=$2
work=$(mktemp -d "${TMPDIR:-.}/cli-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
model=$work/model
passed=0 failed=0

ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAILED: $*"; }

# expect_error CODE TEXT -- COMMAND...: exit code, one line on stderr with TEXT, nothing on stdout
expect_error() {
  local code=$1 text=$2 got
  shift 3
  "$@" >"$work/out" 2>"$work/err" </dev/null
  got=$?
  if [ $got -ne "$code" ]; then bad "$* -> exit $got, expected $code: $(cat "$work/err")"
  elif [ "$(wc -l <"$work/err")" -ne 1 ]; then bad "$* -> $(wc -l <"$work/err") lines on stderr"
  elif ! grep -qF -- "$text" "$work/err"; then bad "$* -> $(cat "$work/err"), expected: $text"
  elif [ -s "$work/out" ]; then bad "$* -> output on stdout: $(head -c 80 "$work/out")"
  else ok; fi
}
expect() { if "${@:2}" >"$work/out" 2>"$work/err"; then ok; else bad "$1: $(cat "$work/err")"; fi; }
is_json() {
  if "$json_check" <"$work/out" 2>"$work/err"; then ok; else bad "$1: $(cat "$work/err")"; fi
}
# Tags opened and closed in order, no bare < or &: well-formed, as far as awk can tell.
is_xml() {
  if awk '
    { text = text $0 "\n" }
    END {
      if (text ~ /&([^algq]|a[^m]|l[^t]|g[^t]|q[^u])/ || text ~ /[\001-\010]/) exit 1
      while (match(text, /<[^<>]*>/)) {
        if (substr(text, 1, RSTART - 1) ~ /[<>]/) exit 1
        tag = substr(text, RSTART + 1, RLENGTH - 2)
        text = substr(text, RSTART + RLENGTH)
        name = tag; sub(/^\//, "", name); sub(/[ \/].*/, "", name)
        if (tag ~ /^\?/ || tag ~ /\/$/) continue
        if (tag !~ /^\//) { open[++depth] = name; continue }
        if (depth == 0 || open[depth--] != name) exit 1
      }
      exit !(depth == 0 && text !~ /[<>]/)
    }' "$2"; then ok; else bad "$1: not well-formed: $2"; fi
}
same() { if cmp -s "$2" "$3"; then ok; else bad "$1: $2 and $3 differ"; fi; }
has() { if grep -qF -- "$2" "$3"; then ok; else bad "$1: no \"$2\""; fi; }

# ---- help, version, unknown words ----
expect "--help" "$isobit" --help
has "--help" "run" "$work/out"
expect "--version" "$isobit" --version
has "--version" "isobit-numerics/1" "$work/out"
for command in run inspect verify tiny devices explain bench; do
  expect "$command --help" "$isobit" $command --help
  has "$command --help" "usage: isobit $command" "$work/out"
done
expect_error 2 'unknown command "fly"' -- "$isobit" fly
expect_error 2 'no model' -- "$isobit" run -p hello

expect "devices" "$isobit" devices
has "devices" "portable" "$work/out"
expect "devices --json" "$isobit" devices --json; is_json "devices --json"
expect_error 2 'unexpected argument' -- "$isobit" devices --fly

# ---- a model ----
expect "tiny" "$isobit" tiny --preset v41 --seed 1 "$model"
expect_error 2 "$model" -- "$isobit" tiny --preset v41 --seed 1 "$model"
expect_error 2 'nonesuch' -- "$isobit" tiny --preset nonesuch --seed 1 "$work/other"
expect "inspect" "$isobit" inspect "$model"
has "inspect" "bytes per token" "$work/out"
expect "inspect --json" "$isobit" inspect --json "$model"
has "inspect --json" '{' "$work/out"
is_json "inspect --json"
expect "verify" "$isobit" verify "$model"
expect "verify --json" "$isobit" verify --json "$model"; is_json "verify --json"
expect "explain --json" "$isobit" explain -m "$model" --json; is_json "explain --json"
expect "bench --json" "$isobit" bench --json --filter hc_ --runs 3 --seconds 0 --cycle-mb 1
is_json "bench --json"
bench=("$isobit" bench --json --filter wkv --runs 3 --seconds 0 --cycle-mb 1)
expect "bench --layout plain" "${bench[@]}" --layout plain
has "bench --layout plain" '"layout":"plain"' "$work/out"
expect "bench --layout rows32" "${bench[@]}" --layout rows32; is_json "bench --layout rows32"
if grep -qE '"layout":"rows32"|"not_measured"' "$work/out"; then ok; else bad "rows32 not taken"; fi
expect "bench table" "$isobit" bench table --filter attention --runs 3 --cycle-mb 1
has "bench table" "to reach" "$work/out"
expect "bench table --json" "$isobit" bench table --json --filter 'bf16 head' --runs 3 --cycle-mb 1
is_json "bench table --json"
table=("$isobit" bench table --filter 'whole layers' --runs 3 --cycle-mb 1)
expect "bench table, no model" "${table[@]}"
has "bench table, no model" "not measured: no --model DIR" "$work/out"
expect "bench table --model" "${table[@]}" --model "$model" --json; is_json "bench table --model"
has "bench table --model" '"name":"a token after 192"' "$work/out"
expect_error 2 'nowhere' -- "${table[@]}" --model "$work/nowhere"
expect_error 2 'unexpected argument "tables"' -- "$isobit" bench tables
bench=("$isobit" bench --json --filter rope --runs 3 --cycle-mb 1 --seconds 0)
expect "bench for plot" "${bench[@]}"; cp "$work/out" "$work/bench.json"
expect "bench plot" "$isobit" bench plot "$work/bench.json" "$work/a.svg"
expect "bench plot again" "$isobit" bench plot "$work/bench.json" "$work/b.svg"
same "the same picture" "$work/a.svg" "$work/b.svg"
has "bench plot" "rope 64 heads of 512, 3 rows" "$work/a.svg"
is_xml "bench plot" "$work/a.svg"
sed 's/rope 64/a<b>\&\\u0001c/' "$work/bench.json" >"$work/odd.json"
expect "bench plot, odd name" "$isobit" bench plot "$work/odd.json" "$work/b.svg"
has "bench plot, odd name" "a&lt;b&gt;&amp;?c" "$work/b.svg"; is_xml "odd name" "$work/b.svg"
expect_error 2 'plot takes two files' -- "$isobit" bench plot "$work/bench.json"
expect_error 2 'nowhere.json' -- "$isobit" bench plot "$work/nowhere.json" "$work/b.svg"
expect_error 2 'no-folder' -- "$isobit" bench plot "$work/bench.json" "$work/no-folder/b.svg"
echo '{"threads":2,"cases":[]}' >"$work/bad.json"
expect_error 2 'not a file of isobit bench' -- "$isobit" bench plot "$work/bad.json" "$work/b.svg"
sed 's/"bytes":[0-9]*/"bytes":0/' "$work/bench.json" >"$work/bad.json"
expect_error 2 '"bytes": a positive number' -- "$isobit" bench plot "$work/bad.json" "$work/b.svg"
sed 's/"cases":\[/"cases":[4,/' "$work/bench.json" >"$work/bad.json"
expect_error 2 '"case": a string' -- "$isobit" bench plot "$work/bad.json" "$work/b.svg"
head -c 300 "$work/bench.json" >"$work/bad.json"
expect_error 2 'bad.json: line 1' -- "$isobit" bench plot "$work/bad.json" "$work/b.svg"
expect_error 2 'expected auto, plain or rows32' -- "$isobit" bench --layout rows16
expect "explain" "$isobit" explain -m "$model" --tokens 4
has "explain" "layers.9.ffn.sum" "$work/out"

has "explain fusions" "layers.9.ffn.collapse  collapse_norm_quant  fused/cpu/rows" "$work/out"
has "explain parts" "    +  layers.9.ffn.norm  rms_norm" "$work/out"
fused_steps=$(sed -n 's/ steps of .*//p' "$work/out")
expect "explain --no-fuse" "$isobit" explain -m "$model" --tokens 4 --no-fuse
has "explain --no-fuse" " 0 of them fused" "$work/out"
if [ "$(sed -n 's/ steps of .*//p' "$work/out")" -gt $((fused_steps * 3 / 2)) ]; then ok
else bad "explain: $fused_steps steps fused, $(grep 'steps of' "$work/out") without"; fi

# ---- text in, text out ----
run=("$isobit" run -m "$model" --quiet)
expect "prompt" "${run[@]}" -p "hello world" -n 6; cp "$work/out" "$work/a"
expect "again" "${run[@]}" -p "hello world" -n 6; same "same text twice" "$work/out" "$work/a"
printf 'hello world' >"$work/prompt"
expect "file" "${run[@]}" --prompt-file "$work/prompt" -n 6
same "prompt file" "$work/out" "$work/a"
"${run[@]}" -n 6 <"$work/prompt" >"$work/out"; same "stdin" "$work/out" "$work/a"
expect "threads" "${run[@]}" -p "hello world" -n 6 --threads 1 --prefill-chunk 2 --poison
same "threads, chunks, poison" "$work/out" "$work/a"
expect "no fusions" "${run[@]}" -p "hello world" -n 6 --no-fuse
same "no fusions" "$work/out" "$work/a"
expect "references" "${run[@]}" -p "hello world" -n 6 --reference
same "references" "$work/out" "$work/a"
expect "portable" "${run[@]}" -p "hello world" -n 6 --cpu portable
same "portable" "$work/out" "$work/a"
for pages in --huge-pages --numa-interleave; do    # refused where the system has none
  if "${run[@]}" -p "hello world" -n 6 $pages >"$work/out" 2>"$work/err"; then
    same "pages $pages" "$work/out" "$work/a"
  else
    has "pages $pages" "pages: " "$work/err"
  fi
done
for layout in plain auto; do
  expect "layout $layout" "${run[@]}" -p "hello world" -n 6 --layout $layout
  same "layout $layout" "$work/out" "$work/a"
done
expect "bench table" "$isobit" bench table --filter attention --runs 3 --cycle-mb 1
has "bench table" "to reach" "$work/out"
expect "bench table --json" "$isobit" bench table --json --filter 'bf16 head' --runs 3 --cycle-mb 1
is_json "bench table --json"
table=("$isobit" bench table --filter 'whole layers' --runs 3 --cycle-mb 1)
expect "bench table, no model" "${table[@]}"
has "bench table, no model" "not measured: no --model DIR" "$work/out"
expect "bench table --model" "${table[@]}" --model "$model" --json; is_json "bench table --model"
has "bench table --model" '"name":"a token after 192"' "$work/out"
expect_error 2 'nowhere' -- "${table[@]}" --model "$work/nowhere"
expect_error 2 'unexpected argument "tables"' -- "$isobit" bench tables
bench=("$isobit" bench --json --filter rope --runs 3 --cycle-mb 1 --seconds 0)
expect "bench for plot" "${bench[@]}"; cp "$work/out" "$work/bench.json"
expect "bench plot" "$isobit" bench plot "$work/bench.json" "$work/a.svg"
expect "bench plot again" "$isobit" bench plot "$work/bench.json" "$work/b.svg"
same "the same picture" "$work/a.svg" "$work/b.svg"
has "bench plot" "rope 64 heads of 512, 3 rows" "$work/a.svg"
is_xml "bench plot" "$work/a.svg"
sed 's/rope 64/a<b>\&\\u0001c/' "$work/bench.json" >"$work/odd.json"
expect "bench plot, odd name" "$isobit" bench plot "$work/odd.json" "$work/b.svg"
has "bench plot, odd name" "a&lt;b&gt;&amp;?c" "$work/b.svg"; is_xml "odd name" "$work/b.svg"
expect_error 2 'plot takes two files' -- "$isobit" bench plot "$work/bench.json"
expect_error 2 'nowhere.json' -- "$isobit" bench plot "$work/nowhere.json" "$work/b.svg"
expect_error 2 'no-folder' -- "$isobit" bench plot "$work/bench.json" "$work/no-folder/b.svg"
echo '{"threads":2,"cases":[]}' >"$work/bad.json"
expect_error 2 'not a file of isobit bench' -- "$isobit" bench plot "$work/bad.json" "$work/b.svg"
sed 's/"bytes":[0-9]*/"bytes":0/' "$work/bench.json" >"$work/bad.json"
expect_error 2 '"bytes": a positive number' -- "$isobit" bench plot "$work/bad.json" "$work/b.svg"
sed 's/"cases":\[/"cases":[4,/' "$work/bench.json" >"$work/bad.json"
expect_error 2 '"case": a string' -- "$isobit" bench plot "$work/bad.json" "$work/b.svg"
head -c 300 "$work/bench.json" >"$work/bad.json"
expect_error 2 'bad.json: line 1' -- "$isobit" bench plot "$work/bad.json" "$work/b.svg"
expect_error 2 'expected auto, plain or rows32' -- "${run[@]}" -p hello --layout rows33
expect_error 2 'no kernel for packed weights' -- "${run[@]}" -p hello --layout rows32 --reference
expect "bench table" "$isobit" bench table --filter attention --runs 3 --cycle-mb 1
has "bench table" "to reach" "$work/out"
expect "bench table --json" "$isobit" bench table --json --filter 'bf16 head' --runs 3 --cycle-mb 1
is_json "bench table --json"
table=("$isobit" bench table --filter 'whole layers' --runs 3 --cycle-mb 1)
expect "bench table, no model" "${table[@]}"
has "bench table, no model" "not measured: no --model DIR" "$work/out"
expect "bench table --model" "${table[@]}" --model "$model" --json; is_json "bench table --model"
has "bench table --model" '"name":"a token after 192"' "$work/out"
expect_error 2 'nowhere' -- "${table[@]}" --model "$work/nowhere"
expect_error 2 'unexpected argument "tables"' -- "$isobit" bench tables
bench=("$isobit" bench --json --filter rope --runs 3 --cycle-mb 1 --seconds 0)
expect "bench for plot" "${bench[@]}"; cp "$work/out" "$work/bench.json"
expect "bench plot" "$isobit" bench plot "$work/bench.json" "$work/a.svg"
expect "bench plot again" "$isobit" bench plot "$work/bench.json" "$work/b.svg"
same "the same picture" "$work/a.svg" "$work/b.svg"
has "bench plot" "rope 64 heads of 512, 3 rows" "$work/a.svg"
is_xml "bench plot" "$work/a.svg"
sed 's/rope 64/a<b>\&\\u0001c/' "$work/bench.json" >"$work/odd.json"
expect "bench plot, odd name" "$isobit" bench plot "$work/odd.json" "$work/b.svg"
has "bench plot, odd name" "a&lt;b&gt;&amp;?c" "$work/b.svg"; is_xml "odd name" "$work/b.svg"
expect_error 2 'plot takes two files' -- "$isobit" bench plot "$work/bench.json"
expect_error 2 'nowhere.json' -- "$isobit" bench plot "$work/nowhere.json" "$work/b.svg"
expect_error 2 'no-folder' -- "$isobit" bench plot "$work/bench.json" "$work/no-folder/b.svg"
echo '{"threads":2,"cases":[]}' >"$work/bad.json"
expect_error 2 'not a file of isobit bench' -- "$isobit" bench plot "$work/bad.json" "$work/b.svg"
sed 's/"bytes":[0-9]*/"bytes":0/' "$work/bench.json" >"$work/bad.json"
expect_error 2 '"bytes": a positive number' -- "$isobit" bench plot "$work/bad.json" "$work/b.svg"
sed 's/"cases":\[/"cases":[4,/' "$work/bench.json" >"$work/bad.json"
expect_error 2 '"case": a string' -- "$isobit" bench plot "$work/bad.json" "$work/b.svg"
head -c 300 "$work/bench.json" >"$work/bad.json"
expect_error 2 'bad.json: line 1' -- "$isobit" bench plot "$work/bad.json" "$work/b.svg"
expect_error 2 'expected auto, plain or rows32' -- "$isobit" explain -m "$model" --layout rows33
for n in 1 2; do
  expect "logits" "${run[@]}" -p "hello" -n 5 --logits "$work/l$n" --temperature 0.8 --top-k 40 \
    --top-p 0.95 --min-p 0.01 --seed 5 --prefill-chunk $n
done
same "logits files" "$work/l1" "$work/l2"
if [ "$(wc -c <"$work/l1")" -gt 0 ]; then ok; else bad "logits file is empty"; fi
for n in 1 2; do expect "trace" "${run[@]}" -p "hello" -n 3 --trace "$work/t$n" --threads $n; done
same "trace files" "$work/t1" "$work/t2"
has "trace" "layers.3.attn.attend attend" "$work/t1"
expect "seed" "${run[@]}" -p "hello" -n 12 --temperature 1 --seed 1; cp "$work/out" "$work/a"
expect "seed" "${run[@]}" -p "hello" -n 12 --temperature 1 --seed 2
if cmp -s "$work/out" "$work/a"; then bad "two seeds give one text"; else ok; fi
expect "json" "${run[@]}" -p "hello" -n 4 --json
has "json" '"state_hash":"' "$work/out"
is_json "run --json"
expect "chat" "${run[@]}" --chat -p "hello" -n 4 --json
has "chat starts with bos" '"prompt_ids":[0,' "$work/out"
expect "thinking" "${run[@]}" --thinking --effort 20 --system "be brief" -p "hello" -n 4
"$isobit" run -m "$model" -p hello -n 3 >"$work/out" 2>"$work/err"
has "figures" "tok/s" "$work/err"

# ---- mistakes ----
expect_error 2 'the prompt is empty' -- "${run[@]}" -p ""
expect_error 2 'the prompt is empty' -- "${run[@]}"
expect_error 2 'No such file' -- "${run[@]}" --prompt-file "$work/none"
expect_error 2 'context' -- "${run[@]}" -p "hello world" -n 60 --ctx 32
expect_error 2 'limit is 4096' -- "${run[@]}" -p "hello" --ctx 5000
expect_error 2 'expected an integer from 1 to' -- "${run[@]}" -p hello -n 0
expect_error 2 'expected an integer from 1 to' -- "${run[@]}" -p hello -n 12x
expect_error 2 'expected a number' -- "${run[@]}" -p hello --temperature hot
expect_error 2 'top_p' -- "${run[@]}" -p hello --top-p 1.5
expect_error 2 'min_p' -- "${run[@]}" -p hello --min-p 1
expect_error 2 'give one of' -- "${run[@]}" -p hello --ids 1,2
expect_error 2 '--ids' -- "${run[@]}" --ids 1,,2
expect_error 2 'token id 999999' -- "${run[@]}" --ids 999999
expect_error 2 'this processor has' -- "${run[@]}" -p hello --cpu mmx
expect_error 2 'this build has cpu' -- "${run[@]}" -p hello --device warp:9
expect_error 2 'unrecognized option' -- "${run[@]}" --fly
expect_error 2 "$work/none" -- "$isobit" run -m "$work/none" -p hello
expect_error 2 'deepseek_image' -- "${run[@]}" --chat -p 'see <｜deepseek_image｜>'
cp -r "$model" "$work/broken"
shard=$(ls "$work/broken"/model-00002*.safetensors)
truncate -s -1 "$shard"
expect_error 2 "$(basename "$shard")" -- "$isobit" run -m "$work/broken" -p hello
expect_error 2 "$(basename "$shard")" -- "$isobit" verify "$work/broken"
rm "$shard"
expect_error 2 "$(basename "$shard")" -- "$isobit" run -m "$work/broken" -p hello
mkdir "$shard"
expect_error 2 "$(basename "$shard")" -- "$isobit" run -m "$work/broken" -p hello
rmdir "$shard"
cp "$model/config.json" "$shard"
expect_error 2 "$(basename "$shard")" -- "$isobit" run -m "$work/broken" -p hello
mv "$model/config.json" "$work/config.json"
expect_error 2 'no config.json' -- "$isobit" inspect "$model"
mv "$work/config.json" "$model/config.json"

# ---- Ctrl-C: clean end, what was made is printed ----
"${run[@]}" -p "hello world" -n 4000 --ignore-eos >"$work/out" 2>"$work/err" &
pid=$!
for _ in $(seq 200); do [ -s "$work/out" ] && break; sleep 0.1; done
kill -INT $pid
wait $pid
code=$?
if [ $code -eq 130 ] && [ -s "$work/out" ]; then ok; else bad "Ctrl-C: exit $code"; fi

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
