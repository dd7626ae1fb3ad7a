"""What a report of Prio3 takes: processor time at the client and at a server, and bytes, in one process."""

from __future__ import annotations

import os
import time

from _report import report

from cloister.noise import Random
from cloister.together.prio3 import KEY_BYTES, Circuit, Count, Histogram, Prio3, PrioServer, Sum, opened

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
REPORTS = 50 if QUICK else 500


def main() -> None:
    """Measure, print for people, print for programs."""
    measured("a bit", Count(), 0.5)
    measured("a number to 1,000", Sum(largest=1000), 2)
    measured("one of 100 buckets", Histogram(buckets=100), 10)


def measured(what: str, circuit: Circuit, most: float) -> None:
    """Milliseconds of the processor for a report at a server, with the client's and the bytes beside it."""
    prio3, key = Prio3(circuit, context=b"benchmark"), Random().bytes(KEY_BYTES)
    servers = [PrioServer(prio3, place, key, epsilon=1) for place in range(prio3.servers)]
    begun = time.process_time()
    reports = [prio3.report(place % 2) for place in range(REPORTS)]
    client = time.process_time() - begun
    begun = time.process_time()
    for each in reports:
        said = [server.check(each) for server in servers]
        for server in servers:
            server.count(each.nonce, said)
    server = (time.process_time() - begun) / len(servers)
    lists = [each.close() for each in servers]
    total = opened(prio3, [each.share(lists) for each in servers], reports=REPORTS, epsilon=1)
    first, second = map(len, reports[0].shares)
    detail = f"client {client / REPORTS * 1000:.2f} ms, {first:,} and {second} bytes; ± {total.margin():.0f} at ε = 1"
    report(f"Prio3, {what}, milliseconds a report at a server", server / REPORTS * 1000, most, detail, most=True)


if __name__ == "__main__":
    main()
