"""Baskets of a session's table, with sensitive rules hidden: by the marked door, for the owner.

Baskets with hidden rules are not differentially private, so from the first ones on the population's spending reads "unbounded"
on every page (promise 1). The event is in the ledger before a row is read, and stands whatever happens then (promise 2). What a
basket was called does not leave: baskets come in an order of chance. Items are the declared ones; rows beyond the cap of a person
do not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cloister.errors import InvalidParameter
from cloister.mining.baskets import Baskets
from cloister.mining.hiding import Method, Sanitised, check_method, hide_rules
from cloister.mining.long_tables import check_columns, known, listed, numbered
from cloister.mining.reading import Read
from cloister.mining.rules import Rule
from cloister.mining.sensitive import named_in, sensitive_rules
from cloister.mining.thresholds import Thresholds
from cloister.noise import Random
from cloister.privacy import Exact, exact_positive
from cloister.session import Door
from cloister.session.state.scrubbed import scrubbed
from cloister.tables import Prepared, Text


def publish_baskets(
    session: Door,
    table: str,
    rules: Any,
    *,
    min_support: Exact,
    min_confidence: Exact,
    item: str = "item",
    basket: str = "basket",
    method: Method = "auto",
    insertions: bool = False,
    time_limit: Exact = 30,
    random: Random | None = None,
) -> Sanitised:
    """Hide sensitive rules in a table with a row for each item of a basket, and let the changed baskets out.

    The words are those of `hide_rules`. A basket of which no row says an item is none.

    >>> import cloister as cl
    >>> rows = {"basket": list("aabbccdde"), "item": ["beer", "crisps"] * 4 + ["beer"]}
    >>> columns = {"basket": cl.Text(), "item": cl.Category(["beer", "crisps"])}
    >>> table = cl.PrivateTable(rows, columns, unit="basket", max_rows=5)
    >>> with cl.Session({"sold": table}, budget=cl.PureDP(1)) as session:
    ...     found = publish_baskets(session, "sold", ["beer → crisps"], min_support="0.3", min_confidence="0.7")
    ...     found.effects.hiding_failure, len(found.data), session.ledger.charges("sold")[0].state
    (0.0, 5, 'not private')
    """
    if not hasattr(session, "prepared"):
        raise InvalidParameter(
            "The session is invalid", why="it hands rows to no method", instead="cl.Session({…}, budget=…), at the owner's"
        )
    access = session.row_access(table)
    check_columns(access.declaration, basket, item, "publish_baskets")
    check_method(method)
    Thresholds.of(1, min_support=min_support, min_confidence=min_confidence)
    limit = exact_positive(time_limit, "time_limit")  # what can be refused without looking at a row is
    rules = list(rules) if isinstance(rules, Iterable) and not isinstance(rules, str | Rule) else rules  # they are read twice
    items = listed(access.declaration.column(item))
    sensitive_rules(Baskets.of([named_in(rules) if items is None else items]), rules)
    what = f"baskets of {table} with rules hidden"

    def changed() -> Sanitised:
        held = _baskets(access.prepare(), item, basket, random or Random())
        return hide_rules(
            Read(baskets=held, shape="lists"),
            rules,
            min_support=min_support,
            min_confidence=min_confidence,
            method=method,
            insertions=insertions,
            time_limit=limit,
            random=random,
        )

    # first of all: an interruption, or a process that ends, leaves no time to write anything down
    words = f"{what} (not differentially private, and neither is a refusal)"
    session.ledger.note_not_private(access.population, who=session.who, what=words)
    return scrubbed(changed)


def _baskets(prepared: Prepared, item: str, basket: str, random: Random) -> Baskets:
    """Who holds what, the baskets in an order of chance; a row without an item or without a basket is none. Of declared items
    each is known, whether anybody holds it or not."""
    columns = prepared.declaration.columns
    rows = prepared.rows([basket, item])
    said = known(columns[item], rows[item]) & known(columns[basket], rows[basket])
    codes, places = numbered(columns[item], rows[item][said])
    owners, numbers = numbered(columns[basket], rows[basket][said])
    order = random.permutation(len(owners))
    domain, items = columns[item], listed(columns[item])
    if items is not None:
        return Baskets.from_pairs(items, len(owners), codes[places].astype("int64") - domain.low_code, order[numbers])
    held = codes.tolist() if isinstance(domain, Text) else [domain.decode(code) for code in codes.tolist()]
    return Baskets.from_pairs(held, len(owners), places, order[numbers])
