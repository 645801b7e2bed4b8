"""Reader for a checkpoint directory in the released layout (model-v41.md 1-3, checkpoint.md 1-4).

The safetensors container is parsed here directly: the format is small, and the E8M0 dtype tag is
not known to every published reader.
"""
import hashlib
import json
import os

import ml_dtypes
import numpy as np

import formats

DTYPES = {"F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn), "F8_E8M0": np.dtype(np.uint8),
          "I8": np.dtype(np.int8), "BF16": np.dtype(ml_dtypes.bfloat16),
          "F32": np.dtype(np.float32), "I64": np.dtype(np.int64)}

# checkpoint.md 3: accepted spellings, HF key first.
SPELLINGS = {
    "hidden_size": ("dim",), "num_hidden_layers": ("n_layers",),
    "num_attention_heads": ("n_heads",), "qk_rope_head_dim": ("rope_head_dim",),
    "sliding_window": ("window_size",), "moe_intermediate_size": ("moe_inter_dim",),
    "num_experts_per_tok": ("n_activated_experts",), "routed_scaling_factor": ("route_scale",),
    "scoring_func": ("score_func",), "rms_norm_eps": ("norm_eps",),
    "kv_source_layer_ids": ("kv_source_layers",),
    "index_source_layer_ids": ("index_source_layers",),
    "candidate_source_layer_id": ("candidate_source_layer",),
    "engram_pad_token_id": ("engram_pad_id",),
}
REQUIRED = """vocab_size hidden_size num_hidden_layers num_attention_heads head_dim qk_rope_head_dim
q_lora_rank o_lora_rank o_groups moe_intermediate_size n_routed_experts num_experts_per_tok
routed_scaling_factor swiglu_limit rms_norm_eps rope_theta compress_rope_theta sliding_window
compress_ratios kv_source_layer_ids index_source_layer_ids index_n_heads index_head_dim index_topk
candidate_source_layer_id candidate_topk_blocks candidate_block_size hc_mult hc_sinkhorn_iters
hc_eps engram_layer_ids engram_num_embeddings engram_max_ngram_size engram_vocab_size
engram_n_heads engram_head_dim engram_pad_token_id engram_compressed_vocab_size""".split()


class Config:
    """Flat view of config.json: attribute names are the HF keys of model-v41.md 1.2."""

    def __init__(self, raw):
        text = dict(raw.get("text_config", raw))
        for key in REQUIRED:
            for name in (key,) + SPELLINGS.get(key, ()):
                if name in text:
                    setattr(self, key, text[name])
                    break
            else:
                raise KeyError("config.json: required key %s is missing" % key)
        self.gate_temp = float(text.get("gate_temp", 1.0))
        self.norm_topk_prob = bool(text.get("norm_topk_prob", True))
        self.yarn = _yarn(text)
        quant = raw.get("quantization_config") or text.get("quantization_config") or {}
        self.weight_block = int(quant.get("weight_block_size", [32, 32])[0])
        score = text.get("scoring_func", text.get("score_func", "sqrtsoftplus"))
        if score != "sqrtsoftplus":
            raise ValueError("scoring_func %s is not V4.1" % score)

    def compress_ratio(self, layer):
        return self.compress_ratios[layer]

    def owner(self, layer):
        """model-v41.md 1.3: the largest kv source <= layer."""
        return max(s for s in self.kv_source_layer_ids if s <= layer)

    def index_source(self, layer):
        """model-v41.md 1.3: the largest index source <= layer."""
        return max(s for s in self.index_source_layer_ids if s <= layer)


def _yarn(text):
    """Both spellings of the YaRN group, checkpoint.md 3."""
    s = text.get("rope_scaling") or text.get("rope_parameters") or {}
    return {"factor": float(s.get("factor", text.get("rope_factor", 16))),
            "beta_fast": float(s.get("beta_fast", text.get("beta_fast", 32))),
            "beta_slow": float(s.get("beta_slow", text.get("beta_slow", 1))),
            "original": int(s.get("original_max_position_embeddings",
                                  text.get("original_seq_len", 65536)))}


class Checkpoint:
    """Named tensors of a directory; arrays are memory mapped until used."""

    def __init__(self, directory):
        self.directory = directory
        with open(os.path.join(directory, "config.json"), encoding="utf-8") as f:
            self.raw_config = json.load(f)
        self.config = Config(self.raw_config)
        with open(os.path.join(directory, "model.safetensors.index.json"), encoding="utf-8") as f:
            self.weight_map = json.load(f)["weight_map"]
        self.entries = {}
        for shard in sorted(set(self.weight_map.values())):
            self._read_header(shard)
        missing = [n for n in self.weight_map if n not in self.entries]
        if missing:
            raise KeyError("index names a tensor that no shard holds: %s" % missing[0])

    def _read_header(self, shard):
        path = os.path.join(self.directory, shard)
        data = np.memmap(path, dtype=np.uint8, mode="r")
        length = int.from_bytes(data[:8].tobytes(), "little")
        header = json.loads(data[8:8 + length].tobytes())
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            if self.weight_map.get(name) != shard:
                raise ValueError("%s is in %s, but the index says %s"
                                 % (name, shard, self.weight_map.get(name)))
            begin, end = entry["data_offsets"]
            self.entries[name] = (data[8 + length + begin:8 + length + end], entry)

    def __contains__(self, name):
        return name in self.entries

    def raw(self, name):
        """Stored array; E8M0 scales come as bytes."""
        data, entry = self.entries[name]
        # tobytes copies, so an unaligned payload is no problem
        return np.frombuffer(data.tobytes(), DTYPES[entry["dtype"]]).reshape(entry["shape"])

    def is_packed(self, module):
        """True for FP4 experts, the exact class of numerics.md 6.5."""
        return self.entries[module + ".weight"][1]["dtype"] == "I8"

    def rows(self, name, ids):
        """Selected rows of a 2-D tensor without reading the whole of it (Engram tables)."""
        data, entry = self.entries[name]
        width = entry["shape"][1]
        table = data.reshape(entry["shape"][0], width)     # both formats have one byte an element
        return np.ascontiguousarray(table[ids]).view(DTYPES[entry["dtype"]])

    def vector(self, name):
        """bf16 or f32 tensor as float32, cleaned (numerics.md 2.8)."""
        return formats.clean(self.raw(name).astype(np.float32))

    def linear(self, module):
        """Dequantised weight of `module` as float32, by the dtype found in the header."""
        name = module + ".weight"
        dtype = self.entries[name][1]["dtype"]
        if dtype == "F8_E4M3":
            return formats.dequant_fp8(self.raw(name), self.raw(module + ".scale"),
                                       self.config.weight_block)
        if dtype == "I8":
            return formats.dequant_fp4(self.raw(name), self.raw(module + ".scale"))
        return self.vector(name)

    def sha256(self):
        """Hash of every regular file of the directory, for the golden's header."""
        out = {}
        for name in sorted(os.listdir(self.directory)):
            path = os.path.join(self.directory, name)
            if os.path.isfile(path):
                digest = hashlib.sha256()
                with open(path, "rb") as f:
                    for piece in iter(lambda: f.read(1 << 20), b""):
                        digest.update(piece)
                out[name] = digest.hexdigest()
        return out
