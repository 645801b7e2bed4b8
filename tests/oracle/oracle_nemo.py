"""Second, structural check: the published NeMo AutoModel classes for DeepSeek-V4.1, driven on the
same checkpoint, compared layer by layer with oracle_numpy.

NeMo AutoModel is a training implementation: prefill only, no activation quantisers in front of FP8
and FP4 linears, attention weights kept in f32. `--q8` completes the first from this oracle's own
side (NeMo's cache quantiser is applied to the inputs of exactly the linears of model-v41.md 4.5).
`--forced` feeds every block with the NumPy oracle's streams and mix, so that one layer's
difference (or one discrete flip) cannot reach the next.

usage: oracle_nemo.py --model DIR --prompt-ids FILE.json [--q8] [--forced] [--attention plain]
"""
import argparse
import json
import os
import re

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")      # eager CPU run of compiled activations

import numpy as np
import torch
from nemo_automodel.components.models.common import BackendConfig
from nemo_automodel.components.models.deepseek_v41.config import DeepseekV41Config
from nemo_automodel.components.models.deepseek_v41.model import DeepseekV41ForCausalLM
from nemo_automodel.components.models.deepseek_v41.quantization import quantize_cache
from safetensors.torch import load_file
from transformers import PreTrainedTokenizerFast

import checkpoint
import oracle_numpy

QUANTISED_LINEARS = re.compile(r"\.(attn\.(wq_a|wq_b|wkv|wo_b)|indexer\.wq_b|engram\.wkv"
                               r"|shared_experts\.(gate|up|down)_proj|ffn\.experts)$")


def load_model(directory):
    """Build NeMo's model from config.json and tokenizer.json; its own adapter reads the tensors."""
    with open(os.path.join(directory, "config.json"), encoding="utf-8") as f:
        raw = json.load(f)
    vision = dict(raw.get("vision_config") or {}, num_hidden_layers=0)
    config = DeepseekV41Config(text_config=dict(raw["text_config"], dtype="bfloat16"),
                               vision_config=vision)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(directory, "tokenizer.json"))
    backend = BackendConfig(attn="eager", linear="torch", rms_norm="torch_fp32", experts="torch",
                            dispatcher="torch")
    model = DeepseekV41ForCausalLM(config, backend=backend, tokenizer=tokenizer)
    with open(os.path.join(directory, "model.safetensors.index.json"), encoding="utf-8") as f:
        shards = sorted(set(json.load(f)["weight_map"].values()))
    tensors = {}
    for shard in shards:
        tensors.update(load_file(os.path.join(directory, shard)))
    state = model.state_dict_adapter.from_hf(
        {k: v for k, v in tensors.items() if not k.startswith(("vision.", "aligner.", "image_"))})
    missing, unexpected = model.load_state_dict(state, strict=False)
    print("nemo: tensors missing %s, unexpected %s" % (list(missing), list(unexpected)))
    return model.eval()


def q8(x):
    return quantize_cache(x, format="fp8", block_size=32)


def add_activation_quantisers(model):
    """model-v41.md 4.5: Q8 on the input of every FP8 and FP4 linear, nowhere else."""
    for name, module in model.named_modules():
        if QUANTISED_LINEARS.search(name):
            module.register_forward_pre_hook(lambda m, a: (q8(a[0]),) + tuple(a[1:]))
        if name.endswith("ffn.experts"):
            plain = module.expert_activation_grouped
            module.expert_activation_grouped = lambda x, w, f=plain: q8(f(x, w))


def to_numpy(t):
    return t.detach().float().numpy()


def attach_taps(model, taps, forced):
    """Record block, attention and MoE outputs, lists and routing; optionally force block inputs."""
    def store(layer, name, value):
        taps[(layer, name)] = value

    def attn_hook(layer):
        def hook(module, args, kwargs, out):
            store(layer, "attn", to_numpy(out.hidden_states[0]))
            if module.is_index_source:
                store(layer, "topk", out.state.topk_indices[0].numpy())
                if module.indexer.is_candidate_source:
                    store(layer, "candidate_count", out.state.candidates[0].sum(-1).numpy())
        return hook

    def gate_hook(layer):
        def hook(module, args, out):
            weights, ids = out[0], out[1]
            at = ids.argsort(-1)
            store(layer, "experts", ids.gather(-1, at).numpy())
            store(layer, "routing", to_numpy(weights.gather(-1, at)))
        return hook

    def block_hook(layer):
        def hook(module, args, kwargs, out):
            store(layer, "stream", to_numpy(out[0][0]))
            store(layer, "pre", to_numpy(out[1][0]))
        return hook

    def force(layer):
        def hook(module, args, kwargs):
            x, pre = (np.array(forced.get(layer - 1, n)) for n in ("stream", "pre"))
            return (torch.tensor(x)[None].bfloat16(), torch.tensor(pre)[None]) + args[2:], kwargs
        return hook

    for key, block in model.model.layers.items():
        layer = int(key)
        block.attn.register_forward_hook(attn_hook(layer), with_kwargs=True)
        block.ffn.gate.register_forward_hook(gate_hook(layer))
        block.ffn.register_forward_hook(
            lambda m, a, o, layer=layer: store(layer, "moe", to_numpy(o.reshape(-1, o.shape[-1]))))
        block.register_forward_hook(block_hook(layer), with_kwargs=True)
        if forced is not None and layer > 0:
            block.register_forward_pre_hook(force(layer), with_kwargs=True)
    if model.model.engram_hash is not None:
        model.model.engram_hash.register_forward_hook(
            lambda m, a, o: store(-1, "engram_rows", o[0].numpy()))


def relative(a, b):
    """Root mean square difference over root mean square value, and the worst row of it."""
    a, b = (np.asarray(v, np.float64).reshape(len(v), -1) for v in (a, b))
    rows = np.sqrt(((a - b) ** 2).mean(axis=1) / np.maximum((b ** 2).mean(axis=1), 1e-30))
    return float(np.median(rows)), float(rows.max())


def list_report(theirs, ours, margins, cuts):
    """Rows whose selected entries agree (NeMo pads with -1); of the others, how many are exact ties
    of the bf16 scores at the cut, where torch.topk promises no order (model-v41.md 4.14)."""
    differ = [t for t in range(len(ours)) if not np.array_equal(theirs[t][theirs[t] >= 0], ours[t])]
    ties = sum(margins[t] == 0 for t in differ)
    relative_gap = max([margins[t] / max(abs(cuts[t]), 1e-30) for t in differ], default=0.0)
    return "%d/%d (of the %d others %d tied, largest margin/cut %.1e)" % (
        len(ours) - len(differ), len(ours), len(differ), ties, relative_gap)


def compare(config, theirs, ours, count):
    print("layer  stream med/max        attn med/max          moe med/max           experts  lists")
    for layer in range(config.num_hidden_layers):
        parts = [relative(theirs[(layer, n)], ours.get(layer, n))
                 for n in ("stream", "attn", "moe")]
        same = int(np.sum(np.all(theirs[(layer, "experts")] == np.array(ours.get(layer, "experts")),
                                 axis=1)))
        line = "%5d  " % layer + "  ".join("%.2e/%.2e" % p + " " * 3 for p in parts)
        line += "%4d/%d" % (same, count)
        if layer in config.index_source_layer_ids:
            line += "  " + list_report(theirs[(layer, "topk")], ours.get(layer, "topk"),
                                       ours.get(layer, "topk_margin"), ours.get(layer, "topk_cut"))
        if (layer, "candidate_count") in theirs:
            equal = np.sum(theirs[(layer, "candidate_count")]
                           == np.array(ours.get(layer, "candidate_count")))
            line += "  candidate sizes %d/%d" % (equal, count)
        print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--prompt-ids", required=True)
    parser.add_argument("--q8", action="store_true")
    parser.add_argument("--forced", action="store_true")
    parser.add_argument("--attention", default="contract", choices=oracle_numpy.ATTENTION_FORMS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with open(arguments.prompt_ids, encoding="utf-8") as f:
        ids = json.load(f)
    ids = ids["prompt"] if isinstance(ids, dict) else ids
    ck = checkpoint.Checkpoint(arguments.model)
    ours = oracle_numpy.Model(ck, attention=arguments.attention)
    ours.forward(ids)
    model = load_model(arguments.model)
    if arguments.q8:
        add_activation_quantisers(model)
    theirs = {}
    attach_taps(model, theirs, ours.taps if arguments.forced else None)
    with torch.no_grad():
        logits = to_numpy(model(torch.tensor([ids])).logits[0])
    compare(ck.config, theirs, ours.taps, len(ids))
    if (-1, "engram_rows") in theirs:
        for i, layer in enumerate(ck.config.engram_layer_ids):
            equal = np.array_equal(theirs[(-1, "engram_rows")][:, i],
                                   np.array(ours.taps.get(layer, "engram_rows")))
            print("engram layer %d row ids: %s" % (layer, "all equal" if equal else "DIFFER"))
    want = np.array(ours.taps.get(-1, "logits"))
    print("logits med/max %.2e/%.2e, argmax equal %d/%d"
          % (*relative(logits, want), int(np.sum(logits.argmax(1) == want.argmax(1))), len(ids)))


if __name__ == "__main__":
    main()
