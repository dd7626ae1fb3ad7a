"""From the keys of sites to a roster that their owners sign, and from the signed roster to a data set.

The hub keeps nothing of a roster that is not signed: the page shows it, owners compare its fingerprints with one another (not
through the hub) and sign it with `cloister site sign`, and it comes back with their signatures.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session as Db

from cloister.errors import Conflict, InvalidDeclaration, InvalidParameter
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.catalogue import (
    SITES,
    Joined,
    SiteRows,
    Wanted,
    add_rows,
    coordinators_of,
    joined_in,
    key_of,
    legible,
    made_of,
    owned,
    versions_at_sites,
)
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.hub.records.declarations import check_declaration, check_reasons
from cloister.hub.web.languages import N_
from cloister.parsers import json_from, toml_of
from cloister.privacy import Guarantee
from cloister.together import Roster, SignedRoster
from cloister.together.coordinator import Presence

_LONGEST = 2**20
_BETWEEN = re.compile(r"[ \t\r\n,]*")


_PRESENCE = (N_("it last called at {at}"), N_("it last called at {at}; then {problem}"), N_("it never called"))
"""What a coordinator says of a site, for the page."""


@dataclass(frozen=True, kw_only=True)
class Joining:
    """What an owner says of a data set at several sites."""

    roster: str
    """As JSON."""
    signatures: str
    """What each owner's `cloister site sign` printed, one after another."""
    table: str
    """The table as each site declares it: the part [tables.NAME] of a site.toml."""
    overlap: str
    title: str
    population: str
    about: str = ""
    reason: str = ""
    """Where the bounds come from, in public words."""
    size: int | None = None
    listed: bool = False


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One data set and its sites, with what the hub knows of them."""

    name: str
    title: str
    number: int
    """Of its roster."""
    fingerprints: Mapping[str, str]
    present: Mapping[str, Presence]
    awaited: Mapping[str, list[float]]
    """Since when messages wait for each one's answer."""
    collude: int
    """How many of them may collude with the hub."""
    dropouts: int
    """And how many may drop out."""
    surplus: str
    """How many times the variance of one table's answer an answer of all of them has."""


def roster_of(hub: Hub, keys: str, missing: str, epoch: int = 1, dropouts: str = "") -> Roster:
    """The roster of sites whose public keys these are, as `cloister site init` prints them; its number counts those before it.
    Where nothing is said of drop-outs, as many may as may collude."""
    sites: dict[str, bytes] = {}
    for name, key in _objects(keys, "The keys are invalid", '{"north": "3b6a27…"}'):
        if name in sites:
            raise InvalidDeclaration("The keys are invalid", why=f"{name!r} stands there twice", instead="a name for each site")
        sites[name] = _digits(key, "The keys are invalid", 32)
    most = str(max(len(sites) - 1, 0) // 3)
    count = _count(missing, "The number of sites that may collude is invalid", most)
    gone = _count(dropouts, "The number of sites that may drop out is invalid", most) if dropouts.strip() else None
    return Roster(sites=sites, hub=key_of(hub).public, missing=count, epoch=epoch, dropouts=gone)


def _count(text: str, what: str, instead: str) -> int:
    count = text.strip()
    if not (count.isascii() and count.isdigit() and len(count) < 4):
        raise InvalidParameter(what, why="it is not a whole number", instead=instead)
    return int(count)


def join(hub: Hub, caller: Caller, asked: Joining, budget: Guarantee | None) -> DataSet:
    """The data set of a signed roster. The sites may call from now on."""
    signed = _signed(hub, asked.roster, asked.signatures)
    joined = Joined(signed=signed, overlap=_overlap(asked.overlap, len(signed.roster.sites)))
    name, declaration = _declared(asked)
    wanted = Wanted(
        name=name,
        title=asked.title,
        about=asked.about,
        declaration=declaration,
        population=asked.population,
        budget=budget,
        listed=asked.listed,
    )
    return made_of(hub, caller, SiteRows(hub, joined, declaration), wanted)


def roster_before(hub: Hub, caller: Caller, name: str) -> tuple[DataSet, Joined]:
    """One's own data set at sites, and what it stands on now."""
    with hub.database.reading() as db:
        row = owned(hub, db, caller, name)
        found = [version for data_set, version in versions_at_sites(db) if data_set.id == row.id]
    if not found:
        raise Conflict(
            f"The roster of {name!r} can't be changed",
            why="the data set is closed, or has no sites",
            instead="a data set at sites",
        )
    return row, joined_in(hub, found[0])


def change_roster(hub: Hub, caller: Caller, name: str, roster: str, signatures: str) -> int:
    """The roster after the one of a data set: its sites are asked from now on, under the budget that there was. All of them
    signed it; a site whose key changed also with the old one; and a quorum of the old sites is there. The version's number.

    The owner's other data sets of that roster, closed ones too, change in the same transaction: a site calls under one roster."""
    row, before = roster_before(hub, caller, name)
    signed = _signed(hub, roster, signatures)

    def change(data_set: DataSet, was: Joined) -> tuple[SiteRows, Callable[[DataSetVersion | None], None]]:
        given = SiteRows(hub, was.after(signed), data_set.declaration, after=was.signed.roster)

        def check(now: DataSetVersion | None) -> None:
            if now is None or now.kind != SITES:
                what = f"The roster of {data_set.name!r} can't be changed"
                raise Conflict(what, why="it has other rows now", instead="a data set at sites")
            signed.check_after(joined_in(hub, now).signed)

        return given, check

    with hub.database.reading() as db:
        same = {
            other.id: change(other, joined)
            for other, joined in legible(hub, versions_at_sites(db, open_only=False), joined_in)
            if other.owner == row.owner and joined.signed.roster == before.signed.roster
        }
    return add_rows(hub, caller, {row.id: change(row, before), **same})[row.id]


def standings(hub: Hub, db: Db, caller: Caller) -> list[Standing]:
    """One's own data sets at sites: who takes part, and when each last called."""
    found = []
    own = (each for each in versions_at_sites(db) if each[0].owner == caller.id)
    for data_set, joined in legible(hub, own, joined_in):
        signed = joined.signed
        coordinator = coordinators_of(hub).of(signed)
        found.append(
            Standing(
                name=data_set.name,
                title=data_set.title,
                number=signed.roster.epoch,
                fingerprints=signed.roster.fingerprints(),
                present=coordinator.presence,
                awaited=coordinator.awaited,
                collude=signed.roster.missing,
                dropouts=len(signed.roster.sites) - signed.roster.quorum,
                surplus=f"{len(signed.roster.sites) / signed.roster.honest:.2f}",
            )
        )
    return found


def _signed(hub: Hub, text: str, signatures: str) -> SignedRoster:
    what, instead = "The roster is invalid", "the roster as this hub's page shows it"
    try:
        roster = Roster.from_plain(json_from(text, most=_LONGEST))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidDeclaration(what, why="its form is wrong", instead=instead) from None
    if roster.hub != key_of(hub).public:
        raise InvalidDeclaration(what, why="it is another hub's", instead=instead)
    what = "The signatures are invalid"
    given = {
        name: _digits(each, what, 64, 128) for name, each in _objects(signatures, what, "what each cloister site sign printed")
    }
    rotations = {name: each[64:] for name, each in given.items() if len(each) > 64}  # by the key of the roster before
    signed = SignedRoster(roster, {name: each[:64] for name, each in given.items()}, rotations)
    signed.check()
    return signed


def _declared(asked: Joining) -> tuple[str, dict[str, Any]]:
    """The name and the declaration of the one table, in the words of a site.toml."""
    what, instead = "The table is invalid", "the part [tables.NAME] of a site.toml, with its columns"
    try:
        tables = toml_of(asked.table).get("tables", {})
        [(name, told)] = tables.items()
        columns, rest = dict(told["columns"]), {part: told[part] for part in told if part not in ("columns", "source")}
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        at = line[1] if line else len(asked.table.splitlines())
        raise InvalidDeclaration(what, why=f"it is not TOML in line {at}", instead=instead) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidDeclaration(what, why="it declares no table, or several", instead=instead) from None
    unknown = sorted(set(rest) - {"unit", "max_rows", "size"})
    if unknown:
        raise InvalidDeclaration(what, why=f"{unknown[0]!r} means nothing here", instead="unit, max_rows, size, columns")
    if asked.size is not None:
        rest["size"] = asked.size
    declaration = check_declaration(name, {"columns": columns, **rest, "reasons": dict.fromkeys(columns, asked.reason)})
    check_reasons(declaration)
    return name, declaration


def _overlap(text: str, most: int) -> str | int:
    word = text.strip().lower()
    if word == "none":
        return "none"
    if word.isascii() and word.isdigit() and len(word) < 5 and 2 <= int(word) <= most:
        return int(word)
    raise InvalidDeclaration(
        "The overlap is invalid",
        why="it says at how many sites one person may have rows",
        instead="none; or the number of sites, which is always safe",
    )


def _objects(text: str, what: str, instead: str) -> list[tuple[str, str]]:
    """The pairs of several JSON objects that stand one after another."""
    reader, found, at = json.JSONDecoder(), list[tuple[str, str]](), 0
    text = text[:_LONGEST].strip()
    try:
        while at < len(text):
            told, end = reader.raw_decode(text, at)
            found += told.items()
            at = _BETWEEN.match(text, end).end()  # type: ignore[union-attr]
        if not found or not all(isinstance(each, str) for pair in found for each in pair):
            raise ValueError
    except (ValueError, AttributeError, RecursionError):
        raise InvalidDeclaration(what, why="their form is wrong", instead=instead) from None
    return found


def _digits(text: str, what: str, *sizes: int) -> bytes:
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) not in sizes:
        raise InvalidDeclaration(what, why=f"each has {2 * sizes[0]} hexadecimal digits", instead="as the command printed it")
    return found
