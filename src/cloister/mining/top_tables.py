"""The most frequent itemsets of a table of a session: charged by the one door, which lets out nothing but the noisy result.

The table is long: a row for each item of a basket. Its item column is declared as a category (the universe); how many rows of a
unit count is its `max_rows`. Where the basket is the unit, one person's basket is what is hidden; where a person has several
baskets, all of them together are.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cloister.errors import InvalidParameter, MissingBound
from cloister.mining.long_tables import MOST_VALUES, check_columns, known, listed, numbered
from cloister.mining.top import NoisyItemsets, Picker, by_width, check_universe, counted, picked
from cloister.noise import Random
from cloister.privacy import Guarantee
from cloister.session import Door, Spending
from cloister.tables import PrivateTable, Text


def top_itemsets(
    session: Door,
    table: str,
    *,
    k: int,
    spend: Spending,
    item: str = "item",
    basket: str = "basket",
    max_size: int = 2,
    min_size: int = 1,
    purpose: str = "",
) -> NoisyItemsets:
    """The k most frequent sets of up to `max_size` items, with noisy counts.

    **Guarantee.** The spend, for one unit of the table more or less: the theorem and its proof stand at `Picker` in top.py. With
    r = `max_rows` (1 without a unit), a unit has at most r rows. *Where the basket is the unit*, it is one basket: each set is
    held once more or less, so the sensitivity is 1; of the k released counts at most k move. Where the basket column is declared
    as text, no two units share a basket, so no more than Σⱼ C(r, j) sets move at all. (Numbers beyond a bound count as the bound,
    and baskets may so become one: then k it is.) *Else* its rows lie in at most r baskets, and each count moves by at most r.
    More rows only make more baskets hold a set: counts are monotone.

    >>> import cloister as cl
    >>> from cloister.noise import Random
    >>> rows = {"basket": [str(n) for n in range(900) for _ in "ab"], "item": ["tea", "milk"] * 600 + ["tea", "jam"] * 300}
    >>> columns = {"basket": cl.Text(), "item": cl.Category(["tea", "milk", "jam"])}
    >>> table = cl.PrivateTable(rows, columns, unit="basket", max_rows=5)
    >>> with cl.Session({"sold": table}, budget=cl.PureDP(3), random=Random.deterministic(1)) as session:
    ...     found = top_itemsets(session, "sold", k=3, spend=2)
    ...     print(session.spent)
    ε = 2
    >>> sorted(each.items for each in found)
    [('milk',), ('tea',), ('tea', 'milk')]
    """
    seen = getattr(session, "seen", None)
    if seen is None or not hasattr(session, "run"):
        raise InvalidParameter("The session is invalid", why="it hands rows to no method", instead="cl.Session({…}, budget=…)")
    seen.check(table)
    declaration = session.tables[table]
    if not isinstance(declaration, PrivateTable):
        raise InvalidParameter(
            f"{table!r} is invalid", why="it is a public table: nothing needs hiding", instead="frequent_itemsets(…)"
        )
    method = Picking(item=item, basket=basket, k=k, min_size=min_size, max_size=max_size)
    values = method.universe(declaration)
    outcome = session.run(method, table, spend, purpose=purpose)
    choice, noise = method.picker(outcome.cost, declaration).parts
    return NoisyItemsets(
        itemsets=tuple(tuple(values[each] for each in one) for one in outcome.values["itemsets"]),
        counts=np.array(outcome.values["counts"], dtype=np.int64),
        guarantee=outcome.cost,
        noise=noise,
        choice=choice,
        candidates=check_universe(len(values), k=k, min_size=min_size, max_size=max_size),
        marked=outcome.marked,
    )


@dataclass(frozen=True, kw_only=True)
class Picking:
    """The mechanism as a method that needs rows (`cloister.session.RowMethod`)."""

    stored: ClassVar[tuple[str, str]] = ("cloister.mining.top_tables", "Picking")

    item: str
    basket: str
    k: int
    min_size: int
    max_size: int

    @property
    def columns(self) -> tuple[str, ...]:
        """What it reads."""
        return (self.basket, self.item)

    def describe(self) -> dict[str, Any]:
        """For the plan's digest."""
        return {"item": self.item, "basket": self.basket, "k": self.k, "sizes": [self.min_size, self.max_size]}

    def universe(self, declaration: PrivateTable) -> tuple[Any, ...]:
        """The declared items."""
        check_columns(declaration, self.basket, self.item, "top_itemsets")
        values, size = listed(domain := declaration.column(self.item)), getattr(domain, "size", None)
        if values is None:
            many = size and f"it declares {size:,} values, and at most {MOST_VALUES:,} are items"
            raise MissingBound(
                f"The column {self.item!r} needs bounds",
                why=many or "the items that count are not declared",
                instead=f'columns={{"{self.item}": cl.Category(["tea", "milk"])}}',
            )
        return values

    def picker(self, guarantee: Guarantee, declaration: PrivateTable) -> Picker:
        """The mechanism on counts, from declarations alone."""
        check_universe(len(self.universe(declaration)), k=self.k, min_size=self.min_size, max_size=self.max_size)
        rows = (declaration.max_rows or 1) if declaration.unit is not None else 1
        if self.basket == declaration.unit:
            alone = isinstance(declaration.column(self.basket), Text)
            held = sum(math.comb(rows, size) for size in range(self.min_size, self.max_size + 1))
            moved = max(1, min(self.k, held)) if alone else self.k
            return Picker(k=self.k, guarantee=guarantee, total=moved, squares=moved)
        return Picker(k=self.k, guarantee=guarantee, sensitivity=rows, total=self.k * rows, squares=self.k * rows**2)

    def guarantee(self, spend: Guarantee, declaration: PrivateTable) -> Guarantee:
        """All that was given, if the method can keep such a promise."""
        _ = self.picker(spend, declaration).parts
        return spend

    def release(
        self, rows: Mapping[str, Any], declaration: PrivateTable, guarantee: Guarantee, random: Random
    ) -> Mapping[str, Any]:
        """Count within the rows, and let out the choice with its noisy counts."""
        domain, owner = declaration.column(self.item), declaration.column(self.basket)
        codes, owners = np.asarray(rows[self.item]), np.asarray(rows[self.basket])
        said = known(domain, codes) & known(owner, owners)
        places = (codes[said] - domain.low_code).astype(np.int64)
        numbers = numbered(owner, owners[said])[1]
        size = domain.high_code - domain.low_code + 1
        pairs = np.unique(numbers.astype(np.int64) * size + places)
        counts = counted(by_width(pairs % size, pairs // size), size, self.min_size, self.max_size)
        found = picked(self.picker(guarantee, declaration), counts, tuple(range(size)), self.min_size, self.max_size, random)
        return {"itemsets": [list(each) for each in found.itemsets], "counts": found.counts}
