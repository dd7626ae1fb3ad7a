"""The wire between a hub and its sites: who may call, what is refused and by which words, what a hub sees of it."""

from __future__ import annotations

import base64
import hashlib
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

import cloister as cl
from cloister.crypto import SigningKey, canonical_json
from cloister.errors import CloisterError
from cloister.ledger import Ledger
from cloister.privacy import PureDP
from cloister.session import Count, Question
from cloister.tables import Aggregation, Column, Compare, Literal
from cloister.together import Coordinator, JointTable, MemoryJournal, Roster, SignedRoster, Site, SiteAgent, SitesMissing
from cloister.together.coordinator import Presence, RemoteParts
from cloister.together.messages import MAGIC, opened, pack
from cloister.together.owner import OwnersPolicy, Rule
from cloister.together.plan import Plan
from cloister.together.rounds import HUB, STEPS
from tests.certificates import certificate
from tests.together.parties import HUB_KEY
from tests.together.wired import COLUMNS, MUCH, Recorder, asked, coordinator_of, key_of, roster_of, running, signed_by, site_of

COUNT = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
DAY = 86_400


def call(hub: str, name: str = "a", *, key: SigningKey | None = None, body: bytes = b"", **change: Any) -> httpx.Response:
    """One call as a site makes it, but for what is changed."""
    fields = {"at": int(time.time()) + change.pop("apart", 0), "roster": roster_of("abc").digest, "answers": "", **change}
    version = fields.pop("version", "1")
    poll = fields.pop("poll", None) or pack("poll", "", fields.pop("sender", name), key or key_of(name), **fields)
    headers = {"Authorization": "Cloister " + base64.b64encode(poll).decode(), "Cloister-Protocol": version}
    return httpx.post(f"{hub}/together/{name}", content=body, headers=headers, trust_env=False, timeout=120)


@pytest.fixture(scope="module")
def idle() -> Iterator[tuple[Coordinator, str]]:
    """A hub that asks nothing, and where it is."""
    coordinator = coordinator_of("abc", wait=0.01)
    with coordinator.serving() as hub:
        yield coordinator, hub


@pytest.mark.parametrize(
    ("change", "status", "why"),
    [
        ({"name": "d"}, 404, "the roster has no such site"),
        ({"version": "0"}, 426, "the site speaks version 0 of the protocol, and the hub version 1"),
        ({"version": "2"}, 426, "the site speaks version 2 of the protocol"),
        ({"version": ""}, 426, "the site speaks version ? of the protocol"),
        ({"poll": b"garbage"}, 401, "it is not signed by the key of 'a'"),
        ({"poll": MAGIC + b"\xff" * 200}, 401, "it is not signed by the key of 'a'"),
        ({"key": key_of("b")}, 401, "it is not signed by the key of 'a'"),
        ({"sender": "b"}, 401, "it is not signed by the key of 'a'"),
        ({"at": "never"}, 401, "it is not signed by the key of 'a'"),
        ({"apart": -DAY}, 401, "the clock of 'a' is 24.0 hours behind that of the hub"),
        ({"apart": DAY}, 401, "the clock of 'a' is 24.0 hours ahead of that of the hub"),
    ],
)
def test_a_call_that_is_none_is_refused_at_once(
    idle: tuple[Coordinator, str], change: dict[str, Any], status: int, why: str
) -> None:
    """Before a byte of its body is looked at, and in words for the side that can mend it."""
    given = {"name": "a", **change}
    found = call(idle[1], given.pop("name"), body=b"x" * 100_000, **given)
    assert found.status_code == status
    assert why in found.json()["why"]
    if status == 426:
        assert found.json()["instead"] == f"a newer cloister at the {'hub' if change['version'] == '2' else 'site'}"


def test_two_that_ask_the_same_both_hear_the_answer_and_one_that_leaves_takes_nothing_along() -> None:
    """One message has one digest, whoever asks it: a question that was given up must not take a later one's message away."""
    coordinator = coordinator_of("abc", wait=0.01)
    message = pack("request", "r", HUB, HUB_KEY, b"body")
    heard: list[list[str]] = [[], []]

    def listen(place: int) -> None:
        heard[place] += [name for name, _, _ in coordinator.ask({"a": message}, "r")]

    with coordinator.serving() as hub:
        given_up = coordinator.ask({"a": message, "b": message}, "r")
        threads = [threading.Thread(target=listen, args=(place,)) for place in range(2)]
        first = threading.Thread(target=lambda: next(given_up))
        first.start()
        while call(hub, "b").content != message:
            pass
        call(hub, "b", answers=hashlib.sha256(message).hexdigest(), body=pack("agreed", "r", "b", key_of("b")))
        first.join()
        for thread in threads:
            thread.start()
        while len(coordinator._boxes["a"].waiting.get(hashlib.sha256(message).hexdigest(), ())) < 3:
            pass
        given_up.close()
        assert call(hub).content == message
        call(hub, answers=hashlib.sha256(message).hexdigest(), body=pack("agreed", "r", "a", key_of("a")))
        for thread in threads:
            thread.join()
    assert heard == [["a"], ["a"]]


def test_a_call_of_a_site_waits_and_ends(idle: tuple[Coordinator, str]) -> None:
    coordinator, hub = idle
    assert call(hub).status_code == 204
    assert str(coordinator.presence["a"]).startswith("it last called at")
    assert str(coordinator.presence["b"]) == "it never called"
    joined = call(hub, roster="")
    assert (joined.status_code, opened(joined.content).kind) == (200, "roster")


def test_an_answer_that_nobody_waits_for_is_let_go_unread(idle: tuple[Coordinator, str]) -> None:
    assert call(idle[1], answers="0" * 64, body=b"x" * 100_000).status_code == 204


def test_garbage_in_place_of_an_answer_is_refused_and_the_message_stays() -> None:
    """A signed call with a body that is no answer: the site hears why, the hub notes it, and waits on."""
    coordinator = coordinator_of("abc", wait=0.01)
    message = pack("request", "r", HUB, HUB_KEY, b"body")
    digest = hashlib.sha256(message).hexdigest()
    good = pack("agreed", "r", "a", key_of("a"))
    with coordinator.serving() as hub:
        found = coordinator.ask({"a": message}, "r")
        taken: list[Any] = []
        thread = threading.Thread(target=lambda: taken.extend(found))
        thread.start()
        while call(hub).content != message:
            pass
        for body, why in (
            (b"garbage", "not a whole message"),
            (b"x" * 100_000, "more than 65,536 bytes"),
            (pack("agreed", "r", "b", key_of("b")), "takes no part"),
            (pack("agreed", "other", "a", key_of("a")), "of another round"),
            (pack("agreed", "r", "a", key_of("b")), "not signed by 'a'"),
        ):
            refused = call(hub, answers=digest, body=body)
            assert refused.status_code == 400
            assert why in refused.json()["why"]
            assert why in str(coordinator.presence["a"])
            assert call(hub).content == message
        assert call(hub, answers=digest, body=good).status_code == 204
        assert call(hub, answers=digest, body=good).status_code == 204  # a second time changes nothing
        thread.join()
    assert [(name, each.kind) for name, each, _ in taken] == [("a", "agreed")]


def test_an_answer_that_breaks_off_on_its_way_is_known_and_leaves_no_trace(caplog: pytest.LogCaptureFixture) -> None:
    """A proxy cuts uploads: who asked hears of it when the deadline is over, and the hub's log has no traceback."""
    coordinator = coordinator_of("abc", wait=0.01)
    message = pack("request", "r", HUB, HUB_KEY, b"body")
    fields = {"at": int(time.time()), "roster": roster_of("abc").digest, "answers": hashlib.sha256(message).hexdigest()}
    poll = base64.b64encode(pack("poll", "", "a", key_of("a"), **fields)).decode()
    head = f"POST /together/a HTTP/1.1\r\nHost: hub\r\nAuthorization: Cloister {poll}\r\nCloister-Protocol: 1\r\n"
    with coordinator.serving() as hub:
        thread = threading.Thread(target=lambda: list(coordinator.ask({"a": message}, "r")))
        thread.start()
        while call(hub).content != message:
            pass
        with socket.create_connection(("127.0.0.1", int(hub.rpartition(":")[2]))) as there:
            there.sendall(f"{head}Content-Length: 1000\r\n\r\nhalf".encode())
        while "broke off" not in str(coordinator.presence["a"]) and not caplog.records:
            pass
        assert not caplog.records
        call(hub, answers=fields["answers"], body=pack("agreed", "r", "a", key_of("a")))
        thread.join()


def test_a_coordinator_is_one_of_its_roster() -> None:
    with pytest.raises(cl.InvalidParameter, match="not the hub's key of the roster"):
        Coordinator(key_of("z"), signed_by(roster_of("abc")))
    with pytest.raises(cl.InvalidDeclaration, match="not signed by 'c'"):
        Coordinator(HUB_KEY, SignedRoster.by({name: key_of(name) for name in "ab"}, roster_of("abc")))
    coordinator = coordinator_of("abc")
    with pytest.raises(cl.InvalidParameter, match="without TLS"), coordinator.serving("0.0.0.0"):
        pass
    for sites in (coordinator.sites[:2], [*coordinator.sites[:2], site_of("c")], coordinator.sites[::-1]):
        with pytest.raises(cl.InvalidDeclaration, match="not those of one roster"):
            JointTable(sites, {"age": cl.Integer(17, 90)}, overlap="none")
    with pytest.raises(cl.InvalidDeclaration, match="the roster that all sites signed says it already"):
        asked(coordinator, missing=1)


# ── what a site answers ──────────────────────────────────────────────────────────────────────────


def joined(name: str = "a", **other: Any) -> SiteAgent:
    agent = SiteAgent(site_of(name, **other))
    agent.site.join(signed_by(roster_of("abc")))
    agent.signed = signed_by(roster_of("abc"))
    return agent


def from_hub(kind: str, body: bytes = b"", about: str | None = None, key: SigningKey = HUB_KEY) -> bytes:
    return pack(kind, hashlib.sha256(body).hexdigest() if about is None else about, HUB, key, body)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"", "not a whole message"),
        (b"x" * 1000, "not a whole message"),
        (from_hub("request", key=key_of("b")), "not signed by 'the hub'"),
        (from_hub("words"), "no site answers such a one"),
        (from_hub("request", b"{}", about="1" * 64), "no site answers such a one"),
        (from_hub("request", b"{}"), "its form is wrong"),
        (from_hub("request", Plan(request="{}", token="1").text), "it can't be read"),
        (from_hub("request", Plan(request="[" * 100_000, token="1").text), "it can't be read"),
        (from_hub("declaration", b"{}"), "its own owner can see where"),
        (from_hub("begin", b"{}", about="../../etc"), "its round has no such name"),
        (from_hub("all keys", b"{}", about="a" * 64), "this site did not begin that round"),
        (from_hub("begin", b"{}", about="a" * 64), "its form is wrong"),
        (pack("roster", "", HUB, HUB_KEY, b"[]"), "its form is wrong"),
    ],
    ids=range(13),
)
def test_what_a_hub_should_not_send_is_refused(message: bytes, why: str, tmp_path: Path) -> None:
    agent = joined()
    found = opened(agent.answer(message))
    assert found.kind == "refused"
    assert why in found.fields["why"]
    assert agent.site.spent == cl.ZCDP(0)


def test_a_round_that_is_not_that_of_its_plan_is_refused() -> None:
    """A hub that signs another plan under a round's id, or says other sizes, has another id."""
    agent, texts = joined(), list[bytes]()
    note = agent.answer

    def kept(data: bytes) -> bytes:
        texts.append(data)
        return note(data)

    agent.answer = kept  # type: ignore[method-assign]
    others = [SiteAgent(site_of(name)) for name in "bc"]
    coordinator = coordinator_of("abc")
    with coordinator.serving() as hub, running([agent, *others], hub), asked(coordinator) as session:
        session.sql(COUNT, spend=50)
    begun = next(opened(each) for each in texts if opened(each).kind == "begin")
    plan = Plan.read(begun.body)
    other = Plan(request=plan.request, token="another")
    spent = agent.site.spent
    found = opened(note(from_hub("begin", other.text, about=begun.round)))
    assert (found.kind, found.fields["why"]) == ("refused", "another message 'begin' was answered before")
    fresh = SiteAgent(agent.site)  # another process with the same journal
    found = opened(fresh.answer(from_hub("begin", other.text, about=begun.round)))
    assert (found.kind, found.fields["why"]) == ("refused", "its round is not that of its plan")
    assert agent.site.spent == spent


def test_a_roster_that_the_owner_did_not_sign_is_refused_and_the_hub_knows() -> None:
    """A hub makes up a roster in which the site has another key; or sends an older one."""
    made_up = Roster(sites={**roster_of("abc").sites, "a": key_of("x").public}, hub=HUB_KEY.public, missing=0)
    by = {**{name: key_of(name) for name in "bc"}, "a": key_of("x")}
    agent = SiteAgent(site_of("a"))
    told = canonical(SignedRoster.by(by, made_up))
    found = opened(agent.answer(pack("roster", "", HUB, HUB_KEY, told)))
    assert "not in it under its own key" in found.fields["why"]
    later = roster_of("abc", epoch=2)
    agent.answer(pack("roster", "", HUB, HUB_KEY, canonical(signed_by(later))))
    assert agent.signed == signed_by(later)
    coordinator = coordinator_of("abc", wait=0.01)
    with coordinator.serving() as hub, running([agent], hub):
        while "it refused the roster" not in str(coordinator.presence["a"]):
            pass
    assert "joined number 2 of this hub before" in str(coordinator.presence["a"])


def canonical(signed: SignedRoster) -> bytes:
    return canonical_json(signed.plain()).encode()


# ── sites that differ, are silent, or say no ─────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({**COLUMNS, "age": cl.Integer(0, 120)}, "declares the column 'age' as"),
        (
            {"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"]), "pay": cl.Integer(0, 9)},
            "declares the column 'pay' as None",
        ),
    ],
)
def test_a_declaration_that_differs_is_refused_in_the_words_of_the_site(columns: Any, words: str) -> None:
    coordinator, noted = coordinator_of("abc"), list[Any]()
    agents = [SiteAgent(site_of(name), note=lambda event, details: noted.append((event, details))) for name in "abc"]
    with (
        coordinator.serving() as hub,
        running(agents, hub),
        pytest.raises(cl.InvalidDeclaration, match=words),
        asked(coordinator, columns=columns) as session,
    ):
        session.sql(COUNT, spend=50)
    assert any(event == "refused" and words in details["why"] for event, details in noted)


WIDE = {**COLUMNS, "age": cl.Integer(0, 10_000)}


def test_who_was_away_or_came_back_with_other_bounds_agrees_before_it_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """With wider bounds of its own a site would send more of a person than the hub's charge is for."""
    coordinator = Coordinator(HUB_KEY, signed_by(roster_of("abcd", dropouts=1)), deadline=240.0, wait=0.3)
    ask, away, above = coordinator.ask, {"a"}, count(17)
    monkeypatch.setattr(
        coordinator, "ask", lambda messages, *how: ask({name: messages[name] for name in messages if name not in away}, *how)
    )

    def agents(columns: Any) -> list[SiteAgent]:
        return [SiteAgent(site_of("a", columns=columns)), *(SiteAgent(site_of(name)) for name in "bcd")]

    def counted() -> float:
        return session.sql(f"SELECT SUM(age) AS n FROM people WHERE age > {next(above)}", spend=50).to_pydict()["n"][0]

    differs = "'a' takes no part: it declares the column 'age' as"
    with coordinator.serving() as hub, asked(coordinator) as session:
        with running(agents(WIDE), hub):
            with pytest.warns(SitesMissing, match="a dropped out"):
                assert abs(counted() - 4740) <= 200
            away.clear()
            with pytest.raises(cl.InvalidDeclaration, match=differs):
                counted()
        with running(agents(COLUMNS), hub):
            assert abs(counted() - 6320) <= 200
        with running(agents(WIDE), hub), pytest.raises(cl.InvalidDeclaration, match=differs):
            counted()
        assert session.spent == cl.PureDP(100)


VISITS = {"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"]), "stay": cl.Integer(0, 30)}


def of_two_tables(name: str, **other: Any) -> SiteAgent:
    """A site whose owner has the people of the other tests, and visits of some of them."""
    ledger, journal = cl.Ledger(), MemoryJournal()
    one = {"key": key_of(name), "ledger": ledger, "journal": journal, **other}
    held = {"age": [40] * 7, "sex": ["F"] * 7, "stay": [3] * 7}
    people = site_of(name, label="people", **one)
    return SiteAgent({"people": people, "visits": Site(name, cl.PrivateTable(held, columns=VISITS), label="visits", **one)})


def test_owners_of_several_tables_are_asked_about_the_one_that_is_named() -> None:
    agents, coordinator = [of_two_tables(name) for name in "abc"], coordinator_of("abc")
    with coordinator.serving() as hub, running(agents, hub):
        tables = {
            name: cl.JointTable(coordinator.sites, columns, overlap="none", population="patients")
            for name, columns in (("people", COLUMNS), ("visits", VISITS))
        }
        with cl.Session(tables, budget=cl.PureDP(10**6)) as session:
            for limit, name, rows in ((190, "people", 120), (190, "visits", 21), (191, "people", 120)):
                [n] = session.sql(f"SELECT COUNT(*) AS n FROM {name} WHERE age * 2 < {limit}", spend=50).to_pydict()["n"]
                assert abs(n - rows) <= 5, name  # P(noise > 5 at ε = 50) < 10⁻¹⁰⁰
            assert agents[0].site.spent == cl.ZCDP(3750), "the tables of one owner's people have one budget"
        with (
            asked(coordinator, name="folk") as session,
            pytest.raises(cl.UnknownTable, match="several tables, and none called 'folk'"),
        ):
            session.sql(COUNT.replace("people", "folk"), spend=50)
        with (  # what the hub calls people is declared like the visits
            asked(coordinator, columns={"stay": VISITS["stay"]}) as session,
            pytest.raises(cl.InvalidDeclaration, match="declares the column 'stay' as None"),
        ):
            session.sql("SELECT COUNT(*) FROM people", spend=50)
        assert agents[0].site.spent == cl.ZCDP(3750)


def test_an_owner_of_several_tables_sees_which_one_a_plan_is_about() -> None:
    policy = OwnersPolicy([Rule(answer="ask me")], journal=MemoryJournal())
    agents, coordinator = [of_two_tables("a", policy=policy), of_two_tables("b"), of_two_tables("c")], coordinator_of("abc")
    with coordinator.serving() as hub, running(agents, hub):
        for name, columns in (("people", COLUMNS), ("visits", VISITS)):
            question = COUNT.replace("people", name)
            with asked(coordinator, name=name, columns=columns, purpose="study", who="ada") as session:
                with pytest.raises(cl.AccessDenied, match="its owner is asked"):
                    session.sql(question, spend=50)
                [plan] = policy.plans("waiting")
                assert plan["words"].startswith(
                    f"for 'ada', for the purpose 'study': 3 numbers with noise of the table '{name}',"
                )
                policy.decide(plan["plan"], "allowed")
                session.sql(question, spend=50)


def test_a_silent_site_is_named_with_the_last_that_was_wrong() -> None:
    coordinator = coordinator_of("abc", deadline=0.3, wait=0.05)
    agents = [SiteAgent(site_of(name)) for name in "bc"]  # where they are slow, too, the first is named
    with coordinator.serving() as hub, running(agents, hub):
        call(hub, "a", apart=-DAY)
        with pytest.raises(cl.EngineError, match=r"'a' is silent: it did not answer for 0.3 seconds; its clock was 24.0 hours"):
            asked(coordinator).sql(COUNT, spend=50)


def test_the_step_that_reads_rows_alone_is_waited_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question is one message of each kind to all sites."""
    coordinator, asked_so = coordinator_of("abc", reading=300.0), list[tuple[set[str], bool]]()
    ask = coordinator.ask

    def noted(messages: dict[str, bytes], about: str, most: int = 1 << 16, reads: bool = False) -> Iterator[Any]:
        asked_so.append(({opened(each).kind for each in messages.values()}, reads))
        return ask(messages, about, most, reads)

    monkeypatch.setattr(coordinator, "ask", noted)
    with coordinator.serving() as hub, running([SiteAgent(site_of(name)) for name in "abc"], hub), asked(coordinator) as session:
        session.sql(COUNT, spend=50)
    steps = ["declaration", "request", *STEPS]
    assert asked_so == [({kind}, kind == "all shares") for kind in steps]


def test_rows_that_take_longer_than_another_step_may_are_answered() -> None:
    class Slow(SiteAgent):
        def answer(self, data: bytes) -> bytes:
            time.sleep(0.3)
            return super().answer(data)

    coordinator, about = coordinator_of("abc", deadline=0.05, reading=240.0), hashlib.sha256(b"{}").hexdigest()
    messages = {"a": from_hub("declaration", b"{}")}
    with coordinator.serving() as hub, running([Slow(site_of("a"))], hub):
        assert [name for name, *_ in coordinator.ask(messages, about, reads=True)] == ["a"]
        assert not [*coordinator.ask(messages, about)]
    assert "did not answer for 0.05 seconds" in coordinator.silent("a").why
    assert "did not answer for 240 seconds" in coordinator.silent("a", reads=True).why


def test_without_a_silent_site_the_others_answer_where_the_roster_allows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = coordinator_of("abcd", 1)
    ask = coordinator.ask
    monkeypatch.setattr(
        coordinator, "ask", lambda messages, *how: ask({name: messages[name] for name in messages if name != "c"}, *how)
    )
    agents = [SiteAgent(site_of(name)) for name in "abd"]
    with (
        coordinator.serving() as hub,
        running(agents, hub),
        pytest.warns(SitesMissing, match="c dropped out"),
        asked(coordinator) as session,
    ):
        found = session.sql(COUNT, spend=50)
    assert all(abs(n - 60) <= 5 for n in found.to_pydict()["n"])


def test_an_owner_is_asked_and_a_yes_holds_for_one_charge() -> None:
    """One owner allows reports, wants to see what else is asked, and never lets a person in."""
    rules = [Rule(purpose="report", answer="always"), Rule(who="eve", answer="never")]
    policy = OwnersPolicy([*rules, Rule(answer="ask me")], journal=MemoryJournal())
    agents = [SiteAgent(site_of("a", policy=policy)), *(SiteAgent(site_of(name)) for name in "bc")]
    coordinator = coordinator_of("abc")
    with coordinator.serving() as hub, running(agents, hub):
        with asked(coordinator, purpose="report", who="ada") as session:
            session.sql(COUNT, spend=50)
        with asked(coordinator, who="eve") as session, pytest.raises(cl.AccessDenied, match="the person 'eve'"):
            session.sql(COUNT, spend=50)
        with asked(coordinator, purpose="study", who="ada") as session:
            with pytest.raises(cl.AccessDenied, match="its owner is asked; the plan is") as error:
                session.sql(COUNT, spend=50)
            [plan] = policy.plans("waiting")
            assert plan["plan"] in str(error.value)
            assert plan["words"].splitlines() == [
                "for 'ada', for the purpose 'study': 3 numbers with noise, at a cost of ε = 50 to each person here",
                "counts rows, for each group of sex",
            ]
            policy.decide(plan["plan"], "allowed")
            session.sql(COUNT, spend=50)
            assert [each["state"] for each in policy.plans()] == ["used"]
        with asked(coordinator, purpose="study", who="ada") as session:
            with pytest.raises(cl.AccessDenied, match="its owner is asked"):
                session.sql(COUNT, spend=50)
            [plan] = policy.plans("waiting")
            assert plan["before"]  # the owner sees that it was answered before
            policy.decide(plan["plan"], "denied")
            with pytest.raises(cl.AccessDenied, match="denied the plan"):
                session.sql(COUNT, spend=50)
            assert session.spent == PureDP(0)
    assert len(agents[0].site.ledger.charges("a")) == 2


def test_a_site_that_could_pay_for_each_part_and_not_for_all_says_so_over_the_wire() -> None:
    parts = [Question(table="people", statistics=[Count()]), Question(table="people", by=("sex",), statistics=[Count()])]
    agents = [SiteAgent(site_of(name, budget=cl.PureDP(90 if name == "a" else 100))) for name in "abc"]
    coordinator = coordinator_of("abc")
    with coordinator.serving() as hub, running(agents, hub), asked(coordinator) as session:
        with pytest.raises(cl.BudgetExceeded, match="'a' takes no part: the request costs ε = 100 there, and ε = 90"):
            session.measure_all(parts, 100)
        assert session.spent == cl.PureDP(0)
        assert all(not each.site.ledger.charges(each.name) for each in agents)
        assert len(session.measure_all(parts, 90)) == 2


def test_sites_have_any_names_and_one_may_have_no_rows() -> None:
    names = ["../north/1", "Süd ?#%", "西"]
    keys = {name: SigningKey(hashlib.sha256(name.encode()).digest()) for name in names}
    roster = Roster(sites={name: key.public for name, key in keys.items()}, hub=HUB_KEY.public, missing=0)
    coordinator = Coordinator(HUB_KEY, SignedRoster.by(keys, roster), deadline=240.0, wait=0.3)
    agents = [SiteAgent(site_of(name, key=key, rows=10 * place)) for place, (name, key) in enumerate(keys.items())]
    with coordinator.serving() as hub, running(agents, hub), asked(coordinator) as session:
        assert all(abs(n - 30) <= 5 for n in session.sql(COUNT, spend=50).to_pydict()["n"])


# ── certificates ─────────────────────────────────────────────────────────────────────────────────


def test_a_certificate_is_checked(tmp_path: Path) -> None:
    """A site that does not know the hub's certificate says so and calls again; with its authority it is in."""
    key, found = certificate(tmp_path / "hub", "localhost")
    coordinator = coordinator_of("abc")
    with coordinator.serving("localhost", certificate=found, certificate_key=key) as hub:
        with running([SiteAgent(site_of("a"))], hub) as told:
            while not told:
                pass
        assert "its certificate could not be verified" in told[0]
        agents = [SiteAgent(site_of(name)) for name in "abc"]
        with running(agents, hub, authority=found), asked(coordinator) as session:
            assert len(session.sql(COUNT, spend=50).to_pydict()["n"]) == 2
    for none in (
        "http://hub.example.org",
        "https://",
        "https://hub.example.org:80a",
        "https://hub:99999",
        "https://[::1",
        "https://a\n",
    ):
        with pytest.raises(cl.InvalidParameter, match=r"--hub .*is invalid: (the hub is called over TLS|it can't be read)"):
            SiteAgent(site_of("a")).run(none)
    (tmp_path / "text").write_text("no certificate", encoding="utf-8")
    for name in ("text", "missing"):
        with pytest.raises(cl.InvalidParameter, match=f"{name!r} is not there, or holds no certificate"):
            SiteAgent(site_of("a")).run("https://hub.example.org", authority=tmp_path / name)


class Tunnel(socketserver.ThreadingTCPServer):
    """An HTTP proxy that opens tunnels, or says of every one why not; it notes where to."""

    daemon_threads, allow_reuse_address = True, True

    def __init__(self, *, says: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Tunnelled)
        self.says, self.to = says, list[str]()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Tunnelled(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        tunnel = self.server
        assert isinstance(tunnel, Tunnel)
        verb, to, _ = self.rfile.readline().decode().split()
        while self.rfile.readline().strip():
            pass
        tunnel.to.append(f"{verb} {to}")
        if tunnel.says:
            self.wfile.write(f"HTTP/1.1 {tunnel.says}\r\n\r\n".encode())
            return
        host, _, port = to.rpartition(":")
        with socket.create_connection((host, int(port))) as there:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=_poured, args=(there, self.connection))
            back.start()
            _poured(self.connection, there)
            back.join()


def _poured(source: socket.socket, to: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(65_536):
            to.sendall(part)
    for each in (source, to):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def tunnelling(**how: str) -> Iterator[Tunnel]:
    with Tunnel(**how) as tunnel:
        thread = threading.Thread(target=tunnel.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield tunnel
        finally:
            tunnel.shutdown()
            thread.join()


def test_sites_call_through_a_proxy_and_by_no_other_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy sees the hub's name alone; where it refuses, no other way is tried; the environment's is not looked at."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    key, found = certificate(tmp_path / "hub", "localhost")
    coordinator = coordinator_of("abc")
    with coordinator.serving("localhost", certificate=found, certificate_key=key) as hub, tunnelling() as tunnel:
        agents = [SiteAgent(site_of(name)) for name in "abc"]
        with running(agents, hub, authority=found, proxy=tunnel.address), asked(coordinator) as session:
            assert len(session.sql(COUNT, spend=50).to_pydict()["n"]) == 2
        assert set(tunnel.to) == {f"CONNECT {hub.removeprefix('https://')}"}
        for says, words in (("403 Forbidden", "403 Forbidden"), ("407 Authentication", "it wants a name and a password")):
            with tunnelling(says=says) as closed:
                with running([SiteAgent(site_of("a"))], hub, authority=found, proxy=closed.address) as told:
                    while not told:
                        pass
                assert f"The hub was not reached through the proxy: {words}" in told[0]
    for none in ("proxy:3128", "http://[x", "http://", "http://proxy:x"):
        with pytest.raises(cl.InvalidParameter, match="--proxy is invalid"):
            SiteAgent(site_of("a")).run("https://hub.example.org", proxy=none)


@pytest.mark.parametrize("page", [b"<html>Log in to this network</html>", b"", MAGIC])
def test_a_page_of_a_proxy_in_place_of_the_hub_is_said_and_waited_for(page: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers 200 as the hub does: a site that took it for a message would call again at once, and for ever."""
    stop, calls, told, noted = threading.Event(), count(1), list[str](), list[str]()
    agent = SiteAgent(site_of("a"), note=lambda event, _: noted.append(event))
    monkeypatch.setattr(agent, "_called", lambda *_: (stop.set() if next(calls) == 3 else None, (200, page))[1])
    monkeypatch.setattr(stop, "wait", lambda _: stop.set())
    agent.run("http://127.0.0.1:1", stop=stop, told=told.append)
    assert next(calls) == 2
    assert told == ["What answered (200) is not a hub: is the address right, or does a proxy answer in its place?"]
    assert not noted


def test_a_hub_that_drips_is_given_up_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time and the message never does: the owner would hear nothing for days."""
    monkeypatch.setattr("cloister.together.agent._PATIENCE", 0.0)
    stop, told = threading.Event(), list[str]()

    def serve(listening: socket.socket) -> None:
        with listening.accept()[0] as there:
            there.recv(65_536)
            there.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx")
            stop.wait()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        hub = f"http://127.0.0.1:{listening.getsockname()[1]}"
        SiteAgent(site_of("a")).run(hub, stop=stop, told=lambda text: (told.append(text), stop.set()))
        thread.join()
    assert told == ["The hub was not reached: it sent more than a message can be, or too slowly"]


def test_rows_are_read_anew_when_the_owner_says_so(tmp_path: Path) -> None:
    """Without a new start; what can't be read leaves the old rows, and the log says why in words without a row."""
    file, asks, noted, above = tmp_path / "people.csv", list[str](), list[str](), count(17)

    def write(*ages: object) -> None:
        file.write_text("\n".join(["age,sex", *(f"{age},F" for age in ages), ""]), encoding="utf-8")

    def stale() -> bool:
        return bool(asks and asks.pop())

    write(*[30] * 20)
    site = Site("a", cl.PrivateTable(file, columns=COLUMNS), budget=MUCH, key=key_of("a"), journal=MemoryJournal())
    agents = [SiteAgent(site, stale=stale, note=lambda event, _: noted.append(event))]
    agents += [SiteAgent(site_of(name, rows=0)) for name in "bc"]
    coordinator = coordinator_of("abc")
    with coordinator.serving() as hub, running(agents, hub), asked(coordinator) as session:

        def counted() -> float:
            question = f"SELECT COUNT(*) AS n FROM people WHERE age > {next(above)}"
            return session.sql(question, spend=50).to_pydict()["n"][0]

        def read_anew(event: str) -> None:
            before = len(noted)
            asks.append("now")
            while event not in noted[before:]:
                pass

        assert abs(counted() - 20) <= 5  # P(noise > 5 at ε = 50) < 10⁻¹⁰⁰
        write(*[30] * 60)
        assert abs(counted() - 20) <= 5
        read_anew("read")
        assert abs(counted() - 60) <= 5
        file.unlink()
        read_anew("not read")
        assert abs(counted() - 60) <= 5


def test_rows_are_read_anew_while_one_question_follows_the_other(tmp_path: Path) -> None:
    """A busy hub waits for an answer of a site again and again; its owner's new rows come in all the same."""
    file, asks, noted = tmp_path / "people.csv", list[str](), list[str]()
    file.write_text("age,sex\n" + "30,F\n" * 20, encoding="utf-8")
    site = Site("a", cl.PrivateTable(file, columns=COLUMNS), budget=MUCH, key=key_of("a"), journal=MemoryJournal())
    agents = [SiteAgent(site, stale=lambda: bool(asks and asks.pop()), note=lambda event, _: noted.append(event))]
    agents += [SiteAgent(site_of(name, rows=0)) for name in "bc"]
    coordinator = coordinator_of("abc", wait=3.0)
    with coordinator.serving() as hub, running(agents, hub), asked(coordinator) as session:
        sizes = (
            session.sql(f"SELECT COUNT(*) AS n FROM people WHERE age * 2 < {place}", spend=50).to_pydict()["n"][0]
            for place in range(61, 180)
        )
        assert abs(next(sizes) - 20) <= 5  # P(noise > 5 at ε = 50) < 10⁻¹⁰⁰
        file.write_text("age,sex\n" + "30,F\n" * 60, encoding="utf-8")
        asks.append("now")
        assert any(n > 55 for n in sizes)
    assert "read" in noted


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("sex,age\nF,30\nM,40\n", {"read": ""}),
        ("id,age,sex\n1,30,F\n2,40,M\n", {"read": ""}),
        ('\ufeff"age";"sex"\r\n"30";"F"\r\n"40";"M"\r\n', {"read": ""}),
        ("years,sex\n30,F\n", {"not read": "the source has only 'years', 'sex'"}),
        (None, {"not read": "there is no such file"}),
    ],
)
def test_a_file_that_is_written_otherwise_is_read_again_as_it_is_now(
    tmp_path: Path, text: str | None, events: dict[str, str]
) -> None:
    """In another order of its columns, with more of them, or as a spreadsheet saves it; where it can't be, the owner sees why."""
    file, noted = tmp_path / "people.csv", dict[str, str]()
    file.write_text("age,sex\n30,F\n40,M\n", encoding="utf-8")
    site = Site("a", cl.PrivateTable(file, columns=COLUMNS), budget=MUCH)
    agent = SiteAgent(site, stale=lambda: True, note=lambda event, told: noted.update({event: told.get("why", "")}))
    if text is None:
        file.unlink()
    else:
        file.write_text(text, encoding="utf-8", newline="")
    agent.between()
    assert noted == events
    men = Aggregation(None, where=Compare("=", Column("sex"), Literal("M")))
    assert agent.part.rows.aggregate(men).values["rows"].tolist() == [1]  # type: ignore[attr-defined]


def test_of_several_tables_one_that_cannot_be_read_keeps_no_other_from_its_new_rows(tmp_path: Path) -> None:
    """The log says which, why, and what to write instead."""
    noted, sites = list[tuple[str, dict[str, str]]](), dict[str, Site]()
    ledger, journal, key = Ledger(), MemoryJournal(), key_of("a")
    for name in ("old", "folk", "new", "gone"):
        (tmp_path / f"{name}.csv").write_text("age,sex\n30,F\n", encoding="utf-8")
        table = cl.PrivateTable(tmp_path / f"{name}.csv", columns=COLUMNS, population="all")
        sites[name] = Site("a", table, budget=MUCH, key=key, ledger=ledger, journal=journal, label=name)
    agent = SiteAgent(sites, stale=lambda: True, note=lambda event, told: noted.append((event, told)))
    for name, text in (("old", "age,sex\n30,F\n40,M\n"), ("folk", ""), ("new", "age,sex\n30,F\n40,M\n50,M\n")):
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    (tmp_path / "gone.csv").rename(tmp_path / "moved.csv")
    agent.between()
    instead = "a file whose first line names the columns"
    empty = {"about": "folk", "what": "The source is invalid", "why": "it has no columns", "instead": instead}
    path = "the path of a file that is there"  # a line of Python would be none of site.toml
    gone = {"about": "gone", "what": "The source 'gone.csv' is invalid", "why": "there is no such file", "instead": path}
    assert noted == [("read", {"about": "old"}), ("not read", empty), ("read", {"about": "new"}), ("not read", gone)]
    sizes = [each.rows.aggregate(Aggregation(None)).values["rows"].tolist() for each in agent._parts.values()]  # type: ignore[attr-defined]
    assert sizes == [[2], [1], [3], [1]]


def test_a_link_is_followed_anew(tmp_path: Path) -> None:
    """An owner who reads this month's file by a link points that at the next one."""
    for name, sexes in (("may.csv", "F\n"), ("june.csv", "M\nM\n")):
        (tmp_path / name).write_text("sex\n" + sexes, encoding="utf-8")
    link = tmp_path / "current.csv"
    link.symlink_to("may.csv")
    site = Site("a", cl.PrivateTable(link, columns={"sex": COLUMNS["sex"]}), budget=MUCH)
    agent = SiteAgent(site, stale=lambda: True)
    link.unlink()
    link.symlink_to("june.csv")
    agent.between()
    assert agent.part.rows.aggregate(Aggregation(None)).values["rows"].tolist() == [2]  # type: ignore[attr-defined]


# ── what the hub sees ────────────────────────────────────────────────────────────────────────────


def test_the_wire_shows_no_more_than_the_rounds() -> None:
    """All that reaches the hub, recorded: a call says a time, a roster and a digest, and bodies are the answers of the rounds, of
    the same kinds, fields and lengths whatever the rows. (What those say is nothing but the sum: test_transcripts.py.)"""
    shapes = []
    for rows in (20, 3):
        coordinator = coordinator_of("abc")
        recorder = Recorder(coordinator.app)
        agents = [SiteAgent(site_of(name, rows=rows)) for name in "abc"]
        with coordinator.serving(app=recorder) as hub, running(agents, hub), asked(coordinator) as session:
            session.sql(COUNT, spend=1)
        shapes.append(sorted(shape_of(*each) for each in recorder.seen))
    assert shapes[0] == shapes[1]
    kinds = {kind for _, kind, *_ in shapes[0]}
    assert kinds == {"agreed", *STEPS.values()}


def shape_of(path: str, authorization: bytes, body: bytes) -> tuple[Any, ...]:
    poll, found = opened(base64.b64decode(authorization.split(b" ")[1])), opened(body)
    assert (poll.kind, poll.body, sorted(poll.fields)) == ("poll", b"", ["answers", "at", "roster"])
    return path, found.kind, sorted(found.fields), len(found.body)


@pytest.mark.parametrize("set_back", [0.0, DAY])
def test_a_site_that_fell_silent_is_waited_for_once_and_asked_again_when_it_calls(set_back: float) -> None:
    """A fit asks dozens of times: one deadline, and no more until the site is back, by whatever clock."""
    coordinator = coordinator_of("abcd", missing=1, deadline=0.05)
    parts = object.__new__(RemoteParts)
    parts._coordinator, parts._roster, parts._silent = coordinator, coordinator.signed.roster, {}
    asked: list[list[str]] = []

    def ask(messages: dict[str, bytes], *_: Any) -> Iterator[Any]:
        asked.append(sorted(messages))
        yield from ()

    coordinator.ask = ask  # type: ignore[assignment, method-assign]
    round_, messages = SimpleNamespace(numbers=1, words=1, id="round"), dict.fromkeys("ab", from_hub("begin"))
    for step in range(3):
        refusals: dict[str, CloisterError] = {}
        list(parts.asked(round_, None, ("a", "b"), refusals)(messages))  # type: ignore[arg-type]
        assert set(refusals) == {"a", "b"}, step
    coordinator._boxes["b"].presence = Presence(seen=time.time() + 1 - set_back)
    list(parts.asked(round_, None, ("a", "b"), {})(messages))  # type: ignore[arg-type]
    assert asked == [["a", "b"], [], [], ["b"]]


def test_a_site_whose_answer_has_another_form_is_named_with_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its signature is right, as of a site of another version: the charge stands, and the error says who has to act."""

    class Other(SiteAgent):
        def answer(self, data: bytes) -> bytes:
            good = opened(super().answer(data))
            more = {"extra": 1} if good.kind == "shares" else {}
            return pack(good.kind, good.round, self.name, self.key, good.body, **good.fields, **more)

    coordinator, noted = coordinator_of("abc"), list[tuple[str, str]]()
    monkeypatch.setattr(coordinator, "note_problem", lambda name, error: noted.append((name, error.why)))
    agents = [Other(site_of("a")), SiteAgent(site_of("b")), SiteAgent(site_of("c"))]
    said = pytest.raises(cl.EngineError, match="The answer of the site 'a' was refused: the answer of 'a' has a wrong form")
    with coordinator.serving() as hub, running(agents, hub), asked(coordinator) as session, said:
        session.sql(COUNT, spend=1)
    assert noted == [("a", "the answer of 'a' has a wrong form")]
    Coordinator.note_problem(coordinator, "a", cl.EngineError("", why=noted[0][1]))
    assert coordinator.presence["a"].problem == "it sent an answer that was refused: the answer of 'a' has a wrong form"
