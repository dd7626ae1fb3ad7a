"""Hostile and slow clients: nobody else is held up, nothing private or secret is logged."""

from __future__ import annotations

import asyncio
import logging
import random
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cloister.pgwire import Limits
from cloister.pgwire.connection import Work
from cloister.pgwire.failures import Refused
from cloister.pgwire.server import Strangers
from tests.pgwire.conftest import TOKEN, Running, Start
from tests.pgwire.raw import SYNC, Raw, bind, describe, error, execute, fields, letters, message, parse, rows, startup, text


def alive(running: Running) -> bool:
    """Whether others are answered."""
    with running.connect() as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


def test_malformed_beginnings_end_and_others_are_answered(running: Running) -> None:
    draws = random.Random(1)
    beginnings = [
        b"\0\0\0\0",
        b"\xff\xff\xff\xff" * 3,
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack("!ii", 8, 131072),
        struct.pack("!ii", 9, 196608) + b"x",
        struct.pack("!ii", 9, 196608) + b"\0",
        startup(user="ada")[:-3] + b"\xff\xff\xff",
        startup(user="ada") + message("X"),
        startup(user="ada") + b"p\xff\xff\xff\xff",
        startup(user="ada") + message("p", b"no end"),
        *(draws.randbytes(draws.randrange(8, 200)) for _ in range(40)),
    ]
    for beginning in beginnings:
        with Raw(running.port) as raw:
            raw.send(beginning)
            raw.socket.shutdown(1)
            assert raw.ended()
    assert alive(running)


def test_malformed_messages_end_or_fail_and_others_are_answered(running: Running) -> None:
    draws = random.Random(2)
    good = [
        parse("SELECT $1::text", types=(25,)),
        bind((b"x",)),
        describe("P"),
        describe("S"),
        execute(),
        SYNC,
        message("Q", text("SELECT 1")),
    ]
    for _ in range(120):
        broken = bytearray(b"".join(draws.sample(good, 4)))
        for _ in range(draws.randrange(1, 6)):
            broken[draws.randrange(len(broken))] = draws.randrange(256)
        with Raw(running.port).log_in() as raw:
            raw.send(bytes(broken) + message("X"))
            raw.socket.shutdown(1)
            assert raw.ended()
    assert alive(running)
    assert running.charges == 0


def test_broken_fields_are_errors_of_one_statement_where_the_frame_is_whole(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        assert error(raw.ask(bind(name="nosuch"), SYNC))["C"] == "26000"
        assert error(raw.ask(execute("nosuch"), SYNC))["C"] == "34000"
        assert error(raw.ask(describe("S", "nosuch"), SYNC))["C"] == "26000"
        assert error(raw.ask(parse("SELECT 1; SELECT 2"), SYNC))["C"] == "42601"
        assert error(raw.ask(parse("SELECT $1::text"), bind(), SYNC))["C"] == "08P01"
        assert error(raw.ask(parse("SELECT $1::int", types=(23,)), bind((b"x",)), SYNC))["C"] == "22P02"
        assert error(raw.ask(parse("SELECT $1", types=(600,)), bind((b"x",)), SYNC))["C"] == "22P02"
        assert error(raw.ask(parse("SELECT $99999"), SYNC))["C"] == "42P02"
        no_text = message("P", b"\0SELECT '\xff'\0\0\0")
        assert error(raw.ask(no_text, SYNC))["C"] == "22021"
        assert error(raw.ask(message("F", b"\0\0\0\0")))["C"] == "0A000"
        assert letters(raw.ask(parse(""), bind(), describe("P"), execute(), SYNC)) == "12nIZ"
        assert letters(raw.query("")) == "IZ"
        assert letters(raw.ask(message("C", b"S" + text("nosuch")), SYNC)) == "3Z"


def test_after_an_error_messages_are_skipped_up_to_sync(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        found = raw.ask(parse("SELECT nosuch FROM pg_class"), bind(), describe("P"), parse("SELECT 1"), execute(), SYNC)
        assert letters(found) == "12EZ"
        assert rows(raw.ask(parse("SELECT 1"), bind(), execute(), SYNC)) == [[b"1"]]


def test_a_long_message_ends_the_connection_unread(start: Start) -> None:
    running = start(Limits(message=10_000))
    with Raw(running.port).log_in() as raw:
        raw.send(b"Q" + struct.pack("!i", 2**31 - 1))
        letter, body = raw.read()
        assert (letter, fields(body)["C"], fields(body)["S"]) == ("E", "54000", "FATAL")
        assert raw.ended()
    assert alive(running)


def test_connections_are_counted(start: Start) -> None:
    running = start(Limits(connections=2))
    with Raw(running.port).log_in(), Raw(running.port).log_in(), Raw(running.port) as third:
        letter, body = third.read()
        assert (letter, fields(body)["C"]) == ("E", "53300")
        assert third.ended()


def test_who_says_nothing_goes_for_who_comes(start: Start) -> None:
    """A stranger is in nobody's way: neither where connections are counted nor where strangers are."""
    running = start(Limits(connections=2, strangers=1))
    with Raw(running.port).log_in(), Raw(running.port) as stranger:
        stranger.send(startup(user="ada"))
        assert stranger.read()[0] == "R"
        with Raw(running.port).log_in() as third:
            assert rows(third.query("SELECT 1")) == [[b"1"]]
            letter, body = stranger.read()
            assert (letter, fields(body)["C"]) == ("E", "53300")
            assert stranger.ended()


@pytest.mark.parametrize("says", [b"", startup(user="ada")], ids=["silent", "half a log-in"])
def test_sockets_that_say_nothing_lock_nobody_out(start: Start, says: bytes) -> None:
    running = start()
    silent = [Raw(running.port) for _ in range(60)]
    try:
        for each in silent if says else []:
            each.send(says)
        with Raw(running.port).log_in() as first, Raw(running.port).log_in("eve", "another-token") as second:
            assert rows(first.query("SELECT 1")) == rows(second.query("SELECT 1")) == [[b"1"]]
    finally:
        for each in silent:
            each.socket.close()


def test_the_largest_crowd_gives_up_its_oldest_and_known_networks_have_their_room() -> None:
    async def main() -> None:
        async def wait() -> None:
            await asyncio.sleep(60)

        def task() -> asyncio.Task[None]:
            return asyncio.ensure_future(wait())

        strangers = Strangers(4)
        lone = strangers.arrive("192.0.2.1", task())
        crowd = [strangers.arrive(f"2001:db8::{each}", task()) for each in range(3)]
        assert lone is not None
        assert None not in crowd
        assert strangers.arrive("192.0.2.2", task()) is not None
        assert [each.given_up for each in (lone, *crowd) if each] == [False, True, False, False]
        assert len(strangers) == 4
        crowd[1].waits = False  # type: ignore[union-attr]
        assert strangers.arrive("192.0.2.3", task()) is not None, "all networks have one that waits: the oldest of all goes"
        assert lone.given_up
        strangers.leave(strangers.arrive("198.51.100.1", task()), signed_in=True)  # type: ignore[arg-type]
        before = len(strangers)
        known = [strangers.arrive("198.51.100.1", task()) for _ in range(2)]
        assert len(strangers) == before + 2, "nobody had to go for them"
        for _ in range(10):
            strangers.arrive("203.0.113.5", task())
        assert not any(each.given_up for each in known if each), "and they go for no stranger"
        for each in known:
            each.waits = False  # type: ignore[union-attr]
        assert strangers.arrive("198.51.100.1", task()) is None, "who is being looked at goes for nobody"

    asyncio.run(main())


def test_one_person_takes_neither_all_connections_nor_all_threads(start: Start) -> None:
    running = start(Limits(each=3, turns=1, lookers=2, looking=3))
    million = "generate_series(1, 1000000)"
    endless = message("Q", text(f"SELECT count(*) FROM {million} a, {million} b, {million} c"))
    with Raw(running.port).log_in() as first, Raw(running.port).log_in() as second, Raw(running.port).log_in() as third:
        with Raw(running.port) as fourth:
            fourth.send(startup(user="ada"), message("p", text(TOKEN)))
            assert fourth.read()[0] == "R"
            assert fields(fourth.read()[1])["C"] == "53300"
        for each in (first, second, third):
            each.send(endless)
        with Raw(running.port).log_in("eve", "another-token") as other:
            assert rows(other.query("SELECT 1")) == [[b"1"]]
        assert {error(each.until())["C"] for each in (first, second, third)} == {"57014"}


def test_strangers_and_idle_clients_are_sent_away(start: Start) -> None:
    running = start(Limits(startup=0.2, idle=0.2))
    with Raw(running.port) as stranger:
        assert fields(stranger.read()[1])["C"] == "57P05"
        assert stranger.ended()
    with Raw(running.port).log_in() as idle:
        assert fields(idle.read()[1])["C"] == "57P05"
        assert idle.ended()


def test_a_catalogue_query_without_end_is_stopped(start: Start) -> None:
    running = start(Limits(looking=0.5))
    with Raw(running.port).log_in() as raw:
        endless = (
            "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b, generate_series(1, 1000000) c"
        )
        assert error(raw.query(endless))["C"] == "57014"
        assert [letter for letter, _ in raw.query("SELECT 1")].count("D") == 1, "it ended, and its turn came back"
    assert alive(running)


class Deaf:
    """A call that hears nothing before it has begun, and the first time not even then."""

    def __init__(self) -> None:
        self.begun, self.told, self.ended = threading.Event(), 0, threading.Event()

    def __call__(self) -> None:
        self.begun.set()
        assert self.ended.wait(60)

    def stop(self) -> None:
        self.told += self.begun.is_set()
        if self.told > 1:
            self.ended.set()


@pytest.mark.parametrize("how", ["late", "given up", "canceled"])
def test_what_a_limit_ends_is_told_until_it_ends(how: str) -> None:
    """A call that was told once, before it began, ran for ever: a core and a person's turn were lost until a restart."""

    async def asked() -> None:
        turns, call = asyncio.Semaphore(1), Deaf()
        work = Work(turns)
        with ThreadPoolExecutor(1) as pool:
            doing = asyncio.ensure_future(work.do(pool, call, 0.0 if how == "late" else 60.0, call.stop))
            while how != "late" and not call.begun.is_set():
                await asyncio.sleep(0)
            if how == "given up":
                work.cancel()
            if how == "canceled":
                doing.cancel()
            with pytest.raises(asyncio.CancelledError if how == "canceled" else Refused):
                await doing
            await work.finished()
        assert call.ended.is_set()
        assert not turns.locked()

    asyncio.run(asked())


@pytest.mark.parametrize("how", ["late", "given up", "canceled"])
def test_what_is_given_up_before_it_begins_never_begins(how: str) -> None:
    """A question that waited for a thread was asked, and charged, after its client had given it up."""

    async def asked() -> None:
        turns, others, begun = asyncio.Semaphore(1), threading.Event(), list[str]()
        work = Work(turns)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(others.wait, 60)
            call = lambda: begun.append("charged")  # noqa: E731
            doing = asyncio.ensure_future(work.do(pool, call, 0.0 if how == "late" else 60.0, lambda: None))
            while how != "late" and not turns.locked():
                await asyncio.sleep(0)
            if how == "given up":
                work.cancel()
            if how == "canceled":
                doing.cancel()
            with pytest.raises(asyncio.CancelledError if how == "canceled" else Refused):
                await doing
            others.set()
            await work.finished()
        assert begun == []
        await asyncio.wait_for(turns.acquire(), 60)

    asyncio.run(asked())


def test_a_client_that_does_not_read_holds_up_nobody_and_is_sent_away(start: Start) -> None:
    running = start(Limits(writing=0.5))
    with Raw(running.port).log_in() as raw:
        many = "SELECT made.i, 'a rather long text' FROM generate_series(1, 99000) AS made(i);"
        raw.send(message("Q", text(many * 10)))
        assert alive(running)
        until = time.monotonic() + 60
        while running.front.connections and time.monotonic() < until:
            time.sleep(0.05)
        assert running.front.connections == 0
    assert alive(running)


def test_statements_are_kept_up_to_a_limit(start: Start) -> None:
    running = start(Limits(prepared=3))
    with Raw(running.port).log_in() as raw:
        for name in "abc":
            assert letters(raw.ask(parse("SELECT 1", name), SYNC)) == "1Z"
        assert error(raw.ask(parse("SELECT 1", "d"), SYNC))["C"] == "53400"
        assert error(raw.ask(parse("SELECT 1", "a"), SYNC))["C"] == "42P05"
        assert letters(raw.query("DEALLOCATE a")) == "CZ"
        assert letters(raw.ask(parse("SELECT 1", "d"), SYNC)) == "1Z"
        assert letters(raw.query("DISCARD ALL")) == "CZ"
        assert error(raw.ask(bind(name="b"), SYNC))["C"] == "26000"


def test_logs_hold_no_question_no_value_and_no_token(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with Raw(running.port) as wrong:
        wrong.send(startup(user="ada"), message("p", text("canary-token")))
        assert wrong.ended()
    with Raw(running.port).log_in() as raw:
        raw.query("SET cloister.spend = 1; SET cloister.purpose = 'canary-purpose'")
        raw.query("SELECT COUNT(*) FROM people WHERE town = 'canary-literal'")
        raw.query("SELECT 'canary-catalogue' FROM pg_class WHERE")
        raw.ask(parse("SELECT COUNT(*) FROM people WHERE sex = $1"), bind((b"canary-value",)), execute(), SYNC)
        raw.send(b"\xff\0\0\0\4")
        assert raw.ended()
    assert "a log-in was refused with AccessDenied" in caplog.text
    assert "canary" not in caplog.text
    assert TOKEN not in caplog.text


def test_an_error_that_nobody_foresaw_has_a_fixed_text(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    def broken(backend: object) -> object:
        def login(*_: str) -> object:
            raise RuntimeError("row 17 is canary")

        backend.login = login  # type: ignore[attr-defined]
        return backend

    running = start(None, broken)
    with Raw(running.port) as raw:
        raw.send(startup(user="ada"), message("p", text(TOKEN)))
        assert raw.read()[0] == "R"
        assert fields(raw.read()[1])["M"] == "The statement failed, and nothing more is said of it"
    assert "canary" not in caplog.text


HOSTILE = {
    "comparisons within comparisons": "SELECT COUNT(*) FROM people WHERE " + "age = ANY(" * 5_000,
    "many arrays": "SELECT COUNT(*) FROM people WHERE " + "a " * 5_000 + " = ANY('{}') " * 2_000,
    "many casts": "SELECT COUNT(*) FROM people WHERE " + "age = '1'::int4 AND " * 2_000 + "TRUE",
    "deep casts": "SELECT COUNT(*) FROM people WHERE age > " + "CAST(" * 5_000 + "1",
    "a long list": "SELECT COUNT(*) FROM people WHERE age IN (" + "$1," * 10_000 + "1)",
    "parentheses": "EXECUTE p " + "(" * 50_000,
    "arrays within arrays": "EXECUTE p (" + "ARRAY[" * 10_000,
    "many values": "EXECUTE p (" + "1," * 10_000 + "1)",
    "dots": "SHOW " + "a." * 20_000 + "a",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_texts_that_nest_and_repeat_are_refused(running: Running, name: str) -> None:
    with Raw(running.port).log_in() as raw:
        assert error(raw.query(HOSTILE[name]))["C"] in ("42601", "54001", "0A000", "26000")
        assert letters(raw.ask(parse(HOSTILE[name]), SYNC)) in ("1Z", "EZ")
    assert alive(running)
    assert running.charges == 0
