"""Reports, certificates and risk pages in the reader's language: every sentence is told, and no name and no value is touched."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from cloister.anonymize import (
    AlphaKAnonymity,
    Anonymizer,
    BetaLikeness,
    DeltaDisclosure,
    Hierarchy,
    KAnonymity,
    LDiversity,
    TCloseness,
    risk,
)
from cloister.anonymize.certificate import NOT_PROMISED
from cloister.anonymize.report import NOT_PRIVATE
from cloister.anonymize.risks.words import LIMITS
from cloister.hub.services.anonymizing.papers import page_in, words_in
from cloister.hub.web.languages import language_of
from tests.hub.anonymizing.ordering import RELEASE, get, run
from tests.hub.house import House, Visitor

CHINESE = language_of("zh_CN")
TOWNS = ["Nancy", "Metz", "Brest", "Lille", "Pau", "Nice"]
FRAME: dict[str, list[Any]] = {
    "age": [17 + (each * each) % 60 for each in range(240)],
    "town": [TOWNS[each % 6] for each in range(240)],
    "code": [f"{54000 + each % 90}" for each in range(240)],
    "born": [f"19{50 + each % 40}-0{1 + each % 9}-11" for each in range(240)],
    "disease": [("flu", "gout", "cold")[each % 3] for each in range(240)],
    "pay": [each % 7 for each in range(240)],
    "hobby": ["chess"] * 240,
}
NAMES = {*FRAME, *TOWNS, "flu", "gout", "cold", "chess", "age and town", "people"}


def english(page: str) -> list[str]:
    """Texts of a page in which English words are left, besides names, models and units."""
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.S)
    texts = [unescape(each).strip() for each in re.findall(r">([^<]+)<", body)]
    bare = [
        re.sub(
            "|".join(sorted(NAMES, key=len, reverse=True)) + r"|SHA-256|CSV|[0-9a-f]{64}|Kullback–Leibler|Mondrian|−ln p",
            "",
            each,
        )
        for each in texts
    ]
    return [each for each, left in zip(texts, bare, strict=True) if re.search(r"[A-Za-z]{2,}", left)]


@pytest.mark.parametrize(
    ("search", "models", "hierarchies"),
    [
        ("optimal", [KAnonymity(5), LDiversity(2), TCloseness(0.6)], {"code": Hierarchy.masking(4, 2)}),
        ("greedy", [KAnonymity(5), BetaLikeness(9, enhanced=True)], {"town": Hierarchy.of({each: ["France"] for each in TOWNS})}),
        ("mondrian", [KAnonymity(5), LDiversity(2, kind="entropy"), AlphaKAnonymity("0.9", 5)], {}),
        ("topdown", [KAnonymity(5), LDiversity(2, kind="recursive", c=9)], {"age": Hierarchy.intervals(10, 20)}),
        ("local", [KAnonymity(3), DeltaDisclosure(5)], {"age": Hierarchy.intervals(10, 20, low=10, high=90)}),
    ],
)
def test_no_sentence_of_a_paper_stays_english(search: str, models: list[Any], hierarchies: dict[str, Hierarchy]) -> None:
    anonymizer = Anonymizer(
        quasi=["age", "town", "code", "born"] if search == "optimal" else ["age", "town"], sensitive=["disease", "pay"],
        identifying=["hobby"], models=models, search=search, suppression=0.2, hierarchies=hierarchies,
    )  # fmt: skip
    released = anonymizer.fit_transform(FRAME)
    before = risk(FRAME, quasi=["age", "town"], sensitive=["disease", "pay"])
    for page in (
        anonymizer.certificate(released).to_html(title="people"),
        anonymizer.report_.to_html(),
        before.to_html(of="people"),
    ):
        told = page_in(page, CHINESE)
        assert english(page)
        assert english(told) == []
        assert '<html lang="zh-Hans">' in told
        assert page_in(page, language_of("en")) == page
        assert re.findall(r"<[a-z]+", told) == re.findall(r"<[a-z]+", page)


def test_names_and_values_stay_as_they_are() -> None:
    frame = {"rows & <more>": [1, 1, 2, 2], "Date of": ["a, b", "a, b", "c and d", "c and d"], "x; y": ["p", "q", "p", "q"]}
    page = risk(frame, quasi=["rows & <more>", "Date of"], sensitive=["x; y"]).to_html(of="the data & more")
    told = page_in(page, CHINESE)
    for name in ("rows &amp; &lt;more&gt;", "Date of", "x; y", "the data &amp; more"):
        assert name in told, name
    assert "<more>" not in told


def test_what_papers_say_below_the_hub_is_what_the_catalogue_holds() -> None:
    for text in (*NOT_PROMISED, *LIMITS, f"{NOT_PRIVATE}."):
        assert text in CHINESE.papers
        assert words_in(CHINESE)(text) != text


def test_the_pages_of_the_hub_are_told(house: House, owner: Visitor) -> None:
    told = run(house, owner, "/anonymised", {**RELEASE, "l": 2})
    number = told["result"]["href"].rpartition("/")[2]
    owner.client.headers["accept-language"] = "zh-CN"
    for paper in ("certificate", "report"):
        page = owner.client.get(f"/anonymised/{number}/{paper}")
        assert re.search(r'<html lang="zh', page.text), page.text[:300]
        assert "What" not in page.text
        assert "age" in page.text
    page = owner.client.get(f"/anonymised/{number}").text
    assert "5-匿名" in page
    assert get(house, owner, f"/anonymised/{number}").json()["certificate"]["models"][0]["model"] == "5-anonymity"


def test_a_text_that_could_be_parted_in_very_many_ways_is_told_at_once() -> None:
    """Names of columns are whatever somebody calls them: tried one way after the other, these would take years."""
    words = words_in(language_of("zh_CN"))
    for text in CHINESE.papers:
        fixed = re.split(r"\{\w+\}", text)
        for between in filter(None, fixed[1:-1]):
            words((fixed[0] + "x" + between * 1000)[:1990])
    assert words("5-anonymity and more") == "5-anonymity and more"
