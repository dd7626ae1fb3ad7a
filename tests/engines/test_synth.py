"""A synthetic table from any engine: the same tables are measured, missing values, dates and bins included."""

from __future__ import annotations

import datetime

import numpy as np

import cloister as cl
from cloister.noise import Random
from cloister.synth.measuring import measure
from cloister.synth.states import states_of

from .conftest import Loader

ROWS = 300
AGES = [None if number % 17 == 0 else 18 + number * 7 % 50 for number in range(ROWS)]
PAYS = [None if number % 5 == 0 else 2.5 * (number * 31 % 400) for number in range(ROWS)]
SEXES = ["FM"[number % 3 == 0] for number in range(ROWS)]
DAYS = [None if number % 11 == 0 else datetime.date(1980, 1, 1) + datetime.timedelta(days=number * 13) for number in range(ROWS)]
SMOKERS = [None if number % 13 == 0 else number % 4 == 0 for number in range(ROWS)]
DECLARED = {
    "age": cl.Integer(18, 90, nullable=True),
    "pay": cl.Real(0, 1000, step="0.5", nullable=True),
    "sex": cl.Category(["F", "M"]),
    "born": cl.Date("1980-01-01", "1999-12-31", nullable=True),
    "smoker": cl.Boolean(nullable=True),
}
KINDS = {"age": "integer", "pay": "float", "sex": "text", "born": "date", "smoker": "boolean"}


def test_the_same_tables_are_measured_on_every_engine(loader: Loader) -> None:
    held = {"age": AGES, "pay": PAYS, "sex": SEXES, "born": DAYS, "smoker": SMOKERS}
    table = cl.PrivateTable(loader.load(held, KINDS), DECLARED)
    chosen = ["age", cl.Binned("pay", [0, 100, 500, 1000]), "sex", cl.Binned("born", ["1980-01-01", "1985-01-01", "1999-12-31"])]
    states = states_of(DECLARED, [*chosen, "smoker"], table="people")
    with cl.Session({"people": table}, budget=cl.PureDP(10**12), random=Random.deterministic(1)) as session:
        found, _ = measure(session, "people", states, "pairs", 10**10, purpose="")
        model = cl.synth.fit(session, "people", spend=10**10, method="independent", columns=[*chosen, "smoker"])
    places = []
    for each in states:
        codes = [each.domain.null_code if value is None else each.domain.encode(value) for value in held[each.name]]
        places.append(np.searchsorted(each.starts, np.array(codes), side="right") - 1)
    assert len(found.tables) == 15
    for kept, measured in found.tables.items():
        shape = measured.counts.shape
        exact = np.bincount(np.ravel_multi_index([places[place] for place in kept], shape), minlength=measured.counts.size)
        assert measured.counts.ravel().tolist() == exact.tolist(), kept
    assert len(model.sample()) == ROWS
