"""Measures what the order of the sums alone can do to every tap: the oracle is run with several
orders (orders.py) on one checkpoint and prompt, and each is compared with the float64 run.

usage: spread.py --model DIR [--prompt-ids FILE.json | --length N] [--forced] [--json OUT]

--forced gives every block of the compared run the float64 run's streams and mix, which isolates
one layer. Without it the whole model runs freely and differences accumulate.
Columns: share of rows with any difference, then over the differing rows the relative root mean
square difference (median, worst).
"""
import argparse
import json

import numpy as np

import checkpoint
import oracle_numpy

TAPS = ("attn", "moe", "stream")


class ForcedModel(oracle_numpy.Model):
    """Replaces each block's input by the reference run's (`reference` holds its taps)."""
    reference = None

    def block(self, layer, x, pre_in, positions):
        if layer > 0:
            # the reference stream is the state BEFORE this layer's Engram, which was already
            # applied to the running x: redo it on the reference stream
            x = np.array(self.reference.get(layer - 1, "stream"))[positions]
            pre_in = np.array(self.reference.get(layer - 1, "pre"))[positions]
            if layer in self.hashers:
                x = self.engram(layer, x, positions)
        return super().block(layer, x, pre_in, positions)


def row_differences(a, b):
    a, b = (np.asarray(v, np.float64).reshape(len(v), -1) for v in (a, b))
    return np.sqrt(((a - b) ** 2).mean(axis=1) / np.maximum((b ** 2).mean(axis=1), 1e-30))


def summary(rows):
    hit = rows[rows > 0]
    if not len(hit):
        return [0.0, 0.0, 0.0]
    return [len(hit) / len(rows), float(np.median(hit)), float(hit.max())]


def flipped(a, b):
    """Rows whose integer choice differs."""
    return [t for t in range(len(b)) if not np.array_equal(a[t], b[t])]


def compare(config, other, reference):
    out = []
    for layer in range(config.num_hidden_layers):
        entry = {"layer": layer}
        for name in TAPS:
            entry[name] = summary(row_differences(other.get(layer, name),
                                                  reference.get(layer, name)))
        rows = flipped(other.get(layer, "experts"), reference.get(layer, "experts"))
        margins = np.array(reference.get(layer, "expert_margin"))
        entry["expert_flips"] = [len(rows), float(max(margins[rows], default=0.0))]
        if layer in config.index_source_layer_ids:
            rows = flipped(other.get(layer, "topk"), reference.get(layer, "topk"))
            margins = np.array(reference.get(layer, "topk_margin"))
            entry["list_flips"] = [len(rows), float(max(margins[rows], default=0.0))]
        out.append(entry)
    entry = {"layer": -1, "logits": summary(row_differences(other.get(-1, "logits"),
                                                            reference.get(-1, "logits")))}
    a, b = np.array(other.get(-1, "logits")), np.array(reference.get(-1, "logits"))
    entry["argmax_changed"] = int(np.sum(a.argmax(1) != b.argmax(1)))
    entry["max_abs"] = float(np.abs(a - b).max())
    entry["spread_of_logits"] = float(b.std())
    out.append(entry)
    return out


def show(title, entries):
    print("== " + title)
    print("layer  " + "".join("%-28s" % n for n in TAPS) + "expert flips    list flips")
    for e in entries:
        if e["layer"] < 0:
            print("logits %4.0f%% %.1e %.1e  max abs %.3g (std %.3g), argmax changed in %d rows"
                  % (100 * e["logits"][0], *e["logits"][1:], e["max_abs"], e["spread_of_logits"],
                     e["argmax_changed"]))
            continue
        line = "%5d  " % e["layer"]
        line += "".join("%4.0f%% %.1e %.1e      " % (100 * e[n][0], *e[n][1:]) for n in TAPS)
        line += "%d (%.1e)   " % tuple(e["expert_flips"])
        if "list_flips" in e:
            line += "%d (%.1e)" % tuple(e["list_flips"])
        print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--prompt-ids")
    parser.add_argument("--length", type=int, default=300)
    parser.add_argument("--forced", action="store_true")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    ck = checkpoint.Checkpoint(arguments.model)
    if arguments.prompt_ids:
        with open(arguments.prompt_ids, encoding="utf-8") as f:
            ids = json.load(f)
        ids = ids["prompt"] if isinstance(ids, dict) else ids
    else:
        ids = np.random.default_rng(0).integers(3, ck.config.vocab_size, arguments.length).tolist()
    base = oracle_numpy.Model(ck)
    base.forward(ids)
    result = {}
    for order, attention in (("contract", "contract"), ("f32", "contract"),
                             ("blocks", "contract"), ("f64", "online")):
        model = (ForcedModel if arguments.forced else oracle_numpy.Model)(
            ck, order=order, attention=attention)
        model.reference = base.taps
        model.forward(ids)
        title = "order %s, attention %s, against f64 contract" % (order, attention)
        result[title] = compare(ck.config, model.taps, base.taps)
        show(title, result[title])
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)


if __name__ == "__main__":
    main()
