"""The columns that are told before a question is asked are those of its answer."""

from __future__ import annotations

import pytest

import cloister as cl
from cloister.pgwire import Asking, LocalBackend, shape_of
from cloister.pgwire.results import of_release
from tests.pgwire.conftest import TOKEN, people

ASKED = [
    "SELECT COUNT(*) FROM people",
    "SELECT sex, COUNT(*) AS n, AVG(age) AS a, SUM(pay) AS s FROM people GROUP BY sex",
    "SELECT smoker, born, COUNT(*) AS n FROM people WHERE born < DATE '1900-02-01' GROUP BY smoker, born",
    "SELECT age, COUNT(*) AS n FROM people WHERE age BETWEEN 30 AND 32 GROUP BY age",
    "SELECT MEDIAN(born) AS m, MIN(age) AS low, MODE(sex) AS o, VARIANCE(pay) AS v FROM people",
    "SELECT 1 AS one, 2.5 AS half, 'x' AS t, NULL AS nil, TRUE AS yes, DATE '2020-01-01' AS d, COUNT(*) AS n FROM people",
    "SELECT sex, smoker, COUNT(*) AS n FROM people GROUP BY ROLLUP(sex, smoker)",
    "SELECT sex, smoker, COUNT(*) AS n FROM people GROUP BY GROUPING SETS ((), (sex), (smoker))",
    "SELECT COUNT(*) / 2 AS half, SUM(age) - COUNT(*) AS d FROM people",
    "SELECT CASE WHEN age < 40 THEN 'young' ELSE 'old' END AS g, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY 2 DESC LIMIT 1",
    "SELECT town, COUNT(*) AS n FROM people GROUP BY town",
]


@pytest.fixture
def session() -> cl.Session:
    """With a budget that allows undeclared keys."""
    return cl.Session({"people": people()}, budget=cl.ApproxDP(100, "1e-5"))


@pytest.mark.parametrize("asked", ASKED)
def test_the_shape_is_that_of_the_answer(session: cl.Session, asked: str) -> None:
    with session:
        shape = shape_of(session, asked)
        assert not list(session.ledger.charges("people"))
        answer = session.sql(asked, spend=1, dialect="postgres")
        assert [(each.name, each.kind) for each in shape] == [(name, each.kind) for name, each in answer.table.columns.items()]
        assert [each.name for each in shape if each.measured] == answer.statistics()


@pytest.mark.parametrize("asked", ASKED)
def test_a_repeat_is_what_was_paid_for_and_none_before(session: cl.Session, asked: str) -> None:
    with session:
        ada = LocalBackend(session, {"ada": TOKEN}).login("ada", TOKEN, "127.0.0.1")
        assert ada.repeat(asked, Asking()) is None
        first = ada.ask(asked, Asking(spend="0.5"))
        again = ada.repeat(asked, Asking())
        assert again is not None
        assert again.to_pydict() == first.to_pydict()
        assert len(list(session.ledger.charges("people"))) == 1


def test_a_wrong_token_and_an_unknown_name_are_refused(session: cl.Session) -> None:
    backend = LocalBackend(session, {"ada": TOKEN})
    for user, token in (("ada", "x"), ("eve", TOKEN), ("", "")):
        with pytest.raises(cl.AccessDenied):
            backend.login(user, token, "127.0.0.1")
    session.close()


def test_what_the_declaration_answers_is_told_as_that_with_and_without_a_spend(session: cl.Session) -> None:
    ada, none = LocalBackend(session, {"ada": TOKEN}).login("ada", TOKEN, ""), "SELECT COUNT(*) AS n FROM people WHERE age > 900"
    with session:
        for answer in (ada.ask(none, Asking(spend="0.1")), ada.repeat(none, Asking())):
            assert answer is not None
            [told] = of_release(answer, how=Asking()).notices
            assert told.startswith("nothing private was read, and nothing was charged; ")
            assert "answered before" not in told
        assert not list(session.ledger.charges("people"))


def test_notes_are_told_in_the_words_of_psql(session: cl.Session) -> None:
    with session:
        chosen = session.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC LIMIT 1", spend=1)
        followed = session.sql("SELECT COUNT(*) AS n FROM people", spend="0.5")
        told = [of_release(each, how=Asking()).notices[0] for each in (chosen, followed)]
    assert "a joint margin holds for them" in told[0]
    assert "SET cloister.fresh = 'yes' runs it again" in told[1]
