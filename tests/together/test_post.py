"""Two ends of one hub with a `Post` between them: sites call one or either, and both ask."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

import cloister as cl
from cloister.errors import EngineError
from cloister.together import Coordinator, SiteAgent
from cloister.together.coordinator import Letter, Presence
from cloister.together.messages import pack
from cloister.together.rounds import HUB
from tests.together.parties import HUB_KEY
from tests.together.test_wire import COUNT, call
from tests.together.wired import asked, coordinator_of, key_of, running, site_of


class MemoryPost:
    """What the hub keeps in its database, in a dictionary."""

    patience = 0.05

    def __init__(self) -> None:
        self.kept: dict[str, tuple[Letter, bytes | None]] = {}
        self.calls: dict[str, Presence] = {}
        self.fetched: list[str] = []
        self.away = False
        self._ids = map(str, itertools.count())

    def __call__(self, digest: str) -> MemoryPost:
        return self

    def _open(self) -> list[Letter]:
        if self.away:
            raise EngineError("The post is away", why="of a test", instead="nothing")
        return [letter for letter, data in list(self.kept.values()) if data is None and letter.ends > time.time()]

    def leave(self, letters: Iterable[Letter]) -> Mapping[str, str]:
        self._open()
        called = {letter.name: next(self._ids) for letter in letters}
        self.kept |= {called[letter.name]: (letter, None) for letter in letters}
        return called

    def remove(self, letters: Iterable[str]) -> None:
        for each in letters:
            self.kept.pop(each, None)

    def answers(self, letters: Iterable[str]) -> list[tuple[str, bytes]]:
        found = [self.kept[each] for each in letters if each in self.kept]
        return [(letter.name, data) for letter, data in found if data is not None]

    def waiting(self) -> list[tuple[str, str, float]]:
        return [(each.name, each.digest, each.since) for each in self._open()]

    def letter(self, name: str, digest: str) -> Letter | None:
        self.fetched.append(name)
        return next((each for each in self._open() if (each.name, each.digest) == (name, digest)), None)

    def answer(self, name: str, digest: str, data: bytes) -> None:
        for called, (letter, _) in list(self.kept.items()):
            if (letter.name, letter.digest) == (name, digest):
                self.kept[called] = letter, data

    def tell(self, name: str, presence: Presence) -> None:
        self.calls[name] = presence

    def told(self) -> Mapping[str, Presence]:
        self._open()
        return self.calls


class InTurns:
    """A proxy before several ends: each call goes to the next of them."""

    def __init__(self, ends: Iterable[Coordinator]) -> None:
        self.turns = itertools.cycle([each.app for each in ends])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await next(self.turns)(scope, receive, send)


@pytest.fixture
def post() -> MemoryPost:
    return MemoryPost()


def ends(post: MemoryPost, **other: Any) -> tuple[Coordinator, Coordinator]:
    here, there = (coordinator_of("abc", post=post, **other) for _ in range(2))
    return here, there


def test_sites_that_call_one_end_are_asked_by_the_other(post: MemoryPost) -> None:
    here, there = ends(post)
    assert [str(each) for each in here.presence.values()] == ["it never called"] * 3
    with there.serving() as hub, running([SiteAgent(site_of(name)) for name in "abc"], hub), asked(here) as session:
        assert session.sql(COUNT, spend=10**4).to_pydict()["n"] == [60, 60]
    assert not post.kept
    assert all(str(each).startswith("it last called at") for each in here.presence.values())


def test_sites_that_call_the_ends_in_turns_are_asked_by_both(post: MemoryPost) -> None:
    both = ends(post)
    sites = [site_of(name) for name in "abc"]
    with both[0].serving(app=InTurns(both)) as hub, running([SiteAgent(each) for each in sites], hub):
        for number, end in enumerate((*both, *both)):
            with asked(end) as session:
                found = session.sql(f"SELECT COUNT(*) AS n FROM people WHERE age < {80 + number}", spend=10**4)
                assert found.to_pydict() == {"n": [120]}
    assert not post.kept
    assert [each.spent for each in sites] == [cl.ZCDP(2 * 10**8)] * 3  # four times ε²÷2


def test_an_answer_at_once_leaves_nothing_to_others() -> None:
    post = MemoryPost()
    post.patience = 60.0
    left: list[Any] = []
    post.leave = left.append  # type: ignore[assignment, method-assign]
    here, _ = ends(post)
    with here.serving() as hub, running([SiteAgent(site_of(name)) for name in "abc"], hub), asked(here) as session:
        assert session.sql(COUNT, spend=10**4).to_pydict()["n"] == [60, 60]
    assert not left


MESSAGE = pack("request", "r", HUB, HUB_KEY, b"body")
DIGEST = hashlib.sha256(MESSAGE).hexdigest()
GOOD = pack("agreed", "r", "a", key_of("a"))


@contextlib.contextmanager
def asking(*ends: Coordinator) -> Any:
    """Each asks `a` the same, in a thread; who answered each in the end."""
    heard: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda end=end: heard.append([name for name, _, _ in end.ask({"a": MESSAGE}, "r")]))
        for end in ends
    ]
    for thread in threads:
        thread.start()
    try:
        yield heard
    finally:
        for thread in threads:
            thread.join()


def test_the_same_message_of_two_ends_is_answered_once(post: MemoryPost) -> None:
    here, there = ends(post, wait=5.0)
    third = coordinator_of("abc", post=post, wait=5.0)
    with third.serving() as hub, asking(here, there) as heard:
        while len(post.kept) < 2:
            time.sleep(0.01)
        assert [len(each["a"]) for each in (here.awaited, there.awaited, third.awaited)] == [1, 1, 1]
        assert call(hub).content == MESSAGE
        assert call(hub).content == MESSAGE, "a site that lost the connection gets it again"
        third.wait = 0.6
        assert call(hub, answers=DIGEST, body=GOOD).status_code == 204, "and nothing is awaited any more"
    assert heard == [["a"], ["a"]]
    assert not post.kept


def test_an_answer_is_checked_where_it_arrives_and_once_more_where_it_was_asked(post: MemoryPost) -> None:
    here, there = ends(post, wait=0.6)
    with there.serving() as hub, asking(here) as heard:
        assert call(hub).content == MESSAGE
        for body, why in (
            (b"x" * 100_000, "more than 65,536 bytes"),
            (pack("agreed", "other", "a", key_of("a")), "of another round"),
            (pack("agreed", "r", "a", key_of("b")), "not signed by 'a'"),
        ):
            assert call(hub, answers=DIGEST, body=body).status_code == 400
            assert why in str(here.presence["a"]), "every end knows it"
        post.answer("a", DIGEST, pack("agreed", "r", "a", key_of("b")))  # as somebody who writes into the database
        time.sleep(0.6)
        assert not heard
        post.answer("a", DIGEST, GOOD)
    assert heard == [["a"]]


def test_what_is_over_is_left_to_nobody(post: MemoryPost) -> None:
    """Who asked is silent: killed, or its deadline is over. The site is asked no more, and its late answer is let go."""
    here, there = ends(post, wait=0.6)
    gone = Letter(name="a", message=MESSAGE, round="r", most=1000, ends=time.time() - 1)
    post.leave([gone])
    with there.serving() as hub:
        assert call(hub).status_code == 204
        here.deadline = 0.3
        assert not list(here.ask({"a": MESSAGE}, "r"))
        assert list(post.kept.values()) == [(gone, None)]
        assert call(hub, answers=DIGEST, body=GOOD).status_code == 204
    assert "did not answer for 0.3 seconds; it last called at" in str(here.silent("a").why)


def test_a_post_that_is_away_keeps_nobody_from_those_who_call_here(post: MemoryPost) -> None:
    here, _ = ends(post, wait=0.6)
    post.away = True
    with here.serving() as hub, asking(here) as heard:
        while call(hub).content != MESSAGE:
            pass
        time.sleep(0.3)
        assert call(hub, answers=DIGEST, body=GOOD).status_code == 204
    assert heard == [["a"]]
    assert str(here.presence["a"]).startswith("it last called at")
    assert here.awaited == {"a": [], "b": [], "c": []}


def test_a_message_that_cannot_be_fetched_keeps_nobody_from_what_waits_here(post: MemoryPost, monkeypatch: Any) -> None:
    """The post goes away between two looks of one call: after it said that an older message waits."""
    here, _ = ends(post, wait=0.6)
    left = Letter(name="a", message=b"left elsewhere", round="1", most=99, ends=time.time() + 9, since=time.time() - 9)
    post.leave([left])
    fetched: list[str] = []

    def away(name: str, digest: str) -> Letter:
        fetched.append(digest)
        raise EngineError("The post is away", why="of a test", instead="nothing")

    monkeypatch.setattr(post, "letter", away)
    with here.serving() as hub, asking(here):
        while call(hub).content != MESSAGE:
            pass
        assert call(hub, answers=DIGEST, body=GOOD).status_code == 204
    assert fetched[0] == left.digest
    assert set(fetched) <= {left.digest, DIGEST}  # who asks here leaves it at the post, too, once its patience is over


def test_a_clock_that_is_off_at_one_end_is_known_at_the_other(post: MemoryPost) -> None:
    here, there = ends(post, wait=0.05)
    with there.serving() as hub:
        assert call(hub, "a", apart=-86_400).status_code == 401
        assert str(here.presence["a"]) == "its clock was 24.0 hours behind this one"
        assert call(hub, "a").status_code == 204
    assert str(here.presence["a"]).startswith("it last called at")


def test_what_was_told_before_a_clock_was_set_back_hides_no_call() -> None:
    post, now = MemoryPost(), time.time()
    here = coordinator_of("abc", post=post)
    post.tell("a", Presence(seen=now + 7200))
    here._boxes["a"].presence = Presence(seen=now, problem="it sent garbage")
    assert here.presence["a"] == Presence(seen=now, problem="it sent garbage")
