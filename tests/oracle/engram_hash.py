"""Engram integer work, from engram.md sections 2-5: token map, multipliers, primes, row ids.

Python integers only, so no overflow question arises. The normaliser runs on the published
`tokenizers` package (engram.md 2 names its semantics).
"""
import json
import os
import re

import numpy as np

DEAD = -1


def byte_alphabet():
    """Byte-level BPE stand-in character -> byte (printable bytes stand for themselves)."""
    printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    others = [b for b in range(256) if b not in printable]
    table = {chr(b): b for b in printable}
    table.update({chr(256 + i): b for i, b in enumerate(others)})
    return table


def make_normaliser():
    """engram.md 2: the fixed chain NFKC, NFD, StripAccents, Lowercase, collapse, Strip."""
    from tokenizers import Regex, normalizers as n
    return n.Sequence([n.NFKC(), n.NFD(), n.StripAccents(), n.Lowercase(),
                       n.Replace(Regex("[ \t\r\n]+"), " "),
                       n.Replace(Regex("^ $"), "\ue000"),
                       n.Strip(), n.Replace("\ue000", " ")])


def token_texts(tokenizer_json):
    """(raw vocabulary string, decoded text) per id; added tokens decode to their content."""
    doc = tokenizer_json
    alphabet = byte_alphabet()
    raw = {i: s for s, i in doc["model"]["vocab"].items()}
    added = {a["id"]: a["content"] for a in doc["added_tokens"]}
    raw.update(added)
    out = []
    for i in range(max(raw) + 1):
        if i not in raw:
            raise ValueError("tokenizer.json has no id %d" % i)
        if i in added or not all(c in alphabet for c in raw[i]):
            text = raw[i]
        else:
            text = bytes(alphabet[c] for c in raw[i]).decode("utf-8", "replace")
        out.append((raw[i], text))
    return out


def token_map(directory, vocab_size, expected_keys):
    """engram.md 2: id -> compressed id, with the hard check on the number of keys."""
    with open(os.path.join(directory, "tokenizer.json"), encoding="utf-8") as f:
        texts = token_texts(json.load(f))
    if len(texts) < vocab_size:
        raise ValueError("tokenizer.json has %d ids, config says %d" % (len(texts), vocab_size))
    normaliser = make_normaliser()
    keys, table = {}, []
    for raw, text in texts[:vocab_size]:
        key = raw if "\ufffd" in text else (normaliser.normalize_str(text) or text)
        table.append(keys.setdefault(key, len(keys)))
    if len(keys) != expected_keys:
        raise ValueError("token map has %d keys, engram_compressed_vocab_size is %d"
                         % (len(keys), expected_keys))
    return table


def multipliers(layer, compressed_vocab, count):
    """engram.md 3: odd multipliers of NumPy's own generator seeded by 10007 * layer."""
    bound = max(1, ((2 ** 63 - 1) // compressed_vocab) // 2)
    draws = np.random.default_rng(10007 * layer).integers(0, bound, size=count, dtype=np.int64)
    return [2 * int(d) + 1 for d in draws]


def is_prime(n):
    """Deterministic Miller-Rabin for 64-bit integers."""
    if n < 2:
        return False
    small = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    for p in small:
        if n % p == 0:
            return n == p
    d, s = n - 1, 0
    while d % 2 == 0:
        d, s = d // 2, s + 1
    for a in small:
        x = pow(a, d, n)
        if x in (1, n - 1):
            continue
        for _ in range(s - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def prime_tables(layers, vocab_size, max_ngram, heads):
    """engram.md 4: primes[layer][order index][head]; one used set over all layers and orders."""
    used, out = set(), {}
    for layer in layers:
        orders = []
        for _ in range(2, max_ngram + 1):
            current, row = vocab_size - 1, []
            for _ in range(heads):
                current += 1
                while current in used or not is_prime(current):
                    current += 1
                used.add(current)
                row.append(current)
            orders.append(row)
        out[layer] = orders
    return out


class Hasher:
    """Row ids per position for one Engram layer (engram.md 5)."""

    def __init__(self, mults, primes, pad):
        self.mults, self.primes, self.pad = mults, primes, pad
        flat = [p for order in primes for p in order]
        self.row_count = sum(flat)
        self.offsets = [sum(flat[:i]) for i in range(len(flat))]

    def window(self, history, p):
        """Look-back latch: after the start or a DEAD id, all longer look-backs are pad."""
        out, blocked = [], False
        for s in range(len(self.mults)):
            blocked = blocked or p < s or history[p - s] == DEAD
            out.append(self.pad if blocked else history[p - s])
        return out

    def rows(self, history, p):
        t = self.window(history, p)
        x = t[0] * self.mults[0]
        ids, column = [], 0
        for i in range(1, len(t)):
            x ^= t[i] * self.mults[i]
            for prime in self.primes[i - 1]:
                ids.append(x % prime + self.offsets[column])
                column += 1
        return ids


def build_hashers(config, pad_compressed):
    primes = prime_tables(config.engram_layer_ids, config.engram_vocab_size,
                          config.engram_max_ngram_size, config.engram_n_heads)
    out = {}
    for layer, rows in zip(config.engram_layer_ids, config.engram_num_embeddings):
        mults = multipliers(layer, config.engram_compressed_vocab_size,
                            config.engram_max_ngram_size)
        out[layer] = Hasher(mults, primes[layer], pad_compressed)
        if out[layer].row_count != rows:
            raise ValueError("engram layer %d: primes sum to %d, config says %d"
                             % (layer, out[layer].row_count, rows))
    return out
