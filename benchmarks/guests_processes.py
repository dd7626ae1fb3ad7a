"""Guests in processes: what a start and a run cost, 200 fits of scikit-learn on Adult, and what blocks lose against `learn`.

The two curves of GUPT's evaluation (Mohan et al. 2012, section 7: 26,733 compounds of life sciences, ten principal components,
one of two classes): k-means and logistic regression by blocks against ε, beside the fit without privacy. Their table is public no
longer; ours is made up of its size, so only the shape of the curves can be compared: both come near the fit as ε grows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from _learn_problems import adult, adult_is_here
from _report import report
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression

import cloister as cl
from cloister import learn
from cloister.guests.blocks import Blocks, blocks_of
from cloister.guests.sandbox.processes import ProcessSandbox
from cloister.noise import Random
from cloister.privacy import PureDP

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
RUNS, BLOCKS, COMPOUNDS = (20, 40, 4000) if QUICK else (100, 200, 26_733)
DRAWS = 50
FIT = """
def fit(rows):
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    x = np.array([rows[name] for name in sorted(rows) if name != "target"], dtype=float).T
    return LogisticRegression(max_iter=300).fit(x, rows["target"]).coef_[0]
"""
CENTRES = """
def centres(rows):
    import numpy as np
    from sklearn.cluster import KMeans
    x = np.array([rows[name] for name in sorted(rows)], dtype=float).T
    found = KMeans(n_clusters=2, n_init=3, random_state=0).fit(x).cluster_centers_
    return found[found[:, 0].argsort()].ravel()
"""
Floats = npt.NDArray[np.float64]


def main() -> None:
    """Measure, print for people, print for programs."""
    starts()
    if adult_is_here():
        coefficients()
    compounds()


def starts() -> None:
    """To open the walls, and to run within them."""
    opened, each = [], []
    for _ in range(5):
        began = time.perf_counter()
        with ProcessSandbox("def f(rows): return 1", "f"):
            opened.append(time.perf_counter() - began)
    with ProcessSandbox("def f(rows): return 1", "f", packages=["numpy", "sklearn.linear_model"]) as sandbox:
        for _ in range(RUNS):
            began = time.perf_counter()
            assert sandbox.run([{"age": [1]}]).done
            each.append(time.perf_counter() - began)
    detail = "bubblewrap, Python, its standard modules and a run that tries the walls"
    report("guests, walls and fork server in ms", ratio=float(np.median(opened)) * 1e3, limit=300, detail=detail, most=True)
    detail = "a fresh fork with scikit-learn imported, file system and filter of its own"
    report("guests, a start in a process in ms", ratio=float(np.median(each)) * 1e3, limit=60, detail=detail, most=True)


def coefficients() -> None:
    """Logistic coefficients of Adult, columns scaled by declared bounds: whole, by blocks, and by `learn`, at ε = 4: at ε = 1 a
    guest that gave nothing was as near, since zero is the middle of its ranges."""
    problem = adult()
    low, high = (np.array(side, dtype=float) for side in problem.bounds)
    x = np.round((problem.X - low) / (high - low), 4)
    table = table_of(x, problem.y, cl.Real(0, 1, step="0.0001"))
    guest = cl.Guest(code=FIT, entry="fit", inputs=list(table.columns), **about(5, 25), seconds=0.1)
    true = LogisticRegression(max_iter=300).fit(x, problem.y).coef_[0]
    began = time.perf_counter()
    with cl.Session({"adult": table}, budget=PureDP(4)) as session:
        found = guest.run(session, "adult", 4, admitted=guest.digest)
    took = time.perf_counter() - began
    blocks = float(np.linalg.norm(np.array(list(found.values.values())) - true))
    ours = [learn.LogisticRegression(epsilon=4, bounds=(0, 1), random=Random.deterministic(seed)) for seed in range(10)]
    errors = [float(np.linalg.norm(model.fit(x, problem.y).coef_.ravel() - true)) for model in ours]
    report(
        f"guests, {BLOCKS} blocks of scikit-learn on Adult in s",
        ratio=took,
        limit=60,
        detail="on the grid of one core",
        most=True,
    )
    assert found.failed is not None
    detail = f"of {BLOCKS}, with noise: for them the middle stands, which is zero here"
    report("guests, blocks of them that gave no value", ratio=found.failed.count, limit=BLOCKS / 20, detail=detail, most=True)
    length = float(np.linalg.norm(true))
    detail = "‖coefficients − fit‖ / ‖fit‖ at ε = 4, where no coefficients have 1; "
    detail += f"`learn`, who knows the method, {np.median(errors) / length:.2f}"
    report("guests, error of coefficients by blocks", ratio=blocks / length, limit=0.95, detail=detail, most=True)


def compounds() -> None:
    """Two clouds of compounds: centres and classes by blocks at four ε."""
    random = np.random.Generator(np.random.PCG64(21))
    side = random.integers(0, 2, COMPOUNDS)
    x = np.clip(random.normal(size=(COMPOUNDS, 10)) + np.where(side, 1, -1)[:, None] * np.linspace(1.2, 0.2, 10), -4, 4).round(2)
    y = (x @ np.linspace(1, 0.1, 10) + random.normal(size=COMPOUNDS) > 0).astype(int)
    domain = cl.Real(-4, 4, step="0.01")
    true = LogisticRegression(max_iter=300).fit(x, y)
    whole = spread(x, KMeans(n_clusters=2, n_init=3, random_state=0).fit(x).cluster_centers_)
    ratios, accuracies = {}, {}
    told = codes(
        cl.Guest(code=CENTRES, entry="centres", inputs=[f"f{k}" for k in range(10)], **about(20, 3)), table_of(x, None, domain)
    )
    weights = codes(
        cl.Guest(code=FIT, entry="fit", inputs=[*(f"f{k}" for k in range(10)), "target"], **about(10, 3)), table_of(x, y, domain)
    )
    for epsilon in (0.4, 1, 4, 16):
        ratios[epsilon] = np.mean([spread(x, drawn.reshape(2, 10)) / whole for drawn in noisy(*told, epsilon)])
        accuracies[epsilon] = np.mean([((x @ drawn > 0) == y).mean() for drawn in noisy(*weights, epsilon)])
    detail = "spread within clusters over that of the fit, at ε = " + ", ".join(f"{k:g}: {v:.2f}" for k, v in ratios.items())
    report(
        "guests, k-means of 26,733 compounds by blocks",
        ratio=float(ratios[4]),
        limit=1.6 if QUICK else 1.2,
        detail=detail,
        most=True,
    )
    detail = f"accuracy at ε = {', '.join(f'{k:g}: {v:.3f}' for k, v in accuracies.items())}; the fit {true.score(x, y):.3f}"
    report(
        "guests, logistic regression of them by blocks", ratio=float(accuracies[4]) / true.score(x, y), limit=0.9, detail=detail
    )


def about(numbers: int, most: float) -> Mapping[str, Any]:
    """Declarations of a guest that fits with scikit-learn."""
    packages = ["numpy", "sklearn.linear_model", "sklearn.cluster"]
    return {"output": cl.Vector([(-most, most)] * numbers), "blocks": BLOCKS, "packages": packages}


def table_of(x: Floats, y: Any, domain: Any) -> cl.PrivateTable:
    """Arrays as a table."""
    columns = {f"f{place}": x[:, place].tolist() for place in range(x.shape[1])}
    declared = dict.fromkeys(columns, domain)
    if y is not None:
        columns["target"], declared["target"] = y.tolist(), cl.Integer(0, 1)
    return cl.PrivateTable(columns, declared)


def codes(guest: cl.Guest, table: cl.PrivateTable) -> tuple[Blocks, npt.NDArray[np.int64]]:
    """What the blocks say, once for all ε: what leaves is only their noisy mean."""
    method = guest.method(table)
    assert isinstance(method, Blocks)
    with cl.Session({"t": table}, budget=PureDP(1)) as session:
        rows = session.prepared("t").rows(list(method.columns), unit=True)
    with method.needs.sandbox(guest.code, guest.entry, seconds=5, memory=guest.memory << 20) as sandbox:
        told = list(method.runs(sandbox, blocks_of(rows, table, method.inputs, method.blocks, Random.deterministic(1))))
    read = [method.output.read(ran.value) if ran.done else None for ran in told]
    assert all(each is not None for each in read), "a block gave no value: the middle would stand in for it"
    return method, np.array(read)


def noisy(method: Blocks, told: npt.NDArray[np.int64], epsilon: float) -> list[Floats]:
    """So many releases."""
    random = Random.deterministic(3)
    drawn = [method.noised(told, 0, PureDP(str(epsilon)), random)[0] for _ in range(DRAWS)]
    return [np.array(list(method.output.values(each).values())) for each in drawn]


def spread(x: Floats, centres: Floats) -> float:
    """The mean squared distance to the nearest centre."""
    return float(((x[:, None, :] - centres[None]) ** 2).sum(axis=2).min(axis=1).mean())


if __name__ == "__main__":
    main()
