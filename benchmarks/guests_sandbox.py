"""Guests: what a run in the sandbox costs, and what the mean of blocks loses against the answer without privacy."""

from __future__ import annotations

import os
import resource
import time
from statistics import median

from _report import report

import cloister as cl
from cloister.guests.sandbox.image import image
from cloister.guests.sandbox.wasm import Sandbox
from cloister.samples import census

RUNS = 100 if os.environ.get("CLOISTER_BENCH_QUICK") else 1000
CODE = "def f(rows):\n    ages = sorted(rows['age'])\n    return [ages[len(ages) // 2]]\n"


def main() -> None:
    """Measure, print for people, print for programs."""
    image()
    started, before = time.perf_counter(), time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    with Sandbox(CODE, "f") as sandbox:
        opened = time.perf_counter() - started
        each = []
        for _ in range(RUNS):
            started = time.perf_counter()
            assert sandbox.run([{"age": [1, 2, 3]}]).done
            each.append(time.perf_counter() - started)
        started = time.perf_counter()
        for _ in range(RUNS):
            assert sandbox.run([{"age": list(range(1000))}]).done
        rows = (time.perf_counter() - started) / RUNS
    used = (sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) + time.process_time() - before) / (2 * RUNS)
    about = f"over {RUNS} runs, one after another; a load of {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    report("guests, a new interpreter and one run in ms", ratio=median(each) * 1e3, limit=15, detail=about, most=True)
    report("guests, 1,000 blocks in WebAssembly in s of a processor", ratio=used * 1e3, limit=10, detail=about, most=True)
    report("guests, the same over 1,000 rows in ms", ratio=rows * 1e3, limit=20, detail="reading them included", most=True)
    report("guests, a process with the image loaded in ms", ratio=opened * 1e3, limit=250, detail="digest checked", most=True)
    table = census()
    guest = cl.Guest(code=CODE, entry="f", inputs=["age"], output=cl.Vector([(0, 100)]), blocks=200, seconds=0.02)
    with cl.Session({"census": table}, budget=cl.PureDP(1)) as session:
        found = guest.run(session, "census", 1)
    detail = f"the median age of the census: {found.values['0']:.2f} ± {found.margins['0']:.2f}"
    report("guests, margin of a mean over 200 blocks", ratio=found.margins["0"], limit=2, detail=detail, most=True)


if __name__ == "__main__":
    main()
