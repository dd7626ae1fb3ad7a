"""Random questions about one person's rows, asked of two worlds of which one lacks the person with the most rows: what is noised
moves by no more than the plan says, and what is refused is refused in both. Ties, NULLs and rows beyond the cap are common;
numbers of rows stay as columns, and are bounded again further out."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.errors import CloisterError
from cloister.noise import Random
from cloister.query.parse import parse
from cloister.tables import Numbered
from cloister.tables.relations.derived import RowNumber
from tests.tiers import by_day_and_night

World = dict[str, list[tuple[Any, ...]]]
COLUMNS = {"visits": ("patient", "ward", "cost"), "tests": ("patient", "spot", "score")}
Schema = list[tuple[str, str]]


def world(draw: random.Random) -> World:
    visits, tests = [], []
    for who in range(5):
        for _ in range(draw.choice([0, 1, 3, 5])):
            visits += [(who, draw.choice(["A", "A", "B", None]), draw.choice([0, 0, 1, 5, 9, None]))]
        for _ in range(draw.choice([0, 1, 2, 4])):
            tests += [(who, draw.choice(["A", "B", None]), draw.choice([0, 1, 1, 3, None]))]
    draw.shuffle(visits)
    return {"visits": visits, "tests": tests}


def tables(rows: World) -> dict[str, cl.PrivateTable | cl.PublicTable]:
    ward = cl.Category(["A", "B", "C"], nullable=True)
    domains: dict[str, Any] = {"visits": {"ward": ward, "cost": cl.Integer(-1, 5)}}
    domains["tests"] = {"spot": cl.Category(["A", "B"]), "score": cl.Integer(0, 3)}
    found: dict[str, cl.PrivateTable | cl.PublicTable] = {}
    for name, most in (("visits", 4), ("tests", 2)):
        data = {column: [row[place] for row in rows[name]] for place, column in enumerate(COLUMNS[name])}
        found[name] = cl.PrivateTable(data, columns=domains[name], unit="patient", max_rows=most, population="p")
    return found


class Asker:
    """Sources inside one another, each with the columns that it has."""

    def __init__(self, draw: random.Random) -> None:
        self.draw, self.count = draw, 0

    def name(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def source(self, depth: int) -> tuple[str, Schema]:
        draw = self.draw
        if depth == 0:
            table = draw.choice(["visits", "tests"])
            return table, [(COLUMNS[table][1], "text"), (COLUMNS[table][2], "number")]
        (inner, columns), one, new = self.source(depth - 1), self.name(), self.name()
        all_ = f"{one}.patient" + "".join(f", {one}.{name}" for name, _ in columns)
        kind = draw.choice(["numbered", "numbered", "kept", "kept", "grouped", "joined", "exists", "around"])
        if kind == "kept":
            return self.kept(inner, one, columns)
        if kind == "numbered":
            function = draw.choice(["ROW_NUMBER", "RANK", "DENSE_RANK"])
            keys = ["patient", *(name for name, _ in columns if draw.random() < 0.3)]
            over = f"OVER (PARTITION BY {', '.join(keys)} ORDER BY {draw.choice(columns)[0]} {draw.choice(['', 'DESC'])})"
            bound = f"{draw.choice(['<=', '<', '='])} {draw.randint(1, 3)}"
            return f"(SELECT {all_} FROM {inner} AS {one} QUALIFY {function}() {over} {bound})", columns
        if kind == "grouped":
            key = draw.choice(columns)
            grouped = f"SELECT patient, {key[0]}, COUNT(*) AS {new} FROM {inner} AS {one} GROUP BY patient, {key[0]}"
            return f"({grouped})", [key, (new, "number")]
        if kind == "around":
            return f"(SELECT {all_}, COUNT(*) OVER (PARTITION BY patient) AS {new} FROM {inner} AS {one})", [
                *columns,
                (new, "number"),
            ]
        (other, others), two = self.source(depth - 1), self.name()
        pairs = [(mine, theirs) for mine, one_kind in columns for theirs, other_kind in others if one_kind == other_kind]
        mine, theirs = draw.choice(pairs) if pairs else ("patient", "patient")
        same = f"{one}.patient = {two}.patient AND {two}.{theirs} = {one}.{mine}"
        if kind == "exists":
            no = draw.choice(["", "NOT "])
            return (
                f"(SELECT {all_} FROM {inner} AS {one} WHERE {no}EXISTS (SELECT 1 FROM {other} AS {two} WHERE {same}))",
                columns,
            )
        side = draw.choice(["", "LEFT ", "FULL "])
        taken = [(self.name(), *column) for column in others]
        more = "".join(f", {two}.{old} AS {name}" for name, old, _ in taken)
        if side == "FULL ":
            all_ = all_.replace(f"{one}.patient", f"COALESCE({one}.patient, {two}.patient) AS patient", 1)
            same = same if draw.random() < 0.5 else f"{one}.patient = {two}.patient"
        joined = f"(SELECT {all_}{more} FROM {inner} AS {one} {side}JOIN {other} AS {two} ON {same})"
        return joined, [*columns, *((name, kind_) for name, _, kind_ in taken)]

    def kept(self, inner: str, one: str, columns: Schema) -> tuple[str, Schema]:
        """One or two numbers as columns, with conditions on them in a query around and one around that."""
        draw, numbers, two, three = self.draw, [self.name() for _ in range(self.draw.randint(1, 2))], self.name(), self.name()
        over = f"(PARTITION BY {one}.patient ORDER BY {one}.{draw.choice(columns)[0]}"
        written = [f"ROW_NUMBER() OVER {over} {draw.choice(['', 'DESC'])}) AS {name}" for name in numbers]
        bounds = [f"{draw.choice(numbers)} {draw.choice(['<=', '>=', '>=', '='])} {draw.randint(1, 3)}" for _ in range(3)]
        numbered = (
            f"SELECT {', '.join([f'{one}.patient', *(f'{one}.{name}' for name, _ in columns), *written])} FROM {inner} AS {one}"
        )
        filtered = f"SELECT * FROM ({numbered}) AS {two} WHERE {draw.choice([bounds[0], ' AND '.join(bounds[:2])])}"
        more = [(name, "number") for name in numbers]
        return f"(SELECT * FROM ({filtered}) AS {three} WHERE {bounds[2]})", [*columns, *more]

    def question(self) -> str:
        source, columns = self.source(self.draw.randint(1, 2))
        number = next((name for name, kind in reversed(columns) if kind == "number"), columns[0][0])
        summed = f", SUM({number}) AS s" if any(kind == "number" for _, kind in columns) else ""
        return f"SELECT COUNT(*) AS n{summed}, COUNT(DISTINCT patient) AS p FROM {source} AS whole"


def opened(rows: World) -> cl.Session:
    return cl.Session(tables(rows), budget=cl.PureDP(10**15), random=Random.deterministic(1))


def exact(session: cl.Session, sql: str) -> tuple[Any, Any]:
    """The plan's blocks, and the integers that are noised, so little that they are exact; or the words of a refusal."""
    try:
        question = parse(sql, session.tables).question
        return session.explain(question, spend=1).parts[0].shape.blocks, session.measure(question, spend=10**11).readings
    except CloisterError as refusal:
        return None, str(refusal)


def moved(seed: int, worlds: int, questions: int) -> Iterator[tuple[str, float, float]]:
    """Of each block of each question: how far the person moves it, and how far the plan says."""
    draw = random.Random(seed)
    for _ in range(worlds):
        rows = world(draw)
        most = max(range(5), key=lambda who: sum(row[0] == who for each in rows.values() for row in each))
        others = {name: [row for row in each if row[0] != most] for name, each in rows.items()}
        with opened(rows) as one, opened(others) as other:
            for _ in range(questions):
                sql = Asker(draw).question()
                (blocks, here), (_, there) = exact(one, sql), exact(other, sql)
                assert type(here) is type(there)
                if isinstance(here, str):  # what is refused is refused in both, in the same words
                    assert here == there
                    continue
                for block in blocks:
                    change = [
                        np.abs(np.rint(here[raw.name].values - there[raw.name].values)).sum() / raw.width for raw in block.raws
                    ]
                    yield sql, float(sum(change)), float(block.l1)


@by_day_and_night("worlds", 2, 60)
def test_a_person_moves_what_is_noised_by_no_more_than_the_plan_says(worlds: int) -> None:
    found = list(moved(7, worlds, 10))
    assert len(found) > 10
    assert [each for each in found if each[1] > each[2] + 1e-9] == []
    assert any(change == bound for _, change, bound in found)


NUMBER = "ROW_NUMBER() OVER (PARTITION BY patient ORDER BY cost{})"
UP, DOWN = NUMBER.format(""), NUMBER.format(" DESC")
LAST = "SELECT COUNT(*) AS n FROM "
NUMBERS = {
    "nested": f"{LAST}(SELECT * FROM (SELECT *, {UP} AS r FROM visits) t WHERE r >= 2) u WHERE r >= 3",
    "two, nested": f"{LAST}(SELECT * FROM (SELECT *, {UP} AS r, {DOWN} AS s FROM visits) t WHERE s <= 2) u WHERE r >= 3",
    "two": f"{LAST}(SELECT *, {UP} AS r, {DOWN} AS s FROM visits) t WHERE s <= 2 AND r >= 3",
    "two, the other first": f"{LAST}(SELECT *, {DOWN} AS s, {UP} AS r FROM visits) t WHERE s <= 2 AND r >= 3",
    "qualify": f"{LAST}(SELECT * FROM visits QUALIFY {DOWN} <= 2 AND {UP} >= 3) t",
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_stay_may_be_as_large_as_the_rows_were_many(name: str) -> None:
    others = [(who, "A", cost) for who in range(3) for cost in (1, 2, 3, 4)]
    worlds = [{"visits": [*others, *more], "tests": [(1, "A", 1)]} for more in ([(9, "A", cost) for cost in (1, 2, 3, 4)], [])]
    with opened(worlds[0]) as one, opened(worlds[1]) as other:
        (blocks, here), (_, there) = exact(one, NUMBERS[name]), exact(other, NUMBERS[name])
    ((block,),) = (blocks,)
    change = sum(np.abs(np.rint(here[raw.name].values - there[raw.name].values)).sum() / raw.width for raw in block.raws)
    assert change == 2 <= block.l1


def test_ranks_that_are_taken_for_row_numbers_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken: rows of equal rank are said to be one."""
    monkeypatch.setattr(Numbered, "numbered", lambda self: {self.number: RowNumber(frozenset(self.keys), 1, self.max_rows)})
    assert any(change > bound for _, change, bound in moved(7, 12, 10))
