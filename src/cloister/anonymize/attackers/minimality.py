"""Minimality: a search that leaves as little as it can tells, by what it left, what would have failed.

Wong, Fu, Wang and Pei (2007): who knows the algorithm, and the quasi-identifiers of everybody, runs it on every table that the
release may have come from. Tables of which something finer could have been published are ruled out, and the classes' shares are
no longer what somebody's value is to be guessed by. Models of privacy are counted from the classes alone, and do not see this.
"""

import math
import time
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from cloister.anonymize.attackers.target import Attack, Target
from cloister.anonymize.classes import alike
from cloister.anonymize.encoded import EncodedColumn
from cloister.anonymize.recoding import Recoded
from cloister.anonymize.risks.words import per_cent
from cloister.anonymize.sorting import dealt
from cloister.errors import CloisterError
from cloister.noise import Random, default_random

Ints = npt.NDArray[np.int64]
Columns = Mapping[str, EncodedColumn]

_SECONDS, _MOST_RUNS, _LEAST_RUNS = 0.5, 20_000, 40
_LEAST_TABLES, _ENOUGH_TABLES = 30, 2000


def minimality(target: Target, column: str, *, random: Random | None = None, seconds: float = _SECONDS) -> Attack | None:
    """The share of people whose value is told right by who knows the algorithm, and takes the most likely value of each.

    The attacker knows the algorithm with all its settings, the quasi-identifiers of everybody and the released table, and holds
    all tables equally likely that have the released values in each class (those of suppressed rows among themselves). Such tables
    are drawn, the search is run on each, and those count of which it makes the same release. Where these are few, they are sought
    by a chain that starts at the table itself and draws the values of one class again. The baseline is the most likely value of
    each class.

    None where the search looks at no sensitive value, so that nothing is told by it; where nothing says how the table was made
    (`Recoded.again`); and where one search takes so much of the processor that too few could be run (`seconds`).

    >>> from cloister.anonymize.attackers import example
    >>> minimality(example(), "disease") is None
    True
    """
    again = target.recoded.again
    if again is None or target.raw.weights is not None or not target.after.count:
        return None
    random = random or default_random()
    started = time.thread_time()
    same = _same(target, again)
    until = started + seconds
    if (time.thread_time() - started) * _LEAST_RUNS > seconds or not same(target.sensitive):
        return None
    classes = target.recoded.classes.of_row + 1
    tables, runs = _drawn(target, column, classes, same, random, until)
    chance = len(tables) / max(runs, 1)
    if len(tables) < _LEAST_TABLES:
        tables = _chained(target, column, classes, same, random, until + seconds)
    if len(tables) < _LEAST_TABLES:
        return None
    return _attack(target, column, classes, np.stack(tables), chance)


def _same(target: Target, again: Callable[[Columns], Recoded]) -> Callable[[Columns], bool]:
    """Whether the search makes the same release of other sensitive values.

    A search asks no more of them than how many people of one kind have each, and is run once for all tables that agree in that.
    """
    first = again(target.sensitive)
    raw = [target.raw.columns[name] for name in target.quasi]
    kinds, _ = alike([each.codes for each in raw], [len(each) for each in raw])
    values = [len(each) for each in target.sensitive.values()]
    known: dict[bytes, bool] = {}

    def made(sensitive: Columns) -> bool:
        joint = np.zeros(len(kinds), dtype=np.int64)
        for column, size in zip(sensitive.values(), values, strict=True):
            joint = joint * size + column.codes
        key = np.stack([kinds, joint])[:, np.lexsort((joint, kinds))].tobytes()
        if key not in known:
            known[key] = _as_before(first, again, sensitive)
        return known[key]

    return made


def _as_before(first: Recoded, again: Callable[[Columns], Recoded], sensitive: Columns) -> bool:
    try:
        other = again(sensitive)
    except CloisterError:  # nothing could be released of this one
        return False
    return np.array_equal(first.suppressed, other.suppressed) and all(
        column.labels == other.columns[name].labels and np.array_equal(column.codes, other.columns[name].codes)
        for name, column in first.columns.items()
    )


def _with(sensitive: Columns, origin: Ints) -> dict[str, EncodedColumn]:
    return {name: column.among(origin, None) for name, column in sensitive.items()}


def _drawn(
    target: Target, column: str, classes: Ints, same: Callable[[Columns], bool], random: Random, until: float
) -> tuple[list[Ints], int]:
    found: list[Ints] = []
    runs = 0
    while runs < _MOST_RUNS and len(found) < _ENOUGH_TABLES and time.thread_time() < until:
        runs += 1
        origin = dealt(classes, random)
        if same(_with(target.sensitive, origin)):
            found.append(target.sensitive[column].codes[origin].astype(np.int64))
    return found, runs


def _chained(
    target: Target, column: str, classes: Ints, same: Callable[[Columns], bool], random: Random, until: float
) -> list[Ints]:
    """Metropolis: the values of one class are dealt out again; where the search would release another table, they go back."""
    found: list[Ints] = []
    origin = np.arange(len(classes), dtype=np.int64)
    kinds = np.unique(classes)
    while len(found) < _ENOUGH_TABLES and time.thread_time() < until:
        mine = np.flatnonzero(classes == kinds[random.below_one(len(kinds))])
        changed = origin.copy()
        changed[mine] = origin[mine[random.permutation(len(mine))]]
        if same(_with(target.sensitive, changed)):
            origin = changed
        found.append(target.sensitive[column].codes[origin].astype(np.int64))
    return found


def _attack(target: Target, column: str, classes: Ints, tables: Ints, chance: float) -> Attack:
    values = len(target.sensitive[column])
    raw = [target.raw.columns[name] for name in target.quasi]
    # people of one class with the same quasi-identifiers are known alike
    kinds, count = alike([classes, *(each.codes for each in raw)], [int(classes.max()) + 1, *(len(each) for each in raw)])
    half = len(tables) // 2
    chosen, judged = (_shares(kinds, count, part, values) for part in (tables[:half], tables[half:]))
    shown = classes[np.unique(kinds, return_index=True)[1]] > 0
    truth = target.sensitive[column].codes
    by_class = _shares(classes, int(classes.max()) + 1, truth[None, :].astype(np.int64), values)
    # the surest guess is picked by one half of the tables and judged by the other: picking the best of many flatters it
    surest = np.where(shown[:, None], chosen, -1.0)
    kind, value = np.unravel_index(int(np.argmax(surest)), surest.shape)
    posterior = float(judged[kind, value])
    whose = int(classes[np.flatnonzero(kinds == kind)[0]])
    said = float(by_class[whose, value])
    # a value is guessed that the class alone would not give, where its share is ahead by twice its own error
    every, plain = np.arange(count), by_class.argmax(axis=1)[classes[np.unique(kinds, return_index=True)[1]]]
    likely = _shares(kinds, count, tables, values).argmax(axis=1)
    ahead = np.stack([part[every, likely] - part[every, plain] for part in (chosen, judged)])
    error = np.maximum(1 / math.sqrt(len(tables)), np.abs(ahead[0] - ahead[1]) / 2)
    sure = ahead.mean(axis=0) > 2 * error
    of_kind, said_of = kinds[classes > 0], truth[classes > 0]
    plainly, likelier = (np.bincount(of_kind, guess[of_kind] == said_of, count) for guess in (plain, likely))
    people = max(target.people, 1)
    success, baseline = float(np.where(sure, likelier, plainly).sum() / people), float(plainly.sum() / people)
    # elsewhere either may be the likelier one
    margin = 1.96 * math.sqrt(float(((likelier - plainly)[~sure] ** 2).sum()) / 4) / people
    return Attack(
        name="minimality",
        column=column,
        sentence="Someone who knows the algorithm and everyone's quasi-identifiers, and rules out the tables that "
        f"it would have left finer ({per_cent(1 - chance)} of those that fit), gives a value of {column!r} a "
        f"probability of {per_cent(posterior)} for a person where the class gives {per_cent(said)}, and guesses right "
        f"for {per_cent(success)} of the people; by the classes alone for {per_cent(baseline)}.",
        success=success,
        before=1.0,
        baseline=baseline,
        margin=min(margin, 1.0),
        surest=posterior,
    )


def _shares(groups: Ints, count: int, tables: Ints, values: int) -> npt.NDArray[np.float64]:
    """The share of each value in each group, over all of these tables."""
    counts = np.zeros(count * values)
    for table in tables:
        counts += np.bincount(groups * values + table, minlength=count * values)
    found = counts.reshape(count, values)
    return np.asarray(found / np.maximum(found.sum(axis=1, keepdims=True), 1))
