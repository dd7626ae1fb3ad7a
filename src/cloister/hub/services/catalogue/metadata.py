"""What data carry besides their rows: policies of the data set and of its columns, and who gave them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cloister.errors import InvalidDeclaration, InvalidParameter
from cloister.hub.policy import parse_policy, write_policy
from cloister.hub.services.accounts import person_by_email, roles_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

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


def provider_of(db: Db, email: str) -> str:
    """The id of the data provider with that address; nobody for no address."""
    if not email.strip():
        return ""
    person = person_by_email(db, email)
    if person is None or "provider" not in roles_of(db, person.id):
        raise InvalidParameter(
            "The data provider was refused",
            why="nobody of that address has the role data provider here",
            instead="an administrator invites them in that role",
        )
    return person.id
