"""What data carry besides their rows: policies of the data set and of its columns, and who gave them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cloister.errors import InvalidDeclaration
from cloister.hub.decisions.policy import Policy
from cloister.hub.records.people import folded

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
