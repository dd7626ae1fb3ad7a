"""One question in three strengths of trust: rows at the hub, rows at five sites, and masked cells at the hub with a key holder.

The hub, the sites and the key holder are in one process and talk over loopback, over the wires that they use elsewhere. Seconds
are processor time of all of them together; bytes are what crossed the wire for one question, in both directions.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from _report import report

import cloister as cl
from cloister.crypto import SigningKey
from cloister.together import (
    Coordinator,
    KeyHolder,
    KeyHolderAgent,
    KeyHolderLine,
    Marginal,
    MaskedFormat,
    Paillier,
    Roster,
    Sealer,
    SignedRoster,
    Site,
    SiteAgent,
    Slots,
)
from cloister.together.agent import Caller
from cloister.together.sealed.batches import Batch, pad_sums

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
ROWS, SITES, ROUNDS = 20_000 if QUICK else 100_000, 5, 3 if QUICK else 7
COLUMNS = {"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"]), "ward": cl.Category([f"w{n}" for n in range(10)])}
FORM = MaskedFormat(columns=COLUMNS, marginals=[Marginal(by=["sex", "ward"], sums=["age"])], population="patients")
MUCH = cl.ZCDP(10**9)
OWNER = SigningKey(b"o" * 32)
SPEND = "0.01"


def main() -> None:
    """Measure, print for people, print for programs."""
    words = np.random.default_rng(1).integers(0, 2**31, size=(3, ROWS))
    rows = {"age": 17 + words[0] % 74, "sex": np.array(["F", "M"])[words[1] % 2], "ward": words[2] % 10}
    rows["ward"] = np.array([f"w{n}" for n in rows["ward"]])
    holder = KeyHolder("keys", budgets={"patients": MUCH}, owners={"patients": [OWNER.public]})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "all.masked"
        begun = time.process_time()
        Sealer(FORM, holder.public, owner=OWNER).seal(rows, path)
        sealing = time.process_time() - begun
        central = cl.PrivateTable(rows, columns=COLUMNS)
        with key_holder(holder) as (line, sent), sites(rows) as (coordinator, crossed):
            tables: dict[str, tuple[cl.PrivateTable, Any]] = {
                "rows at the hub": (central, [0]),
                "a key holder": (cl.SealedTable(path.parent, line), sent),
                "five sites": (cl.JointTable(coordinator.sites, COLUMNS, overlap="none", missing=1), crossed),
            }
            found = {name: asked(table, count) for name, (table, count) in tables.items()}
        size = path.stat().st_size
    for name, (seconds, wall, crossing, variance) in found.items():
        print(f"{name}: {1000 * seconds:.0f} ms, {1000 * wall:.0f} by the clock, {crossing:,} bytes, {variance:.2f} variances")
    seconds, wall, crossing, variance = found["a key holder"]
    told = f"COUNT and AVG in 20 groups of {ROWS:,} rows; {FORM.bytes_a_row} bytes a row, "
    told += f"sealed in {sealing:.1f} s ({size:,} bytes); processor time: "
    told += "; ".join(f"{name} {1000 * each[0]:.0f} ms, {each[2]:,} bytes" for name, each in found.items())
    report("a grouped question to sealed rows with a key holder, seconds", wall, 2, told, most=True)
    report(
        "noise with a key holder, over 2 central variances",
        variance / 2,
        1.5,
        f"five sites {found['five sites'][3]:.2f} of one",
        most=True,
    )
    report(
        "bytes over the wire with a key holder, over those of five sites",
        crossing / found["five sites"][2],
        1,
        "one question",
        most=True,
    )
    added()


def added() -> None:
    """Sums of masked cells at the hub, of their pads at the key holder, and of Paillier's ciphertexts, one a row."""
    form = MaskedFormat(columns={"age": COLUMNS["age"]}, marginals=[Marginal(sums=["age"])], population="patients")
    holder = KeyHolder(budgets={"patients": MUCH})
    for rows, limit in ((10_000, 5), (100_000 if QUICK else 1_000_000, 300)):
        with tempfile.TemporaryDirectory() as folder:
            ages = 17 + np.arange(rows) % 74
            batch = Batch(Sealer(form, holder.public).seal({"age": ages}, Path(folder) / "all.masked"))
            whole, key = ((0, batch.head.rows),), holder.key_of(batch.head)
            here, there = took(partial(batch.sums, 0, whole)), took(partial(pad_sums, key, form, 0, whole))
        report(f"SUM over {rows:,} masked cells at the hub, ms", here, limit, f"pads at the key holder {there:.1f} ms", most=True)
    keys = Paillier.generate()
    cells = [keys.public.encrypt([age], slots=Slots(bits=32, terms=1 << 14)) for age in range(1_000 if QUICK else 10_000)]
    seconds = took(lambda: reduce(add, cells)) / 1e3
    report(f"SUM over {len(cells):,} of Paillier's ciphertexts, seconds", seconds, 0.3, "2,048 bits, one a row", most=True)


def took(act: Callable[[], object]) -> float:
    """The least processor time of some runs, in ms."""
    found = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        act()
        found.append(time.process_time() - begun)
    return min(found) * 1e3


def asked(table: cl.PrivateTable, crossed: list[int]) -> tuple[float, float, int, float]:
    """Of a question: median seconds of processor and wall time, bytes, and the variance of counts in central ones."""
    spent, walls, crossing = [], [], []
    with cl.Session({"people": table}, budget=MUCH) as session:
        counted = session.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", spend=SPEND)
        law = counted.readings["rows"].terms[0].noise
        for place in range(ROUNDS + 1):
            cpu, wall, before = time.process_time(), time.perf_counter(), sum(crossed)
            text = "SELECT sex, ward, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY sex, ward"
            answer = session.sql(text, spend=f"0.0{10 + place}", fresh=True)
            spent.append(time.process_time() - cpu)
            walls.append(time.perf_counter() - wall)
            crossing.append(sum(crossed) - before)
    assert answer.num_rows == 20
    one = 1 / (2 * float(SPEND))  # of the Gaussian noise of a count at that ρ
    return statistics.median(spent[1:]), statistics.median(walls[1:]), int(statistics.median(crossing[1:])), law.variance / one


@contextmanager
def served(line: Any, agents: Sequence[Caller]) -> Iterator[list[int]]:
    """The hub's end and the others in threads; how many bytes each message had."""
    crossed: list[int] = []

    def counted(answer: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
        def both(data: bytes) -> bytes:
            found = answer(data)
            crossed.append(len(data) + len(found))
            return found

        return both

    stop = threading.Event()
    with line.serving() as hub:
        threads = []
        for agent in agents:
            agent.answer = counted(agent.answer)  # type: ignore[method-assign]
            threads.append(threading.Thread(target=agent.run, args=(hub,), kwargs={"stop": stop}))
            threads[-1].start()
        try:
            yield crossed
        finally:
            stop.set()
            for thread in threads:
                thread.join()


@contextmanager
def key_holder(holder: KeyHolder) -> Iterator[tuple[KeyHolderLine, list[int]]]:
    """A key holder on loopback."""
    key = SigningKey(bytes(32))
    line = KeyHolderLine(key, holder.name, holder.public, wait=0.5)
    with served(line, [KeyHolderAgent(holder, key.public)]) as crossed:
        yield line, crossed


@contextmanager
def sites(rows: dict[str, Any]) -> Iterator[tuple[Coordinator, list[int]]]:
    """Five sites on loopback, each with a fifth of the rows."""
    key = SigningKey(b"1" * 32)
    here = {}
    for place in range(SITES):
        own = cl.PrivateTable({name: values[place::SITES] for name, values in rows.items()}, columns=COLUMNS)
        here[f"site {place}"] = Site(f"site {place}", own, budget=MUCH)
    roster = Roster(sites={name: site.public for name, site in here.items()}, hub=key.public, missing=1)
    signed = SignedRoster(roster, {name: site.sign(roster) for name, site in here.items()})
    coordinator = Coordinator(key, signed, wait=0.5)
    with served(coordinator, [SiteAgent(site) for site in here.values()]) as crossed:
        yield coordinator, crossed


if __name__ == "__main__":
    main()
