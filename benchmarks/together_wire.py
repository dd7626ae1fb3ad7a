"""A count over five sites that are processes, on loopback: how much longer it takes than one site's own, and its noise.

Every site is `cloister site` with a folder of its own; the hub is this process. What counts is processor time, of the hub and of
the slowest site: so long it takes where each is a machine of its own. Wall time on this machine, where all of them share the
processors, is in the detail. Questions differ from round to round, so that none is answered from what was stored.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _report import report

import cloister as cl
from cloister.crypto import SigningKey
from cloister.noise import DiscreteLaplace
from cloister.together import Coordinator, Roster, SignedRoster

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
SITES, ROWS = 5, 20_000 if QUICK else 200_000
ROUNDS, COUNTS = (5, 40) if QUICK else (25, 150)
COLUMNS = {"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"]), "pay": cl.Integer(0, 1000)}
BUDGET = cl.PureDP(10**6)
CONFIG = """
[site]
name = {name}
[policy]
otherwise = "always"
[tables.people]
source = "people.parquet"
[tables.people.columns]
age = {{ kind = "integer", low = 17, high = 90 }}
sex = {{ kind = "category", values = ["F", "M"] }}
pay = {{ kind = "integer", low = 0, high = 1000 }}
[budgets]
people = {{ rho = "1000000000000" }}
"""


def site_of(folder: Path, place: int) -> SigningKey:
    """A site's folder, with rows; its key."""
    import duckdb

    name, key = folder.name, SigningKey(bytes([place + 1]) * 32)
    folder.mkdir()
    (folder / "site.toml").write_text(CONFIG.format(name=json.dumps(name)), encoding="utf-8")
    (folder / "site.key").write_text((bytes([place + 1]) * 32).hex(), encoding="ascii")
    words = np.random.default_rng(place).integers(0, 2**31, size=(3, ROWS))
    held = {"age": 17 + words[0] % 74, "sex": np.array(["F", "M"])[words[1] % 2], "pay": words[2] % 1000}  # noqa: F841
    duckdb.sql("SELECT * FROM held").write_parquet(str(folder / "people.parquet"))
    return key


def main() -> None:
    """Measure, print for people, print for programs."""
    with tempfile.TemporaryDirectory() as found:
        folder = Path(found)
        keys = {f"site {place}": site_of(folder / f"site {place}", place) for place in range(SITES)}
        hub = SigningKey.generate()
        roster = Roster(sites={name: key.public for name, key in keys.items()}, hub=hub.public, missing=1)
        coordinator = Coordinator(hub, SignedRoster.by(keys, roster), deadline=60)
        with coordinator.serving() as address:
            processes = [
                subprocess.Popen(
                    [sys.executable, "-m", "cloister", "site", "--data", str(folder / name), "--hub", address],
                    stdout=subprocess.DEVNULL,
                )
                for name in keys
            ]
            try:
                measured(coordinator, folder, [process.pid for process in processes])
            finally:
                for process in processes:
                    process.kill()
                    process.wait()


def measured(coordinator: Coordinator, folder: Path, sites: list[int]) -> None:
    """Time and noise."""
    joint = cl.Session({"people": cl.JointTable(coordinator.sites, COLUMNS, overlap="none")}, budget=BUDGET)
    counting(joint)(-1)
    before, hub, begun = [used(pid) for pid in sites], time.process_time(), time.perf_counter()
    for place in range(ROUNDS):
        counting(joint)(place)
    wall, here = time.perf_counter() - begun, time.process_time() - hub
    slowest = max(used(pid) - old for pid, old in zip(sites, before, strict=True))
    with cl.Session({"people": cl.PrivateTable(folder / "site 0" / "people.parquet", columns=COLUMNS)}, budget=BUDGET) as alone:
        counting(alone)(-1)
        hub = time.process_time()
        for place in range(ROUNDS):
            counting(alone)(place)
        own = time.process_time() - hub
    each = [1000 * took / ROUNDS for took in (here, slowest, own, wall)]
    detail = (
        f"processor time: hub {each[0]:.0f} ms, slowest site {each[1]:.0f} ms, one site by itself {each[2]:.0f} ms;"
        f" wall time on this machine {each[3]:.0f} ms, with {os.cpu_count()} processors for {SITES} sites of {ROWS:,} rows"
    )
    name = "a count over 5 sites on loopback, milliseconds over one site's own"
    report(name, each[0] + each[1] - each[2], 150, detail, most=True)
    spread(joint)


def used(pid: int) -> float:
    """Processor seconds of a process (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def counting(session: cl.Session) -> Callable[[int], object]:
    """A count that was not asked before."""
    return lambda place: session.sql(f"SELECT COUNT(*) AS n FROM people WHERE pay < {100 + place}", spend="0.5")


def spread(joint: cl.Session) -> None:
    """The variance of a count, over that of one central noise."""
    found: dict[str, list[int]] = {"F": [], "M": []}
    for place in range(COUNTS):
        text = f"SELECT sex, COUNT(*) AS n FROM people WHERE pay < {1001 + place} GROUP BY sex"  # all rows, in other words
        answer = joint.sql(text, spend="0.1").to_pydict()
        for sex, count in zip(answer["sex"], answer["n"], strict=True):
            found[sex].append(count)
    ratio = statistics.fmean(statistics.variance(counts) for counts in found.values()) / DiscreteLaplace(scale=10).variance
    detail = (
        f"{ratio:.2f} of a central variance, measured on {2 * COUNTS} counts; N/(quorum − t) = 5/3 by the law, N/(N − t) = 5/4 if"
        " the hub could not choose who is left out, 5 for noise at each site"
    )
    report("noise of a count over 5 sites on loopback, over 5/3 of a central variance", ratio / (5 / 3), 1.5, detail, most=True)


if __name__ == "__main__":
    main()
