"""Each privacy model has a page: the attack that made it necessary, its classes as rectangles, its limits, a source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cloister.anonymize as room
from cloister.anonymize.models.base import PrivacyModel

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "reference" / "anonymize"
FIGURES = ROOT / "docs" / "figures"
PAGE_OF = {
    "KAnonymity": "k-anonymity",
    "KMap": "k-map",
    "AlphaKAnonymity": "alpha-k-anonymity",
    "LDiversity": "l-diversity",
    "TCloseness": "t-closeness",
    "BetaLikeness": "beta-likeness",
    "DeltaDisclosure": "delta-disclosure",
    "DeltaPresence": "delta-presence",
    "SafePub": "safepub",
}


def test_every_model_has_a_page_of_its_own() -> None:
    things = {name: getattr(room, name) for name in room.__all__}
    models = {name for name, thing in things.items() if isinstance(thing, type) and issubclass(thing, PrivacyModel)}
    assert models | {"SafePub"} == set(PAGE_OF)
    assert len(set(PAGE_OF.values())) == len(PAGE_OF)


@pytest.mark.parametrize(("model", "page"), PAGE_OF.items())
def test_the_page_has_the_attack_the_rectangles_and_the_limits(model: str, page: str) -> None:
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    assert re.search(rf"\b{model}\(", text), "no example"
    assert re.search(r"\*\*The attacks? that made it necessary", text)
    assert re.search(r"\*\*What it (?:does not promise|costs)", text)
    assert re.search(r"^\*Sources?:\*", text, re.MULTILINE)
    figures = [FIGURES / f"{name}.py" for name in re.findall(r"/figures/(\w+)\.svg", text)]
    assert any(re.search(r"class_map\(|mark_rect\(", figure.read_text(encoding="utf-8")) for figure in figures)


@pytest.mark.parametrize("page", PAGE_OF.values())
def test_the_page_is_in_the_table_of_models(page: str) -> None:
    table = (PAGES / "index.md").read_text(encoding="utf-8").split("## Which model")[1].split("## Which search")[0]
    assert f"]({page}.md)" in table
