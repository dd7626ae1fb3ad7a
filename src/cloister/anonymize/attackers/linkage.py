"""Linkage: a list with names and raw quasi-identifiers is laid beside the published table.

Sweeney (2002) found a governor's medical record with the voter list of Cambridge.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.attackers.target import Attack, Target
from cloister.anonymize.classes import Classes, alike
from cloister.anonymize.encoded import Encoded, encode
from cloister.anonymize.frames import check_columns, read_frame
from cloister.anonymize.readings import seen
from cloister.anonymize.risks.words import per_cent

_MOST_PAIRS = 20_000_000
"""Pairs of a class and a kind of person that are compared in one go."""


def linkage(target: Target, public: Any = None) -> Attack:
    """The share of rows that are told right when each is given the name of somebody on the list who fits it.

    `public` is a table of the population with the raw quasi-identifiers; the raw table itself when left out: a list of exactly
    those who were published, the strongest there is. Who has a value that stands nowhere in the raw table fits nothing.

    >>> from cloister.anonymize.attackers import example
    >>> print(linkage(example()))
    linkage: 33.3 % (raw table: 83.3 %, without the table: 16.7 %)
    """
    if public is None:
        after, alone = _expected(target.after.sizes, target.after.sizes), int((target.after.sizes == 1).sum())
        before = _expected(target.before.sizes, target.before.sizes)
        size, whose = target.people, "of exactly the people in the table"
    else:
        frame = read_frame(public)
        check_columns(frame, target.quasi, "public")
        listed = encode(frame, target.quasi)
        codes = [_translated(target, listed, name) for name in target.quasi]
        known = np.all([each >= 0 for each in codes], axis=0)
        people = [each[known] for each in codes]
        fitting = _fitting(target, people)
        after, alone = _expected(target.after.sizes, fitting), int(((target.after.sizes == 1) & (fitting <= 1)).sum())
        before = _expected(target.before.sizes, _same(target, people))
        size, whose = frame.rows, "of the population"
    people_all = max(target.people, 1)
    certain = f", and {alone:,} {'are' if alone != 1 else 'is'} certain" if after else ""
    return Attack(
        name="linkage",
        sentence=f"Someone who has a public list {whose} ({size:,} people) and gives each row a name that fits is right for "
        f"{after:,.0f} of {target.people:,} rows ({per_cent(after / people_all)}){certain}; with the raw table for {before:,.0f} "
        f"({per_cent(before / people_all)}).",
        success=after / people_all,
        before=before / people_all,
        baseline=1 / max(size, 1) if target.people else 0.0,
    )


def _expected(sizes: npt.NDArray[np.int64], fitting: npt.NDArray[np.int64]) -> float:
    """Rows that are told right: each of a class of f rows that F people fit is right with 1/F; the f are among the F."""
    return float((sizes / np.maximum(sizes, fitting)).sum())


def _translated(target: Target, listed: Encoded, name: str) -> npt.NDArray[np.int64]:
    """The list's values in the codes of the raw table; −1 where it has no such value."""
    ours = {_as_read(value): code for code, value in enumerate(target.raw.columns[name].values)}
    theirs = listed.columns[name]
    codes = np.array([ours.get(_as_read(value), -1) for value in theirs.values], dtype=np.int64)
    return codes[theirs.codes]


def _as_read(value: Any) -> Any:
    return seen(value) if isinstance(value, str) else value


def _same(target: Target, people: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """How many people of the list have the raw values of each class of the raw table."""
    columns = [target.raw.columns[name] for name in target.quasi]
    together = [np.concatenate([column.codes.astype(np.int64), theirs]) for column, theirs in zip(columns, people, strict=True)]
    ids, count = alike(together, [len(column) for column in columns])
    everybody = np.bincount(ids[target.raw.rows :], minlength=count)
    there = np.bincount(ids[: target.raw.rows], minlength=count) > 0
    return np.asarray(everybody[there], dtype=np.int64)


def _fitting(target: Target, people: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """How many people of the list fit each class of the published table: each of their values stands under the class's label."""
    classes: Classes = target.after
    columns = [target.recoded.columns[name] for name in target.quasi]
    if not classes.count or not len(people[0]):
        return np.zeros(classes.count, dtype=np.int64)
    covers = []
    for name, column in zip(target.quasi, columns, strict=True):
        cover = np.zeros((len(column.labels), len(target.raw.columns[name])), dtype=bool)
        cover[column.codes, target.raw.columns[name].codes] = True
        covers.append(cover)
    kinds, count = alike(people, [cover.shape[1] for cover in covers])
    first = np.zeros(count, dtype=np.int64)
    first[kinds] = np.arange(len(kinds))
    many = np.bincount(kinds, minlength=count)
    members = np.zeros(classes.count, dtype=np.int64)
    there = np.flatnonzero(classes.of_row >= 0)
    members[classes.of_row[there]] = there
    fitting = np.zeros(classes.count, dtype=np.int64)
    step = max(1, _MOST_PAIRS // count)
    for start in range(0, classes.count, step):
        rows = members[start : start + step]
        fits = np.ones((len(rows), count), dtype=bool)
        for cover, column, theirs in zip(covers, columns, people, strict=True):
            fits &= cover[column.codes[rows]][:, theirs[first]]
        fitting[start : start + step] = fits @ many
    return fitting
