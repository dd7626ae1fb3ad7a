"""The marked door: written down before a row is read, whatever happens then."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

import cloister as cl
from cloister.anonymize import Anonymizer, KAnonymity, LDiversity, publish_table
from cloister.anonymize.problem import Problem, Search
from cloister.anonymize.recoding import Recoded
from cloister.errors import CloisterError, InvalidParameter
from cloister.session.state.table_snapshot import TableSnapshot

PEOPLE: dict[str, list[Any]] = {"age": [30, 31, 60, 61]}


class Stopped(Search):
    """Somebody presses Ctrl-C, or pulls the plug, when the search has the rows."""

    name: ClassVar[str] = "stopped"
    seen: int = 0

    def find(self, problem: Problem) -> Recoded:
        """Not at all."""
        Stopped.seen = problem.table.rows
        raise KeyboardInterrupt


def test_an_interruption_is_written_down() -> None:
    people = cl.PrivateTable(PEOPLE, columns={"age": cl.Integer(0, 120)})
    with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        with pytest.raises(KeyboardInterrupt):
            publish_table(session, "people", Anonymizer(quasi=["age"], models=[KAnonymity(2)], search=Stopped()))
        assert Stopped.seen == 4
        assert [charge.state for charge in session.ledger.charges("people")] == ["not private"]


def test_a_refusal_is_written_down() -> None:
    people = cl.PrivateTable(PEOPLE, columns={"age": cl.Integer(0, 120)})
    with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        with pytest.raises(InvalidParameter, match="the table has 4 rows"):
            publish_table(session, "people", Anonymizer(quasi=["age"], models=[KAnonymity(5)]))
        assert [charge.state for charge in session.ledger.charges("people")] == ["not private"]


def test_a_person_with_several_rows_is_refused_before_anything_is_read() -> None:
    columns = {"age": cl.Integer(0, 120), "who": cl.Integer(0, 9)}
    visits = cl.PrivateTable(PEOPLE | {"who": [1, 1, 2, 2]}, columns=columns, unit="who", max_rows=2)
    with cl.Session({"visits": visits}, budget=cl.PureDP(1)) as session:
        with pytest.raises(InvalidParameter, match="several rows"):
            publish_table(session, "visits", Anonymizer(quasi=["age"], models=[KAnonymity(2)]))
        assert not session.ledger.charges("visits")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"quasi": ["agee"]}, "'agee' is unknown"),
        ({"quasi": []}, "no quasi-identifier"),
        ({"search": "best"}, "search='best'"),
        ({"metric": "zz"}, "metric='zz'"),
        ({"suppression": 7}, "share from 0 to 1"),
        ({"models": [LDiversity(2)]}, "no column was declared sensitive"),
        ({"research": "agee"}, "agee"),
        (None, "not an Anonymizer"),
    ],
)
def test_what_needs_no_row_is_refused_before_the_door(asked: dict[str, Any] | None, why: str) -> None:
    people = cl.PrivateTable(PEOPLE, columns={"age": cl.Integer(0, 120)})
    with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        how: Any = None if asked is None else Anonymizer(**{"quasi": ["age"], "models": [KAnonymity(2)], **asked})
        with pytest.raises(CloisterError, match=why):
            publish_table(session, "people", how)
        assert not session.ledger.charges("people")


def test_the_event_is_written_before_rows_are_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    people, seen = cl.PrivateTable(PEOPLE, columns={"age": cl.Integer(0, 120)}), list[int]()
    with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        prepare = TableSnapshot.prepare

        def prepared(self: TableSnapshot, name: str) -> Any:
            seen.append(len(session.ledger.charges("people")))
            return prepare(self, name)

        monkeypatch.setattr(TableSnapshot, "prepare", prepared)
        publish_table(session, "people", Anonymizer(quasi=["age"], models=[KAnonymity(2)]))
    assert seen == [1]


@pytest.mark.parametrize(
    "asked", [{"quasi": ["age", "home"]}, {"quasi": ["age"]}, {"quasi": ["age"], "identifying": ["home"]}], ids=str
)
def test_a_place_leaves_as_a_text_or_not_at_all(asked: dict[str, Any]) -> None:
    """A row beyond the box was an untrue error after the mark, even of a dropped column; a pair was no column to read."""
    rows = {"age": [30] * 4, "x": [4.3, 4.4, 9.9, 0], "y": [52.0, 52.0, 52.0, 0]}
    home = cl.Place([4.2, 51.9, 4.5, 52.1], longitude="x", latitude="y")
    people = cl.PrivateTable(rows, columns={"age": cl.Integer(0, 120), "home": home})
    with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        table = publish_table(session, "people", Anonymizer(models=[KAnonymity(1)], **asked)).table
    left = ["4.300000 52.000000", "4.400000 52.000000", "None", "outside"]
    assert sorted(map(str, table["home"] if "home" in table.columns else left)) == left
    assert ("home" in table.columns) == ("identifying" not in asked)
