"""DeepSeek-V4.1 text backbone in NumPy, written from model-v41.md section 4, engram.md and
numerics.md. Every rounding point the papers name is applied; the order of sums is a parameter
(orders.py). Arrays named *_bf16 in a comment are float32 arrays of bf16 values.

Section numbers in docstrings: M = model-v41.md, N = numerics.md, E = engram.md.
"""
import numpy as np

import engram_hash
from formats import F32, bf16, clean, decode_engram_rows, q4i, q4kv, q8
from orders import make_order

KEY_BLOCK = 64                      # N 12.1


def stable_top(scores, count):
    """N 17: indices of the `count` largest scores, ties to the lower index, ascending order.
    Also the score gap between the last chosen and the first refused (inf if none is refused)."""
    order = np.argsort(-scores, kind="stable")
    chosen, refused = order[:count], order[count:]
    gap = float(scores[chosen[-1]] - scores[refused[0]]) if len(refused) and count else np.inf
    return np.sort(chosen), gap


def rms_norm(x, weight, eps, order):
    """M 4.6 / N 8.1: f32 statistics, weight last, one rounding to bf16."""
    return bf16((x * mean_rsqrt(x, eps, order)[..., None]) * weight)


def mean_rsqrt(x, eps, order):
    """N 8.1: 1 / sqrt(mean(x^2) + eps); there is no rsqrt primitive."""
    mean = order.sum(x * x) * F32(1.0 / x.shape[-1])
    return F32(1) / np.sqrt(mean + F32(eps))


class Rope:
    """M 4.7 / N 10: adjacent pairs of the last `dim` elements."""

    def __init__(self, dim, base, yarn=None):
        exponent = (np.arange(0, dim, 2, dtype=np.float64) / dim).astype(F32)
        power = (np.float64(base) ** exponent.astype(np.float64)).astype(F32)
        self.dim, self.freq = dim, F32(1) / power
        if yarn:
            self.freq = self._yarn(base, yarn)

    def _yarn(self, base, yarn):
        def turns_to_dim(turns):
            return (self.dim * np.log(yarn["original"] / (turns * 2 * np.pi))
                    / (2 * np.log(base)))
        low = max(int(np.floor(turns_to_dim(yarn["beta_fast"]))), 0)
        high = min(int(np.ceil(turns_to_dim(yarn["beta_slow"]))), self.dim - 1)
        i = np.arange(self.dim // 2, dtype=F32)
        ramp = np.clip((i - F32(low)) / F32(max(high - low, 0.001)), F32(0), F32(1))
        smooth = F32(1) - ramp
        return (self.freq / F32(yarn["factor"])) * (F32(1) - smooth) + self.freq * smooth

    def table(self, positions):
        """cos and sin of the f32 angle, rounded from float64 (N 10.2)."""
        angle = np.asarray(positions).astype(F32)[:, None] * self.freq
        wide = angle.astype(np.float64)
        return np.cos(wide).astype(F32), np.sin(wide).astype(F32)

    def rotate(self, x, positions, inverse=False):
        """x [T, ..., dims]; rotates the tail and rounds it to bf16 (N 10.3)."""
        cos, sin = self.table(positions)
        shape = (len(cos),) + (1,) * (x.ndim - 2) + (self.dim // 2,)
        cos, sin = cos.reshape(shape), sin.reshape(shape)
        if inverse:
            sin = -sin
        tail = x[..., -self.dim:]
        a, b = tail[..., 0::2], tail[..., 1::2]
        out = x.copy()
        out[..., -self.dim::2] = bf16(a * cos - b * sin)
        out[..., -self.dim + 1::2] = bf16(a * sin + b * cos)
        return out


class Taps:
    """Collects named per-layer arrays, one row per token, over all forward calls."""

    def __init__(self):
        self.store = {}

    def add(self, layer, name, rows):
        self.store.setdefault((layer, name), []).extend(list(rows))

    def get(self, layer, name):
        return self.store[(layer, name)]


class LayerState:
    """What one layer remembers of the past (M 5). The window is kept whole, without a ring: the
    visible range is cut by position instead."""

    def __init__(self):
        self.window_kv = []             # bf16 rows, one per position
        self.main_kv = []               # owners: dequantised Q4kv rows
        self.index_key = []             # owners: dequantised Q4i rows
        self.pending = []               # owners with m > 1: (v, g) of the open group


class Model:
    """One sequence. `forward` may be called with any split of the tokens."""

    def __init__(self, checkpoint, order="f64", taps=None, attention="contract"):
        self.ck, self.cfg, self.order = checkpoint, checkpoint.config, make_order(order)
        self.attention_form = attention
        self.taps = taps if taps is not None else Taps()
        cfg = self.cfg
        self.weights = {}
        self.rope_plain = Rope(cfg.qk_rope_head_dim, cfg.rope_theta)
        self.rope_yarn = Rope(cfg.qk_rope_head_dim, cfg.compress_rope_theta, cfg.yarn)
        self.states = [LayerState() for _ in range(cfg.num_hidden_layers)]
        self.position = 0
        self.history = []               # compressed ids by position (E 5)
        self.step_lists = {}            # index source layer -> list per token of THIS step
        self.candidates = None          # per token boolean masks of THIS step
        self.token_map = engram_hash.token_map(checkpoint.directory, cfg.vocab_size,
                                               cfg.engram_compressed_vocab_size)
        self.hashers = engram_hash.build_hashers(cfg, self.token_map[cfg.engram_pad_token_id])

    # ---- weights -------------------------------------------------------------------------
    def linear_weight(self, module):
        if module not in self.weights:
            self.weights[module] = self.ck.linear(module)
        return self.weights[module]

    def vector(self, name):
        if name not in self.weights:
            self.weights[name] = self.ck.vector(name)
        return self.weights[name]

    def quant_linear(self, x, module):
        """M 4.5: FP8 or FP4 weight: Q8 on the activation, exact products, one rounding."""
        return self.product(q8(x), module)

    def product(self, quantised, module):
        """Product of an already quantised activation; packed FP4 weights are the exact class."""
        return bf16(self.order.dot(quantised, self.linear_weight(module),
                                   self.ck.is_packed(module)))

    def bf16_linear(self, x, module):
        """M 4.5: bf16 weight, unquantised activation, one rounding."""
        return bf16(self.order.dot(x, self.linear_weight(module)))

    def f32_linear(self, x, module):
        """M 4.5: weights promoted to f32, f32 result, cleaned."""
        return clean(self.order.dot(x, self.linear_weight(module)))

    # ---- skeleton ------------------------------------------------------------------------
    def forward(self, ids):
        """M 4.8: run a chunk of tokens; returns f32 logits of all its rows."""
        cfg, order = self.cfg, self.order
        positions = np.arange(self.position, self.position + len(ids))
        self.history.extend(self.token_map[i] for i in ids)
        h = self.vector("embed.weight")[np.asarray(ids)]
        x = np.repeat(h[:, None, :], cfg.hc_mult, axis=1)
        pre = np.zeros((len(ids), cfg.hc_mult), F32)
        pre[:, 0] = 1
        self.step_lists, self.candidates = {}, None
        for layer in range(cfg.num_hidden_layers):
            if layer in self.hashers:
                x = self.engram(layer, x, positions)
            x, pre = self.block(layer, x, pre, positions)
            self.taps.add(layer, "stream", x)
            self.taps.add(layer, "pre", pre)
        y = rms_norm(self.collapse(x, pre), self.vector("norm.weight"), cfg.rms_norm_eps, order)
        self.taps.add(-1, "final_norm", y)
        logits = clean(order.dot(y, self.vector("head.weight")))
        self.taps.add(-1, "logits", logits)
        self.position += len(ids)
        return logits

    def block(self, layer, x, pre_in, positions):
        """M 4.9: single-pass mHC; the incoming mix feeds attention, its own mix feeds the FFN."""
        p, eps = "layers.%d." % layer, self.cfg.rms_norm_eps
        pre_a, post, comb = self.hc_mix(x, p + "hc_attn")
        u = rms_norm(self.collapse(x, pre_in), self.vector(p + "attn_norm.weight"), eps, self.order)
        u = self.attention(layer, u, positions)
        self.taps.add(layer, "attn", u)
        x = self.expand(u, x, post, comb)
        pre_f, post, comb = self.hc_mix(x, p + "hc_ffn")
        u = rms_norm(self.collapse(x, pre_a), self.vector(p + "ffn_norm.weight"), eps, self.order)
        u = self.moe(layer, u)
        self.taps.add(layer, "moe", u)
        return self.expand(u, x, post, comb), pre_f

    # ---- hyper-connections ---------------------------------------------------------------
    def hc_mix(self, x, prefix):
        """M 4.9-4.10 / N 13.1-13.2: projection of the un-normalised streams, then the factor r,
        then the split into pre, post and the Sinkhorn matrix."""
        flat = x.reshape(len(x), -1)
        r = mean_rsqrt(flat, self.cfg.rms_norm_eps, self.order)
        mix = clean(self.order.dot(flat, self.vector(prefix + "_fn")) * r[:, None])
        return hc_split(mix, self.vector(prefix + "_scale"), self.vector(prefix + "_base"),
                        self.cfg, self.order)

    def collapse(self, x, pre):
        """M 4.9: weighted sum over the streams, ascending, one rounding."""
        y = pre[:, 0, None] * x[:, 0]
        for c in range(1, x.shape[1]):
            y = y + pre[:, c, None] * x[:, c]
        return bf16(y)

    def expand(self, u, x, post, comb):
        """M 4.9: X'[j] = post[j] u + sum over the SOURCE stream i of comb[i][j] X[i]."""
        out = np.empty_like(x)
        for j in range(x.shape[1]):
            mixed = comb[:, 0, j, None] * x[:, 0]
            for i in range(1, x.shape[1]):
                mixed = mixed + comb[:, i, j, None] * x[:, i]
            out[:, j] = bf16(post[:, j, None] * u + mixed)
        return out

    # ---- engram --------------------------------------------------------------------------
    def engram(self, layer, x, positions):
        """E 5-7: rows, FP8 projection, one gate per stream, the same value into every stream."""
        cfg, p = self.cfg, "layers.%d.engram." % layer
        ids = np.array([self.hashers[layer].rows(self.history, int(t)) for t in positions])
        self.taps.add(layer, "engram_rows", ids)
        flat = ids.reshape(-1)
        rows = decode_engram_rows(self.ck.rows(p + "embed.weight", flat),
                                  self.ck.rows(p + "embed.scale", flat))
        kv = self.quant_linear(rows.reshape(len(ids), -1), p + "wkv")
        split = cfg.hc_mult * cfg.hidden_size
        key = kv[:, :split].reshape(len(ids), cfg.hc_mult, cfg.hidden_size)
        value = kv[:, None, split:]
        w = clean(self.vector(p + "q_weight") * self.vector(p + "k_weight"))
        gate = engram_gate(x, key, w, cfg, self.order)
        self.taps.add(layer, "engram_gate", gate)
        return bf16(x + gate[..., None] * value)

    # ---- attention -----------------------------------------------------------------------
    def attention(self, layer, x, positions):
        """M 4.11: low-rank query, shared latent, window plus selected compressed entries."""
        cfg, p, order = self.cfg, "layers.%d.attn." % layer, self.order
        m, state = cfg.compress_ratio(layer), self.states[layer]
        rope = self.rope_yarn if m else self.rope_plain
        qr = rms_norm(self.quant_linear(x, p + "wq_a"), self.vector(p + "q_norm.weight"),
                      cfg.rms_norm_eps, order)
        q = self.quant_linear(qr, p + "wq_b").reshape(len(x), cfg.num_attention_heads, cfg.head_dim)
        q = rope.rotate(q, positions)
        kv = rms_norm(self.quant_linear(x, p + "wkv"), self.vector(p + "kv_norm.weight"),
                      cfg.rms_norm_eps, order)
        state.window_kv.extend(q8(rope.rotate(kv, positions)))
        if m:
            if layer in cfg.kv_source_layer_ids:
                self.compress(layer, x, m, rope)
            if layer in cfg.index_source_layer_ids:
                self.select(layer, x, qr, positions, m, rope)
        out = np.stack([self.attend(layer, q[t], int(positions[t]), t) for t in range(len(x))])
        out = rope.rotate(out, positions, inverse=True)
        return self.output_projection(p, out)

    def output_projection(self, p, out):
        """M 4.11 steps 7-8: block-diagonal wo_a on unquantised bf16, then the FP8 wo_b."""
        cfg = self.cfg
        grouped = out.reshape(len(out), cfg.o_groups, -1)
        wa = self.linear_weight(p + "wo_a").reshape(cfg.o_groups, cfg.o_lora_rank, -1)
        z = [bf16(self.order.dot(grouped[:, g], wa[g])) for g in range(cfg.o_groups)]
        return self.quant_linear(np.concatenate(z, axis=-1), p + "wo_b")

    def compress(self, layer, x, m, rope):
        """M 4.12 / N 15.1: pool m tokens per entry; the latent before RoPE feeds the index key."""
        cfg, p, state = self.cfg, "layers.%d.attn." % layer, self.states[layer]
        if m == 1:
            pooled = self.bf16_linear(x, p + "compressor.wkv")
        else:
            state.pending.extend(zip(self.f32_linear(x, p + "compressor.wkv"),
                                     self.f32_linear(x, p + "compressor.wgate")))
            groups = []
            while len(state.pending) >= m:
                groups.append(pool(state.pending[:m], self.order))
                del state.pending[:m]
            if not groups:
                return
            pooled = bf16(np.stack(groups))
        latent = rms_norm(pooled, self.vector(p + "compressor.norm.weight"), cfg.rms_norm_eps,
                          self.order)
        first = len(state.main_kv)
        at = np.arange(first, first + len(latent)) * m
        key = rms_norm(self.bf16_linear(latent, p + "indexer.wk"),
                       self.vector(p + "indexer.k_norm.weight"), cfg.rms_norm_eps, self.order)
        state.index_key.extend(q4i(rope.rotate(key, at)))
        state.main_kv.extend(q4kv(rope.rotate(latent, at)))

    def select(self, layer, x, qr, positions, m, rope):
        """M 4.13-4.14: index scores, candidate blocks, top-k list per query."""
        cfg, p, order = self.cfg, "layers.%d.attn.indexer." % layer, self.order
        heads = cfg.index_n_heads
        iq = self.quant_linear(qr, p + "wq_b").reshape(len(x), heads, cfg.index_head_dim)
        iq = q4i(rope.rotate(iq, positions))
        scale = F32((cfg.index_head_dim * heads) ** -0.5)
        weight = bf16(self.bf16_linear(x, p + "weights_proj") * scale)
        keys = self.states[cfg.owner(layer)].index_key          # ruling D1: own keys
        is_source = layer == cfg.candidate_source_layer_id
        masks, lists = [], []
        for t, position in enumerate(positions):
            visible = min((int(position) + 1) // m, len(keys))
            scores = self.index_scores(iq[t], weight[t], keys[:visible])
            if is_source:
                mask, gap = candidate_mask(scores, cfg.candidate_topk_blocks,
                                           cfg.candidate_block_size)
                masks.append(mask)
                self.taps.add(layer, "candidate_margin", [gap])
                self.taps.add(layer, "candidate_count", [int(mask.sum())])
            allowed = np.arange(visible)
            if self.candidates is not None and layer > cfg.candidate_source_layer_id >= 0:
                allowed = allowed[self.candidates[t]]
            count = min(cfg.index_topk, len(allowed))
            chosen, gap = stable_top(scores[allowed], count)
            lists.append(allowed[chosen])
            self.taps.add(layer, "topk_margin", [gap])
            self.taps.add(layer, "topk_cut", [_cut(scores[allowed], chosen)])
        if is_source:
            self.candidates = masks
        self.step_lists[layer] = lists
        self.taps.add(layer, "topk", lists)

    def index_scores(self, iq, weight, keys):
        """M 4.13 default path / N 15.2: bf16 after the dot, after the weight and after the sum."""
        if not len(keys):
            return np.zeros(0, F32)
        d = bf16(self.order.dot(np.stack(keys), iq, True))      # [entries, heads]
        u = bf16(np.maximum(d, F32(0)) * weight)
        return bf16(self.order.sequential(u))

    def attend(self, layer, q, position, t):
        """M 4.15: keys of one query, window first (positions), then the list in ascending order."""
        cfg, state = self.cfg, self.states[layer]
        low = max(position - cfg.sliding_window + 1, 0)
        keys = state.window_kv[low:position + 1]
        slots = list(range(low, position + 1))                  # block = slot // 64 (N 12.1)
        if cfg.compress_ratio(layer):
            chosen = self.step_lists[cfg.index_source(layer)][t]
            main = self.states[cfg.owner(layer)].main_kv
            keys = keys + [main[j] for j in chosen]
            first = (position // KEY_BLOCK + 1) * KEY_BLOCK
            slots += [first + rank for rank in range(len(chosen))]
        sink = self.vector("layers.%d.attn.attn_sink" % layer)
        return ATTENTION_FORMS[self.attention_form](
            q, np.stack(keys), np.array(slots), sink, F32(cfg.head_dim ** -0.5), self.order)

    # ---- experts -------------------------------------------------------------------------
    def moe(self, layer, x):
        """M 4.16 / N 14: sqrt-softplus scores, bias only selects, weight before w2."""
        cfg, p, order = self.cfg, "layers.%d.ffn." % layer, self.order
        logits = self.f32_linear(x, p + "gate") / F32(cfg.gate_temp)
        score = clean(order.sqrt(order.softplus(logits)))
        keys = clean(score + self.vector(p + "gate.bias"))
        picks = [stable_top(k, cfg.num_experts_per_tok) for k in keys]
        ids = np.array([chosen for chosen, _ in picks])
        self.taps.add(layer, "experts", ids)
        self.taps.add(layer, "expert_margin", [gap for _, gap in picks])
        weight = self.routing_weights(np.take_along_axis(score, ids, axis=1))
        self.taps.add(layer, "routing", weight)
        quantised = q8(x)               # one Q8 of the input serves every w1 and w3
        total = np.zeros_like(x)
        for e in range(cfg.n_routed_experts):
            rows, slots = np.nonzero(ids == e)
            if len(rows):
                y = self.expert(p + "experts.%d" % e, quantised[rows], weight[rows, slots])
                total[rows] = total[rows] + y
        return bf16(total + self.expert(p + "shared_experts", quantised, None))

    def routing_weights(self, score):
        """N 14: ascending id, 1e-20 added to the sum, then the route scale."""
        if not self.cfg.norm_topk_prob:
            return clean(score * F32(self.cfg.routed_scaling_factor))
        total = score[:, 0]
        for i in range(1, score.shape[1]):
            total = total + score[:, i]
        total = total + F32(1e-20)
        return clean(score / total[:, None] * F32(self.cfg.routed_scaling_factor))

    def expert(self, module, quantised, weight):
        """M 4.16 step 4: clamp, SiLU product, routing weight, bf16, then w2 on Q8(a)."""
        limit = F32(self.cfg.swiglu_limit)
        g = self.product(quantised, module + ".w1")
        u = self.product(quantised, module + ".w3")
        g, u = np.minimum(g, limit), np.clip(u, -limit, limit)
        a = (g * self.order.sigmoid(g)) * u
        if weight is not None:
            a = weight[:, None] * a
        return self.quant_linear(bf16(a), module + ".w2")


def _cut(scores, chosen):
    """Score of the last chosen entry: the scale against which a top-k margin is judged."""
    return float(scores[chosen].min()) if len(chosen) else 0.0


def hc_split(mix, scale, base, cfg, order):
    """M 4.10: pre with eps, post doubled, row softmax plus eps, then alternating divisions."""
    n, eps = cfg.hc_mult, cfg.hc_eps
    pre = clean(order.sigmoid(mix[:, :n] * scale[0] + base[:n]) + F32(eps))
    post = clean(F32(2) * order.sigmoid(mix[:, n:2 * n] * scale[1] + base[n:2 * n]))
    c = order.wide((mix[:, 2 * n:] * scale[2] + base[2 * n:]).reshape(-1, n, n))
    eps = c.dtype.type(F32(eps))
    e = order.wide(order.exp(c - c.max(axis=2, keepdims=True)))
    c = e / order.sum4(e, 2) + eps
    c = c / (order.sum4(c, 1) + eps)
    for _ in range(cfg.hc_sinkhorn_iters - 1):
        c = c / (order.sum4(c, 2) + eps)
        c = c / (order.sum4(c, 1) + eps)
    return pre, post, clean(c)


def engram_gate(h, key, w, cfg, order):
    """E 7 / N 16: per-stream normalised dot, signed square root with floor, sigmoid."""
    eps = cfg.rms_norm_eps
    t = clean(h * w * key)
    r = mean_rsqrt(h, eps, order) * mean_rsqrt(key, eps, order)
    d = clean(order.sum(t) * r * F32(cfg.hidden_size ** -0.5))
    return clean(order.sigmoid(np.copysign(order.sqrt(np.maximum(np.abs(d), F32(1e-6))), d)))


def pool(pairs, order):
    """N 15.1: softmax over the group's slots per channel, sequential sums in slot order."""
    v = [pair[0] for pair in pairs]
    g = np.stack([pair[1] for pair in pairs])
    e = clean(order.exp(g - g.max(axis=0)))
    total = e[0]
    for row in e[1:]:
        total = total + row
    y = v[0] * clean(e[0] / total)
    for value, row in zip(v[1:], e[1:]):
        y = y + value * clean(row / total)
    return y


def candidate_mask(scores, block_count, block_size):
    """M 4.14: keep the best blocks by their maximum; the block of the newest entry is pinned."""
    visible = len(scores)
    if visible == 0:
        return np.zeros(0, bool), np.inf
    count = -(-visible // block_size)
    best = np.array([scores[b * block_size:(b + 1) * block_size].max() for b in range(count)])
    best = best.astype(np.float64)
    best[(visible - 1) // block_size] = np.inf
    kept, gap = stable_top(best, min(block_count, count))
    mask = np.zeros(count, bool)
    mask[kept] = True
    return np.repeat(mask, block_size)[:visible], gap


def block_attention(q, keys, slots, sink, scale, order):
    """N 12.2: per key block its own maximum, weights rounded to bf16 for the values only,
    unrounded weights in the denominator, the sink last. Empty slots weigh +0."""
    s = clean(order.dot(q, keys) * scale)                       # [heads, keys]
    parts = []
    for b in np.unique(slots // KEY_BLOCK):
        sel = slots // KEY_BLOCK == b
        m_b = s[:, sel].max(axis=1)
        p = clean(order.exp(s[:, sel] - m_b[:, None]))
        arranged = np.zeros((len(q), KEY_BLOCK), F32)
        arranged[:, slots[sel] % KEY_BLOCK] = p
        parts.append((m_b, order.sum(arranged), order.dot(bf16(p), keys[sel].T)))
    m = np.maximum(np.max([part[0] for part in parts], axis=0), sink)
    total = np.zeros(len(q), F32)
    out = np.zeros(q.shape, F32)
    for m_b, l_b, o_b in parts:
        f = clean(order.exp(m_b - m))
        total = total + l_b * f
        out = out + clean(o_b * f[:, None])
    total = total + clean(order.exp(sink - m))
    return bf16(out / total[:, None])


def online_attention(q, keys, slots, sink, scale, order):
    """M 4.15: the released kernel's online softmax over blocks of 64 LIST entries. Only used to
    measure how much the contract's block rule differs from it."""
    m = np.full(len(q), -1e30, F32)
    den, acc = np.zeros(len(q), F32), np.zeros(q.shape, F32)
    for begin in range(0, len(keys), KEY_BLOCK):
        k = keys[begin:begin + KEY_BLOCK]
        s = order.dot(q, k) * scale
        new = np.maximum(m, s.max(axis=1))
        a, p = order.exp(m - new), order.exp(s - new[:, None])
        den = den * a + order.sum(p)
        acc = acc * a[:, None] + order.dot(bf16(p), k.T)
        m = new
    den = den + order.exp(sink - m)
    return bf16(acc / den[:, None])


def plain_attention(q, keys, slots, sink, scale, order):
    """Softmax with unrounded weights, as training code computes it: shows what the rounding of the
    weights to bf16 is worth, and separates it from other differences to such code."""
    s = order.dot(q, keys) * scale
    m = np.maximum(s.max(axis=1), sink)
    p = order.exp(s - m[:, None])
    total = order.sum(p) + order.exp(sink - m)
    return bf16(order.dot(p, keys.T) / total[:, None])


ATTENTION_FORMS = {"contract": block_attention, "online": online_attention,
                   "plain": plain_attention}
