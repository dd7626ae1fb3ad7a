"""What a query leaks, said before it runs, from the filter and the declarations alone: no record is read and nothing is sent."""

from __future__ import annotations

from dataclasses import dataclass

from cloister.vault.filters import Access, Filter

ALWAYS = "the number of records and fields, padded lengths, and when a record is written with how many entries"


@dataclass(frozen=True)
class Explanation:
    """How a query finds its records, and what that shows to the server.

    >>> from cloister.vault import Equal, Keys, Vault
    >>> towns = Vault("sqlite://", Keys.generate()).collection("people", {"town": Equal()})
    >>> print(towns.explain({"town": "Basel"}))
    Found by: 1 word of 'town'
    The server learns:
    - which of these words it was asked for before, and how many entries they have
    - which records have an entry there, also of a value that they had before
    The client decides: nothing
    At any time it sees the number of records and fields, padded lengths, and when a record is written with how many entries
    """

    found_by: tuple[str, ...]
    leaks: tuple[str, ...]
    checked: tuple[str, ...]
    """Fields that the client compares on what it decrypted, unseen by the server."""

    def __str__(self) -> str:
        lines = [f"Found by: {', '.join(self.found_by)}", "The server learns:", *(f"- {each}" for each in self.leaks)]
        return "\n".join([*lines, f"The client decides: {', '.join(self.checked) or 'nothing'}", f"At any time it sees {ALWAYS}"])


def explanation(given: Filter, way: Access) -> Explanation:
    """What reading the records of a filter leaks."""
    leaks = []
    if way.everything:
        leaks.append("that every record was read, and nothing of the filter")
    if way.identities:
        leaks.append("which record was read, and that it was read before")
    nodes = [word for _, word in way.words if word.startswith(b"<")]
    if way.words:
        what = "words" if not nodes else "nodes" if len(nodes) == len(way.words) else "words and nodes"
        leaks.append(f"which of these {what} it was asked for before, and how many entries they have")
    if nodes:
        leaks.append(
            "how this range overlaps with earlier ones: many ranges reveal the order of the records, then nearly their values"
        )
    if way.words:
        leaks.append("which records have an entry there, also of a value that they had before")
    looked_up = {name for name, _ in way.words} | ({"_id"} if way.identities else set())
    return Explanation(way.said, tuple(leaks or ["nothing: no record can meet the filter"]), tuple(_fields(given, looked_up)))


def _fields(given: Filter, looked_up: set[str]) -> list[str]:
    names = [condition.name for condition in given.conditions]
    names += [name for parts in given.either for part in parts for name in _fields(part, set())]
    return [repr(name) for name in dict.fromkeys(names) if name not in looked_up]
