"""What a report of Prio3 takes: processor time at the client and at a server, and bytes, in one process."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

from _report import report

from cloister.noise import Random
from cloister.together.prio3 import KEY_BYTES, Circuit, Count, Histogram, Prio3, PrioServer, Sum, opened
from cloister.together.prio3.helper import Helper
from cloister.together.prio3.joint_survey import JointQuestion, JointSurvey

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
REPORTS = 50 if QUICK else 500
PAGE = 100


def main() -> None:
    """Measure, print for people, print for programs."""
    measured("a bit", Count(), 0.5)
    measured("a number to 1,000", Sum(largest=1000), 2)
    measured("one of 100 buckets", Histogram(buckets=100), 10)
    helped()


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


def helped() -> None:
    """A helper that keeps what it says on disk: milliseconds a report of a joint survey of three questions, in pages of a hub."""
    asked = (
        JointQuestion(text="Do you smoke?", kind="yes-no", epsilon="1"),
        JointQuestion(text="How do you come to work?", kind="choice", epsilon="1", options=tuple("abcdefgh")),
        JointQuestion(text="How old are you?", kind="number", epsilon="1", low=0, high=120),
    )
    survey, key = JointSurvey(id="benchmark", title="benchmark", questions=asked), Random().bytes(KEY_BYTES)
    with tempfile.TemporaryDirectory() as folder:
        helper, pages = Helper.made(Path(folder), survey, link="none", name="benchmark"), []
        for begin in range(0, REPORTS, PAGE):
            page = []
            for report_ in (survey.report(["yes", "c", 40], helper.public) for _ in range(begin, min(begin + PAGE, REPORTS))):
                parts = zip(survey.sums, report_.public, report_.shares, strict=True)
                said = [prio3.check(key, 0, report_.nonce, public, share)[1].hex() for prio3, public, share in parts]
                page.append({**report_.to_dict(), "said": said})
            pages.append(page)
        begun = time.process_time()
        for page in pages:
            helper.said(key, page)
        took = time.process_time() - begun
        counted = helper.reports
        helper.close()
    sent = len(json.dumps(pages[0][0]))
    detail = f"{counted} reports counted; {sent:,} bytes of JSON each"
    report("joint survey of three questions, milliseconds a report at the helper", took / REPORTS * 1000, 10, detail, most=True)


if __name__ == "__main__":
    main()
