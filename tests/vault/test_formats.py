"""What was sealed once opens for ever: names, handles, entries and values against what they came to when they were written."""

from __future__ import annotations

import pytest

import cloister as cl
from cloister.crypto import Keyring
from cloister.vault.index import Word
from cloister.vault.keys import DOMAIN, DataSetKeys
from cloister.vault.merkle import root_of
from cloister.vault.records import Sealer
from cloister.vault.state import Leaf, Pending, State
from cloister.vault.store import Row

FIELDS = {"town": cl.vault.Equal(), "age": cl.vault.Range(0, 120) | cl.vault.Sum()}
BODY = (
    '{"0fb836311513279727993562":"cAFjaGrGjTrP6GiVEBf+s3v1SmHx6tOHDnCGX5NgEmoWCHZ/I17Dzj6SpsmztfVYF2+dZjT3ATZoy184"'
    ',"184f97f8c13ff30dbcebdde6":"TCP7a7nKmgxBbe0EHdDqKC84j0jr8r7X2twOYxnAtNNcmbu+ByicrPVtn2LO5Oi2CIYDBmWhJbhQHFpn"'
    ',"4c8c48350d6371806fd1f1d7":"KBq/yQm0PknQMMiVFVj8z6MK+S/n7SQ2dOS7zxqDp24F4iACekUI2glS0ZdCyJSBfSIVL0cc/f45QdJ7"'
    "}"
)


@pytest.fixture
def keys() -> DataSetKeys:
    """Fixed keys, with fixed keys of the first epoch."""
    made = DataSetKeys(cl.vault.Keys(bytes(range(32)), state=State()), "default")
    made._epochs[1] = Keyring(bytes(32), domain=DOMAIN)
    made.state.add_epoch(made.id, 1, b"", made._owner._ring.wrap(bytes(32), made._about_index(1)))
    return made


def test_names_handles_and_entries(keys: DataSetKeys) -> None:
    assert (keys.id, keys.name("collection", "people")) == ("c29b4df6c52f42917c196f44", "b60027ded6f0158bf377b6cf")
    assert keys.handle("c", 7).hex() == "17b8ec607bc25901183af7a6b0e03194"
    word = keys.word(1, "c", "town", FIELDS["town"].words("Basel")[0])
    assert word.name.hex() == "590072957746ee4155b688ace528035f"
    address, content = word.entry(3, bytes(range(16)))
    assert (address.hex(), content.hex()) == (
        "178a6e4c34224f1a286d85f47290002e",
        "ae0687240a0fc4a30899ecbda14a2efc77f4c6cd3cb225338defa9ff26cfc3c3",
    )


def test_words_of_values() -> None:
    assert FIELDS["town"].words("Basel") == [b'="Basel"']
    assert FIELDS["age"].words(5)[:3] == [b"<0:5", b"<1:2", b"<2:1"]
    assert FIELDS["age"].words(None)[0] == b"<0:absent"
    assert FIELDS["age"].told() == [False, True, [0, 120, 1]]


def test_a_record(keys: DataSetKeys) -> None:
    row = Row(bytes(16), 1, 3, BODY)
    sealer = Sealer(keys, "c", FIELDS, None)
    assert sealer.opened(row) == {"_id": 7, "town": "Basel", "age": 2**70}
    assert sealer.mac(row).hex() == "2cc1a90bbfeeab7b148aef3a98d5a0d358aa3057872cbd1a0a67abe2ae56e194"
    assert root_of({row.handle: sealer.mac(row)}).hex() == "6145d5d93f3cfe88838aa5486fa7775b0e73b0b26ff7519f4cf5c954c5a8ac35"


def test_a_pending_change() -> None:
    change = Pending(2, bytes(32), {bytes(16): Leaf(1, bytes(32)), b"\1" * 16: None}, {bytes(16): Word(1, 4, ((0, 2),))}, None)
    assert Pending.of(change.text()) == change
    zero, one, mac = "00" * 16, "01" * 16, "00" * 32
    expected = f'[2, "{mac}", {{"{zero}": [1, "{mac}"], "{one}": null}}, {{"{zero}": [1, 4, [[0, 2]]]}}, null]'
    assert change.text() == expected
