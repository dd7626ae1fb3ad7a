"""The parsers of texts that somebody else wrote, and texts that are hostile to parsers.

`python -m tests.security.hostile`, in a process of its own, gives each parser every text within 64 MiB more than there are, and
prints each that was neither read nor refused in the person's words.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOM = 64 * 2**20
_HANGS = 60  # seconds of the processor for all texts: a parser whose work grows with the square takes minutes


def _of(place: str) -> Callable[[str], Any]:
    """A function or a class method, looked up when it is called."""
    module, _, path = place.partition(":")

    def read(text: str) -> Any:
        found = import_module(f"cloister.{module}")
        for name in path.split("."):
            found = getattr(found, name)
        return found(text)

    return read


def _sql(text: str) -> Any:
    import cloister as cl
    from cloister.query.parse import parse

    return parse(text, {"people": cl.PrivateTable({"age": [1]}, {"age": cl.Integer(0, 9)})})


def _rule(text: str) -> Any:
    import cloister as cl
    from cloister.synth.rule_texts import read

    return read(text, "people", {"age": cl.Integer(0, 9)})


def _numbers(text: str) -> None:
    from cloister.tables.sourcing import reading

    for name in ("read_whole", "read_number", "read_truth", "read_days", "read_seconds"):
        getattr(reading, name)(text)


def _joined(text: str) -> Any:
    from cloister.hub.services.sites.joining import _declared

    return _declared(SimpleNamespace(table=text, size=None, reason=""))  # type: ignore[arg-type]


def _objects(text: str) -> Any:
    from cloister.hub.services.sites.joining import _objects as read

    return read(text, "It is invalid", "an object")


PARSERS: Mapping[str, Callable[[str], Any]] = {
    "a codebook": _of("tables.declaring.codebooks:read_codebook"),
    "a DDI codebook": _of("tables.declaring.ddi:read_ddi"),
    "CREATE TABLE": _of("tables.declaring.create_table:read_create_table"),
    "a peer's metadata": _of("tables.declaring.metadata:read_metadata"),
    "a table at sites": _joined,
    "signatures of a roster": _objects,
    "a version of the protocol": _of("together.coordinator:_version"),
    "a plan through a proxy": _of("together.proxy:ProxyPlan.from_text"),
    "an exact plan": _of("together.service_provider:ExactPlan.from_text"),
    "a public key": _of("crypto.paillier:PublicKey.from_json"),
    "a question": _sql,
    "a question of psql": _of("pgwire.reading:read_all"),
    "a rule of rows": _rule,
    "a spend": _of("privacy:exact"),
    "cells of a file": _numbers,
    "a cast in SQL": _of("tables.expression.casts:read_exactly"),
    "a moment": lambda text: _of("traces.moments:moments_of")([text]),  # type: ignore[arg-type]
    "a release": _of("session.releases.wire:from_json"),
    "a survey": _of("local.survey:Survey.from_json"),
    "a model": _of("learn:load"),
    "a synthetic model": _of("synth:SyntheticModel.from_json"),
    "a model of numbers": _of("synth.gaussians:GaussianModel.from_json"),
    "TOML": _of("parsers:toml_of"),
    "JSON": lambda text: import_module("cloister.parsers").json_from(text, most=2**22),
    "a whole number": _of("parsers:whole_of"),
}
"""What a person or another party writes, and what reads it. A parser that is not here fails `test_parsers.py`."""

_HEAD, _CHECK = '<?xml version="1.0" encoding="{}"?><codeBook><var name="age"/></codeBook>', "CREATE TABLE p (age INT CHECK ({}))"
_WHERE = "SELECT COUNT(*) AS n FROM people WHERE {}"
HOSTILE: Mapping[str, str] = {
    "a dotted key": "a." * 40_000 + "b = 1",
    "a dotted header": "[" + "a." * 40_000 + "b]",
    "a quoted dotted key": '"a".' * 20_000 + "b = 1",
    "a dotted key of a codebook": "[tables.people.columns]\n" + "a." * 40_000 + "b = 1",
    "arrays of a codebook": "[tables.people.columns]\na = " + "[" * 40_000,
    "nested arrays": "a = " + "[" * 100_000,
    "nested inline tables": "a = " + "{a=" * 50_000,
    "deep JSON": "[" * 200_000,
    "deep JSON objects": '{"a":' * 100_000,
    "many JSON objects": "{}" * 400_000,
    "digits": "9" * 100_000,
    "a large exponent": "1e100000000",
    "a small exponent": "1e-100000000",
    "a fraction": "1/" + "9" * 100_000,
    "XML in UTF-7": _HEAD.format("utf-7"),
    "XML in UTF-16": _HEAD.format("utf-16"),
    "XML in punycode": _HEAD.format("punycode"),
    "XML with entities": '<!DOCTYPE a [<!ENTITY b "xxxx"><!ENTITY c "&b;&b;&b;">]><codeBook>&c;</codeBook>',
    "deep XML": "<a>" * 300_000,
    "many attributes": "<codeBook " + " ".join(f'a{each}="1"' for each in range(50_000)) + "/>",
    "a long CHECK": _CHECK.format(" AND ".join(f"age < {each}" for each in range(30_000))),
    "a CHECK": _CHECK.format(" AND ".join(f"age < {each}" for each in range(3_000))),
    "a deep CHECK": _CHECK.format("(" * 20_000 + "age < 1" + ")" * 20_000),
    "a deep SELECT": "SELECT " + "(" * 20_000 + "1" + ")" * 20_000 + " FROM people",
    "a long OR": _WHERE.format(" OR ".join(["age = 1"] * 5_000)),
    "NOT NOT": _WHERE.format("NOT " * 10_000 + "age = 1"),
    "minus minus": "SELECT SUM(" + "- " * 10_000 + "age) AS n FROM people",
    "deep YAML": "a:\n" + "".join(" " * depth + "a:\n" for depth in range(1_200)),
    "aliases of YAML": "a: &a [x, x]\n" + "".join(f"{n}: &{n} [{', '.join([f'*{m}'] * 9)}]\n" for m, n in pairwise("abcdefgh")),
    "types": "  type: x\n" * 50_000,
    "backslashes": "\\" * 200_000,
    "quotes": '"' * 200_000,
    "brackets": "]" * 200_000,
    "NUL": "\0" * 1_000,
    "surrogates": "\ud800" * 1_000,
    "an element and surrogates": "<a>" + "\ud800" * 1_000,
    "blanks": " " * 1_000_000,
    "semicolons": ";" * 300_000,
    "commas": "," * 500_000,
    "lines": "\n" * 1_000_000,
    "words": "aaaa " * 200_000,
    "a long word": "a" * 1_000_000,
    "numbers that are none": '{"format": 1, "epsilon": 1e400, "a": NaN, "b": Infinity}',
    **{each: each for each in ("", "{}", "[1, 2, 3]", "17", "null", '"x"')},
}


def tried(name: str, read: Callable[[str], Any]) -> None:
    """Try one parser."""
    from cloister.errors import CloisterError

    with suppress(Exception):
        read("x")  # what it imports is not its text's doing
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + ROOM, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + _HANGS, resource.RLIM_INFINITY))
    ours = ValueError if name in ("TOML", "JSON", "a whole number") else CloisterError
    for label, text in HOSTILE.items():
        try:
            read(text)
        except ours:
            pass
        except BaseException as error:
            print(f"{name}, {label}: {type(error).__name__} {str(error)[:100]}", flush=True)
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print("tried", name, flush=True)


if __name__ == "__main__":
    for parser, reader in PARSERS.items():
        tried(parser, reader)
