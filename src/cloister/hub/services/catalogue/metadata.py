"""What data carry besides their rows: policies of the data set and of its columns, and who gave them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cloister.errors import InvalidDeclaration
from cloister.hub.policy import parse_policy, write_policy
from cloister.hub.services.accounts import folded

__all__ = ["metadata_of", "provider_of"]


def metadata_of(metadata: Mapping[str, Any], columns: Iterable[str]) -> dict[str, Any]:
    """Policies in their one form; what is unknown is refused.

    >>> metadata_of({"policy": {"labels": ["clinical"]}, "columns": {"age": {}}}, ["age"])
    {'policy': {'labels': ['clinical']}, 'columns': {}, 'contribution': {}}
    """
    unknown = set(metadata) - {"policy", "columns", "contribution"}
    if unknown:
        raise InvalidDeclaration(
            "The policy was refused", why=f"{min(unknown)!r} means nothing here", instead="policy, columns, contribution"
        )
    names = set(columns)
    by_column = dict(metadata.get("columns", {}))
    strange = sorted(set(by_column) - names)
    if strange:
        raise InvalidDeclaration(
            "The policy was refused", why=f"{strange[0]!r} is no declared column", instead="a policy of a declared column"
        )
    written = {name: write_policy(parse_policy(each)) for name, each in by_column.items()}
    return {
        "policy": write_policy(parse_policy(metadata.get("policy", {}))),
        "columns": {name: each for name, each in written.items() if each},
        "contribution": write_policy(parse_policy(metadata.get("contribution", {}))),
    }


def provider_of(email: str) -> str:
    """The address of a data provider as it is kept; none for no address.

    Nobody is looked up, so that no answer tells an owner who is here: whoever has the address and the role of a data provider,
    now or later, gave the data.

    >>> provider_of(" Pat@Example.org "), provider_of(" ")
    ('pat@example.org', '')
    """
    return folded(email) if email.strip() else ""
