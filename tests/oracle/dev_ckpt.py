"""Writes a small random checkpoint in the released layout (model-v41.md 1-2, checkpoint.md 1-3).

For the oracle's own development only; the project's fixtures come from its own tool.
usage: dev_ckpt.py --seed N [--preset a|b|c] [--branch-gain G] DIR

A small branch gain (wo_b and w2 scaled down) makes each layer a small change of the streams: the
model then amplifies rounding differences less (README, error model).
"""
import argparse
import json
import os

import ml_dtypes
import numpy as np

import engram_hash
from formats import E2M1_VALUES, F32, power_of_two_at_least

# Presets differ in layer roles: a = two m=2 owners and one m=1 owner with candidates,
# b = no candidates, one m=2 owner, c = m=1 only. compress_ratios carries the draft zeros too.
PRESETS = {
    "a": dict(ratios=[0, 0, 2, 2, 2, 1, 1, 1, 1, 1], kv=[2, 4, 5], idx=[2, 4, 5, 7, 8], cand=5,
              engram=[1, 4]),
    "b": dict(ratios=[0, 2, 2, 2, 0, 0], kv=[1], idx=[1, 3], cand=-1, engram=[0, 3]),
    "c": dict(ratios=[0, 1, 1, 1], kv=[1], idx=[1, 2], cand=1, engram=[2]),
}
DIMS = dict(vocab_size=1024, hidden_size=256, num_attention_heads=8, head_dim=128,
            qk_rope_head_dim=64, q_lora_rank=128, o_lora_rank=64, o_groups=4,
            moe_intermediate_size=128, n_routed_experts=16, num_experts_per_tok=4,
            index_n_heads=8, index_head_dim=128, index_topk=32, sliding_window=32,
            candidate_topk_blocks=5, candidate_block_size=8, engram_vocab_size=600,
            engram_n_heads=4, engram_head_dim=32, engram_max_ngram_size=4)


class Writer:
    def __init__(self, rng, branch_gain):
        self.rng, self.branch_gain, self.tensors = rng, branch_gain, {}

    def put(self, name, tag, array):
        self.tensors[name] = (tag, np.ascontiguousarray(array))

    def bf16(self, name, shape, std=1.0, mean=0.0):
        x = (mean + std * self.rng.standard_normal(shape)).astype(ml_dtypes.bfloat16)
        self.put(name, "BF16", x)

    def f32(self, name, shape, std=1.0, mean=0.0):
        self.put(name, "F32", (mean + std * self.rng.standard_normal(shape)).astype(F32))

    def fp8(self, module, out, inn, gain=1.0):
        """Tiles of 32 x 32 with an own power-of-two scale; neighbouring tiles get other sizes."""
        w = self.rng.standard_normal((out, inn)) * gain / np.sqrt(inn)
        tiles = w.reshape(out // 32, 32, inn // 32, 32)
        tiles = tiles * np.exp2(self.rng.integers(-2, 2, (out // 32, 1, inn // 32, 1)))
        amax = np.abs(tiles).max(axis=(1, 3), keepdims=True)
        scale = power_of_two_at_least((amax / 448).astype(F32))
        codes = (tiles / scale).astype(F32).astype(ml_dtypes.float8_e4m3fn)
        self.put(module + ".weight", "F8_E4M3", codes.reshape(out, inn))
        byte = np.log2(scale[:, 0, :, 0]).astype(int) + 127
        self.put(module + ".scale", "F8_E8M0", byte.astype(np.uint8))

    def fp4(self, module, out, inn, gain):
        w = self.rng.standard_normal((out, inn // 32, 32)) * gain / np.sqrt(inn)
        scale = power_of_two_at_least((np.abs(w).max(axis=2, keepdims=True) / 6).astype(F32))
        nearest = np.abs(np.abs(w / scale)[..., None] - E2M1_VALUES).argmin(axis=-1)
        codes = (nearest + 8 * (w < 0)).reshape(out, inn).astype(np.uint8)
        packed = codes[:, 0::2] | (codes[:, 1::2] << 4)
        self.put(module + ".weight", "I8", packed.view(np.int8))
        byte = np.log2(scale[..., 0]).astype(int) + 127
        self.put(module + ".scale", "F8_E8M0", byte.astype(np.uint8))

    def engram_table(self, prefix, rows, width):
        codes = self.rng.standard_normal((rows, width)) * 20
        self.put(prefix + "weight", "F8_E4M3", codes.astype(F32).astype(ml_dtypes.float8_e4m3fn))
        scale = self.rng.integers(120, 124, (rows, width // 32)).astype(np.uint8)
        self.put(prefix + "scale", "F8_E8M0", scale)


def tokenizer_json(vocab_size):
    """Byte alphabet, a few hundred two-character entries in both cases, specials at both ends."""
    chars = sorted(engram_hash.byte_alphabet(), key=ord)
    words = ["<|bos|>", "<|eos|>", "<|pad|>"] + chars
    letters = "etaoinshrdlu"
    for a in "\u0120" + letters + letters.upper():
        for b in letters + letters.upper():
            words.append(a + b)
    words = words[:vocab_size - 8]
    tail = ["<|extra_%d|>" % i for i in range(vocab_size - len(words))]
    vocab = {w: i for i, w in enumerate(words)}
    merges = [[w[0], w[1]] for w in words[3 + len(chars):]]
    added = [{"id": i, "content": w, "special": True, "single_word": False, "lstrip": False,
              "rstrip": False, "normalized": False}
             for i, w in list(enumerate(words[:3])) + list(enumerate(tail, len(words)))]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": {"type": "Sequence", "normalizers": []},
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False,
                              "trim_offsets": True, "use_regex": False},
            "post_processor": None,
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                        "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "fuse_unk": False,
                      "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "byte_fallback": False, "vocab": vocab, "merges": merges}}


def text_config(preset, d, compressed):
    tables = engram_hash.prime_tables(preset["engram"], d["engram_vocab_size"],
                                      d["engram_max_ngram_size"], d["engram_n_heads"])
    rows = [sum(p for order in tables[layer] for p in order) for layer in preset["engram"]]
    text = dict(d)
    text.update(model_type="deepseek_v41_text", num_hidden_layers=len(preset["ratios"]),
                num_key_value_heads=1, n_shared_experts=1, scoring_func="sqrtsoftplus",
                topk_method="noaux_tc", norm_topk_prob=True, routed_scaling_factor=1.5,
                swiglu_limit=10.0, hidden_act="silu", rms_norm_eps=1e-20, attention_bias=False,
                attention_dropout=0.0, initializer_range=0.02, use_cache=True,
                tie_word_embeddings=False, max_position_embeddings=1048576, rope_theta=10000,
                compress_rope_theta=160000,
                rope_scaling=dict(rope_type="yarn", factor=16, beta_fast=32, beta_slow=1,
                                  original_max_position_embeddings=65536),
                compress_ratios=preset["ratios"], kv_source_layer_ids=preset["kv"],
                index_source_layer_ids=preset["idx"], candidate_source_layer_id=preset["cand"],
                hc_mult=4, hc_sinkhorn_iters=20, hc_eps=1e-6, engram_layer_ids=preset["engram"],
                engram_num_embeddings=rows, engram_pad_token_id=2,
                engram_compressed_vocab_size=compressed, num_nextn_predict_layers=0)
    return text


def write_layer(w, t, layer):
    d, heads, hd = t["hidden_size"], t["num_attention_heads"], t["head_dim"]
    p, hc, m = "layers.%d." % layer, t["hc_mult"], t["compress_ratios"][layer]
    for site in ("attn", "ffn"):
        w.bf16(p + site + "_norm.weight", (d,), 0.1, 1.0)
        w.f32(p + "hc_%s_fn" % site, (hc * (2 + hc), hc * d), 1.0 / np.sqrt(hc * d))
        w.f32(p + "hc_%s_base" % site, (hc * (2 + hc),), 0.5)
        w.f32(p + "hc_%s_scale" % site, (3,), 0.2, 1.0)
    a = p + "attn."
    w.fp8(a + "wq_a", t["q_lora_rank"], d)
    w.bf16(a + "q_norm.weight", (t["q_lora_rank"],), 0.1, 1.0)
    w.fp8(a + "wq_b", heads * hd, t["q_lora_rank"], 2.0)
    w.fp8(a + "wkv", hd, d)
    w.bf16(a + "kv_norm.weight", (hd,), 0.1, 1.0)
    w.f32(a + "attn_sink", (heads,))
    w.fp8(a + "wo_a", t["o_groups"] * t["o_lora_rank"], heads * hd // t["o_groups"], 2.0)
    w.fp8(a + "wo_b", d, t["o_groups"] * t["o_lora_rank"], w.branch_gain)
    if layer in t["kv_source_layer_ids"]:
        w.bf16(a + "compressor.wkv.weight", (hd, d), d ** -0.5)
        if m > 1:
            w.bf16(a + "compressor.wgate.weight", (hd, d), d ** -0.5)
        w.bf16(a + "compressor.norm.weight", (hd,), 0.1, 1.0)
        w.bf16(a + "indexer.wk.weight", (t["index_head_dim"], hd), hd ** -0.5)
        w.bf16(a + "indexer.k_norm.weight", (t["index_head_dim"],), 0.1, 1.0)
    if layer in t["index_source_layer_ids"]:
        w.fp8(a + "indexer.wq_b", t["index_n_heads"] * t["index_head_dim"], t["q_lora_rank"])
        w.bf16(a + "indexer.weights_proj.weight", (t["index_n_heads"], d), d ** -0.5)
    write_ffn(w, t, p + "ffn.")
    if layer in t["engram_layer_ids"]:
        write_engram(w, t, layer)


def write_ffn(w, t, p):
    d, inter, n = t["hidden_size"], t["moe_intermediate_size"], t["n_routed_experts"]
    w.bf16(p + "gate.weight", (n, d), d ** -0.5)
    w.f32(p + "gate.bias", (n,), 0.1)
    w.f32(p + "gate.bias_vl", (n,), 0.1)
    for name, out, inn in (("w1", inter, d), ("w3", inter, d), ("w2", d, inter)):
        gain = 2.0 * (w.branch_gain if name == "w2" else 1.0)
        w.fp8(p + "shared_experts." + name, out, inn, gain)
        for e in range(n):
            w.fp4(p + "experts.%d.%s" % (e, name), out, inn, gain)


def write_engram(w, t, layer):
    p, hc, d = "layers.%d.engram." % layer, t["hc_mult"], t["hidden_size"]
    rows = t["engram_num_embeddings"][t["engram_layer_ids"].index(layer)]
    columns = (t["engram_max_ngram_size"] - 1) * t["engram_n_heads"]
    w.engram_table(p + "embed.", rows, t["engram_head_dim"])
    w.fp8(p + "wkv", (hc + 1) * d, columns * t["engram_head_dim"])
    w.bf16(p + "q_weight", (hc, d))
    w.bf16(p + "k_weight", (hc, d))


def save(directory, tensors, shard_count=4):
    """safetensors shards with an index; names are spread over the shards in order."""
    names = list(tensors)
    weight_map, total = {}, 0
    for s in range(shard_count):
        file = "model-%05d-of-%05d.safetensors" % (s + 1, shard_count)
        header, payload, at = {}, [], 0
        for name in names[s * len(names) // shard_count:(s + 1) * len(names) // shard_count]:
            tag, array = tensors[name]
            data = array.tobytes()
            header[name] = {"dtype": tag, "shape": list(array.shape),
                            "data_offsets": [at, at + len(data)]}
            payload.append(data)
            at += len(data)
            weight_map[name] = file
        total += at
        text = json.dumps(header).encode()
        with open(os.path.join(directory, file), "wb") as f:
            f.write(len(text).to_bytes(8, "little") + text + b"".join(payload))
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    write_json(directory, "model.safetensors.index.json", index)


def write_json(directory, name, value):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1, ensure_ascii=False)


def generate(directory, seed, preset="a", branch_gain=1.0):
    os.makedirs(directory, exist_ok=True)
    tokenizer = tokenizer_json(DIMS["vocab_size"])
    write_json(directory, "tokenizer.json", tokenizer)
    normaliser = engram_hash.make_normaliser()
    keys = {raw if "\ufffd" in text else (normaliser.normalize_str(text) or text)
            for raw, text in engram_hash.token_texts(tokenizer)}
    t = text_config(PRESETS[preset], DIMS, len(keys))
    write_json(directory, "config.json", {
        "architectures": ["DeepseekV41ForCausalLM"], "model_type": "deepseek_v41",
        "dtype": "bfloat16", "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2,
        "image_token_id": 3, "text_config": t,
        "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic",
                                "weight_block_size": [32, 32], "scale_fmt": "ue8m0",
                                "expert_dtype": "fp4"}})
    w = Writer(np.random.default_rng(seed), branch_gain)
    w.bf16("embed.weight", (t["vocab_size"], t["hidden_size"]))
    for layer in range(t["num_hidden_layers"]):
        write_layer(w, t, layer)
    w.bf16("head.weight", (t["vocab_size"], t["hidden_size"]), t["hidden_size"] ** -0.5)
    w.bf16("norm.weight", (t["hidden_size"],), 0.1, 1.0)
    save(directory, w.tensors)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--preset", choices=sorted(PRESETS), default="a")
    parser.add_argument("--branch-gain", type=float, default=1.0)
    parser.add_argument("directory")
    arguments = parser.parse_args()
    generate(arguments.directory, arguments.seed, arguments.preset, arguments.branch_gain)
