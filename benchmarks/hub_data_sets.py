"""A thousand small data sets on one hub, each asked once: memory of the process at most 1 GiB, and at most 64 threads more.

    python benchmarks/hub_data_sets.py --data-sets 1000 --prepared 64

Every data set is a file of its own under a key of its own, opened and asked as the hub does. `--prepared` is the hub's setting:
as many as there are data sets, and none of them gives anything back.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from _report import report

from cloister.hub.generation import bump
from cloister.hub.hub import Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.accounts import add_person
from cloister.hub.platform.catalogue.live import live_of
from cloister.hub.platform.catalogue.sources import table_store_of
from cloister.hub.records.catalogue import DataSet, DataSetVersion, Population
from cloister.hub.services import all_services
from cloister.hub.settings import Settings
from cloister.privacy import PureDP

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
MOST_THREADS = 64
ROWS = "age,sex\n" + "".join(f"{17 + each % 70},{'FM'[each % 2]}\n" for each in range(200))
COLUMNS = {
    "age": {"kind": "integer", "low": 17, "high": 90},
    "sex": {"kind": "category", "values": ["F", "M"]},
}


def main() -> None:
    """Register them, ask each once, and look at the process."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data-sets", type=int, default=100 if QUICK else 1000)
    arguments.add_argument("--prepared", type=int, default=64)
    wanted = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data=Path(folder), workers=0, prepared=wanted.prepared)
        with Hub(settings, all_services()) as hub:
            names = furnished(hub, wanted.data_sets)
            before, threads = mebibytes(), number_of_threads()
            first = [ask(hub, name) for name in names]
            opening, first = first[0], sorted(first[1:])
            again = sorted(ask(hub, names[-1]) for _ in range(9))[4]
            memory, more = mebibytes(), number_of_threads() - threads
    detail = (
        f"{len(names)} data sets of 200 rows, {wanted.prepared} prepared at once: {before:.0f} MiB before the first query, "
        f"{memory:.0f} MiB after one to each, {more} threads more; the catalogue opened in {opening:.1f} s, a first query "
        f"{first[len(first) // 2] * 1000:.0f} ms, one again {again * 1000:.1f} ms"
    )
    report("1,000 data sets on one hub: memory, of 1 GiB", memory / 1024, 1, detail, most=True)
    report("1,000 data sets on one hub: threads, of 64", more / MOST_THREADS, 1, detail, most=True)


def ask(hub: Any, name: str) -> float:
    """Seconds of one query."""
    begun = time.perf_counter()
    with hub.database.reading() as db:
        session = live_of(hub).session(db, "ana", tables=[name])
    session.sql(f"SELECT COUNT(*) AS n FROM {name}", spend=PureDP(1))
    return time.perf_counter() - begun


def furnished(hub: Any, number: int) -> list[str]:
    """So many open data sets of one population."""
    store, now, names = table_store_of(hub), hub.now(), [f"t{each}" for each in range(number)]
    hub.ledger.open("people", PureDP(10**9), who="olga@example.org")
    with hub.database.begin() as db:
        owner = add_person(hub, db, email="olga@example.org", name="Olga", roles=["owner"]).id
        db.add(Population(name="people", title="People", owner=owner, created=now))
        db.flush()
        for name in names:
            stored, each = store.add(store.receive([ROWS.encode()], "csv"), about="benchmark"), new_id()
            declaration = {"columns": COLUMNS, "unit": None, "max_rows": None, "size": None}
            named = {"id": each, "name": name, "title": name, "owner": owner, "population": "people"}
            told = {"declaration": declaration, "metadata_": {}, "window": {}}
            db.add(DataSet(**named, **told, version=1, state="open", created=now, changed=now))
            db.flush()
            where = {"file": stored.file, "digest": stored.digest, "length": stored.length}
            made = {"created": now, "created_by": owner}
            version = DataSetVersion(id=new_id(), data_set=each, number=1, kind="stored", **where, **made)
            version.key = store.bound(stored, version.about).wrapped_key
            db.add(version)
        bump(db)
    return names


def mebibytes() -> float:
    """What the process takes of the machine's memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def number_of_threads() -> int:
    """Of this process."""
    return len(list(Path("/proc/self/task").iterdir()))


if __name__ == "__main__":
    main()
