"""How often does somebody see a doctor? Poisson regression on made-up people, at one hospital and over three that share no row.

python examples/poisson_visits.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cloister as cl
from cloister.learn import PoissonRegressor
from cloister.together import Site

COLUMNS = {"age": cl.Integer(20, 80), "smokes": cl.Boolean(), "visits": cl.Integer(0, 20)}
PEOPLE = 6000
SPEND = "0.5"
"""In ρ."""


def people(size: int, seed: int) -> dict[str, list[Any]]:
    """The older somebody is, the more visits; smokers have more than others."""
    source = np.random.default_rng(seed)
    age, smokes = source.integers(20, 81, size), source.random(size) < 0.3
    visits = np.minimum(source.poisson(np.exp(0.02 * age + 0.5 * smokes - 0.5)), 20)
    return {"age": age.tolist(), "smokes": smokes.tolist(), "visits": visits.tolist()}


def learned(table: Any) -> PoissonRegressor:
    """From one table, or from several sites: the same lines."""
    with cl.Session({"people": table}, budget=cl.ZCDP(SPEND)) as session:
        return PoissonRegressor().fit_table(session, "people", features=["age", "smokes"], target="visits", spend=SPEND)


def main() -> None:
    """A line for each, with D² on other people."""
    rows, others = people(PEOPLE, 1), people(PEOPLE, 2)
    X, y = np.column_stack([others["age"], others["smokes"]]).astype(float), others["visits"]
    tables = [cl.PrivateTable({name: each[at::3] for name, each in rows.items()}, columns=COLUMNS) for at in range(3)]
    sites = [Site(f"hospital {at + 1}", table, budget=cl.ZCDP(1)) for at, table in enumerate(tables)]
    for where, table in (
        ("one table", cl.PrivateTable(rows, columns=COLUMNS)),
        ("three hospitals", cl.JointTable(sites, COLUMNS, overlap="none", missing=0)),
    ):
        model = learned(table)
        young, old = model.predict([[30, 0], [70, 1]])
        print(f"{where}: {young:.1f} visits at 30, {old:.1f} of a smoker at 70; D² = {model.score(X, y):.3f}")
    plain = PoissonRegressor(privacy=None).fit(np.column_stack([rows["age"], rows["smokes"]]).astype(float), rows["visits"])
    print(f"without privacy: D² = {plain.score(X, y):.3f}")


if __name__ == "__main__":
    main()
