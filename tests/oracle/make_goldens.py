"""Writes golden files for the C tests: goldens/<config>_<prompt>.json.

usage: make_goldens.py --out DIR NAME=CHECKPOINT_DIR [NAME=CHECKPOINT_DIR ...]

`value` fields come from the contract's order (orders.py), read from the paper: a correct runtime
has exactly these floats. `order_rel` of an entry is the relative rms distance of the WHOLE row to
a free float64 run: where it is 0, the values do not depend on the order of any sum. `hash` covers
all rows of a tap (numerics.md appendix A: FNV-1a 64 over the f32 words, little-endian, rows and
columns in order).
"""
import argparse
import json
import os
import platform
import sys

import ml_dtypes
import numpy as np
import tokenizers

import checkpoint
import oracle
import spread

PROMPT_LENGTHS = (1, 2, 7, 129, 300)
DECODE_STEPS = 8
COLUMNS = 8                 # sampled values a row
LOGIT_COLUMNS = 16
PROMPT_SEED = 20260


def fnv1a(array):
    """numerics.md appendix A."""
    h = 0xcbf29ce484222325
    for byte in np.ascontiguousarray(array, dtype="<f4").tobytes():
        h = ((h ^ byte) * 0x100000001b3) & 0xffffffffffffffff
    return "%016x" % h


def number(x):
    """Shortest decimal that reads back as the same binary32."""
    return float(np.format_float_positional(np.float32(x), unique=True)) \
        if np.isfinite(x) else None


def prompt_ids(vocab, length):
    """Fixed per length and vocabulary; special ids at the front of the vocabulary are avoided."""
    rng = np.random.default_rng([PROMPT_SEED, length])
    return (rng.integers(3, vocab, length).tolist(), rng.integers(3, vocab, DECODE_STEPS).tolist())


def sampled_rows(length):
    """First rows, the rows around the window's and the pools' first edges, the end, all decode."""
    rows = {0, 1, 2, length // 2, length - 2, length - 1, length, length + 1,
            length + DECODE_STEPS - 1}
    return sorted(r for r in rows if 0 <= r < length + DECODE_STEPS)


def tap_entries(model, other, layer, name, rows, rng):
    a, b = np.array(model.taps.get(layer, name)), np.array(other.taps.get(layer, name))
    distance = spread.row_differences(b, a)
    flat = a.reshape(len(a), -1)
    out = []
    for row in rows:
        index = np.sort(rng.choice(flat.shape[1], min(COLUMNS, flat.shape[1]), replace=False))
        out.append({"layer": layer, "name": name, "row": row, "order_rel": number(distance[row]),
                    "index": index.tolist(), "value": [number(v) for v in flat[row, index]]})
    return out


def choice_entries(model, other, config, rows):
    """Discrete choices with the score gap at the cut: a flip is excusable only at a tiny gap."""
    topk, experts, engram = [], [], []
    get = model.taps.get
    for layer in range(config.num_hidden_layers):
        for row in rows:
            ids = get(layer, "experts")[row]
            experts.append({"layer": layer, "row": row, "ids": ids.tolist(),
                            "weight": [number(w) for w in get(layer, "routing")[row]],
                            "margin": number(get(layer, "expert_margin")[row]),
                            "order_same": bool(np.array_equal(
                                ids, other.taps.get(layer, "experts")[row]))})
            if layer in config.index_source_layer_ids:
                ids = get(layer, "topk")[row]
                entry = {"layer": layer, "row": row, "ids": ids.tolist(),
                         "margin": number(get(layer, "topk_margin")[row]),
                         "cut": number(get(layer, "topk_cut")[row]),
                         "order_same": bool(np.array_equal(
                             ids, other.taps.get(layer, "topk")[row]))}
                if layer == config.candidate_source_layer_id:
                    entry["candidates"] = get(layer, "candidate_count")[row]
                    entry["candidate_margin"] = number(get(layer, "candidate_margin")[row])
                topk.append(entry)
            if layer in config.engram_layer_ids:
                engram.append({"layer": layer, "row": row,
                               "ids": get(layer, "engram_rows")[row].tolist(),
                               "gate": [number(g) for g in get(layer, "engram_gate")[row]]})
    return {"topk": topk, "experts": experts, "engram": engram}


def logit_entries(model, other, length, rng):
    """Last prompt row and every decode row; the very last row in full."""
    a, b = np.array(model.taps.get(-1, "logits")), np.array(other.taps.get(-1, "logits"))
    distance = spread.row_differences(b, a)
    out = []
    for row in range(length - 1, len(a)):
        count = a.shape[1] if row == len(a) - 1 else LOGIT_COLUMNS
        index = np.sort(rng.choice(a.shape[1], count, replace=False))
        two = np.sort(a[row])[-2:]
        out.append({"position": row, "argmax": int(np.argmax(a[row])),
                    "margin": number(two[1] - two[0]), "order_rel": number(distance[row]),
                    "hash": fnv1a(a[row]), "index": index.tolist(),
                    "value": [number(v) for v in a[row, index]]})
    return out


def golden(name, ck, hashes, length):
    config = ck.config
    prompt, decode = prompt_ids(config.vocab_size, length)
    model, _ = oracle.run(ck, prompt, decode, "contract")
    other, _ = oracle.run(ck, prompt, decode, "f64")
    rows = sampled_rows(length)
    rng = np.random.default_rng([PROMPT_SEED, length, 1])
    taps, all_rows = [], []
    places = [(layer, n) for layer in range(config.num_hidden_layers)
              for n in ("attn", "moe", "stream")] + [(-1, "final_norm")]
    for layer, tap in places:
        taps += tap_entries(model, other, layer, tap, rows, rng)
        a, b = np.array(model.taps.get(layer, tap)), np.array(other.taps.get(layer, tap))
        share, median, worst = spread.summary(spread.row_differences(b, a))
        all_rows.append({"layer": layer, "name": tap, "hash": fnv1a(a), "rows": len(a),
                         "order_share": share, "order_rel_max": worst})
    out = {"about": "isobit oracle golden; fields: tests/oracle/README.md", "config": name,
           "contract": "isobit-numerics/1", "made_with": versions(),
           "command": "make_goldens.py " + name, "prompt_seed": [PROMPT_SEED, length],
           "checkpoint_sha256": hashes, "prompt": prompt, "decode": decode,
           "taps": taps, "hashes": all_rows, "logits": logit_entries(model, other, length, rng)}
    out.update(choice_entries(model, other, config, rows))
    return out


def versions():
    return {"python": platform.python_version(), "numpy": np.__version__,
            "ml_dtypes": ml_dtypes.__version__, "tokenizers": tokenizers.__version__}


def write(path, doc):
    """One entry a line: readable diffs, small files."""
    parts = []
    for key, value in doc.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines = ",\n".join(" " + json.dumps(v, separators=(",", ":")) for v in value)
            parts.append("%s:[\n%s]" % (json.dumps(key), lines))
        else:
            parts.append("%s:%s" % (json.dumps(key), json.dumps(value, separators=(",", ":"))))
    with open(path, "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(parts) + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--lengths", default=",".join(map(str, PROMPT_LENGTHS)))
    parser.add_argument("configs", nargs="+", metavar="NAME=DIR")
    a = parser.parse_args()
    os.makedirs(a.out, exist_ok=True)
    total = 0
    for spec in a.configs:
        name, directory = spec.split("=", 1)
        ck = checkpoint.Checkpoint(directory)
        hashes = ck.sha256()
        for length in map(int, a.lengths.split(",")):
            path = os.path.join(a.out, "%s_%d.json" % (name, length))
            write(path, golden(name, ck, hashes, length))
            total += os.path.getsize(path)
            print("%s %d bytes" % (os.path.basename(path), os.path.getsize(path)), flush=True)
    print("total %d bytes" % total)


if __name__ == "__main__":
    sys.exit(main())
