"""What a service says of a kind of release that is its own: everything else about releases is one for all kinds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy.orm import Session as Db

from cloister.hub.hub import Caller, Hub
from cloister.hub.records.releases import StoredRelease
from cloister.hub.web.languages import Language
from cloister.privacy import Guarantee
from cloister.session import Frame
from cloister.tables import Domain

Which = Literal["all", "mine", "shown", "projects"]
"""The parts of a list."""

ANSWERS = "sql"
"""The kind that lists hold where none is named: for long it was the only one."""


@dataclass(frozen=True, kw_only=True)
class View:
    """Somebody who looks at a release, or takes it as a file."""

    hub: Hub
    caller: Caller
    row: StoredRelease
    language: Language
    confidence: float = 0.95
    joint: bool = False


@dataclass(frozen=True, kw_only=True)
class File:
    """A file on its way out: whole, or in pieces."""

    name: str
    body: bytes | Iterator[bytes]


@dataclass(frozen=True, kw_only=True)
class FileKind:
    """One form in which a release leaves."""

    media_type: str
    make: Callable[[View], File]


def stored(view: View) -> bytes:
    """What was stored, as it stands."""
    return view.row.body


def json_file(stem: str, body: Callable[[View], bytes] = stored) -> FileKind:
    """A file of JSON, called so and by the release's id."""
    return FileKind(media_type="application/json", make=lambda view: File(name=f"{stem}-{view.row.id}.json", body=body(view)))


@dataclass(frozen=True, kw_only=True)
class TableAnswer:
    """What a release answers as a table: post-processing of what left, so nothing is charged."""

    table: Frame
    """Its columns; each of the `statistics` is followed by the ends of its interval and by how sure that is: `n`, `n_low`,
    `n_high`, `n_kind`."""
    statistics: tuple[str, ...]
    notes: tuple[str, ...]
    """What the labels mean, and what the release cost."""


@dataclass(frozen=True, kw_only=True)
class AsTable:
    """How SQL is asked of a release as of a table (`tables.py`)."""

    columns: Callable[[StoredRelease], Mapping[str, Domain]]
    answer: Callable[[View, str, str, str | None], TableAnswer]
    """By the name that it has in the query, the query, and its dialect."""
    codes: Callable[[View, int], Mapping[str, Any]]
    """Rows by column, as codes of the declaration, at most so many: what a model learns from at no cost."""
    guarantee: Callable[[StoredRelease], Guarantee]
    """What it was made under, of a person of any one population."""


@dataclass(frozen=True, kw_only=True)
class AgainstRows:
    """How a release is compared with the rows that it was made of, for their owner alone (`comparing.py`)."""

    action: str
    """What its maker was allowed, and its owner must be still."""
    compare: Callable[[StoredRelease, Mapping[str, list[Any]]], Sequence[str]]
    """With the values of its columns: what it says, in parts; the first is its mark, and an empty one is left out."""


@dataclass(frozen=True, kw_only=True)
class ReleaseKind:
    """A kind of release. Texts are English msgids."""

    name: str
    """As it is stored with each: never renamed."""
    path: str
    """Where its pages are: the list, and behind it each one by its id."""
    trail: str
    """What the audit log calls one."""
    missing: str
    """What is said where there is none."""
    private: bool = True
    """Whether it is differentially private: list, page and papers of one that is not say so."""
    audience: Literal["asker", "data set"] = "asker"
    """Who sees it unshown: who asked for it; or whoever is granted the data set that its rows became, the whole of it, too."""
    first: Which = "mine"
    """The part of its list that is shown first."""
    title: str = ""
    """What its list is called, where it has no templates of its own."""
    made_at: str = ""
    """The address of the menu where one is ordered: what an empty list of those without templates leads to."""
    list_template: str = "releases/plain_list.html"
    """It extends `releases/list.html`."""
    template: str = "releases/plain.html"
    """It extends `releases/release.html`. The plain one shows `pairs`, and `lines` under `columns`."""
    listed: Callable[[Hub, Db, Caller], Mapping[str, Any]] = lambda *_: {}
    """What its list shows besides."""
    shown: Callable[[View], Mapping[str, Any]] = lambda _: {}
    """What its page shows besides."""
    told: Callable[[View], bytes]
    """What a program reads, as JSON."""
    files: Mapping[str, FileKind] = field(default_factory=dict)
    """By the name of the form in its address."""
    as_table: AsTable | None = None
    """How SQL is asked of one; None: SQL can't be asked of it."""
    pooled: Callable[[Sequence[StoredRelease], str], tuple[bytes, Mapping[str, Any]]] | None = None
    """One release of several, under a name: its body and its details (`pooling.py`). None: they are not pooled."""
    against_rows: AgainstRows | None = None
    """How its data set's owner compares one with the rows; None: not at all."""


def kind_of(hub: Hub, row: StoredRelease) -> ReleaseKind:
    """The kind of a release."""
    return hub.kinds[row.kind]
