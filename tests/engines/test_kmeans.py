"""k-means by the engine of a table: the same cells, counts and sums of the same rows, wherever they lie."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import cloister as cl
from cloister.learn import KMeans
from cloister.learn.clustering.kmeans_tables import place_of_table, round_of_table
from cloister.learn.frame.budget_account import BudgetAccount
from cloister.learn.frame.encoding import Encoder
from cloister.noise import Random
from tests.learn.test_kmeans_tables import nearest_in_steps

from .conftest import Loader

ROWS = 400
AGES = [None if number % 57 == 0 else 17 + (number * 7) % 74 for number in range(ROWS)]
PAYS = [float("nan") if number % 61 == 0 else 2.5 * ((number * 13) % 101) - 20 for number in range(ROWS)]
SEXES = [["F", "M"][number % 3 == 0] for number in range(ROWS)]
DECLARED = {
    "age": cl.Integer(17, 90, nullable=True),
    "pay": cl.Real(0, 200, step="0.25", nullable=True),
    "sex": cl.Category(["F", "M"]),
}


def test_a_round_is_the_same_on_every_engine(loader: Loader) -> None:
    data = loader.load({"age": AGES, "pay": PAYS, "sex": SEXES}, {"age": "integer", "pay": "float", "sex": "text"})
    table = cl.PrivateTable(data, DECLARED)
    centres = np.array([[-20.0, -50.0, 0.3, -0.3], [15.0, 40.0, -0.2, 0.2], [20.0, -30.0, 0.1, -0.1], [0.0, 0.0, 0.0, 0.0]])
    with cl.Session({"people": table}, budget=cl.PureDP(10**12), random=Random.deterministic(1)) as session:
        account = BudgetAccount.of(session, "people", 10**10, "")
        sight = place_of_table(account, "people", Encoder.of(DECLARED, list(DECLARED)), Fraction(1, 10))
        cells, _ = round_of_table(account, sight, centres, Fraction(1, 2), "round", reach=1.5)
        model = KMeans(3, method="engine", rounds=2).fit_table(session, "people", features=list(DECLARED), spend=10**9)
    rows = np.array(
        [
            [age, min(max(pay, 0), 200), sex == "F", sex == "M"]
            for age, pay, sex in zip(AGES, PAYS, SEXES, strict=True)
            if age is not None and pay == pay
        ],
        dtype=float,
    )
    assert sight.size == len(rows)
    labels = nearest_in_steps(sight, centres, rows)
    counts = np.bincount(labels, minlength=4)
    assert (counts > 10).all()
    reach = 1.5 * np.sqrt(sight.variances)
    moved = np.clip(rows - sight.mean, -reach, reach)
    means = np.array([moved[labels == one].mean(axis=0) for one in range(4)])
    np.testing.assert_allclose(cells.counts, counts, atol=1e-6)
    np.testing.assert_allclose(cells.means, means, atol=0.1)  # a step of the age is a sixteenth
    assert model.cluster_centers_.shape == (3, 4)
