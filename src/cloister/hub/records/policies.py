"""Grants, rules and policies as they are read back from their rows, and what stands in for one that can't be read.

A row that can't be read closes what it governs, and nothing else: a grant grants nothing; a rule of the institution denies what
it governs; a policy closes its data set, or its column. Which rows these are is known (`Facts.unreadable`), told to those who can
end them, and to anyone who looks after the hub.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cloister.errors import CloisterError
from cloister.hub.decisions.policy import GrantFacts, MandatoryRule, Members, Policy, Rules, closing_policy, closing_rule
from cloister.hub.records.access import AccessRequest, Grant, InstitutionRule
from cloister.hub.records.catalogue import DataSet
from cloister.printable import kept

_ERRORS = (CloisterError, TypeError, ValueError, AttributeError, KeyError, ArithmeticError, RecursionError)
"""What reading a row may raise that another hand, or an older or newer hub, has written."""


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """A row that can't be read: a grant, a rule, or a policy of a data set; why, and whom it is about.

    >>> Unreadable(kind="grant", id="g1", about="d1", why="share is invalid: it is neither an ε (with a δ) nor a ρ").about
    'd1'
    """

    kind: str
    id: str
    about: str
    """The id of the data set or the algorithm, or the title of the rule."""
    why: str
    place: str = ""
    """Which part of a policy: "policy", "contribution", or "columns" with the name of one."""


@dataclass(frozen=True, kw_only=True)
class Policies:
    """What is attached to a data set: by its owner, to its columns, and by who gave it."""

    whole: Policy
    columns: Mapping[str, Policy]
    given: Policy


def grant_in_row(row: Grant) -> tuple[GrantFacts, Unreadable | None]:
    """What a kept grant says; one that can't be read lets nobody do anything."""
    text = {"role": row.role, "members": row.attributes, "rules": row.rules}
    return _granted(text, row.object, id=row.id, granted_by=row.granted_by, revoked=row.revoked is not None)


def wanted_in_row(row: AccessRequest) -> tuple[GrantFacts, Unreadable | None]:
    """What a kept request asks for, as a grant would say it."""
    members = {"projects": [row.project]} if row.project else {"people": [row.person]}
    return _granted({"role": "asked for", "members": members, "rules": row.wanted}, row.data_set, id=row.id)


def rule_in_row(row: InstitutionRule) -> tuple[MandatoryRule, Unreadable | None]:
    """What a kept rule says; one that can't be read denies what it governs."""
    text: Any = row.rule
    try:
        with kept():
            return MandatoryRule.read(text | {"title": row.title}, id=row.id), None
    except _ERRORS as error:
        said = text | {"title": row.title} if isinstance(text, dict) else text
        return closing_rule(said, id=row.id), Unreadable(kind="rule", id=row.id, about=row.title, why=_told(error))


def policies_in_row(row: DataSet) -> tuple[Policies, list[Unreadable]]:
    """What is attached to a data set; each policy that can't be read closes what it is attached to."""
    wrong: list[Unreadable] = []

    def read(text: object, place: str) -> Policy:
        try:
            return _read(text)
        except _ERRORS as error:
            wrong.append(Unreadable(kind="policy", id=row.id, about=row.id, why=f"{place}: {_told(error)}", place=place))
            return closing_policy()

    parts = parts_of(row)
    columns = parts.get("columns", {})
    whole = read(parts.get("policy", {}), "policy")
    if isinstance(columns, Mapping):
        by_column = {name: read(each, f"columns.{name}") for name, each in columns.items()}
    else:
        by_column, whole = {}, read(columns, "columns")
    return Policies(whole=whole, columns=by_column, given=read(parts.get("contribution", {}), "contribution")), wrong


def parts_of(row: DataSet) -> dict[str, Any]:
    """What is kept of policies, whatever it is: of the whole, of the columns, and of who gave the data.

    >>> parts_of(DataSet(metadata_=[]))
    {'policy': []}
    """
    kept: Any = row.metadata_
    return dict(kept) if isinstance(kept, Mapping) else {"policy": kept}


def told_parts(parts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The same to be shown: what is no policy at all is shown as an empty one.

    >>> told_parts({"policy": 3, "columns": {"age": {}, "pay": []}})
    {'policy': {}, 'columns': {'age': {}, 'pay': {}}, 'contribution': {}}
    """
    whole, columns, given = (_mapping(parts.get(each)) for each in ("policy", "columns", "contribution"))
    return {"policy": whole, "columns": {name: _mapping(each) for name, each in columns.items()}, "contribution": given}


def is_readable(text: object) -> bool:
    """Whether a kept policy is one.

    >>> is_readable({"labels": ["clinical"]}), is_readable({"retention": "for ever"})
    (True, False)
    """
    try:
        _read(text)
    except _ERRORS:
        return False
    return True


def policy_in(text: object) -> Policy:
    """What a kept policy says; one that can't be read closes what it is attached to.

    >>> policy_in({"labels": ["clinical"]}).labels, policy_in([]) == closing_policy()
    (frozenset({'clinical'}), True)
    """
    return _read(text) if is_readable(text) else closing_policy()


def _read(text: object) -> Policy:
    with kept():
        return Policy.read(text)


def readable_parts(text: object) -> dict[str, Any]:
    """Those parts of a kept policy that can be read, each by itself.

    >>> readable_parts({"labels": ["clinical"], "retention": "for ever"})
    {'labels': ['clinical']}
    """
    return {name: each for name, each in _mapping(text).items() if is_readable({name: each})}


def retention_of(row: DataSet) -> datetime | None:
    """The moment from which the data must be gone, by their owner or by who gave them, as far as that can be read.

    >>> retention_of(DataSet(metadata_={"policy": {"retention": "2030-12-31", "purposes": 3}, "contribution": 3})).year
    2031
    """
    parts = (readable_parts(parts_of(row).get(each, {})) for each in ("policy", "contribution"))
    return min((end for each in parts if (end := _read(each).retention) is not None), default=None)


def labels_in(parts: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Column → its labels; those of the whole data set under no name; as far as they can be read.

    >>> labels_in({"policy": {"labels": ["clinical"], "retention": "for ever"}, "columns": []})
    {'': frozenset({'clinical'})}
    """
    texts = {"": parts.get("policy", {})} | _mapping(parts.get("columns"))
    return {name: _read(readable_parts(each)).labels for name, each in texts.items()}


def _mapping(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _granted(text: dict[str, Any], about: str, **known: Any) -> tuple[GrantFacts, Unreadable | None]:
    try:
        with kept():
            return GrantFacts.read(text, **known), None
    except _ERRORS as error:
        none = GrantFacts(role=str(text["role"]), members=Members(), rules=Rules(actions=frozenset()), **known)
        return none, Unreadable(kind="grant", id=none.id, about=about, why=_told(error))


def _told(error: BaseException) -> str:
    """An error in one short line."""
    told = (
        f"{error.what}: {error.why}" if isinstance(error, CloisterError) else f"it is not written as one ({type(error).__name__})"
    )
    return told[:300]
