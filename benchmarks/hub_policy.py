"""What a decision of the hub costs: against the time that Cedar's engine takes from Python.

A plain world has one grant and one rule of the institution; a large one has twenty grants, of which the last holds, and ten
rules. In both, a policy is attached, and the question has a purpose, columns, a cost and a second data set beside it. The limit
is 75 µs, the time that cedarpy states for a decision; it is no dependency, so it does not run here. A decision is nothing but
computation, so what is counted is processor time, and of that the best round: what else the machine does is not ours.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from ipaddress import ip_network

from _report import report

from cloister.hub.decisions.policy import (
    Context,
    Decision,
    GrantFacts,
    MandatoryRule,
    Members,
    Object,
    Part,
    Policy,
    Rules,
    Spend,
    Who,
    decide,
)
from cloister.privacy.guarantee import PureDP

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
TIMES = 300 if QUICK else 2000
ROUNDS = 5 if QUICK else 15
LIMIT = 75
NOW = datetime(2026, 11, 20, 13, 0, tzinfo=UTC)
BOB = Who(id="bob", roles=frozenset({"analyst"}), institution="north", training={"GCP": datetime(2030, 1, 1, tzinfo=UTC)})
ASKING = frozenset({"question.ask"})


def main() -> None:
    """Measure, print for people, print for programs."""
    small, large = world(grants=1, rules=1), world(grants=20, rules=10)
    first, second = (each() for each in (small, large))
    assert first.allowed
    assert second.allowed
    rounds = [(processor_time(small), processor_time(large)) for _ in range(ROUNDS)]
    for name, taken in zip(("one grant, one rule", "20 grants, 10 rules"), zip(*rounds, strict=True), strict=True):
        each = min(taken) / TIMES * 1e6
        detail = f"{each:.1f} µs a decision; limit {LIMIT} µs, as cedarpy takes; best of {ROUNDS} rounds of {TIMES}"
        report(f"a decision of the hub's policy, {name}", each / LIMIT, 1, detail, most=True)


def world(*, grants: int, rules: int) -> Callable[[], Decision]:
    """A question that the last of so many grants allows, under so many rules of the institution."""
    expired = Rules(actions=ASKING, until=datetime(2026, 1, 1, tzinfo=UTC))
    holding = Rules(
        actions=ASKING,
        purposes=frozenset({"research"}),
        columns=frozenset({"age", "sex"}),
        share=PureDP(1),
        networks=(ip_network("10.0.0.0/8"),),
    )
    given = [GrantFacts(id=f"g{n}", role="reader", members=Members(anybody=True), rules=expired) for n in range(grants - 1)]
    given.append(GrantFacts(id="last", role="reader", members=Members(people=frozenset({"bob"})), rules=holding))
    census = Object(kind="dataset", id="census", owner="odo")
    pair = frozenset({Part(object="health", column="diagnosis"), Part(object="census", column="postcode")})
    health = Object(
        kind="dataset",
        id="health",
        owner="ada",
        institution="north",
        labels=frozenset({"clinical"}),
        population="patients",
        grants=tuple(given),
        policies=(Policy(purposes=frozenset({"research"}), forbidden=frozenset({pair})),),
    )
    rule = MandatoryRule(
        id="m0",
        labels=frozenset({"clinical"}),
        training=frozenset({"GCP"}),
        epsilon_of_population=Fraction(3),
        forbidden=frozenset({pair}),
    )
    above = [replace(rule, id=f"m{n}") for n in range(rules)]
    context = Context(
        now=NOW,
        address="10.1.2.3",
        purpose="research",
        columns={"health": frozenset({"age"}), "census": frozenset({"age"})},
        together=(census,),
        spend={"patients": Spend(asked=PureDP("0.1"), spent=PureDP("1.3"), drawn=PureDP("0.2"))},
    )
    return lambda: decide(BOB, "question.ask", health, context, above)


def processor_time(work: Callable[[], object]) -> float:
    """Seconds of the processor for the work, many times."""
    begun = time.process_time()
    for _ in range(TIMES):
        work()
    return time.process_time() - begun


if __name__ == "__main__":
    main()
