"""What a query leaks, said before it runs, from the filter and the declarations alone: no record is read and nothing is sent."""

from collections.abc import Mapping
from dataclasses import dataclass

from cloister.vault.fields import Field
from cloister.vault.filters import Access, Filter, First
from cloister.vault.weak import shown

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
    always: str = ALWAYS
    computed: str = ""
    """Who adds up and groups, of a pipeline."""

    def __str__(self) -> str:
        lines = [f"Found by: {', '.join(self.found_by)}", "The server learns:", *(f"- {each}" for each in self.leaks)]
        lines += [f"Computed by {self.computed}"] if self.computed else []
        return "\n".join(
            [*lines, f"The client decides: {', '.join(self.checked) or 'nothing'}", f"At any time it sees {self.always}"]
        )


def _shown_by_order(first: First, field: Field) -> list[str]:
    end = "least" if first.way == 1 else "largest"
    if field.exposed:
        return [f"which records have the {end} tokens, and how many of them were wanted"]
    return [
        "which nodes it was asked for, and which of them before; how many entries they have",
        f"which records have the {end} values, but not that these are the {end}",
        "how these nodes lie to those of earlier ranges: many reveal the order of the records, then nearly their values",
    ]


def explanation(given: Filter, way: Access, fields: Mapping[str, Field], *, computed: bool = False) -> Explanation:
    """What reading the records of a filter leaks."""
    leaks = []
    if way.added:
        leaks.append(f"that a sum was asked of {', '.join(map(repr, way.added))}, and nothing of it")
        leaks.append("that every record is in it" if way.everything else "which records are in it, and that they were before")
    elif way.everything:
        leaks.append("that every record was read, and nothing of the filter")
    if way.identities and not way.added:
        leaks.append("which record was read, and that it was read before")
    nodes = [word for _, word in way.words if word.startswith(b"<")]
    if way.words:
        what = "words" if not nodes else "nodes" if len(nodes) == len(way.words) else "words and nodes"
        leaks.append(f"which of these {what} it was asked for before, and how many entries they have")
    if nodes:
        leaks.append(
            "how this range overlaps with earlier ones: many ranges reveal the order of the records, then nearly their values"
        )
    if way.words and way.added:
        leaks.append("that those which changed since the last rotation were read")
    if way.words:
        leaks.append("which records have an entry there, also of a value that they had before")
    if way.tokens:
        leaks.append("which records have such tokens; one that it leaves out is missed by verify() alone")
    if way.first is not None:
        leaks += _shown_by_order(way.first, fields[way.first.name])
    looked_up = {name for name, _ in way.words} | {name for name, _, _ in way.tokens} | ({"_id"} if way.identities else set())
    looked_up |= {way.first.name} if way.first else set()
    leaks = leaks or ["nothing: no record can meet the filter"]
    always = "; ".join([ALWAYS, *shown([*fields.items()])])
    who = "the client, on what it reads"
    if way.added:
        who = f"the store, as a product of ciphertexts of {', '.join(map(repr, way.added))}; the client decrypts one number each"
    return Explanation(way.said, tuple(leaks), tuple(_fields(given, looked_up)), always, who if computed else "")


def _fields(given: Filter, looked_up: set[str]) -> list[str]:
    names = [condition.name for condition in given.conditions]
    names += [name for parts in given.either for part in parts for name in _fields(part, set())]
    return [repr(name) for name in dict.fromkeys(names) if name not in looked_up]
