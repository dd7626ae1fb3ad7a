"""Prio3 against the published vectors, against lying clients and servers, and against an audit of its guarantee.

`vectors.json` holds test vectors of draft-irtf-cfrg-vdaf, version 20 (test_vec/vdaf), good ones and those named bad.
"""

from __future__ import annotations

import itertools
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.attacks import audit
from cloister.errors import CloisterError, InvalidParameter
from cloister.noise import Random
from cloister.together.messages import RoundRefused
from cloister.together.prio3.circuits import Circuit, Count, Histogram, Sum, decide, drawn_for_query, prove, query
from cloister.together.prio3.reports import KEY_BYTES, Prio3
from cloister.together.prio3.servers import PrioServer, opened

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())
KEY = bytes(range(KEY_BYTES))
CIRCUITS: list[Circuit] = [
    Count(),
    Sum(largest=1),
    Sum(largest=100),
    Histogram(buckets=1),
    Histogram(buckets=7),
    Histogram(buckets=9, chunk=9),
]


def circuit_of(name: str, told: dict[str, Any]) -> Circuit:
    if "Count" in name:
        return Count()
    return (
        Sum(largest=told["max_measurement"]) if "Sum" in name else Histogram(buckets=told["length"], chunk=told["chunk_length"])
    )


@pytest.mark.parametrize("name", VECTORS)
def test_a_published_vector(name: str) -> None:
    told = VECTORS[name]
    circuit, raw = circuit_of(name, told), bytes.fromhex
    prio3 = Prio3(circuit, servers=told["shares"], context=raw(told["ctx"]))
    kept: dict[tuple[int, int], Any] = {}
    counted: dict[tuple[int, int], list[int]] = {}

    def carried_out(step: dict[str, Any]) -> bool:
        place, which = step.get("aggregator_id", 0), step.get("report_index", 0)
        report = told["reports"][which]
        match step["operation"]:
            case "shard":
                made = prio3._sharded(report["measurement"], raw(report["nonce"]), raw(report["rand"]))
                return made.public.hex() == report["public_share"] and [s.hex() for s in made.shares] == report["input_shares"]
            case "verify_init":
                share = raw(report["input_shares"][place])
                key, nonce = raw(told["verify_key"]), raw(report["nonce"])
                kept[which, place], said = prio3.check(key, place, nonce, raw(report["public_share"]), share)
                return said.hex() == report["verifier_shares"][0][place]
            case "verifier_shares_to_message":
                return prio3.decided([raw(each) for each in report["verifier_shares"][0]]).hex() == report["verifier_messages"][0]
            case "verify_next":
                counted[which, place] = prio3.counted(kept[which, place], raw(report["verifier_messages"][0]))
                return circuit.field.encode(counted[which, place]).hex() == report["out_shares"][place]
            case "aggregate":
                shares = [each for (_, at), each in counted.items() if at == place]
                total = [sum(numbers) % circuit.field.modulus for numbers in zip(*shares, strict=True)]
                return circuit.field.encode(total).hex() == told["agg_shares"][place]
        numbers = [circuit.field.decode(raw(each)) for each in told["agg_shares"]]
        total = [sum(each) % circuit.field.modulus for each in zip(*numbers, strict=True)]
        result = told["agg_result"]
        return total == (result if isinstance(result, list) else [result])

    for step in told["operations"]:
        try:
            done = carried_out(step)
        except RoundRefused:
            done = False
        assert done == step["success"], step


@pytest.mark.parametrize("circuit", CIRCUITS, ids=repr)
@pytest.mark.parametrize("servers", [2, 3])
def test_what_is_sent_is_added_up(circuit: Circuit, servers: int) -> None:
    """Every value that may be sent (at most twenty of them) is counted, at every server alike."""
    top = circuit.buckets - 1 if isinstance(circuit, Histogram) else circuit.largest
    values = sorted({0, top, *range(0, top + 1, max(1, top // 17))})
    prio3, parties = with_servers(circuit, servers, epsilon=10**6)
    for value in values:
        send(prio3, parties, value)
    lists = [each.close() for each in parties]
    found = opened(prio3, [each.share(lists) for each in parties], reports=len(values), epsilon=10**6)
    if isinstance(circuit, Histogram):
        assert found.counts.tolist() == [int(bucket in values) for bucket in range(circuit.buckets)]
    else:
        assert found.counts.tolist() == [sum(values)]


def with_servers(circuit: Circuit, number: int, epsilon: int, random: Random | None = None) -> tuple[Prio3, list[PrioServer]]:
    prio3 = Prio3(circuit, servers=number, context=b"test")
    return prio3, [PrioServer(prio3, place, KEY, epsilon=epsilon, random=random) for place in range(number)]


def send(prio3: Prio3, parties: list[PrioServer], value: int, random: Random | None = None) -> None:
    report = prio3.report(value, random=random)
    said = [each.check(report) for each in parties]
    for each in parties:
        each.count(report.nonce, said)


@pytest.mark.parametrize(
    ("circuit", "lies"),
    [
        (Count(), [[2], [-1], [1 << 40]]),
        (Sum(largest=9), [[2, 0, 0, 0], [0, 0, 0, -1], [1, 1, 1, 2]]),
        (Histogram(buckets=6), [[0] * 6, [1, 1, 0, 0, 0, 0], [2, -1, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, -1]]),
    ],
    ids=repr,
)
def test_a_value_that_may_not_be_sent_has_no_proof(circuit: Circuit, lies: list[list[int]]) -> None:
    """An honest prover's proof of a false value, and one of a true value with a false one beside it: each passes by chance alone,
    below 2^-50 a try (`circuits.py`).
    """
    random, field = Random.deterministic(3), circuit.field
    for lie in lies:
        encoded = [each % field.modulus for each in lie]
        for honest in (encoded, circuit.encode(0)):
            seeds = [random.below_one(field.modulus) for _ in range(circuit.arity)]
            joint = [random.below_one(field.modulus) for _ in range(circuit.joint)]
            drawn = [random.below_one(field.modulus) for _ in range(drawn_for_query(circuit))]
            proof = prove(circuit, honest, seeds, joint)
            assert not decide(circuit, query(circuit, encoded, proof, drawn, joint, 1))
        assert decide(circuit, query(circuit, circuit.encode(0), proof, drawn, joint, 1))


def test_a_helpers_share_says_nothing_of_the_value() -> None:
    """The same bytes whatever was sent: what a helper is sent is independent of the value, not only nearly."""
    for circuit in CIRCUITS:
        prio3 = Prio3(circuit, servers=3)
        drawn = bytes(range(256))[: prio3.random_bytes].ljust(prio3.random_bytes, b"x")
        top = circuit.buckets - 1 if isinstance(circuit, Histogram) else circuit.largest
        low, high = (prio3._sharded(value, bytes(16), drawn) for value in (0, top))
        assert low.shares[1:] == high.shares[1:]
        assert top == 0 or low.shares[0] != high.shares[0]


def test_a_leaders_view_is_uniform() -> None:
    """The leader's share of a bit and what helpers tell of it: over all seeds each is uniform for 0 and for 1.

    Of 4,000 reports of each value the top bits (16 buckets) are counted; chi-square of 15 degrees stays below 70 with probability
    1 − 4e-9, in four counts.
    """
    random, prio3 = Random.deterministic(5), Prio3(Count())
    for value in (0, 1):
        buckets = np.zeros((2, 16))
        for _ in range(4000):
            report = prio3.report(value, random=random)
            _, told = prio3.check(KEY, 1, report.nonce, report.public, report.shares[1])
            for row, number in enumerate((prio3.circuit.field.decode(report.shares[0])[0], prio3.circuit.field.decode(told)[1])):
                buckets[row, number >> 60] += 1
        assert ((buckets - 250) ** 2 / 250).sum(axis=1).max() < 70


def test_bytes_that_are_no_report_are_refused_by_name() -> None:
    prio3, (leader, helper) = with_servers(Histogram(buckets=4), 2, epsilon=1)
    report = prio3.report(1)
    large = b"\xff" * len(report.shares[0])
    for wrong in (
        replace(report, public=b""),
        replace(report, nonce=b"short"),
        replace(report, shares=(large, report.shares[1])),
        replace(report, shares=(report.shares[0][:-1], report.shares[1])),
        replace(report, shares=(report.shares[0],)),
    ):
        with pytest.raises(RoundRefused):
            leader.check(wrong)
    said = [leader.check(report), helper.check(report)]
    for told in ([said[0]], [said[0], said[1][:-1]], [said[0], b"\xff" * len(said[1])], [said[0], said[0]]):
        with pytest.raises(RoundRefused):
            prio3.decided(told)
    with pytest.raises(RoundRefused, match="came before"):
        leader.check(report)
    with pytest.raises(RoundRefused, match="no report waits"):
        helper.count(bytes(16), said)
    for value in (-1, 4, True, 1.0, "1"):
        with pytest.raises(InvalidParameter):
            prio3.report(value)  # type: ignore[arg-type]


def test_another_context_or_key_counts_nothing() -> None:
    prio3, _ = with_servers(Histogram(buckets=4), 2, epsilon=1)
    report = prio3.report(1)
    other = Prio3(Histogram(buckets=4), context=b"another")
    for one, two in itertools.product((prio3, other), repeat=2):
        said = [
            each.check(KEY, place, report.nonce, report.public, report.shares[place])[1] for place, each in enumerate((one, two))
        ]
        if one is two is prio3:
            assert one.decided(said)
        else:
            with pytest.raises(RoundRefused):
                one.decided(said)


def test_sums_of_different_reports_are_not_opened() -> None:
    """Two lists would give the difference of two sums: one person's value."""
    prio3, parties = with_servers(Count(), 2, epsilon=1)
    send(prio3, parties, 1)
    report = prio3.report(1)
    said = [each.check(report) for each in parties]
    parties[0].count(report.nonce, said)  # the other never hears of it
    lists = [each.close() for each in parties]
    for each in parties:
        with pytest.raises(RoundRefused, match="different reports"):
            each.share(lists)
    with pytest.raises(RoundRefused, match="closed"):
        parties[0].check(prio3.report(0))


def test_a_share_is_drawn_once() -> None:
    prio3, parties = with_servers(Histogram(buckets=30), 2, epsilon=1)
    send(prio3, parties, 7)
    with pytest.raises(RoundRefused, match="still taken"):
        parties[0].share([b"", b""])
    lists = [each.close() for each in parties]
    assert parties[0].share(lists) == parties[0].share(lists)
    with pytest.raises(RoundRefused):
        opened(prio3, [parties[0].share(lists)], reports=1, epsilon=1)
    with pytest.raises(RoundRefused, match="bytes of each"):
        opened(prio3, [5, 5], reports=1, epsilon=1)  # type: ignore[list-item]
    with pytest.raises(RoundRefused):
        opened(prio3, [b"\xff" * 480, b"\xff" * 480], reports=1, epsilon=1)


def test_shares_of_two_sums_are_not_opened() -> None:
    """They add up to a number anywhere in the field: 5 reports were said to have a sum of 1,644,834,077,201,276,874."""
    sums = list[list[bytes]]()
    for number in (5, 5, 1):
        prio3, parties = with_servers(Count(), 2, epsilon=100)
        for _ in range(number):
            send(prio3, parties, 1)
        lists = [each.close() for each in parties]
        sums.append([each.share(lists) for each in parties])
    assert opened(prio3, sums[0], reports=5, epsilon=100).counts.tolist() == [5]
    one, other, last = sums
    for mixed, reports in (([one[0], other[1]], 5), ([one[0], one[0]], 5), (one, -5), (one, 1), ([one[0] * 2, one[1] * 2], 5)):
        with pytest.raises(RoundRefused, match=r"of one sum|of 8 bytes"):
            opened(prio3, mixed, reports=reports, epsilon=100)
    assert opened(prio3, last, reports=1, epsilon=100).counts.tolist() == [1]


def view(asked: int, epsilon: int) -> Any:
    """What the other server and whoever opens the sum learn of one report: the honest server's share, without what they know."""

    def shares(value: int, runs: int, random: Random) -> Any:
        prio3 = Prio3(Histogram(buckets=2), context=b"audit")
        half, size = prio3.circuit.field.modulus // 2, prio3.circuit.field.modulus
        found = []
        for _ in range(runs):
            server = PrioServer(prio3, 0, KEY, epsilon=epsilon, random=random)
            server._total = prio3.circuit.encode(value)
            digest = server.close()
            told = []
            for _ in range(asked):
                server._share = b""
                told += prio3.circuit.field.decode(server.share([digest] * 2))
            found.append([each - size if each > half else each for each in told])
        return np.array(found, dtype=np.int64)

    return shares


@pytest.mark.parametrize(("asked", "epsilon", "refuted"), [(1, 1, False), (1, 2, True), (3, 1, True)])
def test_the_guarantee_of_one_honest_server(asked: int, epsilon: int, refuted: bool) -> None:
    """An audit of ε = 1 refutes nothing, and catches noise that is made for ε = 2 and noise that is drawn thrice."""
    sums = {f"of draws, bucket {bucket}": lambda rows, bucket=bucket: rows[:, bucket::2].sum(axis=1) for bucket in range(2)}
    found = audit(view(asked, epsilon), 0, 1, runs=4_000, features=sums, random=Random.deterministic(9))
    assert (found.epsilon > 1) == refuted, found


@pytest.mark.parametrize(
    "wrong", [{"largest": 0}, {"largest": 2**32}, {"buckets": 0}, {"buckets": 3, "chunk": 4}, {"buckets": 2**21}]
)
def test_parameters_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidParameter):
        (Sum if "largest" in wrong else Histogram)(**wrong)
    for made in (lambda: Prio3(Count(), servers=1), lambda: Prio3(Count(), context="text"), lambda: Prio3("bit")):  # type: ignore[arg-type]
        with pytest.raises(CloisterError):
            made()


@pytest.mark.parametrize(("circuit", "value"), [(Count(), 1), (Sum(largest=100), 37), (Histogram(buckets=5), 2)])
def test_a_share_that_comes_again_under_another_nonce_is_not_answered(circuit: Circuit, value: int) -> None:
    """Two answers about one share of a bit are two points of a line that goes through it."""
    prio3, parties = with_servers(circuit, 2, 1)
    report = prio3.report(value)
    said = [server.check(report) for server in parties]
    for server in parties:
        for nonce in (report.nonce, bytes(len(report.nonce)), b"n" * len(report.nonce)):
            with pytest.raises(RoundRefused, match="came before"):
                server.check(replace(report, nonce=nonce))
        server.count(report.nonce, said)
        with pytest.raises(RoundRefused, match="came before"):
            server.check(replace(report, nonce=b"m" * len(report.nonce)))


def test_two_who_ask_at_once_get_one_draw() -> None:
    _, parties = with_servers(Histogram(buckets=4000), 2, 1)
    lists = [server.close() for server in parties]
    together = threading.Barrier(2)

    def asked(_: int) -> bytes:
        together.wait()
        return parties[0].share(lists)

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(asked, range(2))
    assert one == other


def test_what_is_not_bytes_is_refused_in_its_own_words() -> None:
    prio3 = Prio3(Count())
    report = prio3.report(1, random=Random.deterministic(1))
    with pytest.raises(InvalidParameter, match="nonce= is invalid"):
        prio3.report(1, nonce=7)  # type: ignore[arg-type]
    good = [bytes(32), report.nonce, report.public, report.shares[0]]
    for place in range(len(good)):
        key, *rest = [*good[:place], "x" * len(good[place]), *good[place + 1 :]]
        with pytest.raises(RoundRefused, match="not bytes"):
            prio3.check(key, 0, *rest)  # type: ignore[arg-type]
    with pytest.raises(RoundRefused, match="not bytes"):
        prio3.decided([7, None])  # type: ignore[list-item]


@pytest.mark.parametrize("wrong", [{"epsilon": 0}, {"epsilon": "x"}, {"epsilon": None}, {"place": "0"}, {"place": 0.0}], ids=str)
def test_what_a_server_could_open_no_sum_with_is_refused_before_a_report_is_taken(wrong: dict[str, Any]) -> None:
    how = {"place": 0, "epsilon": 1, **wrong}
    with pytest.raises(InvalidParameter, match=f"{next(iter(wrong))}=.* is invalid"):
        PrioServer(Prio3(Count()), how["place"], bytes(32), epsilon=how["epsilon"])
