"""Runs the NumPy oracle on a checkpoint directory and dumps taps and logits.

usage: oracle.py --model DIR --prompt-ids FILE.json --out FILE.npz|FILE.json
                 [--greedy N] [--order contract|f64|f32|blocks] [--attention contract|online|plain]

FILE.json is a list of ids, or {"prompt": [ids], "decode": [ids]}; decode ids are fed one by one
after the prompt. --greedy N instead feeds the argmax of the last logits N times. Rows of every tap
are positions: the prompt's, then one per decode step. Names in the npz are L<layer>.<tap>, layer -1
for the model's end; ragged taps (topk) are stored padded with -1.
"""
import argparse
import json

import numpy as np

import checkpoint
import oracle_numpy
import orders


def read_ids(path):
    with open(path, encoding="utf-8") as f:
        doc = json.load(f)
    if isinstance(doc, list):
        return doc, []
    return doc["prompt"], doc.get("decode", [])


def run(ck, prompt, decode, order="contract", attention="contract", greedy=0):
    """Prefill at once, then single steps. Returns the model and the ids fed after the prompt."""
    model = oracle_numpy.Model(ck, order=order, attention=attention)
    logits = model.forward(prompt)
    fed = []
    for step in range(greedy or len(decode)):
        token = int(np.argmax(logits[-1])) if greedy else decode[step]
        fed.append(token)
        logits = model.forward([token])
    return model, fed


def dense(rows):
    """Stack rows; ragged integer lists are padded with -1."""
    if all(np.shape(r) == np.shape(rows[0]) for r in rows):
        return np.array(rows)
    out = np.full((len(rows), max(len(r) for r in rows)), -1, np.int32)
    for i, row in enumerate(rows):
        out[i, :len(row)] = row
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--prompt-ids", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--greedy", type=int, default=0)
    parser.add_argument("--order", choices=orders.NAMES, default="contract")
    parser.add_argument("--attention", choices=oracle_numpy.ATTENTION_FORMS, default="contract")
    a = parser.parse_args()
    prompt, decode = read_ids(a.prompt_ids)
    model, fed = run(checkpoint.Checkpoint(a.model), prompt, decode, a.order, a.attention, a.greedy)
    arrays = {"L%d.%s" % key: dense(rows) for key, rows in model.taps.store.items()}
    arrays["prompt"], arrays["decode"] = np.array(prompt), np.array(fed, dtype=np.int64)
    if a.out.endswith(".npz"):
        np.savez_compressed(a.out, **arrays)
    else:
        with open(a.out, "w", encoding="utf-8") as f:
            json.dump({k: v.tolist() for k, v in arrays.items()}, f)
    last = model.taps.get(-1, "logits")[-1]
    print("%d prompt ids, %d decode ids; last position: argmax %d, logit %.6g"
          % (len(prompt), len(fed), int(np.argmax(last)), float(last.max())))


if __name__ == "__main__":
    main()
