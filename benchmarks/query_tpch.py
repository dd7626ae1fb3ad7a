"""The 22 questions of TPC-H on rows of ours: how many are answered, with which error, and whether the margins hold.

Each question that is asked costs ε = 1 (two steps share it), so all of them cost less than 20. They are asked twice, of two
sessions: with the declared bounds alone, and with what an analyst says of one customer's part in a group. The error of a cell is
|noisy − exact| / |exact|, where plain DuckDB gives the exact answer to the same text; a question's error is the median over its
cells and over sessions with fresh noise. `--table` prints the table of docs/explanation/tpch.md.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
from _report import report
from _tpch import declare, generate, plain, write
from _tpch_questions import ANSWERED, QUESTIONS, Question

import cloister as cl
from cloister.noise import Random

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
SCALE = 0.005 if QUICK else 0.1
ROUNDS = 2 if QUICK else 15
EACH, BUDGET = 1, 20
CONFIDENCE = 0.95
SILENT = 10**12  # so large a spend that the noise is nil

Rows = dict[tuple[Any, ...], tuple[Any, ...]]


@dataclass(kw_only=True)
class Found:
    """What became of one question in one of its two forms."""

    errors: list[float] = field(default_factory=list)
    covered: list[bool] = field(default_factory=list)
    refused: str = ""

    @property
    def error(self) -> float:
        """The median relative error."""
        return statistics.median(self.errors) if self.errors else float("nan")


def main() -> None:
    """Ask everything, print for people, print for programs."""
    found = {(question.number, bounded): Found() for question in ANSWERED for bounded in (False, True)}
    with tempfile.TemporaryDirectory() as name:
        paths = write(generate(SCALE), Path(name))
        tables = declare(paths, SCALE)
        with plain(paths) as exact, session(tables, 10**20, 1) as silent:
            for place in range(ROUNDS):
                for bounded in (False, True):
                    with session(tables, BUDGET, place + 2) as noisy:
                        ask_all(noisy, silent, exact, bounded, found)
    if "--table" in sys.argv:
        print(table(found))
        return
    for question in ANSWERED:
        both = [found[question.number, bounded] for bounded in (False, True)]
        said = [f"REFUSED: {one.refused}" if one.refused else shown(one.error) for one in both]
        print(f"Q{question.number}, {question.title}: error {said[0]}; with a customer's part bounded {said[1]}")
    answered = sum(not found[question.number, False].refused for question in ANSWERED)
    public = sum(question.kind == "public" for question in QUESTIONS)
    detail = f"of {len(QUESTIONS)}, {public} of them about public tables alone; ε = {EACH} each, scale {SCALE}"
    report("TPC-H questions answered", answered, len(QUESTIONS) - public, detail)
    cells = [covered for one in found.values() for covered in one.covered]
    detail = f"{len(cells):,} released numbers, margins at {CONFIDENCE:.0%}, beside the answer that a nil noise gives"
    report("TPC-H, share of exact answers within the margin", statistics.fmean(cells), CONFIDENCE - 0.02, detail)


def session(tables: Mapping[str, cl.PrivateTable | cl.PublicTable], budget: int, seed: int) -> cl.Session:
    """The tables, with noise that repeats itself."""
    return cl.Session(tables, budget=cl.PureDP(budget), random=Random.deterministic(seed))


def ask_all(
    noisy: cl.Session,
    silent: cl.Session,
    exact: duckdb.DuckDBPyConnection,
    bounded: bool,
    found: Mapping[tuple[int, bool], Found],
) -> None:
    """All questions in one of their forms; what is refused once is not asked again."""
    for question in ANSWERED:
        one = found[question.number, bounded]
        try:
            if not one.refused:
                compare(question, noisy, silent, exact, bounded, one)
        except cl.CloisterError as refusal:
            one.refused = str(refusal).replace("\n", " ")


def compare(
    question: Question, noisy: cl.Session, silent: cl.Session, exact: duckdb.DuckDBPyConnection, bounded: bool, one: Found
) -> None:
    """The last step's cells: noisy beside exact, and beside what the same statement gives without noise."""
    *before, last = zip(question.bounded if bounded else question.plain, question.plain, strict=True)
    spend = Fraction(EACH, len(question.steps))
    first = true_first = "0"
    for ours, theirs in before:
        first = str(next(iter(noisy.sql(ours, spend=spend)))[0])
        known = exact.execute(theirs).fetchall()[0][0]
        true_first = first if known is None else str(known)
    asked = last[0].replace("{0}", first)
    release = noisy.sql(asked, spend=spend)
    given, margins = keyed(release, question.keys), keyed(release.margin(CONFIDENCE), question.keys)
    same = keyed(silent.sql(asked, spend=SILENT), question.keys)
    everything = re.sub(r" LIMIT \d+$", "", last[1].replace("{0}", true_first))  # whichever groups the noise chose
    truth = keyed(exact.execute(everything).fetchall(), question.keys)
    for key in truth.keys() & given.keys():
        pairs = [(mine, true) for mine, true in zip(given[key], truth[key], strict=True) if true and mine is not None]
        one.errors += [abs(float(mine) - float(true)) / abs(float(true)) for mine, true in pairs]
    for key in given.keys() & same.keys():
        triples = zip(given[key], same[key], margins[key], strict=True)
        one.covered += [abs(a - b) <= m * (1 + 1e-9) for a, b, m in triples if a is not None and b is not None]


def keyed(rows: Iterable[tuple[Any, ...]], keys: int) -> Rows:
    """Rows by what stands in their first columns; a day and its midnight are the same."""
    return {tuple(str(part).removesuffix(" 00:00:00") for part in row[:keys]): tuple(row[keys:]) for row in rows}


def shown(error: float) -> str:
    """A share in percent, and beyond ten as a multiple."""
    return "–" if error != error else f"{error:.2%}" if error < 0.1 else f"{error:.0%}" if error < 10 else f"{error:,.0f} ×"


def table(found: Mapping[tuple[int, bool], Found]) -> str:
    """Markdown: one row a question."""
    lines = [
        "| | question | answered | ε | error, declared bounds | error, a customer's part bounded |",
        "|---:|---|---|---:|---:|---:|",
    ]
    for question in QUESTIONS:
        why = f"{question.kind}: {question.why}" if question.why else question.kind
        cells = ["–", "–", "–"]
        if question.steps:
            cells = [" + ".join([str(Fraction(EACH, len(question.steps)))] * len(question.steps))]
            cells += [shown(found[question.number, bounded].error) for bounded in (False, True)]
            if question.plain == question.bounded:
                cells[2] = "–"
        lines.append(f"| {question.number} | {question.title} | {why} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
