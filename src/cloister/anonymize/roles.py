"""What a user says of the columns of a table, checked before a row is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.encoded import Encoded
from cloister.anonymize.frames import Frame, check_columns
from cloister.anonymize.models.base import PrivacyModel
from cloister.anonymize.models.presence import DeltaPresence
from cloister.errors import InvalidParameter, check_one_of

if TYPE_CHECKING:
    from cloister.anonymize.anonymizer import Anonymizer


def check_roles(asked: Anonymizer, frame: Frame) -> None:
    """Columns that are there, one role each, and what belongs to them."""
    quasi = check_named(frame, asked.quasi, asked.sensitive, asked.identifying)
    check_models(asked.models)
    check_lists(missing_values=asked.missing_values)
    check_one_of(asked.suppressed, "suppressed", ("drop", "star"), why="it is neither drop nor star", instead='suppressed="drop"')
    if asked.suppressed == "star" and any(isinstance(model, DeltaPresence) for model in asked.models):
        why = "starred rows say how many are in the table of those on the list who are in no class"
        raise InvalidParameter("suppressed='star' is invalid with δ-presence", why=why, instead='suppressed="drop"')
    for what, given in (("weights", asked.weights), ("hierarchies", asked.hierarchies), ("aggregates", asked.aggregates)):
        if given is not None and not isinstance(given, Mapping):
            why = "a value for each of some quasi-identifiers is expected"
            raise InvalidParameter(f"{what}={given!r} is invalid", why=why, instead=f"{what}={{{quasi[0]!r}: …}}")
        wrong = next((name for name in given or {} if name not in quasi), None)
        if wrong is not None:
            raise InvalidParameter(
                f"{what}={{{wrong!r}: …}} is invalid", why="it is not a quasi-identifier", instead=f"one of {quasi}"
            )
    for name, weight in (asked.weights or {}).items():
        if not (isinstance(weight, Real) and 0 < weight < np.inf):
            raise InvalidParameter(
                f"weights={{{name!r}: {weight!r}}} is invalid", why="it is not a positive number", instead=f'{{"{name}": 1}}'
            )


def check_models(models: Any) -> None:
    """Refuses what is not a list of privacy models."""
    check_lists(models=models)
    if not list(models) or not all(isinstance(model, PrivacyModel) for model in models):
        raise InvalidParameter(
            "The models are invalid", why="it is missing, or one is not a privacy model", instead="models=[KAnonymity(5)]"
        )


def check_named(frame: Frame, quasi: Any, sensitive: Any, identifying: Any = ()) -> list[str]:
    """The quasi-identifiers: columns that are there, one role each."""
    check_one_role(quasi=quasi, sensitive=sensitive, identifying=identifying)
    if not list(quasi):
        raise InvalidParameter("quasi=[] is invalid", why="no quasi-identifier was named", instead='quasi=["age", "sex"]')
    for role, names in (("quasi-identifying", quasi), ("sensitive", sensitive), ("identifying", identifying)):
        check_columns(frame, list(names), role)
    return list(quasi)


def check_one_role(**roles: Any) -> None:
    """Refuses what is not lists of columns, and a column that is on two of them."""
    check_lists(**roles)
    named = [name for names in roles.values() for name in {*map(str, names)}]
    if both := min((name for name in named if named.count(name) > 1), default=""):
        raise InvalidParameter(f"The column {both!r} is invalid", why="it has two roles", instead="one role for each column")


def check_lists(**given: Any) -> None:
    """Refuses what is not a list where one is asked for: of a text, each character would count."""
    for name, each in given.items():
        if isinstance(each, str | bytes) or not isinstance(each, Iterable):
            raise InvalidParameter(f"{name}={each!r} is invalid", why="a list is expected", instead=f"{name}=[{each!r}]")


def share_of(given: float | str | Fraction) -> Fraction:
    """A share of the rows, exactly as it was written.

    >>> share_of(0.02)
    Fraction(1, 50)
    """
    try:
        share = Fraction(str(given)) if isinstance(given, float) else Fraction(given)
    except (ValueError, TypeError, ZeroDivisionError):
        share = Fraction(-1)
    if not 0 <= share <= 1:
        raise InvalidParameter(
            f"suppression={given!r} is invalid", why="it is not a share from 0 to 1", instead='suppression="0.02"'
        )
    return share


def incomplete(table: Encoded, quasi: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Rows that lack a quasi-identifier."""
    gone = np.zeros(table.rows, dtype=bool)
    for name in quasi:
        column = table.columns[name]
        if column.missing is not None:
            gone |= column.codes == column.missing
    return gone


def research_rows(frame: Frame, name: str, kept: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
    """Which rows are in the table that will be published, for δ-presence."""
    series = frame.data[name]
    if str(series.dtype) != "Boolean" or series.null_count():
        raise InvalidParameter(
            f"research={name!r} is invalid", why="the column is not one of True and False", instead="a column of booleans"
        )
    marked = np.asarray(series.to_numpy(), dtype=bool)
    return marked if kept is None else marked[kept]
