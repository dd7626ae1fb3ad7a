"""Passwords: which are refused, how they are kept, and how many are hashed at once."""

from __future__ import annotations

import threading
from typing import Any

import argon2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import InvalidParameter
from cloister.hub.platform.accounts import hashing
from cloister.hub.platform.accounts.hashing import Hasher, plain
from cloister.hub.platform.accounts.log_in import check_password, rest_of
from cloister.hub.problems import TooMany
from tests.hub.accounts.world import OTHER_PASSWORD, PASSWORD, World

ABOUT = ["Ada Byron", "ada.byron@north-hospital.example", "North Hospital"]


@pytest.mark.parametrize(
    "password",
    [
        "short",
        "password1234",
        "P@ssw0rd!2024",
        "Passwort12345!",
        "correct horse battery staple",
        "aaaaaaaaaaaaaaaa",
        "abababababababab",
        "abcdefghijklmnop",
        "qwertyuiop123456",
        "1qaz2wsx3edc4rfv",
        "zyxwvutsrqpo",
        "123456789012",
        "2024-11-20 2025",
        "Ada Byron 1815",
        "ada.byron1234567",
        "NorthHospital2026",
        "n0rthh0sp1tal!!!",
        "Summer2024Winter",
        "letmeinletmeinletmein",
        "cloistercloister1",
        "Ｐａｓｓｗｏｒｄ１２３４",
        "x" * 1001,
    ],
)
def test_what_is_guessed_first_is_refused(password: str) -> None:
    with pytest.raises(InvalidParameter):
        check_password(password, least=12, about=ABOUT)


@pytest.mark.parametrize(
    "password", [PASSWORD, OTHER_PASSWORD, "zV9-kqp2mT!xR4", "四条不同的河流在夜里唱歌而且很慢", "ada likes purple zeppelins"]
)
def test_what_nobody_would_guess_is_taken(password: str) -> None:
    check_password(password, least=12, about=ABOUT)


GUESSED = ["ada", "Byron", "hospital", "P4ssword", "2024", "123456", "!!!", "North", "qwerty", "summer"]


@given(st.lists(st.sampled_from(GUESSED), min_size=1, max_size=8).map("".join))
def test_guessed_pieces_together_are_guessed_too(password: str) -> None:
    with pytest.raises(InvalidParameter):
        check_password(password, least=8, about=ABOUT)


@given(st.text(max_size=60))
def test_the_rules_never_fail_nor_tell_the_password(password: str) -> None:
    rest = rest_of(password, ABOUT)
    assert len(rest) <= 4 * len(plain(password))
    assert rest == "".join(letter for letter in rest if letter.isalnum())


def test_the_least_length_is_the_settings(world: World) -> None:
    world = world.again(password_length=30)
    ada = world.logged_in("ada@example.org", "analyst")
    answer = ada.post("/account/password", present=PASSWORD, password=OTHER_PASSWORD, again=OTHER_PASSWORD)
    assert answer.status_code == 422
    assert "fewer than 30 characters" in answer.text


def test_one_password_however_it_is_typed() -> None:
    hasher = Hasher()
    kept = hasher.hash("caf\u00e9 au lait \ufb01n")
    assert hasher.verify(kept, "cafe\u0301 au lait fin")
    assert not hasher.verify(kept, "cafe au lait fin")
    assert kept.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert hasher.hash("caf\u00e9 au lait \ufb01n") != kept


def test_few_are_hashed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hasher = Hasher(at_once=2)
    kept = hasher.hash(PASSWORD)
    inside, most, lock, go = 0, 0, threading.Lock(), threading.Barrier(2)

    def watched(self: Any, *args: Any) -> bool:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        go.wait(timeout=30)
        with lock:
            inside -= 1
        return True

    monkeypatch.setattr(argon2.PasswordHasher, "verify", watched)
    threads = [threading.Thread(target=hasher.verify, args=(kept, PASSWORD)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert most == 2


def test_who_waits_too_long_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    hasher = Hasher(at_once=1)
    monkeypatch.setattr(hashing, "_PATIENCE", 0.0)
    with hasher._slot(), pytest.raises(TooMany) as caught:
        hasher.hash(PASSWORD)
    assert caught.value.after == 5


def test_a_changed_password_ends_every_other_log_in(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    elsewhere = world.browser()
    elsewhere.log_in("ada@example.org")
    before = ada.cookie
    answer = ada.post("/account/password", present=PASSWORD, password=OTHER_PASSWORD, again=OTHER_PASSWORD)
    assert answer.headers["location"] == "/account"
    assert ada.who() == "ada@example.org"
    assert elsewhere.who() == ""
    assert ada.cookie != before
    elsewhere.client.cookies.clear()
    elsewhere.client.cookies.set("cloister", before)
    assert elsewhere.who() == ""
    world.browser().log_in("ada@example.org", OTHER_PASSWORD)
    assert world.browser().post("/login", email="ada@example.org", password=PASSWORD).status_code == 403


@pytest.mark.parametrize(
    ("present", "new", "again", "words"),
    [
        ("wrong", OTHER_PASSWORD, OTHER_PASSWORD, "the current one is wrong"),
        (PASSWORD, OTHER_PASSWORD, PASSWORD, "the two are not the same"),
        (PASSWORD, "Ada Byron 1815", "Ada Byron 1815", "guessed first"),
    ],
)
def test_a_password_is_not_changed_by_mistake(world: World, present: str, new: str, again: str, words: str) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    answer = ada.post("/account/password", present=present, password=new, again=again)
    assert answer.status_code == 422
    assert words in answer.text
    assert new not in answer.text
    world.browser().log_in("ada@example.org")
