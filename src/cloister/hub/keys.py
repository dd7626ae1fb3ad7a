"""The hub's master key: where it lies, and the keyring that it opens."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

from cloister.crypto import Keyring, make_key_file, new_key
from cloister.errors import InvalidParameter


def hub_keyring(master: bytes) -> Keyring:
    """The keys of a hub that has this master key. All that hubs keep wrapped is bound to the name, so it never changes.

    >>> hub_keyring(bytes(32)).derive("cookies").hex()[:8]
    'ec598bc1'
    """
    return Keyring(master, domain="cloister hub")


def master_key(text: str | None, path: Path, *, make: bool) -> bytes:
    """The master key from the environment's text (base64), or from its file; with `make`, a missing file is made, readable by its
    owner alone.
    """
    if text is not None:
        return _decoded(text, "the environment")
    if make and not path.exists():
        make_key_file(path, base64.b64encode(new_key()).decode() + "\n")
    if path.exists():
        return _decoded(path.read_text(), path.name)
    raise InvalidParameter(
        "The hub was not opened",
        why=f"its master key {path.name} is missing",
        instead="put the key file back from your key backup",
    )


def _decoded(text: str, where: str) -> bytes:
    try:
        return base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidParameter(
            f"The master key of {where} is invalid", why="it is not base64", instead="32 random bytes in base64"
        ) from None
