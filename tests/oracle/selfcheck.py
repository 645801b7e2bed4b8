"""Checks the oracle's building blocks against the project's vectors and its own invariants.

usage: selfcheck.py [--vectors DIR] [--slow]
DIR holds quantizers.json, rope.json, hc.json, ...; --slow adds the hashes of whole rotary tables.
Prints one line per group and exits 1 if a comparison failed.
"""
import argparse
import json
import os
import sys
import tempfile
import unicodedata
from types import SimpleNamespace

import numpy as np

import checkpoint
import dev_ckpt
import engram_hash
import formats
import make_goldens
import oracle_numpy
import spread
from formats import F32
from orders import make_order

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = []


def report(name, good, total, note=""):
    RESULTS.append(good == total)
    print("%-34s %6d / %-6d %s %s" % (name, good, total, "ok" if good == total else "FAIL", note))


def f32_bits(words):
    return np.array([int(w, 16) for w in words], dtype=np.uint32).view(F32)


def bf16_bits(words):
    return (np.array([int(w, 16) for w in words], dtype=np.uint32) << 16).view(F32)


def same(a, b):
    """Equality of values; +0 and -0 count as equal (numerics.md 2.5, L4)."""
    return np.array_equal(np.asarray(a, F32), np.asarray(b, F32))


def check_quantizers(v):
    """Rows outside the contract's domain (Q8 `large`, Q4i `small`) are run on the raw formulas."""
    good = 0
    for case in v["q8"]:
        y, scale = formats.q8(bf16_bits(case["input_bf16"]), with_scale=True)
        good += (same(y, bf16_bits(case["output_bf16"]))
                 and scale[0] == 2.0 ** case["scale_exponent"])
    report("quantizers q8", good, len(v["q8"]))
    good = 0
    for case in v["q4i"]:
        y, scale = formats.q4i(bf16_bits(case["input_bf16"]), floor_exponent=-126, with_scale=True)
        good += (same(y, bf16_bits(case["output_bf16"]))
                 and scale[0] == 2.0 ** case["scale_exponent"])
    report("quantizers q4i (vendor floor)", good, len(v["q4i"]))
    good = 0
    for case in v["q4kv"]:
        y, scale = formats.q4kv(bf16_bits(case["input_bf16"]), with_scale=True)
        good += (same(y, bf16_bits(case["output_bf16"]))
                 and scale[0] == f32_bits([case["scale_f32"]])[0])
    report("quantizers q4kv", good, len(v["q4kv"]))
    good = sum(same(formats.e4m3(f32_bits([c["f32"]])), f32_bits([c["value"]]))
               for c in v["e4m3_encode"])
    report("quantizers e4m3 encode", good, len(v["e4m3_encode"]))
    good = sum(same(formats.e2m1(np.clip(f32_bits([c["f32"]]), -6, 6)), f32_bits([c["value"]]))
               for c in v["e2m1_encode"])
    report("quantizers e2m1 encode", good, len(v["e2m1_encode"]))
    inside = [c for c in v["bf16_round"] if 2.0 ** -50 <= abs(f32_bits([c["f32"]])[0]) < 2.0 ** 50]
    good = sum(same(formats.bf16(f32_bits([c["f32"]])), bf16_bits([c["bf16"]])) for c in inside)
    report("quantizers bf16 (in domain)", good, len(inside),
           "%d outside skipped" % (len(v["bf16_round"]) - len(inside)))
    good = 0
    for c in v["scale_exponents"]:
        a = f32_bits([c["amax"]])[0]
        k448 = np.log2(formats.power_of_two_at_least(max(a, F32(1e-4)) * F32(1 / 448)))
        k6 = np.log2(formats.power_of_two_at_least(a * F32(1 / 6)))
        good += k448 == c["k_448"] and k6 == c["k_6"]
    report("quantizers scale exponents", good, len(v["scale_exponents"]))


def check_rope(v):
    yarn = v["yarn"]
    settings = {"factor": yarn["factor"], "beta_fast": yarn["beta_fast"],
                "beta_slow": yarn["beta_slow"], "original": yarn["original_length"]}
    for name, rope in (("plain", oracle_numpy.Rope(64, v["plain"]["theta"])),
                       ("yarn", oracle_numpy.Rope(64, yarn["theta"], settings))):
        want = f32_bits(v[name]["freq"])
        report("rope %s frequencies" % name, int(np.sum(rope.freq == want)), 32, "bit-equal")
        good = 0
        for position, i, angle, cos, sin in v[name]["samples"]:
            c, s = rope.table([position])
            a = F32(position) * rope.freq[i]
            good += (a == f32_bits([angle])[0] and c[0, i] == f32_bits([cos])[0]
                     and s[0, i] == f32_bits([sin])[0])
        report("rope %s cos/sin samples" % name, good, len(v[name]["samples"]), "bit-equal")


def check_hc(v):
    cfg = SimpleNamespace(hc_mult=4, hc_eps=1e-6, hc_sinkhorn_iters=20)
    for order in ("f64", "f32", "contract"):
        worst = 0.0
        for case in v["split"]:
            mix = np.array([case["mix"]], F32)
            out = oracle_numpy.hc_split(mix, np.array(case["scale"], F32),
                                        np.array(case["base"], F32), cfg, make_order(order))
            for got, key in zip(out, ("pre", "post", "comb")):
                worst = max(worst, np.abs(got[0] - np.array(case[key])).max())
        report("hc split %s" % order, int(worst < 2e-6), 1, "max difference %.2g" % worst)
    c = v["collapse_expand"]
    model = oracle_numpy.Model.__new__(oracle_numpy.Model)
    x = np.array([c["stream"]], F32)
    got = model.collapse(x, np.array([c["pre"]], F32))[0]
    good = same(got, formats.bf16(np.array(c["collapse"], F32)))
    got = model.expand(np.array([c["sublayer_output"]], F32), x, np.array([c["post"]], F32),
                       np.array([c["comb"]], F32))[0]
    good += same(got, formats.bf16(np.array(c["expand"], F32)))
    report("hc collapse, expand", good, 2, "bit-equal")


def check_gate(v):
    """The gate from a given dot: h = key = 1/sqrt(n)-normal vectors would need the inverse; the
    formula after the dot is evaluated here as engram_gate does."""
    order, worst = make_order("f64"), 0.0
    for case in v["engram_gate"]:
        d = formats.clean(f32_bits([case["dot_f32"]]))
        if case["dot"] == "-0.0":
            continue                                    # numerics.md: counts as +0 here
        cfg = SimpleNamespace(rms_norm_eps=1e-20, hidden_size=1)
        # one channel: h * w * key = d with |h| = |key| = 1, so r = 1 and the scale is 1
        one = np.ones((1, 1, 1), F32)
        got = oracle_numpy.engram_gate(one, one, d.reshape(1, 1), cfg, order)
        worst = max(worst, abs(float(got[0, 0]) - case["gate"]))
    report("gate engram", int(worst < 1e-7), 1, "max difference %.2g" % worst)
    worst = 0.0
    for case in v["moe_scores"]:
        s = order.sqrt(order.softplus(f32_bits([case["logit_f32"]])))[0]
        worst = max(worst, abs(float(s) / case["score"] - 1))
    report("gate sqrt-softplus", int(worst < 2e-7), 1, "max relative difference %.2g" % worst)
    model = oracle_numpy.Model.__new__(oracle_numpy.Model)
    model.cfg = SimpleNamespace(norm_topk_prob=True,
                                routed_scaling_factor=v["moe_weights"]["route_scale"])
    s = order.sqrt(order.softplus(np.array([v["moe_weights"]["logits"]], F32)))
    worst = np.abs(model.routing_weights(s)[0] - np.array(v["moe_weights"]["weights"])).max()
    report("gate routing weights", int(worst < 2e-7), 1, "max difference %.2g" % worst)
    worst = 0.0
    for case in v["clamped_swiglu"]:
        g, u = F32(min(case["gate"], 10)), F32(np.clip(case["up"], -10, 10))
        worst = max(worst, abs(float(g * order.sigmoid(g) * u) - case["act"]))
    report("gate clamped SwiGLU", int(worst < 1e-5), 1, "max difference %.2g" % worst)


def check_engram(v):
    c = v["config"]
    layers, heads = c["engram_layer_ids"], c["engram_n_heads"]
    primes = engram_hash.prime_tables(layers, c["engram_vocab_size"], c["engram_max_ngram_size"],
                                      heads)
    hashers, good, total = {}, 0, 0
    for layer, want in zip(layers, v["layers"]):
        mults = engram_hash.multipliers(layer, c["engram_compressed_vocab_size"], 4)
        hashers[layer] = engram_hash.Hasher(mults, primes[layer], c["pad_compressed_id"])
        checks = [mults == [int(m) for m in want["multipliers"]],
                  primes[layer] == [want["primes"][k] for k in ("2", "3", "4")],
                  hashers[layer].offsets == want["offsets"],
                  hashers[layer].row_count == want["rows"]]
        good, total = good + sum(checks), total + len(checks)
    report("engram multipliers, primes", good, total)
    good = total = 0
    for case in v["cases"]:
        for layer in case["layers"]:
            for entry in layer["positions"]:
                h = hashers[layer["layer_id"]]
                history = case["compressed_ids"]
                total += 1
                good += (h.rows(history, entry["pos"]) == entry["rows"]
                         and h.window(history, entry["pos"]) == entry["window"])
    report("engram row ids, windows", good, total)
    s = v["synthetic"]
    history = [s["token_map"][t] for t in s["token_ids"]]
    good = total = 0
    for layer in range(2):
        h = engram_hash.Hasher(s["multipliers"][layer], s["primes"][layer], s["pad_compressed_id"])
        for p, rows in enumerate(s["rows"]):
            total += 1
            good += h.rows(history, p) == rows[layer]
    report("engram synthetic case", good, total)
    normaliser = engram_hash.make_normaliser()
    bad = [n["text"] for n in v["token_map"]["normaliser"]
           if (normaliser.normalize_str(n["text"]) or n["text"]) != n["key"]]
    total = len(v["token_map"]["normaliser"])
    report("engram normaliser examples", total - len(bad), total, repr(bad) if bad else
           "published tokenizers package")
    bad = [s["id"] for s in v["token_map"]["samples"] if not _sample_ok(s, normaliser)]
    total = len(v["token_map"]["samples"])
    report("engram token samples (keys)", total - len(bad), total, repr(bad) if bad else "")


def _sample_ok(sample, normaliser):
    """A sample's key from its raw vocabulary string: fragments keep the raw string."""
    alphabet, raw = engram_hash.byte_alphabet(), sample["raw"]
    special = not all(ch in alphabet for ch in raw)
    text = raw if special else bytes(alphabet[ch] for ch in raw).decode("utf-8", "replace")
    key = raw if "\ufffd" in text else (normaliser.normalize_str(text) or text)
    return key == sample["key"]


def check_row_decode(v):
    codes = np.array([[int(c["code"], 16)] * 32 for c in v["vectors"]], np.uint8)
    scales = np.array([[c["scale"]] for c in v["vectors"]], np.uint8)
    # raw decode without clean: the file shows gradual underflow (vectors README)
    raw = (codes.view(formats.E4M3).astype(np.float64)
           * np.repeat(formats.e8m0_decode(scales), 32, axis=-1)).astype(F32)
    got = raw.astype(formats.BF16).astype(F32)[:, 0]
    want = f32_bits([c["f32"] for c in v["vectors"]])
    report("row decode vectors (raw)", int(np.sum(got == want)), len(want))
    good = 0
    for row in v["rows"]:
        codes = np.frombuffer(bytes.fromhex(row["codes_hex"]), np.uint8).view(formats.E4M3)
        scales = np.array(row["scales"], np.uint8)
        raw = codes.astype(np.float64) * np.repeat(formats.e8m0_decode(scales), 32)
        want = np.frombuffer(bytes.fromhex(row["bf16_hex_le"]), np.uint16).astype(np.uint32) << 16
        good += same(raw.astype(F32).astype(formats.BF16).astype(F32), want.view(F32))
    report("row decode rows (raw)", good, len(v["rows"]))
    table = np.arange(256, dtype=np.uint8).view(formats.E4M3).astype(F32)
    want = f32_bits(["0x7fc00000" if w == "nan" else w for w in v["e4m3_to_f32"]])
    report("row decode e4m3 table", int(np.sum((table == want) | (np.isnan(table)
           & np.isnan(want)))), 256)
    want = f32_bits(v["e8m0_to_f32"][:255])
    got = formats.e8m0_decode(np.arange(255)).astype(F32)
    report("row decode e8m0 table", int(np.sum(got == want)), 255, "byte 255 is NaN")
    report("row decode e2m1 table", int(np.sum(formats.E2M1_SIGNED == f32_bits(v["e2m1_to_f32"]))),
           16)


def check_rope_tables():
    """numerics.md A.2, block 0 of both tables."""
    yarn = {"factor": 16.0, "beta_fast": 32.0, "beta_slow": 1.0, "original": 65536}
    for name, rope, want in (("plain", oracle_numpy.Rope(64, 10000), "687ba95fe588fea2"),
                             ("yarn", oracle_numpy.Rope(64, 160000, yarn), "b2e6722421839998")):
        got = make_goldens.fnv1a(np.concatenate([t.reshape(-1) for t in
                                                 rope.table(np.arange(65536))]))
        report("rope %s table hash" % name, int(got == want), 1, got)


def check_functions():
    """The contract's function listings against float64: errors stated in numerics.md 9."""
    order = make_order("contract")
    x = np.linspace(-80, 0, 200001).astype(F32)
    want = np.exp(x.astype(np.float64))
    ulp = np.abs(order.exp(x) - want) / np.spacing(want.astype(F32))
    report("contract exp", int(ulp.max() < 0.72), 1, "max %.2f ulp, stated 0.71" % ulp.max())
    x = np.linspace(-60, 60, 200001).astype(F32)
    for name, got, want, stated in (
            ("softplus", order.softplus(x), np.logaddexp(0, x.astype(np.float64)), 1.71),
            ("sigmoid", order.sigmoid(x), 1 / (1 + np.exp(-x.astype(np.float64))), 2.41)):
        ulp = np.abs(got - want) / np.spacing(want.astype(F32))
        report("contract " + name, int(ulp.max() <= stated), 1,
               "max %.2f ulp, stated %.2f" % (ulp.max(), stated))


def check_model():
    """Invariants of the whole model on a development checkpoint: any split of the tokens gives the
    same bits, lists and candidates respect their rules, and the contract's order agrees with
    float64 in nearly all rows when one layer at a time is compared."""
    with tempfile.TemporaryDirectory() as directory:
        dev_ckpt.generate(directory, 5, "a")
        ck = checkpoint.Checkpoint(directory)
        ids = np.random.default_rng(1).integers(3, ck.config.vocab_size, 150).tolist()
        for order in ("f64", "contract"):
            whole = oracle_numpy.Model(ck, order)
            want = whole.forward(ids)
            good = 0
            for step in (1, 7, 64):
                parts = oracle_numpy.Model(ck, order)
                got = np.concatenate([parts.forward(ids[i:i + step]) for i in range(0, 150, step)])
                good += np.array_equal(got, want)
            report("model: chunks of 1, 7, 64, " + order, good, 3, "bit-equal to one prefill")
        forced = spread.ForcedModel(ck, "f64")
        forced.reference = whole.taps
        forced.forward(ids)
        shares = [1 - spread.summary(spread.row_differences(forced.taps.get(layer, tap),
                                                            whole.taps.get(layer, tap)))[0]
                  for layer in range(ck.config.num_hidden_layers) for tap in ("attn", "moe")]
        report("model: contract = f64 by layer", int(min(shares) > 0.75), 1,
               "rows bit-equal: mean %.1f%%, least %.1f%%"
               % (100 * np.mean(shares), 100 * min(shares)))
        good = total = 0
        for layer in ck.config.index_source_layer_ids:
            m = ck.config.compress_ratio(layer)
            for p, ids_p in enumerate(whole.taps.get(layer, "topk")):
                total += 1
                good += (len(ids_p) <= ck.config.index_topk and np.all(np.diff(ids_p) > 0)
                         and np.all(ids_p < (p + 1) // m))
        report("model: list rules", good, total)
        kept = whole.taps.get(ck.config.candidate_source_layer_id, "candidate_count")[-1]
        report("model: candidates prune", int(kept < 150), 1, "%d of 150 entries kept" % kept)
        check_tokenizer(directory)


def check_tokenizer(directory):
    """The token texts equal the published package's raw decode of each single id."""
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(os.path.join(directory, "tokenizer.json"))
    with open(os.path.join(directory, "tokenizer.json"), encoding="utf-8") as f:
        texts = engram_hash.token_texts(json.load(f))
    good = sum(tokenizer.decode([i], skip_special_tokens=False) == text
               for i, (_, text) in enumerate(texts))
    report("token texts against tokenizers", good, len(texts))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vectors", default=os.path.join(HERE, "..", "..", "..", "shared",
                                                          "vectors"))
    parser.add_argument("--slow", action="store_true")
    arguments = parser.parse_args()
    directory = arguments.vectors
    print("numpy %s, Unicode data %s" % (np.__version__, unicodedata.unidata_version))
    for name, check in (("quantizers", check_quantizers), ("rope", check_rope), ("hc", check_hc),
                        ("gate", check_gate), ("engram", check_engram),
                        ("engram_row_decode", check_row_decode)):
        with open(os.path.join(directory, name + ".json"), encoding="utf-8") as f:
            check(json.load(f))
    check_functions()
    if arguments.slow:
        check_rope_tables()
    check_model()
    print("%d passed, %d failed" % (sum(RESULTS), len(RESULTS) - sum(RESULTS)))
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())
