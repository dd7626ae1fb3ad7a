"""Exact components of rows at sites: what a site takes on trust, whom it asks, and what a replay gets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.compress import DCA
from cloister.crypto import AgreementKey, SigningKey, canonical_json
from cloister.crypto.paillier import EncryptedVector
from cloister.together import Coordinator, KeyHolder, KeyHolderAgent, KeyHolderLine, MemoryJournal, Paillier, Site, SiteAgent
from cloister.together.exact.keys import ExactKeys, _Circuit
from cloister.together.exact.learning import ExactLearning
from cloister.together.exact.request import ExactRequest, key_text
from cloister.together.exact.site import RESULTS
from cloister.together.messages import RoundRefused, bundle, opened, pack
from cloister.together.owner import OwnersPolicy, Rule
from cloister.together.service_provider import DataUser, SendingOwner
from tests.together.parties import HUB_KEY
from tests.together.test_wire import from_hub
from tests.together.wired import key_of, roster_of, running, signed_by

COLUMNS = {
    "age": cl.Integer(0, 100),
    "pay": cl.Integer(0, 100),
    "size": cl.Integer(0, 100),
    "ill": cl.Category(["no", "yes"]),
}
FEATURES = ("age", "pay", "size")
TABLE = cl.PrivateTable({name: [] for name in COLUMNS}, columns=COLUMNS)
HOW: dict[str, Any] = {"columns": FEATURES, "label": "ill", "rows": 1000, "purpose": "care", "who": "ada"}


def rows_of(turn: int) -> dict[str, list[Any]]:
    """Site a has nobody ill; the classes lie apart along age and, less so, pay."""
    ill = [0 if turn == 0 else (each + turn) % 2 for each in range(60)]
    return {
        "age": [30 + 40 * one + each * 7 % 11 for each, one in enumerate(ill)],
        "pay": [40 + 10 * one + each * 13 % 17 for each, one in enumerate(ill)],
        "size": [each * 37 % 101 for each in range(60)],
        "ill": [("no", "yes")[one] for one in ill],
    }


def site_of(name: str) -> Site:
    journal = MemoryJournal()
    policy = OwnersPolicy([Rule(answer="always")], journal=journal)
    table = cl.PrivateTable(rows_of("abc".index(name)), columns=COLUMNS)
    return Site(name, table, budget=cl.PureDP(1), key=key_of(name), journal=journal, policy=policy)


@contextmanager
def party(*, allowed: bool = True) -> Iterator[tuple[Coordinator, KeyHolderLine, list[Site]]]:
    """Three sites and a key holder that call their hub."""
    how: dict[str, Any] = {"deadline": 240.0, "wait": 0.3}
    holder = KeyHolder("keys")
    coordinator = Coordinator(HUB_KEY, signed_by(roster_of("abc")), **how)
    line = KeyHolderLine(HUB_KEY, "keys", holder.public, **how)
    sites = [site_of(name) for name in "abc"]
    keys = KeyHolderAgent(holder, HUB_KEY.public, exact=allowed)
    agents = [SiteAgent(each) for each in sites]
    with coordinator.serving() as one, line.serving() as other, running(agents, one), running([keys], other):  # type: ignore[list-item]
        yield coordinator, line, sites


def policy_of(site: Site) -> OwnersPolicy:
    assert isinstance(site.policy, OwnersPolicy)
    return site.policy


def begun(coordinator: Coordinator, line: KeyHolderLine, sites: list[Site]) -> ExactLearning:
    """An order that all owners have said yes to."""
    with pytest.raises(cl.AccessDenied, match="its owner is asked"):
        ExactLearning.begin(coordinator, line, TABLE, **HOW)
    for site in sites:
        [plan] = policy_of(site).plans("waiting")
        for words in ("NOT differentially private", "'age', 'pay', 'size', by the classes of 'ill'", "the key holder 'keys'"):
            assert words in plan["words"], words
        policy_of(site).decide(plan["plan"], "allowed")
    return ExactLearning.begin(coordinator, line, TABLE, **HOW)


def test_every_owner_says_yes_and_all_sites_get_what_one_table_would_give() -> None:
    with party() as (coordinator, line, sites):
        order = begun(coordinator, line, sites)
        assert not any(site.ledger.unbounded(site.population) for site in sites), "nothing was read yet"
        told = list[float]()
        found = order.columns(lambda stage, share: told.append(share))
        assert told[-1] > 0.99
        assert sorted(order.hand_out(found)) == ["a", "b", "c"]
        for site in sites:
            assert site.ledger.unbounded(site.population)
            [kept] = site.journal.of(RESULTS).names()
            assert b'"promise":"not differentially private"' in (site.journal.of(RESULTS).get(kept) or b"")
        # the yes was for one plan: the next order is asked about again
        with pytest.raises(cl.AccessDenied, match="its owner is asked"):
            ExactLearning.begin(coordinator, line, TABLE, **HOW)
    together = {name: [each for turn in range(3) for each in rows_of(turn)[name]] for name in COLUMNS}
    scaled = np.column_stack([np.array(together[name]) / 50 - 1 for name in FEATURES])
    rho = float(((scaled - scaled.mean(axis=0)) ** 2).sum()) / 64
    exact = DCA(1, rho=rho, rho_prime=0.0).fit(scaled, together["ill"]).components_[0]
    assert abs(abs(found[:, 0] @ exact) - 1) < 1e-5


def test_a_key_holder_or_an_owner_who_does_not_allow_it_is_named() -> None:
    with party(allowed=False) as (coordinator, line, _), pytest.raises(cl.AccessDenied, match=r"'keys' says.*exact components"):
        ExactLearning.begin(coordinator, line, TABLE, **HOW)
    with party() as (coordinator, line, sites):
        for site in sites:
            policy_of(site).rules = (Rule(answer="never"),)
        with pytest.raises(cl.AccessDenied, match="its owner allows nothing for the purpose 'care'"):
            ExactLearning.begin(coordinator, line, TABLE, **HOW)
        for site in sites:
            site.policy = lambda asked: None  # one that knows nothing of exact results allows none
        with pytest.raises(cl.AccessDenied, match="no policy that is asked about exact results"):
            ExactLearning.begin(coordinator, line, TABLE, **HOW)


def test_a_key_holder_of_another_version_is_refused_before_a_site_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It signs a digest, so it found out of what by the circuit alone, when sites had sent their sums and noted it for good."""

    def of_before(*given: Any) -> bytes:
        told = json.loads(key_text(*given))
        return canonical_json({name: each for name, each in told.items() if name != "format"}).encode()

    monkeypatch.setattr("cloister.together.exact.keys.key_text", of_before)
    with party() as (coordinator, line, sites):
        with pytest.raises(RoundRefused, match="the key holder 'keys' makes keys for plans of another version"):
            ExactLearning.begin(coordinator, line, TABLE, **HOW)
        assert not any(policy_of(site).plans() for site in sites)


# ── a hub that lies, at a site ──


@pytest.fixture(scope="module")
def keys() -> Paillier:
    return Paillier.generate()


@pytest.fixture
def agent() -> SiteAgent:
    made = SiteAgent(site_of("b"))
    made.signed = signed_by(roster_of("abc"))
    made.site.join(made.signed)
    return made


def request_of(keys: Paillier, holder: KeyHolder, rows: int = 1000, **changed: Any) -> ExactRequest:
    from cloister.together.circuits import Moments
    from cloister.together.service_provider import ExactPlan

    plan = ExactPlan(
        owners=dict(roster_of("abc").sites),
        user=HUB_KEY.public,
        provider=holder.signing.public,
        seal=AgreementKey(b"seal".ljust(32)).public,
        key=keys.public,
        proof=keys.prove(),
        moments=Moments(features=3, rows=rows, classes=2),
        low=(0.0,) * 3,
        high=(100.0,) * 3,
    )
    signed = pack("exact key", "1", "keys", holder.signing, key_text(HUB_KEY.public, plan.agreed, keys.public, plan.proof))
    return replace(ExactRequest(plan=plan, holder="keys", signed=signed, columns=FEATURES, label="ill"), **changed)


def with_keys(agent: SiteAgent, request: ExactRequest, others: str = "ac") -> bytes:
    """The hub's second message: the plan, and what all sites signed in answer to the first."""
    of_others = [pack("agreed", request.id, name, key_of(name), AgreementKey.generate().public) for name in others]
    return bundle([request.text, agent.answer(from_hub("exact", request.text)), *of_others])


def said(agent: SiteAgent, kind: str, body: bytes) -> str:
    answer = opened(agent.answer(from_hub(kind, body)))
    return str(answer.fields["why"]) if answer.kind == "refused" else answer.kind


def test_a_site_takes_nothing_on_trust(agent: SiteAgent, keys: Paillier) -> None:
    holder, other = KeyHolder("keys"), Paillier.generate()
    right = request_of(keys, holder)
    assert "its owner is asked" in said(agent, "exact", right.text)
    plan = right.plan
    lies = {
        "a key of the hub's own": replace(right, plan=replace(plan, key=other.public, proof=other.prove())),
        "a key that the hub signed": replace(
            right, signed=pack("exact key", "1", "keys", HUB_KEY, key_text(HUB_KEY.public, plan.agreed, plan.key, plan.proof))
        ),
        "a key for another hub": replace(
            right, signed=pack("exact key", "1", "keys", holder.signing, key_text(bytes(32), plan.agreed, plan.key, plan.proof))
        ),
        "a key for another plan": replace(right, plan=replace(plan, moments=replace(plan.moments, rows=999))),
        "no other site": replace(right, plan=replace(plan, owners={"b": plan.owners["b"]})),
        "another user": replace(right, plan=replace(plan, user=SigningKey(b"u" * 32).public)),
        "narrow bounds": replace(right, plan=replace(plan, high=(50.0, 100.0, 100.0))),
        "a column twice": replace(right, columns=("age", "age", "size")),
        "a label of rows": replace(right, columns=("age", "pay", "ill")),
        "a column that is not there": replace(right, columns=("age", "pay", "wage")),
    }
    for what, lie in lies.items():
        for kind in ("exact", "exact moments"):
            body = lie.text if kind == "exact" else bundle([lie.text])
            assert said(agent, kind, body) not in ("agreed", ""), what
            assert "its owner is asked" not in said(agent, kind, body), what
    assert len(policy_of(agent.site).plans()) == 1, "an owner is asked about nothing that would be refused"
    older = right.text.replace(b'\\"format\\":2', b'\\"format\\":1')
    assert older != right.text, "in which the rows of the moments were those of all sites"
    for bad in (b"", b"{}", right.text[:-2], right.text + b" ", older):
        assert "no plan of this version" in said(agent, "exact", bad)
    assert "no site answers such a one" in said(agent, "exact rows", right.text)
    assert not agent.site.ledger.unbounded("b")


def test_one_yes_sends_once_and_a_replay_gets_the_same_bytes(agent: SiteAgent, keys: Paillier) -> None:
    holder = KeyHolder("keys")
    right = request_of(keys, holder)
    said(agent, "exact", right.text)
    [waiting] = policy_of(agent.site).plans("waiting")
    policy_of(agent.site).decide(waiting["plan"], "allowed")
    body = with_keys(agent, right)
    for wrong in (
        bundle([right.text]),
        with_keys(agent, right, "a"),
        with_keys(agent, right, "acc"),
        with_keys(agent, right, "cc"),
    ):
        assert "not the keys that all sites gave" in said(agent, "exact moments", wrong), "nothing is read, and the yes stands"
    first, again = (opened(agent.answer(from_hub("exact moments", body))) for _ in range(2))
    assert (first.kind, first.body) == ("agreed", again.body)
    assert agent.site.ledger.unbounded("b")
    plan = replace(right.plan, seal=SigningKey(b"s" * 32).public)
    signed = pack("exact key", "1", "keys", holder.signing, key_text(HUB_KEY.public, plan.agreed, plan.key, plan.proof))
    fresh = replace(right, plan=plan, signed=signed)
    assert "its owner is asked" in said(agent, "exact moments", bundle([fresh.text])), "the yes was used"
    columns = pack("columns", right.plan.id, "user", HUB_KEY, np.ones((3, 1)).tobytes())
    forged = pack("columns", right.plan.id, "user", key_of("a"), np.ones((3, 1)).tobytes())
    assert "not signed" in said(agent, "exact columns", bundle([right.text, forged]))
    assert "this site sent nothing for it" in said(agent, "exact columns", bundle([fresh.text, columns]))
    assert said(agent, "exact columns", bundle([right.text, columns])) == "agreed"


def test_what_fails_with_rows_says_nothing_of_them(agent: SiteAgent, keys: Paillier, monkeypatch: pytest.MonkeyPatch) -> None:
    right = request_of(keys, KeyHolder("keys"))
    said(agent, "exact", right.text)
    policy_of(agent.site).decide(policy_of(agent.site).plans()[0]["plan"], "allowed")

    def failing(*_: Any) -> Any:
        raise ValueError("Ada is 47")

    monkeypatch.setattr("cloister.together.exact.site._rows", failing)
    body = with_keys(agent, right)
    answers = [agent.answer(from_hub("exact moments", body)) for _ in range(2)]
    assert not any(b"Ada" in each for each in answers)
    assert b"stopped while it read" in answers[1]
    assert agent.site.ledger.unbounded("b"), "the event stands"


def test_an_owner_sees_that_there_are_more_rows_than_the_plan_takes(agent: SiteAgent, keys: Paillier) -> None:
    """The hub hears that sums did not come, and that the owner sees why: so the owner does."""
    noted = list[str]()
    agent._note = lambda event, told: noted.append(f"{event}: {told.get('what')}")
    right = request_of(keys, KeyHolder("keys"), rows=50)
    said(agent, "exact", right.text)
    policy_of(agent.site).decide(policy_of(agent.site).plans()[0]["plan"], "allowed")
    assert "could not send its sums" in said(agent, "exact moments", with_keys(agent, right))
    assert "failed: The rows are invalid: they are finite numbers in 3 columns, at most 50 rows" in noted


def test_sums_of_fewer_than_all_sites_are_of_uniform_numbers(keys: Paillier) -> None:
    """A hub adds what it likes, and may even have the key: without masks it reads one site, with them all of them together."""
    plan = request_of(keys, KeyHolder("keys")).plan
    seal = AgreementKey(b"seal".ljust(32))
    plan = replace(plan, seal=seal.public)
    secrets = {pair: SigningKey(pair.encode().ljust(32)).public for pair in ("ab", "ac", "bc")}

    def cells_of(name: str, *, masked: bool) -> EncryptedVector:
        shared = {other: secrets["".join(sorted(name + other))] for other in "abc" if other != name}
        owner = SendingOwner(plan, name, key_of(name), told=lambda _: None, shared=shared if masked else None)
        user = DataUser(plan, HUB_KEY, seal)
        user.take(owner.message(np.full((2, 3), 50.0), np.array([0, 1])))
        return user._sent[0]

    def opened_of(vector: EncryptedVector) -> list[int]:
        return [int(keys._plain(cell)) for cell in vector.cells]

    plain = {name: cells_of(name, masked=False) for name in "abc"}
    masked = {name: cells_of(name, masked=True) for name in "abc"}
    assert opened_of(plain["a"]) == opened_of(plain["b"]), "the twin: the same rows, the same numbers"
    whole = plan.key.modulus
    for some in ("a", "b", "c", "ab", "ac", "bc", "aab"):
        of_plain, of_masked = (EncryptedVector.total([each[name] for name in some]) for each in (plain, masked))
        moved = [(one - other) % whole for one, other in zip(opened_of(of_masked), opened_of(of_plain), strict=True)]
        assert min(moved) > whole >> 64, some  # a stream's numbers: smaller ones come once in 2^64
        assert max(moved) < whole - (whole >> 64), some
    assert opened_of(EncryptedVector.total(masked.values())) == opened_of(EncryptedVector.total(plain.values()))


# ── a hub that lies, at the key holder ──


def test_a_key_is_for_one_circuit_of_its_hub(keys: Paillier) -> None:
    noted = list[str]()
    signing = SigningKey(b"k" * 32)
    holder = ExactKeys("keys", signing, HUB_KEY.public, allowed=True, note=lambda event, _: noted.append(event))
    told = opened(holder.key(b"1"))
    assert told.body == opened(holder.key(b"1")).body, "a message that comes again makes no second key"
    assert told.body != opened(holder.key(b"2")).body
    plan = request_of(keys, KeyHolder("keys")).plan
    with pytest.raises(RoundRefused, match="not known, or was used"):
        holder.circuit(bundle([plan.text.encode(), b""]))
    with pytest.raises(RoundRefused, match="not the hub"):
        holder.circuit(bundle([replace(plan, user=SigningKey(b"u" * 32).public).text.encode(), b""]))
    with pytest.raises(RoundRefused, match="other parts"):
        holder.circuit(b"")
    with pytest.raises(RoundRefused, match="no such circuit"):
        holder.line(b"")
    own = replace(plan, provider=signing.public)
    holder._keys[plan.key.digest] = keys, own.agreed
    with pytest.raises(RoundRefused, match="made for another plan"):
        holder.circuit(bundle([replace(own, high=(99.0,) * 3).text.encode(), b""]))
    begin = bundle([own.text.encode(), b"garbage"])
    assert holder.circuit(begin) == holder.circuit(begin) == b""  # the same message begins it once
    with pytest.raises(RoundRefused, match="not known, or was used"):
        holder.circuit(bundle([own.text.encode(), b"another sum"]))
    step = bundle([own.id.encode(), (0).to_bytes(8, "big")])
    with pytest.raises(RoundRefused, match="not a whole message"):  # what garbling says comes at the next step
        holder.line(step)
    with pytest.raises(RoundRefused, match="next step"):
        holder.line(bundle([own.id.encode(), (5).to_bytes(8, "big")]))
    with pytest.raises(RoundRefused, match="more messages came"):
        holder._circuits[own.id].step(0, "", [b""] * 65)
    assert noted == ["exact"]


def test_a_key_holder_garbles_two_circuits_at_a_time() -> None:
    holder = ExactKeys("keys", SigningKey(b"k" * 32), HUB_KEY.public, allowed=True, note=lambda *_: None)
    holder._circuits["one"], holder._circuits["two"] = _Circuit("1"), _Circuit("2")
    with pytest.raises(cl.AccessDenied, match="garbles 2 circuits already"):
        holder.key(b"1")
    holder._circuits["one"].asked -= 601  # its hub went away
    first = holder._circuits["one"]
    assert holder.key(b"1")
    assert first.ended.is_set()
    assert list(holder._circuits) == ["two"]


def test_a_key_keeps_a_place_for_its_circuit_until_the_order_is_stopped(keys: Paillier, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between a key and its circuit all owners are asked and send: nothing may be refused for want of room by then."""
    going = threading.Event()
    monkeypatch.setattr("cloister.together.exact.keys.ServiceProvider.garble", lambda *_, **__: going.wait(60))
    holder = ExactKeys("keys", SigningKey(b"k" * 32), HUB_KEY.public, allowed=True, note=lambda *_: None)
    plan = replace(request_of(keys, KeyHolder("keys")).plan, provider=SigningKey(b"k" * 32).public)
    assert holder.key(plan.agreed)
    assert holder.key(b"2")
    with pytest.raises(cl.AccessDenied, match="or keeps their places"):
        holder.key(b"3")
    holder._keys[plan.key.digest] = keys, plan.agreed
    assert holder.circuit(bundle([plan.text.encode(), b"garbage"])) == b""
    with pytest.raises(cl.AccessDenied, match="or keeps their places"):
        holder.key(b"3")
    assert holder.stop(b"2") == holder.stop(b"2") == b""
    assert holder.key(b"3"), "the place of the plan that was let go"
    begun = holder._circuits[plan.id]
    holder.stop(plan.agreed)
    assert begun.ended.is_set()
    assert holder.key(b"4"), "the place of the circuit that was let go"
    with pytest.raises(RoundRefused, match="no such circuit"):
        holder.line(bundle([plan.id.encode(), (0).to_bytes(8, "big")]))
    holder._held = dict.fromkeys(holder._held, 0.0)  # ten minutes later: their hub went away
    assert holder.key(b"5")
    going.set()


def test_an_order_that_stops_gives_its_place_to_others() -> None:
    class Stopped(Exception):
        pass

    def stopped(*_: Any) -> None:
        raise Stopped

    with party() as (coordinator, line, sites):
        for _ in range(2):
            with pytest.raises(cl.AccessDenied, match="its owner is asked"):  # the next is refused by its owner, not for room
                ExactLearning.begin(coordinator, line, TABLE, **HOW)
        for site in sites:
            for plan in policy_of(site).plans("waiting"):
                policy_of(site).decide(plan["plan"], "allowed")
        learning = ExactLearning.begin(coordinator, line, TABLE, **HOW)
        with pytest.raises(Stopped):
            learning.columns(stopped)
        for _ in range(3):
            with pytest.raises(cl.AccessDenied, match="its owner is asked"):
                ExactLearning.begin(coordinator, line, TABLE, **HOW)
