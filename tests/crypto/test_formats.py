"""What was written once opens for ever: each format against what it came to when it was written, byte for byte."""

from __future__ import annotations

import hashlib
import io
from datetime import UTC, datetime
from typing import Any

import pytest

from cloister.crypto import (
    DecryptedReader,
    DeterministicCipher,
    EncryptedWriter,
    PseudoRandomFunction,
    canonical_json,
    encrypted_file,
)
from cloister.hub.keys import hub_keyring
from cloister.hub.platform.trail.chain import START, Act, seal
from cloister.ledger.chain import BEGINNING, chained

KEY = bytes(range(32))
HUB = hub_keyring(KEY)

WRAPPED = "aae80dfbcf0da518f837799331137aaff73be421b7de03d09a8beb2994aa637b286237939bf5c474"
SMALL = (
    "636c6f6973746572207365616c656420310a" + "07" * 32 + "d0f777208b72421aae108aca5784ae54fd5a6c95a4150b5f4c"
)  # "cloister sealed 1\n", the salt, one chunk of nine bytes with its tag


@pytest.fixture
def salted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same salt each time."""

    class Sevens:
        def bytes(self, count: int) -> bytes:
            return bytes([7]) * count

    monkeypatch.setattr(encrypted_file, "default_random", Sevens)


def written(*parts: Any) -> bytes:
    file = io.BytesIO()
    writer = EncryptedWriter(file, KEY)
    for part in parts:
        writer.write(part)
    writer.finish()
    assert writer.digest == hashlib.sha256(file.getvalue()).hexdigest()
    return file.getvalue()


def test_what_hubs_derive_sign_and_wrap() -> None:
    assert HUB.derive("cookies").hex() == "0f427a6c20d5248b4d661a4e82dde425e2c07ceac5276dd536d9165dfe864fda"
    assert HUB.sign("link", "a") == "994375f1c4eaafcb45049babd8d9c9e7f81c0ef70fc8c88ee72a71f42e63f6bf"
    assert HUB.unwrap(bytes.fromhex(WRAPPED), "table 1") == b"the data key"


@pytest.mark.usefixtures("salted")
def test_an_encrypted_file() -> None:
    assert DecryptedReader(io.BytesIO(bytes.fromhex(SMALL)), KEY).read(100) == b"Alice, 39"
    assert written(b"Alice, 39").hex() == SMALL
    long = written(bytes(2**21), bytes(5))
    assert (len(long), hashlib.sha256(long).hexdigest()) == (
        2097255,
        "6eb6919d9d582a321b032f8a4b38e694797e4c957a04bc17b3669e0d50514710",
    )


def test_lines_and_draws() -> None:
    assert DeterministicCipher(bytes(range(64))).encrypt(b"a line", [b"place", b"1", b"state"]).hex() == (
        "c8400caa743fd2d067b93eb1bea31d789d7c8b2f240b"
    )
    keyed = PseudoRandomFunction(b"secret")
    assert keyed.words("sample", count=3).tolist() == [16744657284937592612, 3171303930739064301, 14502542787906554392]
    assert [keyed.below(1000, "count", str(number)) for number in range(4)] == [224, 287, 997, 708]


def test_canonical_text_and_the_chains_of_it() -> None:
    assert canonical_json({"é": 1, "a": [1, {"z": None}]}) == '{"a":[1,{"z":null}],"\\u00e9":1}'
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))
    assert chained(KEY, 1, BEGINNING, "{}").hex() == "a73c844d71d4a2c20a7bbc48cd724c5084597ee6193c492ff3f826e746596c96"
    act = Act(when=datetime(2026, 1, 1, tzinfo=UTC), person="p1", action="dataset.see", details={"z": "é", "a": 1})
    assert seal(bytes(32), START, 1, act) == "731ea47ce4e533dd0e962bb9028544f62902b2ad8db410db62db263e69bd68ec"
