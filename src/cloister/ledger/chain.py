"""The chain: each line's hash covers its number, the hash before it, and its text, under a key that is kept outside of the
database.

hash(n) = HMAC-SHA256(key, n as 8 bytes ‖ hash(n−1) ‖ payload), hash(0) = 32 zero bytes.

Claim. Who can write the database but has no key cannot make a chain of other lines that verifies, except a prefix of the true
one (or an older copy). Reason: HMAC-SHA256 is a pseudo-random function (Bellare 2006), so the hash of a (number, parent,
payload) that the ledger never hashed is found with probability at most 2⁻²⁵⁶ a try; the parts have fixed lengths before the
payload, so no two triples are hashed as one text; and by induction from the first line, a changed, dropped, inserted or moved
line changes the parent of the next. A prefix is what the head file is for (`head.py`).
"""

import hmac
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path

from cloister.crypto.keyring import KEY_BYTES, make_key_file, new_key
from cloister.errors import LedgerError, LedgerUnavailable

BEGINNING = bytes(32)
"""The parent of the first line."""

KEY_VARIABLE = "CLOISTER_LEDGER_KEY"
"""The environment variable that may hold the key, as 64 hexadecimal digits."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def reserved_text(*, at: int, costs: Mapping[str, list[str]], purpose: str, what: str, who: str) -> str:
    """The canonical text of most charges, without the detour over a dictionary that is sorted again each time. `costs` is in
    the order of its names.

    >>> from cloister.crypto import canonical_json
    >>> costs = {"people": ["pure", "0.1"]}
    >>> text = reserved_text(at=5, costs=costs, purpose="", what="plan-1", who="Ada")
    >>> text == canonical_json({"kind": "reserved", "at": 5, "costs": costs, "purpose": "", "what": "plan-1", "who": "Ada"})
    True
    """
    rows = ",".join([f"{quoted(name)}:[{','.join([quoted(text) for text in texts])}]" for name, texts in costs.items()])
    return (
        f'{{"at":{at},"costs":{{{rows}}},"kind":"reserved","purpose":{quoted(purpose)}'
        f',"what":{quoted(what)},"who":{quoted(who)}}}'
    )


def settled_text(*, at: int, attempt: int, number: int, release: str) -> str:
    """The canonical text of a settlement; `release` is a digest, which needs no quoting.

    >>> from cloister.crypto import canonical_json
    >>> text = settled_text(at=5, attempt=1, number=2, release="5f3a")
    >>> text == canonical_json({"kind": "settled", "at": 5, "id": 2, "attempt": 1, "release": "5f3a"})
    True
    """
    return f'{{"at":{at},"attempt":{attempt:d},"id":{number:d},"kind":"settled","release":"{release}"}}'


def chained(key: bytes, sequence: int, parent: bytes, payload: str) -> bytes:
    """The hash of a line.

    >>> chained(bytes(32), 1, BEGINNING, "{}") == chained(bytes(32), 2, BEGINNING, "{}")
    False
    """
    return sealer(key)(sequence, parent, payload)


def sealer(key: bytes) -> Callable[[int, bytes, str], bytes]:
    """`chained` under one key, for many lines: the key is taken in once.

    >>> sealer(bytes(32))(1, BEGINNING, "{}") == hmac.digest(bytes(32), bytes([0] * 7 + [1]) + BEGINNING + b"{}", "sha256")
    True
    """
    keyed = hmac.new(key, digestmod="sha256").copy

    def seal(sequence: int, parent: bytes, payload: str) -> bytes:
        code = keyed()
        code.update(sequence.to_bytes(8, "big") + parent + payload.encode("ascii"))
        return code.digest()

    return seal


def moment(microseconds: int) -> datetime:
    """The time of a line.

    >>> moment(0).isoformat()
    '1970-01-01T00:00:00+00:00'
    """
    return _EPOCH + timedelta(microseconds=microseconds)


def find_key(given: bytes | str | os.PathLike[str] | None, beside: Callable[[], Path], *, exists: bool) -> bytes:
    """The ledger's key: the given bytes or file, the environment's, or the file beside the database, made with the first ledger.

    `exists` says that there is a ledger already, which a new key would not fit.
    """
    if isinstance(given, bytes):
        return _checked(given)
    if given is None and os.environ.get(KEY_VARIABLE):
        return _from_text(os.environ[KEY_VARIABLE])
    path = beside() if given is None else Path(given)
    try:
        if not path.exists() and not exists:
            make_key_file(path, new_key().hex() + "\n")
        return _from_text(path.read_text("ascii"))
    except OSError as error:
        if not exists or not isinstance(error, FileNotFoundError):
            raise _unreadable(path) from None
        raise LedgerError(
            "This ledger was not opened",
            why=f"its key file {path.name} is missing, and a new key would not fit its lines",
            instead=f"put the key file back, or give key=, or set {KEY_VARIABLE}",
        ) from None
    except UnicodeError:
        raise _unreadable(path) from None


def _unreadable(path: Path) -> LedgerUnavailable:
    return LedgerUnavailable(
        "This ledger was not opened",
        why=f"its key file {path.name} could not be read or made",
        instead="a folder that exists, and a key file with mode 0600 of the user that runs this",
    )


def _from_text(text: str) -> bytes:
    try:
        return _checked(bytes.fromhex(text.strip()))
    except ValueError:
        raise LedgerError(
            "This ledger was not opened",
            why="its key is not written in hexadecimal digits",
            instead="a key of 64 hexadecimal digits",
        ) from None


def _checked(key: bytes) -> bytes:
    if len(key) < KEY_BYTES:
        raise LedgerError(
            "This ledger was not opened", why="its key is shorter than 32 bytes", instead="a key of 32 random bytes"
        )
    return key
