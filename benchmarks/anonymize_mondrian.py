"""Mondrian: how little it loses, and how long it takes, on Adult and on ten million rows.

The peer is qiyuangong/Mondrian, a public one in Python. It is a script, not a package: CLOISTER_PEER_MONDRIAN names the folder of
its checkout (commit 49d49cf: mondrian.py and utils/utility.py are enough). Both get the same rows: Adult's 30,162 complete ones,
its eight quasi-identifiers, categories numbered in the order in which they appear. What is lost is measured as the peer does: the
normalised certainty penalty with the span in that order as the width of a category, which favours the peer, whose classes are
intervals of that order. Its page publishes 12.19 % for k = 10 (strict).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
from _clock import alternating
from _report import report

from cloister.anonymize import Anonymizer, KAnonymity
from cloister.anonymize.searches.axes import axes_of
from cloister.anonymize.searches.mondrian import Mondrian

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
VARIABLE = "CLOISTER_PEER_MONDRIAN"
PUBLISHED = 12.19  # per cent, k = 10, strict; the page of the peer
ADULT = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "adult" / "adult_train.csv.gz"
QUASI = ["age", "workclass", "education-num", "marital-status", "occupation", "race", "sex", "native-country"]
ROWS = 200_000 if QUICK else 10_000_000
LARGE = ["age", "sex", "income", "education", "country", "zip", "hours", "occupation"]
GIB = 2**30


def main() -> None:
    """Each promise, or the measured part of the large one."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--measured", type=Path)
    arguments.add_argument("--written", type=Path)
    given = arguments.parse_args()
    if given.written is not None:
        written(given.written)
        return
    if given.measured is not None:
        measured(given.measured)
        return
    if ADULT.exists():
        adult()
    else:
        print("*** ADULT IS NOT HERE: only the large table is measured ***", flush=True)
    large()


def adult() -> None:
    """Seconds, and what is lost, against the peer where it is there, else against what its page says."""
    frame = adult_frame()
    numbers = in_order_of_appearance(frame)
    ours = {k: penalty(frame, numbers, k) for k in (5, 10)}
    asked = Anonymizer(quasi=QUASI, models=[KAnonymity(5)], search="mondrian")

    def search(_: int) -> object:
        problem = asked.problem(frame)
        return Mondrian().find(problem)

    data = f"Adult {len(frame['age']):,} × {len(QUASI)}, k = 5"
    if not os.environ.get(VARIABLE):
        print(f"*** qiyuangong/Mondrian IS NOT RUN: {VARIABLE} names no folder ***", flush=True)
        (seconds,) = alternating(search, rounds=3 if QUICK else 9)
    else:
        rows = np.stack(list(numbers.values()), axis=1).tolist()
        seconds, theirs = alternating(search, lambda _: peer(rows, 5, False), rounds=3 if QUICK else 9)
        their_seconds = peer(rows, 5, False)["seconds"]
        for k in (5, 10):
            lost = {relaxed: peer(rows, k, relaxed)["ncp"] for relaxed in (False, True)}
            detail = f"ours {ours[k]:.2f} %, qiyuangong/Mondrian 49d49cf {lost[False]:.2f} % (relaxed {lost[True]:.2f} %)"
            name = f"Mondrian on Adult, k = {k}: the peer's certainty penalty over ours"
            report(name, lost[False] / ours[k], 1, f"{detail}, strict, by the peer's measure, Adult 30,162 × 8")
        detail = f"ours {seconds:.2f} s with encoding, qiyuangong/Mondrian {their_seconds:.2f} s in its own search, {data}"
        report("Mondrian on Adult, the peer's time over ours", min(their_seconds, theirs) / seconds, 1, detail)
    name = "Mondrian on Adult, k = 10: the published certainty penalty over ours"
    report(name, PUBLISHED / ours[10], 1, f"ours {ours[10]:.2f} %, published {PUBLISHED} % (qiyuangong/Mondrian, strict)")
    report("Mondrian on Adult, seconds", seconds, 0.3, f"{data}: encoded, cut and labelled", most=True)


@cache
def _server() -> subprocess.Popen[str]:
    script = Path(__file__).with_name("_mondrian_server.py")
    command = [sys.executable, "-B", "-W", "ignore", str(script), os.environ[VARIABLE]]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr, text=True)


def peer(rows: list[list[int]], k: int, relaxed: bool) -> dict[str, float]:
    """One run of the peer: its seconds and its penalty, in per cent."""
    process = _server()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"rows": rows, "k": k, "relaxed": relaxed}) + "\n")
    process.stdin.flush()
    told: dict[str, float] = json.loads(process.stdout.readline())
    return told


def adult_frame() -> dict[str, list[Any]]:
    """Adult's complete rows."""
    with gzip.open(ADULT, "rt", encoding="utf-8") as file:
        names = file.readline().strip().split(",")
        rows = [line.strip().split(",") for line in file if "?" not in line and line.strip()]
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    whole = {"age", "education-num"}
    return {name: [int(value) if name in whole else value for value in columns[name]] for name in QUASI}


def in_order_of_appearance(frame: dict[str, list[Any]]) -> dict[str, npt.NDArray[np.int64]]:
    """Numbers as they are, categories as the peer numbers them."""
    found = {}
    for name, values in frame.items():
        place = {value: value if isinstance(value, int) else number for number, value in enumerate(dict.fromkeys(values))}
        found[name] = np.array([place[value] for value in values])
    return found


def penalty(frame: dict[str, list[Any]], numbers: dict[str, npt.NDArray[np.int64]], k: int) -> float:
    """What our classes lose by the peer's measure, in per cent."""
    problem = Anonymizer(quasi=QUASI, models=[KAnonymity(k)], search="mondrian").problem(frame)
    of_row, count = Mondrian().classes(problem, axes_of(problem.table, problem.quasi, {}))
    assert np.bincount(of_row).min() >= k
    lost = 0.0
    for values in numbers.values():
        low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
        np.minimum.at(low, of_row, values)
        np.maximum.at(high, of_row, values)
        lost += float(((high - low)[of_row] / (values.max() - values.min())).mean())
    return 100 * lost / len(numbers)


def large() -> None:
    """In processes of their own, so that a peak is that of the search, or of the way from a file to a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        with duckdb.connect(config={"memory_limit": "2GiB"}) as connection:
            connection.execute(f"COPY ({made_up()}) TO '{path}' (FORMAT parquet)")
        said = told_by("--measured", path)
        on_disk = told_by("--written", path)
    what = f"{ROWS:,} × {len(LARGE)}, nearly all rows different, k = 5"
    detail = (
        f"{what}: {said['classes']:,} classes; reading took {said['read']:.1f} s more; processor time {said['processor']:.0f} s"
    )
    report("Mondrian on a large table, seconds", said["seconds"], 60, detail, most=True)
    report("Mondrian on a large table, peak memory in GiB", said["peak"] / GIB, 4, detail, most=True)
    detail = f"{what}: counted, cut, judged, written sorted and counted again in {on_disk['seconds']:.0f} s"
    report("Mondrian from a large file to a file, peak memory in GiB", on_disk["peak"] / GIB, 4, detail, most=True)


def told_by(mode: str, path: Path) -> dict[str, float]:
    """What this file says in that mode."""
    command = [sys.executable, "-W", "ignore", __file__, mode, str(path)]
    told: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return told


def made_up() -> str:
    """Rows of people who do not exist, the same each time: a row's values are hashes of its number."""

    def drawn(seed: int) -> str:
        return f"((hash(i, {seed}) % 1000003) / 1000003.0)"

    return (
        f"SELECT (17 + {drawn(1)} * 73)::INT AS age, CASE WHEN {drawn(2)} < 0.5 THEN 'F' ELSE 'M' END AS sex, "
        f"({drawn(3)} * {drawn(4)} * 99999)::INT AS income, 'edu' || ({drawn(5)} * {drawn(6)} * 15)::INT AS education, "
        f"'c' || ({drawn(7)} * {drawn(8)} * {drawn(9)} * 39)::INT AS country, ({drawn(10)} * 999)::INT AS zip, "
        f"(1 + {drawn(11)} * 98)::INT AS hours, 'occ' || ({drawn(12)} * 13)::INT AS occupation FROM range({ROWS}) t(i)"
    )


def written(path: Path) -> None:
    """From a file to a file: the table is never in memory whole."""
    begun = time.perf_counter()
    goal = path.with_name("released.parquet")
    anonymizer = Anonymizer(quasi=LARGE, models=[KAnonymity(5)], search="mondrian", shuffle=True)
    done = anonymizer.transform_file(path, goal)
    assert done.written == done.rows
    assert done.report.risk.k >= 5
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": time.perf_counter() - begun, "peak": peak}))


def measured(path: Path) -> None:
    """Encode, cut, label, and count the classes again from the labels."""
    from cloister.anonymize.frames import read_frame

    begun = time.perf_counter()
    frame = read_frame(path)
    read, used = time.perf_counter(), time.process_time()
    problem = Anonymizer(quasi=LARGE, models=[KAnonymity(5)], search="mondrian").problem(frame)
    recoded = Mondrian().find(problem)
    classes = recoded.classes
    done, processor = time.perf_counter(), time.process_time() - used
    assert classes.sizes.min() >= 5
    assert classes.rows == frame.rows
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        json.dumps({"read": read - begun, "seconds": done - read, "processor": processor, "classes": classes.count, "peak": peak})
    )


if __name__ == "__main__":
    main()
