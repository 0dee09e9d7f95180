"""Text to token ids and back: byte-level BPE, as GPT-2 introduced it, with the splitting of SmolLM's tokenizer (each
digit by itself). For prompts of an example: Unicode's classes are Python's, which differ from the original's for rare
signs such as superscript digits."""

import re

SPLITTING = "gpt2/smollm"
CONTROL = 3  # the token type of <|im_start|> and the like, which text stands for as a whole
_DIGIT = re.compile(r"(\d)")
_WORDS = re.compile(r"\d|'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def _byte_signs():
    """The sign that stands for each byte in a token: itself where it can be seen, else one from U+0100 on."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return {**{byte: chr(byte) for byte in seen}, **{byte: chr(256 + i) for i, byte in enumerate(hidden)}}


class ByteBpe:
    def __init__(self, tokens, types, merges):
        self.signs = _byte_signs()
        self.bytes = {sign: byte for byte, sign in self.signs.items()}
        self.tokens, self.ids = tokens, {token: i for i, token in enumerate(tokens)}
        self.ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}
        self.control = {token for token, kind in zip(tokens, types, strict=True) if kind == CONTROL}
        self.stops = re.compile("|".join(f"({re.escape(token)})" for token in sorted(self.control)) or r"(?!)")

    def encode(self, text):
        """Ids; control tokens that are written out in the text become themselves."""
        ids, begin = [], 0
        for stop in self.stops.finditer(text):
            ids += self._encode_plain(text[begin:stop.start()]) + [self.ids[stop.group()]]
            begin = stop.end()
        return ids + self._encode_plain(text[begin:])

    def decode(self, ids):
        """The text, with U+FFFD for what is no UTF-8 (a sign of several bytes that was cut)."""
        out = bytearray()
        for token in (self.tokens[i] for i in ids):
            out += token.encode() if token in self.control else bytes(self.bytes[sign] for sign in token)
        return out.decode(errors="replace")

    def _encode_plain(self, text):
        words = (word for part in _DIGIT.split(text) for word in _WORDS.findall(part))
        return [self.ids[piece] for word in words for piece in self._merged(word)]

    def _merged(self, word):
        """The word's pieces, merged two by two, the pair of the lowest rank first."""
        pieces = [self.signs[byte] for byte in word.encode()]
        while len(pieces) > 1:
            pairs = [self.ranks.get(pair, len(self.ranks)) for pair in zip(pieces, pieces[1:])]
            at = min(range(len(pairs)), key=pairs.__getitem__)
            if pairs[at] == len(self.ranks):
                break
            pieces[at:at + 2] = [pieces[at] + pieces[at + 1]]
        return pieces
