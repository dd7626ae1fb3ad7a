"""Homogeneity and background knowledge: one value in a class tells it, few tell it to anyone who can rule out the rest.

Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam (2006) broke k-anonymity with these two.
"""

import numpy as np

from cloister.anonymize.attackers.target import Attack, Target
from cloister.anonymize.classes import Classes
from cloister.anonymize.models.diversity import distinct_values
from cloister.anonymize.risks.words import per_cent


def homogeneity(target: Target, column: str) -> Attack:
    """The share of people whose class has one sensitive value.

    >>> from cloister.anonymize.attackers import example
    >>> print(homogeneity(example(), "disease"))
    homogeneity of 'disease': 50.0 % (raw table: 66.7 %, without the table: 0 %)
    """
    after, before = _told(target, target.after, column, 0), _told(target, target.before, column, 0)
    return Attack(
        name="homogeneity",
        column=column,
        sentence=f"Someone who finds the class of a person reads {column!r} with certainty for {per_cent(after)} of "
        f"the people, since all in the class have the same; in the raw table for {per_cent(before)}.",
        success=after,
        before=before,
        baseline=_known(target, column, 0),
    )


def background(target: Target, column: str, known: int = 1) -> Attack:
    """The share of people whose value is certain to an attacker who knows `known` values that they do not have.

    The strongest of its kind: the values that are known are those that the class needs ruled out.

    >>> from cloister.anonymize.attackers import example
    >>> background(example(), "disease", known=2).success
    1.0
    """
    after, before = _told(target, target.after, column, known), _told(target, target.before, column, known)
    values = f"{known} value{'s' if known != 1 else ''}"
    return Attack(
        name="background knowledge",
        column=column,
        sentence=f"Someone who also knows {values} that a person does not have is certain of {column!r} for {per_cent(after)} of "
        f"the people; in the raw table for {per_cent(before)}.",
        success=after,
        before=before,
        baseline=_known(target, column, known),
    )


def _told(target: Target, classes: Classes, column: str, known: int) -> float:
    return target.share(classes, distinct_values(classes.spread(column)) <= known + 1) if classes.count else 0.0


def _known(target: Target, column: str, known: int) -> float:
    """Without a table: where the column has no more values than that, everybody's is known."""
    return float(np.count_nonzero(target.sensitive[column].counts) <= known + 1)
