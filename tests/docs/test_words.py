"""The pages speak plain words: one term for a thing, no subject that is a bare "who", no image where a plain word exists."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MADE = ("_build", "api")  # written by the documentation's builder
PAGES = [
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if not set(MADE) & set(path.relative_to(ROOT).parts)),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "CHANGELOG.md",
]
PAGES.remove(ROOT / "docs" / "benchmarks.md")  # `make bench` writes it, in the words of the benchmarks

# What is avoided, as a regular expression, and the word to write instead.
AVOIDED = {
    r"\b[Tt]rails?\b": "audit log",
    r"\baskers?\b|\bdata users?\b": "analyst",
    r"\bbars of error\b": "error bars",
    r"\ballotments?\b": "share",
    r"\bdebit(?:s|ed)?\b": "charge",
    r"\bcaptured variance\b": "explained variance",
    r"\bshare of right answers\b": "accuracy",
    r"\bkept back\b": "not released",
    r"\bset anew\b|\banew\b": "reset; again",
    r"\b[Bb]eforehand\b": "in advance",
    r"\blikeli(?:er|est)\b": "more likely; most likely",
    r"\bshall\b": "must or will",
    r"\bpersons\b": "people",
    r"\b[Ff]all-back codes\b": "backup codes",
    r"\b[Pp]resent password\b": "current password",
    r"\b[Ll]og-ins?\b|(?<!audit )\b[Ll]og(?:s|ged|ging)? in\b": "session; sign in",
    r"\bnobody's rows\b|\bis nobody's\b|\bare nobody's\b|\binvented\b": "made-up",
    r"\b[Dd]atasets?\b": "data set",
    r"(?<![-@\w])\b[Ee]mails?\b": "e-mail",
    r"\bpercent\b": "per cent",
    r"\b(?:is|are) no differential privacy\b": "is not differentially private",
    r"\b[Ii]t is no (?!one\b|longer\b|more\b|less\b)\w": "it is not a",
    r"\b(?:drowns?|wakes?|tells? of|told of|stands? in the)\b": "a plain word: hides, resumes, reveals, is in",
    r"\bsharpness\b": "margin of error; confidence",
}
# "Anyone who …", never a bare who: at the beginning of a sentence that is no question.
WHO = re.compile(r"(?:[.:;] |\*\* |\n)(?:Whoever|Who)\b[^.?!:|]*[.:|]")
SUBJECT = re.compile(r"(?<=[:;] )who(?:ever)? (?:has|have|holds|knows|wants|loses|asks|sees|sends|finds|is named)\b")
MONEY = re.compile(r"\b(?:buy|buys|bought|purchases?|purchased|pays? for|paid for|the price of(?! privacy))\b")
HER = re.compile(r"\b(?:[Ss]he|[Hh]ers?|[Hh]e|[Hh]is|[Hh]im)\b")

# The exceptions.
MONEY_IS_PLAIN = ("docs/tutorials/", "docs/learn/")  # VOICE: words of money in lessons alone
PERSON_IS_NAMED = ("docs/tutorials/a-first-hub.md", "docs/tutorials/first-answer.md", "docs/learn/")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@functools.cache
def prose(page: Path) -> str:
    """A page's text without code, links' targets and formulas; lines keep their numbers."""

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found.group())

    text = page.read_text(encoding="utf-8")
    for pattern in (
        r"^(\s*)(`{3,}|~{3,}).*?^\s*\2\s*$",
        r"<!--.*?-->",
        r"`[^`]+`",
        r"(?<=\])\([^)\s]*\)",
        r"^%[^\n]*$(?=\n(?:%|\n))",  # a hidden block
        r"\$\$.*?\$\$",
    ):
        text = re.sub(pattern, blank, text, flags=re.DOTALL | re.MULTILINE)
    return text


def found(page: Path, pattern: str | re.Pattern[str]) -> list[str]:
    text = prose(page)
    lines = page.read_text(encoding="utf-8").splitlines()
    hits = []
    for match in re.finditer(pattern, text):
        number = text.count("\n", 0, match.start() + len(match.group()) - len(match.group().lstrip())) + 1
        title = lines[number - 1].startswith("#")  # a title may ask: "Who may do what"
        if not (title and pattern in (WHO, SUBJECT)):
            hits.append(f"{name_of(page)}:{number}: {match.group().strip()[:80]}")
    return hits


@pytest.mark.parametrize(("pattern", "instead"), list(AVOIDED.items()), ids=lambda value: value if " " in value else "")
def test_one_term_for_a_thing(pattern: str, instead: str) -> None:
    assert [hit for page in PAGES for hit in found(page, pattern)] == [], f"write: {instead}"


def test_a_subject_is_anyone_who_or_you() -> None:
    assert [hit for page in PAGES for hit in [*found(page, WHO), *found(page, SUBJECT)]] == []


def test_words_of_money_are_for_lessons() -> None:
    pages = [page for page in PAGES if not name_of(page).startswith(MONEY_IS_PLAIN)]
    assert [hit for page in pages for hit in found(page, MONEY)] == []


def test_one_person_is_they() -> None:
    pages = [page for page in PAGES if not name_of(page).startswith(PERSON_IS_NAMED)]
    assert [hit for page in pages for hit in found(page, HER)] == []


def test_a_share_is_one_persons_and_a_portion_one_models() -> None:
    entries = dict(re.findall(r"^(\S.*)\n: (.*)", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert re.match(r"One person's .*part of a population's budget", entries["share"])
    assert "allowance" in entries["portion"]
    assert "model" in entries["portion"]


def test_the_rules_find_what_they_forbid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\nWhoever asks pays for it. It stands in the trail, anew.\n\n"
        "Who loses the token gets\nno more rows. She shall know, who asks?\n\n```text\nthe trail of her log-in\n```\n\n"
        "`trail`\n\n% hidden: anew\n\nSharpness and sharpness.\n\n",
        encoding="utf-8",
    )
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert found(page, r"\btrail\b") == ["page.md:3: trail"]
    assert found(page, r"\bsharpness\b") == ["page.md:16: sharpness"]
    assert found(page, r"\banew\b") == ["page.md:3: anew"]
    assert [hit.split(": ")[0] for hit in found(page, WHO)] == ["page.md:3", "page.md:5"]
    assert len(found(page, HER)) == len(found(page, MONEY)) == len(found(page, r"\bshall\b")) == 1
