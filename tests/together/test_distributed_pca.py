"""Principal components through a proxy: the sums of the rows with noise that nobody knows, and views that say nothing else."""

from __future__ import annotations

import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("gmpy2")

import gmpy2

import cloister as cl
from cloister.attacks import audit
from cloister.crypto import AgreementKey, SigningKey
from cloister.errors import InvalidParameter, MissingBound
from cloister.noise import Random
from cloister.together import DistributedPCA, EncryptedVector, Journal, Paillier
from cloister.together.messages import RoundRefused, pack, unpack
from cloister.together.noisy_moments import BITS, MomentNoise, moments_of
from cloister.together.proxy import Proxy, ProxyOwner, ProxyPlan, read_total

NAMES = ("north", "south", "west", "east")
SIGNING = {name: SigningKey(bytes([place]) * 32) for place, name in enumerate((*NAMES, "proxy"), 1)}
SEAL = AgreementKey(bytes(range(32)))


@pytest.fixture(scope="module")
def keys() -> Paillier:
    return Paillier.generate(random=Random.deterministic(1))


def plan_of(keys: Paillier, features: int = 3, **more: Any) -> ProxyPlan:
    plan = ProxyPlan(
        owners={name: SIGNING[name].public for name in NAMES},
        proxy=SIGNING["proxy"].public,
        seal=SEAL.public,
        key=keys.public,
        proof=keys.prove(),
        low=(0.0,) * features,
        high=(1.0,) * features,
        radius=math.sqrt(features) / 2,
        epsilon=Fraction(1),
        delta=Fraction(1, 10**9),
    )
    return replace(plan, **more)


def rows_of(name: str, number: int = 4000) -> np.ndarray[Any, Any]:
    """Along (2, 1, 0), within [0, 1]³."""
    generator = np.random.default_rng(NAMES.index(name))
    return 0.5 + np.outer(generator.uniform(-0.2, 0.2, number), [2, 1, 0]) + generator.uniform(-0.05, 0.05, (number, 3))


def owner(plan: ProxyPlan, name: str, **more: Any) -> ProxyOwner:
    return ProxyOwner(plan, name, SIGNING[name], **more)


# ── what comes out ──


def test_parties_that_send_bytes(keys: Paillier) -> None:
    """A plan as text, a message of each owner, one of the proxy: and the moments are those of all rows, within the margin."""
    plan = ProxyPlan.from_text(plan_of(keys, missing=1).text)
    proxy, paid = Proxy(plan, SIGNING["proxy"], SEAL), []
    sent = [
        owner(plan, name, charge=paid.append, random=Random.deterministic(place)).message(rows_of(name))
        for place, name in enumerate(NAMES[:3])
    ]
    for message in sent[:2]:
        proxy.take(message)
    with pytest.raises(RoundRefused, match="2 owners answered, and 3 must"):
        proxy.total()
    assert [proxy.take(sent[2]), proxy.take(sent[2])] == ["west"] * 2
    assert paid == [cl.ApproxDP(1, "1e-9")] * 3
    found = read_total(plan, keys, proxy.total())
    rows = np.concatenate([rows_of(name) for name in NAMES[:3]])
    assert found.owners == 3
    assert abs(found.count - len(rows)) < 6 * found.deviations[0]
    error = np.linalg.norm(found.scatter - len(rows) * np.cov(rows.T, bias=True), 2)
    assert error < found.margin(0.999999) < 40 * error
    model = DistributedPCA(2).fit_moments(found)
    assert abs(model.components_[0] @ [2, 1, 0]) / math.sqrt(5) > 0.999
    assert np.abs(model.mean_ - rows.mean(axis=0)).max() < 0.01


def test_as_an_estimator(keys: Paillier) -> None:
    owners = [rows_of(name) for name in NAMES]
    model = DistributedPCA(2, epsilon=2, bounds=(0, [1, 1, 1]), keys=keys).fit(owners)
    exact = np.linalg.eigvalsh(np.cov(np.concatenate(owners).T))[::-1]
    assert np.abs(model.explained_variance_ - exact[:2]).max() < model.margin(0.999999)
    assert model.guarantee_ == cl.ApproxDP(2, "1e-9")
    assert model.opened_guarantee_.rho > cl.privacy.zcdp_within(epsilon=2, delta="1e-9").rho * 2
    back = model.inverse_transform(model.transform(owners[0]))
    assert np.abs(back - owners[0]).max() < 0.1
    assert 0.9 < model.explained_variance_ratio_.sum() <= 1


@pytest.mark.parametrize("rows", [np.zeros((0, 2)), np.ones((1, 2))])
def test_no_mean_and_no_variance_is_beyond_what_rows_can_have(keys: Paillier, rows: Any) -> None:
    """Of hardly any rows there is noise alone, which a count of one divides."""
    random = Random.deterministic(3)
    model = DistributedPCA(1, epsilon=1, bounds=(-1, 1), keys=keys, random=random).fit([rows, np.zeros((0, 2))])
    assert np.abs(model.mean_).max() <= 2**0.5
    assert model.explained_variance_[0] <= model.total_variance_ <= 2 * model.size_ / max(model.size_ - 1, 1)


# ── what one person changes, and the noise ──


@pytest.mark.parametrize("features", [1, 2, 7])
def test_one_row_moves_the_numbers_no_farther_than_is_noised(features: int) -> None:
    """Against the deviations of the noise that `honest` owners make, so against what is really drawn. Corners come near it."""
    noise, generator = MomentNoise(features=features, rho=Fraction(1, 10), honest=5), np.random.default_rng(1)
    rows = np.concatenate([generator.choice([-1.0, 1.0], (200, features)), generator.normal(size=(200, features)) * 9])
    variances = np.concatenate([np.full(n, float(5 * law.scale_squared)) for law, n in noise.shares])
    end = np.ones(features)
    worst = max(
        float((moments_of(row[None], -end, end, math.sqrt(features)).astype(float) ** 2 / variances).sum()) for row in rows
    )
    assert 0.98 < worst / (2 * float(noise.rho)) <= 1
    assert len(variances) == noise.numbers == len(moments_of(rows, -end, end, 1.0))


@pytest.mark.parametrize(("half", "radius"), [(1e100, 1e-99), (1e100, 4e101), (1e-98, 1e-99), (3.0, 0.1)])
def test_far_rows_count_no_longer_than_the_reach(half: float, radius: float) -> None:
    """At the ends of what a plan may declare, corners and random rows, one at a time: the sum's length is the row's."""
    for features in (1, 3, 400):
        generator, end = np.random.default_rng(3), np.full(features, half)
        reach = MomentNoise(features=features, rho=Fraction(1), honest=1).reach
        for row in (end, -end, *generator.uniform(-half, half, (20, features)), np.full(features, -1e308)):
            steps = moments_of(row[None], -end, end, radius)[1 : 1 + features].astype(float)
            assert np.linalg.norm(steps) <= reach


def test_a_margin_is_no_wider_than_a_variance_can_be(keys: Paillier) -> None:
    """Of thirty rows between -1 and 1 it was 77, and with less spent infinite, where no variance is above 4."""
    few = np.random.default_rng(1).uniform(-1, 1, (30, 2))
    for epsilon in ("4", "0.1"):
        model = DistributedPCA(epsilon=epsilon, delta="1e-6", bounds=(-1, 1), keys=keys, random=Random.deterministic(2))
        model.fit([few[:10], few[10:20], few[20:]])
        assert np.abs(model.explained_variance_ - np.linalg.eigvalsh(np.cov(few.T))[::-1]).max() <= model.margin(0.95) <= 4 + 1e-9


def test_sums_are_exact() -> None:
    """Those of whole steps, whatever the chunks, with far-off rows drawn in."""
    generator = np.random.default_rng(2)
    rows = generator.integers(-(2**BITS) // 2, 2**BITS // 2, (70_000, 2))
    found = moments_of(rows / 2.0**BITS, -np.ones(2), np.ones(2), 1.0)
    products = rows.T @ rows
    assert found.tolist() == [70_000 << BITS, *rows.sum(axis=0), *np.diag(products), products[0, 1]]
    assert moments_of(np.array([[9.0, 9.0]]), -np.ones(2), np.ones(2), 1.0)[1:3].tolist() == [46341, 46341]


@pytest.mark.parametrize("order", ["C", "F"])
def test_what_a_row_counts_follows_from_it_alone(order: Any) -> None:
    """At the edge between two steps, found by halving, where the last bit of a row's length decides: alone and beside another."""
    generator, end = np.random.default_rng(0), np.ones(9)

    def steps(row: np.ndarray[Any, Any], first: float, many: int) -> int:
        rows = np.array([[first, *row[1:]]] * many, order=order)
        return int(moments_of(rows, -end, end, 1.0)[1]) // many

    for row in generator.uniform(0.2, 1, (10, 9)):
        inside, outside = 0.0, float(row[0])
        while (middle := (inside + outside) / 2) not in (inside, outside):
            inside, outside = (middle, outside) if steps(row, middle, 1) <= 9000 else (inside, middle)
        for first in (inside, outside):
            assert steps(row, first, 1) == steps(row, first, 2)


@pytest.mark.statistical
@pytest.mark.parametrize("broken", [False, True])
def test_the_noise_that_is_left_is_enough(broken: bool) -> None:
    """Three honest owners of five; the auditor sees the worst direction. Broken on purpose: with a ninth of the variance."""
    noise, corner = MomentNoise(features=1, rho=Fraction(1, 2), honest=3), np.array([[1.0]])
    moved = moments_of(corner, -np.ones(1), np.ones(1), 1.0).astype(float)
    weights = moved / np.concatenate([np.full(n, float(3 * law.scale_squared)) for law, n in noise.shares])

    def mechanism(rows: int, n: int, random: Random) -> Any:
        drawn = sum(
            np.column_stack([law.sample(n * k, random=random).reshape(n, k) for law, k in noise.shares]) for _ in range(3)
        )
        return np.rint((rows * moved + drawn / (3 if broken else 1)) @ weights * 8).astype(int)

    result = audit(mechanism, 1, 0, runs=20_000, against=cl.ZCDP("0.5"), random=Random.deterministic(5))
    assert result.contradicts(cl.ZCDP("0.5")) == broken, result


# ── what parties see ──


def residue(keys: Paillier, found: EncryptedVector) -> list[int]:
    """The randomness of ciphertexts: what is left when the plain numbers are taken off."""
    n = keys.public.modulus
    return [int(cell * (1 - keys._plain(cell) * n) % n**2) for cell in found.cells]


def test_the_users_view_is_simulated_from_the_noisy_sums(keys: Paillier) -> None:
    """All numbers under the proxy's ciphertexts are the noisy sums, and their randomness is the same for all rows that there may
    be. The published blind left v modulo N in them; nothing else is left here."""
    plan, views = plan_of(keys), []
    for many in (1, 2000):
        proxy = Proxy(plan, SIGNING["proxy"], SEAL, random=Random.deterministic(9))
        sums: Any = 0
        for place, name in enumerate(NAMES):
            drawn = Random.deterministic(place)
            message = owner(plan, name, random=Random.deterministic(place)).message(rows_of(name, many))
            sums = sums + moments_of(rows_of(name, many), np.zeros(3), np.ones(3), plan.radius) + plan.noise.sample(drawn)
            proxy.take(message)
        seen = EncryptedVector.from_json(
            unpack(proxy.total(), "total", plan.id, {"proxy": plan.proxy}).body.decode(), keys.public
        )
        simulated = keys.public.encrypt(sums, slots=plan.slots)
        for _ in NAMES[1:]:
            simulated = simulated + keys.public.encrypt(np.zeros(len(sums), dtype=int), slots=plan.slots)
        assert [keys._plain(cell) for cell in seen.cells] == [keys._plain(cell) for cell in simulated.cells]
        views.append(seen)
    assert residue(keys, views[0]) == residue(keys, views[1])
    assert views[0].cells != views[1].cells


def test_the_proxys_view_is_simulated_from_noughts(keys: Paillier) -> None:
    """An owner's message is a seal around ciphertexts; neither its length nor their randomness follows from rows, and the user
    can't open the seal."""
    plan, found = plan_of(keys), []
    for rows in (np.zeros((0, 3)), rows_of("north")):
        message = unpack(owner(plan, "north", random=Random.deterministic(4)).message(rows), "moments", plan.id, plan.owners)
        inside = plan.cipher(SEAL, message.body[:32]).decrypt(message.body[32:], [b"north"])
        found.append((EncryptedVector.from_json(inside.decode(), keys.public), message))
        with pytest.raises(cl.CloisterError):
            plan.cipher(AgreementKey.generate(), message.body[:32]).decrypt(message.body[32:], [b"north"])
    (one, first), (other, second) = found
    assert residue(keys, one) == residue(keys, other)
    assert first.body[:32] == second.body[:32]  # the seal's key follows from the injected generator alone
    assert abs(len(first.body) - len(second.body)) <= 8  # hexadecimal digits of random numbers, leading noughts left out


# ── what is refused ──


def test_one_plan_is_one_sum(keys: Paillier) -> None:
    """Two sums of one plan, the second with one owner more, would show that owner's message with its own noise alone."""
    plan = plan_of(keys, missing=1)
    proxy, sent = Proxy(plan, SIGNING["proxy"], SEAL), [owner(plan, name).message(rows_of(name)) for name in NAMES]
    for message in sent[:3]:
        proxy.take(message)
    total = proxy.total()
    with pytest.raises(RoundRefused, match="the sum was sent"):
        proxy.take(sent[3])
    assert proxy.take(sent[0]) == NAMES[0]
    assert proxy.total() == total


def test_one_plan_is_one_sum_whatever_process_the_proxy_is(keys: Paillier, tmp_path: Path) -> None:
    """Killed after the sum was sent, and brought all messages again with one more, it would send the second."""
    plan = plan_of(keys, missing=1)
    sent, total = [owner(plan, name).message(rows_of(name)) for name in NAMES], set[bytes]()
    for messages in (sent[:3], sent[:0]):
        proxy = Proxy(plan, SIGNING["proxy"], SEAL, journal=Journal(tmp_path))
        for message in messages:
            proxy.take(message)
        total.add(proxy.total())
        with pytest.raises(RoundRefused, match="the sum was sent"):
            proxy.take(sent[3])
    assert len(total) == 1


def test_an_owner_answers_once_and_pays_first(keys: Paillier) -> None:
    plan = plan_of(keys)
    once = owner(plan, "north")
    assert once.message(rows_of("north")) == once.message(rows_of("south"))

    class Unread:
        def __array__(self, *_: Any, **__: Any) -> Any:
            raise AssertionError

    def broke(_: Any) -> None:
        raise cl.BudgetExceeded("no", why="no", instead="no")

    poor = owner(plan, "south", charge=broke)
    with pytest.raises(cl.BudgetExceeded):
        poor.message(Unread())
    assert poor._sent is None


MASKED = np.ma.MaskedArray([[0.0, 1.0, 0.0]], mask=[[False, True, False]])
DATES = np.array([["2020-01-01"] * 3], dtype="datetime64[D]")


@pytest.mark.parametrize(
    "rows",
    [
        *([[0.0, math.nan, 0.0]], [[0.0, math.inf, 0.0]], [[0.0, 0.0]], [["a", 0, 0]], [0.0], [[10**400, 0, 0]], MASKED),
        *(DATES, pd.DataFrame(DATES), DATES - DATES[0, 0], np.ones((1, 3)) * 1j),
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_rows_that_are_none_are_refused_without_a_value(keys: Paillier, rows: Any) -> None:
    with pytest.raises(InvalidParameter, match="The rows are invalid: they are numbers, none missing, in 3 columns"):
        owner(plan_of(keys), "north").message(rows)


def test_a_masked_value_is_missing_where_all_owners_are_played(keys: Paillier) -> None:
    owners = [MASKED, np.ma.MaskedArray(np.zeros((5, 3)))]
    with pytest.raises(InvalidParameter, match="none missing"):
        DistributedPCA(1, bounds=(0, 1), epsilon=1, delta="1e-9", keys=keys).fit(owners)


def sealed(plan: ProxyPlan, name: str, text: str) -> bytes:
    once = AgreementKey.generate()
    body = once.public + plan.cipher(once, plan.seal).encrypt(text.encode(), [name.encode()])
    return pack("moments", plan.id, name, SIGNING[name], body)


def test_messages_that_are_no_part_of_the_plan_are_refused(keys: Paillier) -> None:
    plan, other = plan_of(keys), plan_of(keys, missing=1)
    proxy = Proxy(plan, SIGNING["proxy"], SEAL)
    good = owner(plan, "north").message(rows_of("north"))
    proxy.take(good)
    again = owner(plan, "north").message(rows_of("north"))
    for message, why in (
        (owner(other, "south").message(rows_of("south")), "another round"),
        (good[:-1], "not signed by 'north'|is not a whole"),
        (again, "'north' sent another before"),
        (pack("moments", plan.id, "south", SIGNING["south"], unpack(good, None, None, plan.owners).body), "another form"),
        (pack("moments", plan.id, "south", SIGNING["north"], b""), "not signed by 'south'"),
        (sealed(plan, "south", '{"cells": [], "slots": {}, "length": Infinity, "count": 1}'), "another form"),
        (pack("moments", plan.id, "south", SIGNING["south"], b"short"), "another form|no secret"),
    ):
        with pytest.raises((RoundRefused, InvalidParameter), match=why):
            proxy.take(message)
    for name in NAMES[1:]:
        proxy.take(owner(plan, name).message(rows_of(name)))
    total = proxy.total()
    for message in (total[:-1], pack("total", plan.id, "proxy", SIGNING["north"], b"")):
        with pytest.raises(RoundRefused):
            read_total(plan, keys, message)
    text = json.loads(unpack(total, None, None, {"proxy": plan.proxy}).body)
    fewer = pack("total", plan.id, "proxy", SIGNING["proxy"], json.dumps(text | {"count": 3}).encode())
    with pytest.raises(RoundRefused, match="no sum of this plan"):
        read_total(plan, keys, fewer)
    with pytest.raises(RoundRefused, match="no sum of this plan"):
        read_total(plan, Paillier.generate(random=Random.deterministic(2)), total)


def test_keys_and_plans_that_are_none_are_refused(keys: Paillier) -> None:
    plan, short = plan_of(keys), Paillier.generate(1024, insecure=True)
    assert gmpy2.is_prime(keys.primes[0])
    for weak in (replace(plan, key=short.public, proof=short.prove()), replace(plan, proof=(1,) * 8)):
        with pytest.raises(InvalidParameter, match="The user's key is invalid"):
            owner(weak, "north")
    for seal in (bytes(32), b"short"):
        with pytest.raises(InvalidParameter, match="no secret follows"):
            owner(replace(plan, seal=seal), "north")
    for name in ("north", "nort"):
        with pytest.raises(InvalidParameter, match="no such owner, or another key"):
            ProxyOwner(plan, name, SIGNING["south"])
    with pytest.raises(InvalidParameter, match="1 lowest and 3 highest values"):
        replace(plan, low=(0.0,))
    with pytest.raises(InvalidParameter, match="proxy's keys"):
        Proxy(plan, SIGNING["north"], SEAL)
    for text in (
        "",
        "{}",
        plan.text.replace('"format":1', '"format":2'),
        plan.text + " ",
        plan.text.replace('"epsilon":"1"', '"epsilon":"1/0"'),
        plan.text.replace((0.0).hex(), "0x1p99999"),
    ):
        with pytest.raises(InvalidParameter, match="no text of a plan"):
            ProxyPlan.from_text(text)
    for change in (
        {"colluders": 4},
        {"missing": -1},
        {"low": (2.0,) * 3},
        {"radius": 0.0},
        {"high": (math.inf,) * 3},
        {"low": (1.0,) * 3},
        {"owners": {}},
        {"owners": dict.fromkeys(NAMES, SIGNING["north"].public)},
    ):
        with pytest.raises(InvalidParameter):
            replace(plan, **change)
    with pytest.raises(InvalidParameter, match="beyond 64 bits"):
        replace(plan, epsilon=Fraction(1, 10**12))
    assert replace(plan, low=(0, 0, 0), high=(1, 1, 1), radius=1).id == replace(plan, radius=1.0).id  # whole numbers are numbers


@pytest.mark.parametrize(
    ("how", "error", "why"),
    [
        ({"bounds": None}, MissingBound, "bounds= is missing"),
        ({"bounds": 3}, InvalidParameter, "it is a pair"),
        ({"n_components": 4}, InvalidParameter, "from 1 to the 3 columns"),
        ({"radius": "1"}, InvalidParameter, "a length above 0"),
        ({"bounds": (0, 1e-300)}, InvalidParameter, "no column has room"),  # radius=1 would be refused again
        ({"colluders": 2}, InvalidParameter, "at least one must be honest"),
        ({"epsilon": 0}, InvalidParameter, "epsilon"),
    ],
)
def test_parameters_that_mean_nothing(keys: Paillier, how: dict[str, Any], error: type[Exception], why: str) -> None:
    model = DistributedPCA(**({"bounds": (0, 1), "keys": keys} | how))
    with pytest.raises(error, match=why):
        model.fit([rows_of("north"), rows_of("south")])
    for unfitted in (model.margin, lambda: model.transform([[1.0]]), lambda: model.inverse_transform([[1.0]])):
        with pytest.raises(InvalidParameter, match="not fitted"):
            unfitted()


@pytest.mark.parametrize(
    "second", [[[1.0, 2.0]], [1.0, 2.0, 3.0], [[1.0], [1.0, 2.0]], pd.DataFrame(np.eye(3), columns=[*"cab"])]
)
def test_owners_of_another_form_are_refused_before_anybody_is_charged(keys: Paillier, second: Any) -> None:
    paid: list[Any] = []
    with pytest.raises(InvalidParameter, match="The owners are invalid"):
        DistributedPCA(bounds=(0, 1), keys=keys).fit(
            [pd.DataFrame(rows_of("north"), columns=[*"abc"]), second], charge=paid.append
        )
    assert not paid


def test_a_plan_whose_spend_is_a_huge_number_is_refused_at_once(keys: Paillier) -> None:
    text = plan_of(keys).text
    for huge in ("1e100000000", "1e-100000000", f"1/{'9' * 100_000}"):
        wrong = text.replace('"epsilon":"1"', f'"epsilon":"{huge}"')
        assert wrong != text
        with pytest.raises(InvalidParameter, match="The plan is invalid"):
            ProxyPlan.from_text(wrong)


def test_one_plan_is_charged_once_whatever_fails_and_whoever_asks_at_once(keys: Paillier) -> None:
    paid = list[Any]()
    one = owner(plan_of(keys), "north", charge=paid.append)
    with pytest.raises(InvalidParameter, match="none missing"):
        one.message(np.full((3, 3), np.nan))
    with ThreadPoolExecutor(4) as pool:
        messages = set(pool.map(lambda _: one.message(rows_of("north")), range(4)))
    assert (len(messages), len(paid)) == (1, 1)


def test_a_message_is_in_the_one_sum_that_is_sent_or_is_refused(keys: Paillier, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks for the sum while another message comes must not get two sums that differ by it."""
    proxy = Proxy(plan_of(keys, missing=1), SIGNING["proxy"], SEAL)
    *first, last = (owner(proxy.plan, name).message(rows_of(name)) for name in NAMES)
    for each in first:
        proxy.take(each)
    begun, going, hide = threading.Event(), threading.Event(), EncryptedVector.hidden_again

    def slowly(vector: EncryptedVector, **how: Any) -> EncryptedVector:
        begun.set()
        going.wait(1)
        return hide(vector, **how)

    monkeypatch.setattr(EncryptedVector, "hidden_again", slowly)
    with ThreadPoolExecutor(3) as pool:
        one = pool.submit(proxy.total)
        begun.wait(60)
        late, other = pool.submit(proxy.take, last), pool.submit(proxy.total)
        going.set()
        assert one.result() == other.result()
        with pytest.raises(RoundRefused, match="would show this message alone"):
            late.result()
