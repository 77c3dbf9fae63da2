"""Ways to damage a file: its bytes, its values, its words, and the chunks of a trace."""

from __future__ import annotations

import copy
import io
import json
import random
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from bsplib.recording.packing import HEADER, MAGIC, chunks_in, zstd

NUMBERS = (0, -1, 1, 2**31, 2**53, 2**64, -(2**63), 10**400, 1e308, float("nan"), float("inf"), 0.5)
TEXTS = (
    *(
        "",
        "a" * 5000,
        "a" * 200_000,
        "\x00",
        "\x1b[31mred",
        "\x7f",
        "\x9b1m",
        "\u202egnp",
        "\ud800",
    ),
    *("<b>", "[/red]", "../../etc/passwd", "max", "1/0", "p**p**p", "a,b", "a\nb", "a\tb"),
)
OTHERS = (None, True, [], {}, [[]], [[[[[]]]]], [0] * 5000)
_WORD = re.compile(r"\w+(?:\.\w+)?|\s+|.", re.DOTALL)


def changed_bytes(data: bytes, draw: random.Random) -> bytes:
    """Flip, cut, repeat or insert bytes."""
    for _ in range(draw.choice((1, 1, 2, 8))):
        at, size = draw.randrange(len(data) + 1), draw.choice((1, 1, 8, 64))
        part = draw.randbytes(size) if draw.random() < 0.5 else data[at : at + size] * 2
        data = data[:at] + part + data[at + draw.choice((0, size, len(part))) :]
        if draw.random() < 0.1:
            data = data[: draw.randrange(len(data) + 1)]
    return data


def changed_words(data: bytes, draw: random.Random) -> bytes:
    """Change words of a text file: numbers mostly a little, others into what is hostile."""
    if draw.random() < 0.1:
        return changed_bytes(data, draw)
    words = _WORD.findall(data.decode())
    for _ in range(draw.choice((1, 1, 2, 5))):
        at = draw.randrange(len(words))
        if words[at].isdigit() and draw.random() < 0.4:
            words[at] = str(int(words[at]) + draw.choice((1, -1, 7)))
        elif draw.random() < 0.2:
            words[at] = ""
        elif draw.random() < 0.3:
            words[at] = words[at] * 2 + draw.choice(words)
        else:
            words[at] = str(draw.choice(NUMBERS + TEXTS))
    return "".join(words).encode("utf-8", "surrogatepass")


def leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the place of every value of a document: its container, and its key there."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from leaves(value[key])


def changed_json(data: bytes, draw: random.Random) -> bytes:
    """Change values of a JSON document, mostly a little; at times its bytes."""
    if draw.random() < 0.1:
        return changed_bytes(data, draw)
    document = [json.loads(data)]  # so that the whole is a value, too
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        place, key = draw.choice(list(leaves(document)) or [(document, 0)])
        old = place[key] if document else 0
        if type(old) in (int, float) and draw.random() < 0.6:
            place[key] = old + draw.choice((1, -1, 7, -old, old))
        elif isinstance(old, str) and draw.random() < 0.6:
            place[key] = old + str(draw.choice(TEXTS))
        elif draw.random() < 0.2 and place is not document:
            place.pop(key)
        elif draw.random() < 0.3:
            place[key] = copy.deepcopy(draw.choice(list(leaves(document)))[0])
        elif isinstance(place, dict) and draw.random() < 0.2:
            place[draw.choice(TEXTS)] = place.pop(key)
        else:
            place[key] = copy.deepcopy(draw.choice(NUMBERS + TEXTS + OTHERS))
    return json.dumps(document[0]).encode()


def changed_lines(data: bytes, draw: random.Random) -> bytes:
    """Change a line of JSON, or the order and number of lines."""
    lines = data.splitlines(keepends=True)
    at = draw.randrange(len(lines))
    if draw.random() < 0.1:
        lines[at] = draw.choice(lines) * draw.choice((0, 2, 1000))
    else:
        lines[at] = changed_json(lines[at], draw) + b"\n"
    return b"".join(lines)


def changed_chunks(member: bytes, draw: random.Random) -> bytes:
    """Change what a chunk of rows says, or its header, so that it can still be unpacked."""
    chunks = [*chunks_in(member)]
    if not chunks:
        return member
    chosen = draw.randrange(len(chunks))
    whole = []
    for place, chunk in enumerate(chunks):
        payload = bytes(chunk.payload)
        if place == chosen:
            content = bytearray(zstd.decompress(payload))
            for _ in range(draw.choice((1, 1, 3))):
                at = draw.randrange(len(content))
                content[at] = draw.choice((0, 1, 2, content[at] ^ 1, 255, draw.getrandbits(8)))
            payload = zstd.compress(content)
        fields = [MAGIC, chunk.rows, chunk.numbering, len(payload), chunk.base]
        if place == chosen and draw.random() < 0.2:
            fields[draw.randrange(1, 5)] = draw.choice((0, 1, 2, 2**31, chunk.rows + 1))
        whole.append(HEADER.pack(*fields) + payload)
    return b"".join(whole)


def changed_trace(data: bytes, draw: random.Random) -> bytes:
    """Change the archive, or a member of it behind a sound archive."""
    if draw.random() < 0.1:
        return changed_bytes(data, draw)
    with zipfile.ZipFile(io.BytesIO(data)) as before:
        members = {name: before.read(name) for name in before.namelist()}
    chosen = draw.choice(list(members))
    if draw.random() < 0.05:
        members = blown_up(members, draw)
    elif chosen.endswith(".json"):
        members[chosen] = changed_json(members[chosen], draw)
    elif draw.random() < 0.2:
        members[chosen] = changed_bytes(members[chosen], draw)
    else:
        members[chosen] = changed_chunks(members[chosen], draw)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as after:
        for name, member in members.items():
            after.writestr(name, member)
    return out.getvalue()


_EQUAL = bytes((0, 0)) + bytes(8)
"""A column in which every residue is 0."""


def blown_up(members: dict[str, bytes], draw: random.Random) -> dict[str, bytes]:
    """Return the members with a table of many equal rows, which take few bytes."""
    table = draw.choice([name for name in members if name.startswith("run-0/")])
    fields = {"records": 22, "traffic": 5, "samples": 4, "waits": 2}.get(table[6:])
    if fields is None:
        return members
    payload, count = zstd.compress(_EQUAL * fields), draw.choice((10, 100, 1000))
    chunk = HEADER.pack(MAGIC, 2**14, 0, len(payload), 0) + payload
    document = json.loads(members["trace.json"])
    document["runs"][0][table[6:]] = count << 14
    return members | {table: chunk * count, "trace.json": json.dumps(document).encode()}
