"""What reading and writing return, in the words of pymongo: in this process, and of a proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Inserted:
    """What an insertion did."""

    inserted_ids: list[Any]
    acknowledged: bool = True

    @property
    def inserted_id(self) -> Any:
        """The `_id` of the one document."""
        return self.inserted_ids[0]


@dataclass(frozen=True)
class Updated:
    """What an update did."""

    matched_count: int
    modified_count: int
    upserted_id: Any = None
    acknowledged: bool = True


@dataclass(frozen=True)
class Deleted:
    """What a deletion did."""

    deleted_count: int
    acknowledged: bool = True


class Documents(list[dict[str, Any]]):
    """The documents that `find` read: a list, and a chain as of pymongo's cursor. However they are called, they sort first, then
    skip, then cut.

    >>> from cloister.vault import Keys, Range, Vault
    >>> people = Vault("sqlite://", Keys.generate()).collection("people", {"age": Range(0, 120)})
    >>> _ = people.insert_many([{"_id": 1, "age": 39}, {"_id": 2, "age": 52}, {"_id": 3, "age": 7}])
    >>> people.find().sort("age", -1).skip(1).limit(1)
    [{'_id': 1, 'age': 39}]
    """

    def __init__(
        self, found: Iterable[dict[str, Any]], again: Callable[[Any, int, int], Documents], sort: Any, skip: int, limit: int
    ) -> None:
        super().__init__(found)
        self._again, self._asked = again, (sort, skip, limit)

    def sort(self, key: Any = None, direction: int = 1, *, reverse: bool = False) -> Any:
        """These documents in an order: a name with a direction, or a list of both. A function sorts in place, as a list does."""
        if callable(key):
            return super().sort(key=key, reverse=reverse)
        return self._again([(key, direction)] if isinstance(key, str) else key, *self._asked[1:])

    def skip(self, skip: int) -> Documents:
        """Without the first ones."""
        return self._again(self._asked[0], skip, self._asked[2])

    def limit(self, limit: int) -> Documents:
        """The first ones; 0 is all of them."""
        return self._again(*self._asked[:2], limit)

    def to_list(self, length: int | None = None) -> list[dict[str, Any]]:
        """A plain list."""
        return list(self[:length])
