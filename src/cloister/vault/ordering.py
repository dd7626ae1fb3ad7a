"""The first few records in the order of a field, without reading all of them.

*A tree* (`Range`): its nodes are walked from one end. How many entries a node has is in the client's own state, so an empty node
is passed over, and one with more entries than are wanted is left for its two halves, before the store is asked for anything.

*Tokens* (`OrderRevealing`): the store sorts them by its own index, and the client takes more until it has enough.

Claim: sorted and cut by the client, what comes back is what sorting all records would give. Sketch: records come in whole cells
(all that share a node of the lowest level, or a token), cells in order, so a record that was not read is in a later cell than any
that was, and its value beyond theirs. A stale entry leads to a record whose value is elsewhere: it counts where its value is.
"""

from collections.abc import Iterator
from typing import Any

from cloister.vault.changes import Reader
from cloister.vault.fields import Field, absent_word, node_word
from cloister.vault.filters import Filter, First
from cloister.vault.store import Row

Found = list[tuple[Row, dict[str, Any]]]


def first_records(reader: Reader, first: First, field: Field, given: Filter) -> Found:
    """At least so many records that meet the filter, if there are, and among them the first ones in the order."""
    found = _by_tokens(reader, first, given) if field.exposed else _by_nodes(reader, first, field, given)
    return sorted(found, key=lambda each: each[0].handle)  # as all records would come, so that ties fall alike


def _by_nodes(reader: Reader, first: First, field: Field, given: Filter) -> Found:
    domain, name, whole = field.domain, first.name, first.bounds is None
    assert domain is not None

    def read(words: list[bytes], node: tuple[int, int] | None) -> Iterator[tuple[Row, dict[str, Any]]]:
        for row, _ in reader.known(reader.handles([(name, word) for word in words])):
            document = reader.sealer.opened(row)
            value = document.get(name)
            place = None if value is None else (node[0] if node else 0, domain.position(value) >> (node[0] if node else 0))
            if place == node and given.holds(document):
                yield row, document

    absent = [absent_word(domain.levels)]
    found: Found = list(read(absent, None)) if whole and first.way == 1 else []
    nodes = domain.cover(*first.bounds) if first.bounds else [(domain.levels, 0)]
    ahead = sorted(nodes, key=lambda node: node[1] << node[0], reverse=first.way == 1)
    while ahead and len(found) < first.most:
        level, number = node = ahead.pop()
        (filed,) = reader.entries([(name, node_word(node))])
        if level and filed > first.most - len(found):
            halves = [(level - 1, 2 * number), (level - 1, 2 * number + 1)]
            ahead += halves if first.way == -1 else reversed(halves)
        elif filed:
            found += read([node_word(node)], node)
    if whole and first.way == -1 and len(found) < first.most:
        found += read(absent, None)
    return found


def _by_tokens(reader: Reader, first: First, given: Filter) -> Found:
    found: Found = []
    for epoch in reader.state.index_keys(reader.keys.id):
        column, most = reader.sealer.tokens[first.name][0], first.most
        here: Found = []
        bounds = None
        if first.bounds is not None:
            bounds = (
                reader.sealer.token(epoch, first.name, first.bounds[0]),
                reader.sealer.token(epoch, first.name, first.bounds[1]),
            )
        seen: dict[bytes, None] = {}
        while True:
            handles = reader.store.between(reader.table, column, epoch, bounds, order=first.way, most=most)
            rows = [(row, reader.sealer.opened(row)) for row, _ in reader.known(each for each in handles if each not in seen)]
            here += [each for each in rows if given.holds(each[1])]
            seen |= dict.fromkeys(handles)
            if len(here) >= first.most or len(handles) < most:
                break
            most *= 2
        found += here
    return found
