"""Is this table anonymous? k, l and t of Adult, against pycanon in the same run, number by number.

pycanon stands on pandas 2; its interpreter is named by CLOISTER_PEER_PYCANON (an environment of its own with `pip install
pycanon==1.3.6`). Without it the comparison is left out, and that is said aloud.

Where pycanon's number is not the one that its literature defines, ours is the defined one: entropy l-diversity is cut to a whole
number there; the c of recursive diversity compares with the rarest value, not the commonest; enhanced β-likeness compares the
largest gain of all with the rarest value's −ln p, not each value with its own. δ skips values that lack in a class in both.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from _report import report

from cloister.anonymize.classes import Classes
from cloister.anonymize.encoded import EncodedColumn
from cloister.anonymize.models.closeness import TCloseness
from cloister.anonymize.models.diversity import LDiversity
from cloister.anonymize.risks import risk

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
VARIABLE = "CLOISTER_PEER_PYCANON"
ADULT = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "arx" / "adult_30162.csv.gz"
SENSITIVE = "salary-class"
PART = 2_000
"""Rows on which all of pycanon's numbers are compared; three of them on the whole table, which take it half a minute."""

THEIRS = """
import json, sys, time
import pandas as pd
from pycanon import anonymity as a
data = pd.read_csv(sys.argv[1])
quasi, sensitive = json.loads(sys.argv[2]), [sys.argv[3]]
found = {}
asked_for = sys.argv[4].split(",")
for name, asked in (("k", lambda: a.k_anonymity(data, quasi)), ("l", lambda: a.l_diversity(data, quasi, sensitive)),
                    ("t", lambda: a.t_closeness(data, quasi, sensitive)),
                    ("beta", lambda: a.basic_beta_likeness(data, quasi, sensitive)),
                    ("delta", lambda: a.delta_disclosure(data, quasi, sensitive)),
                    ("alpha", lambda: a.alpha_k_anonymity(data, quasi, sensitive)[0])):
    if name not in asked_for:
        continue
    start = time.perf_counter()
    value = float(asked())
    found[name] = [value, time.perf_counter() - start]
print(json.dumps(found))
"""


def main() -> None:
    """Measure, print for people, print for programs."""
    table = adult()
    quasi = [name for name in table.columns if name != SENSITIVE]
    seconds = best(lambda: risk(table, quasi, [SENSITIVE]))
    report("k, l, t (and β, δ, risk) of Adult, seconds", seconds, 0.1, f"{table.height:,} × {len(quasi)}", most=True)
    found = theirs(table.head(PART), quasi, "k,l,t,beta,delta,alpha")
    if found is not None:
        same(table.head(PART), quasi, found)
        against_pycanon(table.head(PART) if QUICK else table, quasi)
    wide()


def same(table: pl.DataFrame, quasi: list[str], found: dict[str, list[float]]) -> None:
    """Number by number."""
    ours = risk(table, quasi, [SENSITIVE])
    mine = {"k": ours.k, "l": ours.l, "t": ours.t, "beta": ours.beta, "delta": ours.delta, "alpha": ours.alpha}
    off = max(abs(float(mine[name] or 0) - value) for name, (value, _) in found.items())
    names = ", ".join(found)
    report(f"how far our {names} are from pycanon's", off, 1e-9, f"{table.height:,} × {len(quasi)}", most=True)


def against_pycanon(table: pl.DataFrame, quasi: list[str]) -> None:
    """The ratio of the times, for k, l and t."""
    found = theirs(table, quasi, "k,l,t")
    assert found is not None
    same(table, quasi, found)
    seconds = best(lambda: risk(table, quasi, [SENSITIVE]))
    words = ", ".join(f"{name} {second:.2f} s" for name, (_, second) in found.items())
    ratio = sum(second for _, second in found.values()) / seconds
    report("k, l and t: pycanon's time over ours", ratio, 20, f"pycanon {words}; ours {seconds:.3f} s for all")


def wide() -> None:
    """A hundred thousand classes over a thousand values, as a search asks for them."""
    generator = np.random.default_rng(1)
    rows, count = (100_000, 10_000) if QUICK else (1_000_000, 100_000)
    column = EncodedColumn(
        name="s", codes=generator.integers(0, 1_000, rows).astype(np.int32), values=list(range(1_000)), kind="integer"
    )
    classes = Classes.of(generator.integers(0, count, rows), count, sensitive={"s": column})
    classes.spread("s")
    for model in (LDiversity(3), TCloseness("0.2"), TCloseness("0.2", "equal")):
        seconds = best(lambda model=model: model.satisfied(classes, "s"))  # type: ignore[misc]
        name = f"{model.name}: {model.distance or 'ordered'}" if isinstance(model, TCloseness) else model.name
        report(f"{name} of many classes, seconds", seconds, 0.5, f"{count:,} classes, {rows:,} rows, 1,000 values", most=True)


def best(work: Callable[[], Any], rounds: int = 5) -> float:
    """The shortest of some runs, after one that warms up."""
    work()
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def adult() -> pl.DataFrame:
    """Adult's complete rows; a table of its shape where it is not at hand."""
    if ADULT.is_file():
        return pl.read_csv(gzip.open(ADULT).read())
    print("*** Adult IS NOT AT HAND: a table of its shape, drawn at random, stands in ***", flush=True)
    generator = np.random.default_rng(1)
    sizes = {"sex": 2, "age": 72, "race": 5, "marital-status": 7, "education": 16, "native-country": 41, "workclass": 7}
    drawn = {name: generator.integers(0, size, 30_162).astype(str) for name, size in (sizes | {"occupation": 14}).items()}
    return pl.DataFrame(drawn | {"salary-class": generator.integers(0, 2, 30_162).astype(str)})


def theirs(table: pl.DataFrame, quasi: list[str], names: str) -> dict[str, list[float]] | None:
    """pycanon's numbers, and the seconds that each took."""
    interpreter = os.environ.get(VARIABLE)
    if not interpreter:
        print(f"*** pycanon IS NOT COMPARED WITH: {VARIABLE} names no interpreter that has it ***", flush=True)
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        table.write_csv(path)
        said = subprocess.run(
            [interpreter, "-c", THEIRS, str(path), json.dumps(quasi), SENSITIVE, names],
            capture_output=True,
            text=True,
            check=True,
        )
    found: dict[str, list[float]] = json.loads(said.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
