"""The page of what is supported and that of what is refused: every example is planned, every refusal is there word for word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import cloister as cl
from cloister.noise import Random
from cloister.query import parse
from cloister.query.dialect import DIALECTS
from tests.query.hospital import rows, tables

DOCS = Path(__file__).resolve().parents[2] / "docs"
SUPPORTED = (DOCS / "reference" / "sql.md").read_text(encoding="utf-8")
REFUSED = (DOCS / "explanation" / "what-we-refuse.md").read_text(encoding="utf-8")
EXAMPLES = [
    line for block in re.findall(r"^```sql\n(.*?)^```", SUPPORTED, re.DOTALL | re.MULTILINE) for line in block.splitlines()
]
REFUSALS = re.findall(r"^```sql\n(.*?)\n```\n\n```text\n(.*?)\n```", REFUSED, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def session() -> Iterator[cl.Session]:
    """One that can be asked for plans; nothing is spent."""
    with cl.Session(tables(rows()), budget=cl.ApproxDP(100, "1e-4"), random=Random.deterministic(1)) as opened:
        yield opened


@pytest.mark.parametrize("sql", EXAMPLES)
def test_what_is_supported_is_planned(session: cl.Session, sql: str) -> None:
    assert session.explain(sql, spend=1).parts
    assert all(isinstance(spent, cl.ApproxDP) and not spent.epsilon for spent in session.spent_by.values())


@pytest.mark.parametrize(("sql", "text"), REFUSALS)
def test_what_is_refused_is_refused_in_these_words(session: cl.Session, sql: str, text: str) -> None:
    with pytest.raises(cl.CloisterError) as refusal:
        parse(sql, session.tables)
    assert str(refusal.value) == text


def test_the_pages_have_examples() -> None:
    assert len(EXAMPLES) >= 48
    assert len(REFUSALS) > 45
    assert REFUSED.count("```sql") == len(REFUSALS)


def test_the_dialects_are_those_of_the_page() -> None:
    assert all(f"`{name}`" in SUPPORTED for name in DIALECTS if name != "ansi")
