"""Grants, rules and policies that an older version kept: the same text today, byte for byte. What it refused, in the same words.

`policies.json` holds every part of each, and every refusal that names no list of actions (services add theirs).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cloister.errors import InvalidDeclaration
from cloister.hub.decisions.policy import GrantFacts, MandatoryRule, Policy

STORED: dict[str, Any] = json.loads((Path(__file__).parent / "policies.json").read_text(encoding="utf-8"))


def read(kind: str, text: str) -> GrantFacts | MandatoryRule | Policy:
    if kind == "grant":
        return GrantFacts.read(text, id="g1", granted_by="ada")
    return MandatoryRule.read(text, id="m1") if kind == "rule" else Policy.read(text)


@pytest.mark.parametrize(("kind", "text"), STORED["kept"])
def test_what_was_kept_is_read_and_written_again(kind: str, text: str) -> None:
    found = read(kind, text)
    assert json.dumps(found.to_dict(), ensure_ascii=False) == json.dumps(found.to_keep(), ensure_ascii=False) == text


@pytest.mark.parametrize(("kind", "text", "told"), STORED["refused"])
def test_what_was_refused_is_refused_in_the_same_words(kind: str, text: str, told: str) -> None:
    with pytest.raises(InvalidDeclaration) as caught:
        read(kind, text)
    assert str(caught.value) == told
