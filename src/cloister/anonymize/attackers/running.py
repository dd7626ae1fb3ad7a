"""Every attacker that can be run on a table."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cloister.anonymize.attackers.certainty import background, homogeneity
from cloister.anonymize.attackers.intersection import intersection
from cloister.anonymize.attackers.learner import learner
from cloister.anonymize.attackers.linkage import linkage
from cloister.anonymize.attackers.minimality import minimality
from cloister.anonymize.attackers.skewness import similarity, skewness
from cloister.anonymize.attackers.target import Attack, Target, target_of
from cloister.anonymize.encoded import Encoded, encode
from cloister.anonymize.frames import Frame, check_columns, read_frame
from cloister.anonymize.hierarchies.ladder import STAR, Ladder
from cloister.anonymize.readings import shown
from cloister.anonymize.recoding import Recoded, RecodedColumn
from cloister.errors import InvalidParameter, check_whole
from cloister.noise import Random


def attack(
    target: Target | Encoded,
    recoded: Recoded | None = None,
    *,
    known: int = 1,
    public: Any = None,
    other: Recoded | None = None,
    hierarchies: Mapping[str, Ladder] | None = None,
    learning: bool = True,
    random: Random | None = None,
) -> tuple[Attack, ...]:
    """Run every attacker on a recoded table.

    Parameters
    ----------
    target, recoded
        The raw table as codes and the recoding of its rows, or both as a `Target`.
    known
        How many values that a person does not have the attacker with background knowledge knows.
    public
        A public list with the raw quasi-identifiers; the people of the table themselves when left out.
    other
        Another recoding of the same rows that has been, or will be, released.
    hierarchies
        Of sensitive columns: which values are alike (for the attack by similarity).
    learning
        Whether to train a learner (seconds on a large table; needs scikit-learn).

    Where a recoding says how it was made (an anonymizer's does), who knows the algorithm is tried as well (`minimality`).

    >>> [found.name for found in attack(example(), learning=False)]
    ['linkage', 'homogeneity', 'background knowledge', 'skewness']
    """
    if isinstance(target, Encoded):
        if recoded is None:
            raise InvalidParameter("The attack is invalid", why="no released table was given", instead="attack(raw, recoded)")
        target = target_of(target, recoded, hierarchies=hierarchies)
    check_whole(known, "known", 0, why="it is not a number of values", instead="known=1")
    found: list[Attack | None] = [linkage(target, public)]
    for column in target.sensitive:
        found += [
            homogeneity(target, column),
            background(target, column, known),
            skewness(target, column),
            similarity(target, column),
        ]
        if other is not None:
            found.append(intersection(target, other, column))
        if learning:
            found.append(learner(target, column, random=random))
        found.append(minimality(target, column, random=random))
    return tuple(each for each in found if each is not None)


def attack_tables(
    raw: Any,
    released: Any,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    *,
    kept: Sequence[int] | None = None,
    **more: Any,
) -> tuple[Attack, ...]:
    """Run every attacker on two tables: the raw one, and what was made of it, by whatever tool.

    `kept` are the positions in the raw table of the released rows, where some were left out or all were shuffled (an anonymizer's
    `rows_`); the labels of a pandas frame that kept them say that themselves. Without either, a table of as many rows is taken to
    have them in the old order, unless its sensitive values show that it has not. Rows whose quasi-identifiers are all a star
    count as left out. `more` is what `attack` takes.

    >>> raw = {"age": [31, 36, 45, 48], "ill": ["flu", "flu", "flu", "gout"]}
    >>> released = {"age": ["30–39", "30–39", "40–49", "40–49"], "ill": ["flu", "flu", "flu", "gout"]}
    >>> print(attack_tables(raw, released, ["age"], ["ill"], learning=False)[1])
    homogeneity of 'ill': 50.0 % (raw table: 100 %, without the table: 0 %)
    """
    before, after = read_frame(raw), read_frame(released)
    check_columns(before, [*quasi, *sensitive], "raw")
    check_columns(after, list(quasi), "released")
    if not quasi:
        raise InvalidParameter("quasi=[] is invalid", why="no quasi-identifier was named", instead='quasi=["age", "sex"]')
    table = encode(before, [*quasi, *sensitive], told=sensitive)
    places = _places(before, after, kept, sensitive)
    labels = encode(after, list(quasi))
    suppressed = np.ones(table.rows, dtype=bool)
    suppressed[places] = False
    starred = np.ones(after.rows, dtype=bool)
    for name in quasi:
        values = labels.columns[name].values
        starred &= np.array([value == STAR for value in values], dtype=bool)[labels.columns[name].codes]
    if not starred.all():
        suppressed[places[starred]] = True
    columns = {}
    for name in quasi:
        column = labels.columns[name]
        codes = np.zeros(table.rows, dtype=np.int32)
        codes[places] = column.codes
        empty = np.zeros(len(column))
        columns[name] = RecodedColumn(codes=codes, labels=column.values, shares=empty, widths=empty)
    recoded = Recoded(columns=columns, suppressed=suppressed, sensitive={name: table.columns[name] for name in sensitive})
    return attack(table, recoded, **more)


def _places(before: Frame, after: Frame, kept: Sequence[int] | None, sensitive: Sequence[str]) -> Any:
    labelled = after.index is not None and after.labelled is not None
    if kept is not None:
        places = np.asarray(kept, dtype=np.int64)
    elif labelled and before.index is not None and before.index.is_unique:
        places = before.index.get_indexer(after.index)
    elif before.rows == after.rows and _side_by_side(before, after, sensitive):
        places = np.arange(before.rows)
    else:
        places = np.zeros(0, dtype=np.int64)
    wrong = len(places) != after.rows or len(np.unique(places)) != len(places)
    if wrong or (len(places) and (places.min() < 0 or places.max() >= before.rows)):
        raise InvalidParameter(
            "The released table is invalid",
            why=f"it has {after.rows:,} rows of {before.rows:,}, and nothing says which, or in what order",
            instead="attack_tables(…, kept=anonymizer.rows_), or kept=[0, 1, 4, …]",
        )
    return places


def _side_by_side(before: Frame, after: Frame, sensitive: Sequence[str]) -> bool:
    """Whether the sensitive values say that rows stand beside rows; a star beside any value may be a suppressed row."""
    for name in sensitive:
        if name in after.names:
            pairs = zip(before.data[name].to_list(), after.data[name].to_list(), strict=True)
            if any(shown(now) not in (STAR, shown(was)) for was, now in pairs):
                return False
    return True


def example(by: str = "town", times: int = 1) -> Target:
    """A small table for the examples of this room: six people by age and town, published by one of the two.

    >>> example().people
    6
    """
    frame = read_frame(
        {
            "age": [31, 31, 36, 45, 45, 48] * times,
            "town": ["A", "A", "B", "A", "B", "B"] * times,
            "disease": ["flu", "cold", "gout", "gout", "gout", "gout"] * times,
        }
    )
    table = encode(frame, ["age", "town", "disease"])
    levels = {"age": Ladder.of("age", table.columns["age"].values, [["30–39", "30–39", "40–49", "40–49"], ["*"] * 4])}
    levels["town"] = Ladder.of("town", ["A", "B"], [["*", "*"]])
    chosen = {"age": 2, "town": 0} if by == "town" else {"age": 1, "town": 1}
    return Target(
        raw=table,
        recoded=Recoded(
            columns={name: RecodedColumn.at(table.columns[name], levels[name], level) for name, level in chosen.items()},
            suppressed=np.zeros(table.rows, dtype=bool),
            sensitive={"disease": table.columns["disease"]},
        ),
    )
