"""Keys: what is wrapped is bound to its matter, purposes and domains are apart, a key file is whole or absent."""

from __future__ import annotations

import os
import pickle
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cloister.crypto import Keyring, WrongKey, make_key_file, new_key
from cloister.errors import InvalidParameter

ONE, OTHER = Keyring(bytes(range(32)), domain="tests"), Keyring(bytes(range(1, 33)), domain="tests")


def test_wrapping_is_bound_to_its_matter_and_its_key_and_every_bit_counts() -> None:
    wrapped = ONE.wrap(b"the data key", "table 1")
    assert ONE.unwrap(wrapped, "table 1") == b"the data key"
    assert wrapped != ONE.wrap(b"the data key", "table 1")
    assert b"the data key" not in wrapped
    for keys, text, about in [
        (ONE, wrapped, "table 2"),
        (OTHER, wrapped, "table 1"),
        (ONE, wrapped[:-1], "table 1"),
        (ONE, wrapped + b"x", "table 1"),
        (ONE, b"", "table 1"),
        (ONE, wrapped[:12], "table 1"),
    ]:
        with pytest.raises(WrongKey):
            keys.unwrap(text, about)
    for place in range(len(wrapped)):
        flipped = bytearray(wrapped)
        flipped[place] ^= 1
        with pytest.raises(WrongKey):
            ONE.unwrap(bytes(flipped), "table 1")


def test_purposes_are_apart() -> None:
    assert len({ONE.derive(purpose) for purpose in ("a", "b", "wrapping", "signing a")}) == 4
    assert ONE.derive("a") != OTHER.derive("a")
    assert ONE.signed("link", "text", ONE.sign("link", "text"))
    for keys, purpose, text in [(OTHER, "link", "text"), (ONE, "form", "text"), (ONE, "link", "texts")]:
        assert not keys.signed(purpose, text, ONE.sign("link", "text"))
    assert not ONE.signed("link", "text", "")
    assert not ONE.signed("link", "text", "é")


def test_keys_show_themselves_nowhere() -> None:
    told = repr(ONE) + str(ONE) + str(vars(type(ONE)).get("__dict__", ""))
    assert "01" not in repr(ONE)
    assert bytes(range(32)).hex() not in told
    with pytest.raises(TypeError):
        pickle.dumps(ONE)


@pytest.mark.parametrize("size", [0, 16, 31, 33, 64])
def test_a_master_key_has_32_bytes(size: int) -> None:
    with pytest.raises(InvalidParameter, match=f"{size} bytes"):
        Keyring(bytes(size), domain="tests")


def test_two_domains_share_no_key_and_open_nothing_of_one_another() -> None:
    elsewhere = Keyring(bytes(range(32)), domain="elsewhere")
    assert ONE.derive("a") != elsewhere.derive("a")
    with pytest.raises(WrongKey):
        elsewhere.unwrap(ONE.wrap(b"the data key", "table 1"), "table 1")


@pytest.mark.parametrize("domain", ["", "a\0b", "\0"])
def test_a_domain_ends_where_it_ends(domain: str) -> None:
    with pytest.raises(ValueError, match="domain"):
        Keyring(bytes(32), domain=domain)


def test_a_key_file_is_for_its_owner_alone_and_the_first_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    before = os.umask(0)
    try:
        with ThreadPoolExecutor(8) as several:
            list(several.map(lambda number: make_key_file(path, f"{number} " + new_key().hex()), range(32)))
    finally:
        os.umask(before)
    first = path.read_text()
    assert len(first.split()[1]) == 64, "no half of a key was ever there"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    make_key_file(path, "another")
    assert path.read_text() == first
    assert [each.name for each in tmp_path.iterdir()] == ["a.key"], "no draft stays"


def test_a_disk_that_takes_nothing_leaves_no_key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError):
        make_key_file(tmp_path / "a.key", "text")
    assert not list(tmp_path.iterdir()), "no draft stays"
