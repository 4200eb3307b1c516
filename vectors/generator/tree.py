"""The hash tree of files (docs/protocol.md, section 6), with a BLAKE3 of its own.

BLAKE3 is written here from its specification, slowly and plainly. vectors/tree/content.json and
folds.json come from byname; this says for the cases that Python has time for whether they are
what the specification says.
"""

import json

CHUNK_BYTES, BLOCK_BYTES, UNIT_BYTES, FANOUT = 1024, 64, 8192, 256
CHECKED_BYTES_MAX, CHECKED_UNITS_MAX = 70_000, 1000
CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8
WORD = 0xFFFFFFFF
IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB,
      0x5BE0CD19)
PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))


def rotated(word, bits):
    return (word >> bits | word << 32 - bits) & WORD


def mix(state, places, x, y):
    a, b, c, d = (state[place] for place in places)
    for word, right, left in ((x, 16, 12), (y, 8, 7)):
        a = (a + b + word) & WORD
        d = rotated(d ^ a, right)
        c = (c + d) & WORD
        b = rotated(b ^ c, left)
    for place, word in zip(places, (a, b, c, d)):
        state[place] = word


def compress(value, block, counter, flags):
    """The chaining value (8 words) after one block of at most 64 octets."""
    padded = block.ljust(BLOCK_BYTES, b"\0")
    words = [int.from_bytes(padded[at:at + 4], "little") for at in range(0, BLOCK_BYTES, 4)]
    state = [*value, *IV[:4], counter & WORD, counter >> 32, len(block), flags]
    for _ in range(7):
        for number, places in enumerate(COLUMNS + DIAGONALS):
            mix(state, places, words[2 * number], words[2 * number + 1])
        words = [words[place] for place in PERMUTATION]
    return [state[place] ^ state[place + 8] for place in range(8)]


def octets(value):
    return b"".join(word.to_bytes(4, "little") for word in value)


def chunk(content, number, flags=0):
    """The chaining value of one chunk."""
    value = IV
    starts = range(0, max(len(content), 1), BLOCK_BYTES)
    for at in starts:
        kind = (CHUNK_START if at == 0 else 0) | (CHUNK_END | flags if at == starts[-1] else 0)
        value = compress(value, content[at:at + BLOCK_BYTES], number, kind)
    return octets(value)


def half(count):
    """The largest power of two below a count."""
    return 1 << (count - 1).bit_length() - 1


def fold(values, flags=0):
    """One value of several; the left part is the largest power of two below their number."""
    if len(values) == 1:
        return values[0]
    left = half(len(values))
    return octets(compress(IV, fold(values[:left]) + fold(values[left:]), 0, PARENT | flags))


def blake3(content):
    """The plain hash."""
    if len(content) <= CHUNK_BYTES:
        return chunk(content, 0, ROOT)
    return fold(chunks(content, 0), ROOT)


def chunks(content, first):
    starts = range(0, len(content), CHUNK_BYTES)
    return [chunk(content[at:at + CHUNK_BYTES], first + n) for n, at in enumerate(starts)]


def levels_above(values):
    """All levels and the root, from the values of level 1."""
    levels = [values]
    while len(levels[-1]) > FANOUT:
        below = levels[-1]
        levels.append([fold(below[at:at + FANOUT]) for at in range(0, len(below), FANOUT)])
    return levels, fold(levels[-1], ROOT)


def tree(content):
    """(levels, root) of a file."""
    if len(content) <= UNIT_BYTES:
        return [], blake3(content)
    starts = range(0, len(content), UNIT_BYTES)
    return levels_above(
        [fold(chunks(content[at:at + UNIT_BYTES], at // CHUNK_BYTES)) for at in starts])


def shown(levels, root):
    joined = [b"".join(level) for level in levels]
    return {"root": root.hex(),
            "levels": [{"bytes": len(one), "blake3": blake3(one).hex()} for one in joined]}


def differences(folder):
    """What is in content.json and folds.json and should be otherwise."""
    for case in json.loads((folder / "content.json").read_text())["cases"]:
        if case["size"] > CHECKED_BYTES_MAX:
            continue
        content = bytes(at % 251 for at in range(case["size"]))
        if shown(*tree(content)) != {"root": case["root"], "levels": case["levels"]}:
            yield f"tree/content.json, {case['size']} octets"
    for case in json.loads((folder / "folds.json").read_text())["cases"]:
        if case["units"] > CHECKED_UNITS_MAX:
            continue
        values = [blake3(at.to_bytes(8, "little")) for at in range(case["units"])]
        if shown(*levels_above(values)) != {"root": case["root"], "levels": case["levels"]}:
            yield f"tree/folds.json, {case['units']} units"
