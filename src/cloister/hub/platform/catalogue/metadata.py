"""What data carry besides their rows: names and texts for people, policies of the data set and of its columns, who gave it."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cloister.errors import InvalidDeclaration, InvalidParameter
from cloister.hub.decisions.policy import Policy
from cloister.hub.records.accounts import folded
from cloister.printable import is_text
from cloister.tables.expression.names import needs_quotes

NAME = r"[a-z][a-z0-9_]{0,62}"


def plain_word(name: str) -> bool:
    """Whether a name may stand in a question as it is.

    >>> plain_word("visits_2026"), plain_word("select"), plain_word("Größe")
    (True, False, False)
    """
    return re.fullmatch(NAME, name) is not None and not needs_quotes(name)


def checked_text(name: str, text: str, most: int, *, empty: bool = False, lines: bool = False) -> str:
    """A text that people read: printable, of bounded length.

    >>> checked_text("title", " Visits 2026 🏥 ", 200)
    'Visits 2026 🏥'
    """
    found = text.strip()
    if not (is_text(found, most, lines=lines) or (empty and not found)):
        least = 0 if empty else 1
        raise InvalidParameter(
            f"The {name} is invalid", why=f"it is not a text of {least} to {most:,} characters", instead="Visits 2026"
        )
    return found


_SOURCES = "sources"


def metadata_of(metadata: Mapping[str, Any], columns: Iterable[str]) -> dict[str, Any]:
    """Policies in their one form; what is unknown is refused.

    >>> metadata_of({"policy": {"labels": ["clinical"]}, "columns": {"age": {}}}, ["age"])
    {'policy': {'labels': ['clinical']}, 'columns': {}, 'contribution': {}}
    """
    unknown = set(metadata) - {"policy", "columns", "contribution"}
    if unknown:
        raise InvalidDeclaration(
            "The policy is invalid", why=f"{min(unknown)!r} means nothing here", instead="policy, columns, contribution"
        )
    names = set(columns)
    by_column = dict(metadata.get("columns", {}))
    strange = sorted(set(by_column) - names)
    if strange:
        raise InvalidDeclaration(
            "The policy is invalid", why=f"{strange[0]!r} is not a declared column", instead="a policy of a declared column"
        )
    written = {name: Policy.read(each).to_dict() for name, each in by_column.items()}
    return {
        "policy": Policy.read(metadata.get("policy", {})).to_dict(),
        "columns": {name: each for name, each in written.items() if each},
        "contribution": Policy.read(metadata.get("contribution", {})).to_dict(),
    }


def from_outside(
    policy: Mapping[str, Any], before: Mapping[str, Any], id_of: Callable[[str], str | None], place: str = "the policy"
) -> dict[str, Any]:
    """A policy as a program wrote it, in the words of the hub. Data sets that are named become their ids; those that stood there
    `before` may be named by them. Where data come from is what the hub itself writes: that stays, and is refused from outside.

    >>> ids = {"towns": "d2"}.get
    >>> from_outside({"combinable_with": ["towns"]}, {"sources": [{"object": "d1"}]}, ids)
    {'combinable_with': ['d2'], 'sources': [{'object': 'd1'}]}
    >>> from_outside({"combinable_with": ["rivers"]}, {}, ids)
    Traceback (most recent call last):
    cloister.errors.InvalidDeclaration: combinable_with is invalid: there is no data set 'rivers', or it is not open to you.
      Instead: the name of a data set that you may see
    >>> from_outside({"sources": [{"object": "d9"}]}, {}, ids)
    Traceback (most recent call last):
    cloister.errors.InvalidDeclaration: sources is invalid: where data come from is written by the hub alone.
      Instead: the policy without it
    """
    found, known = dict(policy), before.get(_SOURCES)
    inside = "" if place == "the policy" else f"{place}."
    if found.pop(_SOURCES, known) != known:
        raise InvalidDeclaration(
            f"{inside}{_SOURCES} is invalid",
            why="where data come from is written by the hub alone",
            instead="the policy without it",
        )
    partners = found.get("combinable_with")
    if isinstance(partners, list):
        found["combinable_with"] = [_partner(each, before, id_of, inside) for each in partners]
    return found if known is None else found | {_SOURCES: known}


def _partner(name: Any, before: Mapping[str, Any], id_of: Callable[[str], str | None], inside: str) -> Any:
    if not isinstance(name, str):
        return name  # what is no text is refused where the policy is read
    number = id_of(name)
    if number is None and name in before.get("combinable_with", ()):
        number = name
    if number is None:
        raise InvalidDeclaration(
            f"{inside}combinable_with is invalid",
            why=f"there is no data set {name[:80]!r}, or it is not open to you",
            instead="the name of a data set that you may see",
        )
    return number


def provider_of(address: str) -> str:
    """The address of a data provider as it is kept; none for no address.

    Nobody is looked up, so that no answer tells an owner who is here: whoever has the address and the role of a data provider,
    now or later, gave the data.

    >>> provider_of(" Pat@Example.org "), provider_of(" ")
    ('pat@example.org', '')
    """
    return folded(address) if address.strip() else ""
