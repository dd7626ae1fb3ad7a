"""anjana's published examples: the same table, hierarchies, models and suppression limit; less lost, in less time.

anjana needs older releases of what it stands on. Its interpreter is named by CLOISTER_PEER_ANJANA (an environment of its own with
`pip install anjana==1.2.3`), and the folder `examples` of its repository by CLOISTER_PEER_ANJANA_EXAMPLES; without both the
comparison is left out, and that is said aloud. Time is processor time of one process each: other work matters less.

What is lost is measured on both published tables by the same function, which knows nothing of either program: the discernibility
penalty, and the share of its hierarchy that a cell covers, in the mean over cells; a suppressed row covers everything.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
from _report import report

from cloister.anonymize import (
    AlphaKAnonymity,
    Anonymizer,
    BetaLikeness,
    DeltaDisclosure,
    Hierarchy,
    KAnonymity,
    LDiversity,
    TCloseness,
)
from cloister.anonymize.searches.named import search_of

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
VARIABLE, EXAMPLES = "CLOISTER_PEER_ANJANA", "CLOISTER_PEER_ANJANA_EXAMPLES"
FASTER = 20
SEARCHES = ("greedy", "mondrian")

ADULT = ["age", "education", "marital-status", "occupation", "sex", "native-country"]
FILES: dict[str, Any] = {
    name: f"hierarchies/{file}.csv"
    for name, file in zip(ADULT, ["age", "education", "marital", "occupation", "sex", "country"], strict=True)
}
SALARY = "salary-class"


@dataclass(frozen=True, kw_only=True)
class Example:
    """One of the published scripts."""

    name: str
    frame: str
    models: list[Any]
    steps: list[list[Any]]
    suppression: int
    quasi: Sequence[str] = tuple(ADULT)
    files: dict[str, Any] | None = None
    sensitive: str = SALARY


def adult(name: str, models: list[Any], steps: list[list[Any]], suppression: int = 50) -> Example:
    """An example on Adult."""
    return Example(name=name, frame="adult", models=models, steps=steps, suppression=suppression)


EXAMPLE = [
    adult("k = 10", [KAnonymity(10)], [["k_anonymity", [10]]]),
    adult(
        "k = 10, l = 2, t = 0.5",
        [KAnonymity(10), LDiversity(2), TCloseness("0.5")],
        [["k_anonymity", [10]], ["l_diversity", [SALARY, 10, 2]], ["t_closeness", [SALARY, 10, 0.5]]],
    ),
    adult("k = 10, l = 2", [KAnonymity(10), LDiversity(2)], [["l_diversity", [SALARY, 10, 2]]]),
    adult("k = 10, t = 0.5", [KAnonymity(10), TCloseness("0.5")], [["t_closeness", [SALARY, 10, 0.5]]]),
    adult("k = 10, α = 0.8", [KAnonymity(10), AlphaKAnonymity("0.8", 10)], [["alpha_k_anonymity", [SALARY, 10, 0.8]]], 100),
    adult("k = 10, δ = 3", [KAnonymity(10), DeltaDisclosure("3")], [["delta_disclosure", [SALARY, 10, 3]]]),
    adult(
        "k = 10, enhanced β = 0.5",
        [KAnonymity(10), BetaLikeness("0.5", enhanced=True)],
        [["enhanced_beta_likeness", [SALARY, 10, 0.5]]],
        100,
    ),
    Example(
        name="hospital, k = 2, l = 2",
        frame="hospital",
        models=[KAnonymity(2), LDiversity(2)],
        steps=[["l_diversity", ["disease", 2, 2]]],
        suppression=0,
        quasi=("age", "gender", "city"),
        files={"age": [5, 10], "gender": "*", "city": "*"},
        sensitive="disease",
    ),
]


def main() -> None:
    """Each example; then the time of all."""
    if not (os.environ.get(VARIABLE) and os.environ.get(EXAMPLES)):
        print(f"*** anjana IS NOT COMPARED WITH: {VARIABLE} or {EXAMPLES} names nothing ***", flush=True)
        return
    seconds = {"theirs": 0.0, **dict.fromkeys(SEARCHES, 0.0)}
    for example in EXAMPLE[:2] if QUICK else EXAMPLE:
        for side, taken in compare(example).items():
            seconds[side] += taken
    for search in SEARCHES:
        detail = f"ours {seconds[search]:.2f} s, anjana 1.2.3 {seconds['theirs']:.1f} s of processor time, its published examples"
        report(f"anjana's examples with {search}: its time over ours", seconds["theirs"] / seconds[search], FASTER, detail)


def compare(example: Example) -> dict[str, float]:
    """What both lose; processor seconds of each: ours read the frame, and make no report (anjana makes none)."""
    table = read(example.frame)
    rows = len(table[example.quasi[0]])
    frame = pl.DataFrame({name: table[name] for name in [*example.quasi, example.sensitive]})
    given = hierarchies(example, table)
    answer = theirs(example)
    seconds = {"theirs": float(answer["seconds"])}
    shares = {name: shares_of(lines) for name, lines in given.items()}
    their_lost, their_penal = loss(answer["table"], shares, rows), discernibility(answer["table"], rows)
    levels = {name: Hierarchy.of(lines) for name, lines in given.items()}
    for search in SEARCHES:
        asked = Anonymizer(
            quasi=list(example.quasi),
            sensitive=[example.sensitive],
            models=example.models,
            hierarchies=levels,
            search=search,
            suppression=str(example.suppression / 100),
        )
        taken = []
        for _ in range(3):
            begun = time.process_time()
            problem = asked.problem(frame)
            recoded = search_of(search).find(problem)
            taken.append(time.process_time() - begun)
        seconds[search] = sorted(taken)[1]
        if search == SEARCHES[0]:  # the other names intervals that stand in no hierarchy
            released = asked.fit_transform(frame)  # once: each release has a secret order of its own
            mine = {name: [str(value) for value in released[name]] for name in example.quasi}
            lost, penal = loss(mine, shares, rows), discernibility(mine, rows)
        print(f"{example.name}, {search}: {seconds[search]:.3f} s, {recoded.classes.count} classes", flush=True)
    detail = (
        f"ours {lost:.3f}, anjana's {their_lost:.3f} (discernibility {penal:.3g} and {their_penal:.3g}); {example.frame}, at "
        f"most {example.suppression} % suppressed; seconds {seconds[SEARCHES[0]]:.2f} and {seconds['theirs']:.2f}"
    )
    report(f"anjana's example {example.name}: our loss over its", lost / their_lost if their_lost else 1.0, 1, detail, most=True)
    return seconds


def read(frame: str) -> dict[str, list[Any]]:
    """A table of the examples, spaces around values removed as the examples do."""
    name = "adult.csv" if frame == "adult" else "hospital_extended.csv"
    with (Path(os.environ[EXAMPLES]) / "data" / name).open(encoding="utf-8", newline="") as file:
        lines = [[cell.strip() for cell in line] for line in csv.reader(file) if line]
    columns = {each: [line[place] for line in lines[1:]] for place, each in enumerate(lines[0])}
    return columns | {"age": [int(value) for value in columns["age"]]}


def hierarchies(example: Example, table: dict[str, list[Any]]) -> dict[str, dict[Any, list[str]]]:
    """The same hierarchies as the example has, value by value."""
    found: dict[str, dict[Any, list[str]]] = {}
    for name, file in (example.files or FILES).items():
        if isinstance(file, list):
            found[name] = {
                value: [f"[{value // width * width}, {value // width * width + width})" for width in file]
                for value in table[name]
            }
        elif file == "*":
            found[name] = {value: ["*"] for value in table[name]}
        else:
            with (Path(os.environ[EXAMPLES]) / file).open(encoding="utf-8", newline="") as lines:
                found[name] = {int(line[0]) if name == "age" else line[0]: line[1:] for line in csv.reader(lines) if line}
    return found


def interval(value: int, width: int) -> str:
    """As anjana writes them."""
    low = value // width * width
    return f"[{low}, {low + width})"


def shares_of(lines: dict[Any, list[str]]) -> dict[str, float]:
    """The share of a hierarchy's leaves under each label."""
    under: dict[str, set[Any]] = {}
    for value, labels in lines.items():
        for label in [str(value), *labels]:
            under.setdefault(label, set()).add(value)
    return {label: len(leaves) / len(lines) for label, leaves in under.items()}


def loss(table: dict[str, list[str]], shares: dict[str, dict[str, float]], rows: int) -> float:
    """What a cell covers, in the mean: nothing where it is one value, everything where the row is suppressed."""
    total = 0.0
    for name, known in shares.items():
        least = 1 / len(known) if len(known) == 1 else min(known.values())
        values = table.get(name, [])
        total += sum(known[value] if known[value] > least else 0.0 for value in values) + (rows - len(values))
    return total / rows / len(shares)


def discernibility(table: dict[str, list[str]], rows: int) -> float:
    """Squared sizes of classes; a suppressed row cannot be told from any."""
    sizes = Counter(zip(*table.values(), strict=True))
    kept = sum(sizes.values())
    return float(sum(size * size for size in sizes.values()) + (rows - kept) * rows)


@cache
def _server() -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [os.environ[VARIABLE], "-B", "-W", "ignore", str(Path(__file__).with_name("_anjana_server.py").resolve())]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=sys.stderr, text=True, env=environment, cwd=os.environ[EXAMPLES]
    )


def theirs(example: Example) -> dict[str, Any]:
    """One run of anjana's functions, as the example calls them."""
    process = _server()
    assert process.stdin is not None
    assert process.stdout is not None
    order = {
        "frame": example.frame,
        "identifying": ["race"] if example.frame == "adult" else ["name"],
        "quasi": list(example.quasi),
        "hierarchies": example.files or FILES,
        "steps": example.steps,
        "suppression": example.suppression,
    }
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    while not (line := process.stdout.readline()).startswith("{"):
        if not line:
            raise RuntimeError(f"the interpreter that {VARIABLE} names ended; has it anjana 1.2.3?")
    told: dict[str, Any] = json.loads(line)
    return told


if __name__ == "__main__":
    main()
