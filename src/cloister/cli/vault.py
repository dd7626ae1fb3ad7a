"""`cloister vault`: a sealed store, from the owner's side, where its keys are."""

from __future__ import annotations

import contextlib
import functools
import json
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.party import alone, check_words, end_if_broken, folder_option, own_files, settings_in, show_log
from cloister.cli.written import FILE, FOLDER
from cloister.errors import InvalidDeclaration, InvalidParameter
from cloister.printable import shown

if TYPE_CHECKING:
    from cloister.together.owner import AuditLog
    from cloister.vault import Collection, Field, Keys, Vault, Views

_DATA = folder_option("The owner's folder with keys and declarations", "vault")
_TEMPLATE = """[vault]
store = {store}                          # sqlite:///… or postgresql://…: who keeps it sees no value

# [collections.people.fields]
# name = {{}}                              # read back
# town = {{ equal = true }}                # and found by equality
# note = {{ words = 16, pad = 512 }}       # and found by words, of one length whatever it says
# age = {{ range = [0, 120], sum = true }} # and found by ranges, sorted, added up

# [collections.people.masked]              # what a hub and a key holder may answer questions from, with noise
# key_holder = "5f3a…"                     # cloister csp show
# population = "patients"
# columns = {{ age = {{ kind = "integer", low = 0, high = 120 }} }}
# marginals = [{{ sums = ["age"] }}]

# [people]                                 # who may read views: cloister vault person ana
# ana = "…"

# [views.visits]                           # what they may read, joined, and for what
# collections = {{ visits = ["day"], patients = ["town"] }}
# on = {{ visits = "patient", patients = "_id" }}
# where = {{ doctor = "$person" }}           # of the first collection
# people = ["ana"]
# purposes = ["care"]
"""


@click.group()
def vault() -> None:
    """A sealed store: documents on a server that sees no value, and the keys here.

    \b
    cloister vault init vault --store sqlite:///sealed.db
    cloister vault proxy --data vault --listen 127.0.0.1:8766
    cloister vault verify --data vault
    """


@vault.command()
@click.argument("folder", type=FOLDER)
@click.option("--store", required=True, help="The address of the store: sqlite:///… or postgresql://…")
def init(folder: Path, store: str) -> None:
    """Make an owner's folder: keys, a token for programs, and a vault.toml to fill in.

    \b
    cloister vault init vault --store sqlite:///sealed.db
    """
    from cloister.crypto import make_key_file, new_key
    from cloister.vault import Keys

    own_files()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "owner.keys").exists():
        (folder / "vault.toml").write_text(_TEMPLATE.format(store=json.dumps(store, ensure_ascii=False)), encoding="utf-8")
    make_key_file(folder / "proxy.token", new_key().hex() + "\n")
    Keys.generate(folder / "owner.keys").close()  # last: a folder with keys is whole
    click.echo(f"now declare collections in {folder / 'vault.toml'}, and keep a copy of {folder / 'owner.keys'} elsewhere")


@vault.command()
@_DATA
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(data: Path, as_json: bool) -> None:
    """Show collections, how each field is stored, the token for programs, and the log; exit code 1 where an entry was changed.

    \b
    cloister vault show --data vault
    """
    with _opened(data) as here:
        found = {name: here.store.collection(name) for name in here.store.collections()}
        told: dict[str, Any] = {
            "collections": {
                name: {"records": each.count_documents({}), "counter": here.store.root(name)[0], "fields": each.layers()}
                for name, each in found.items()
            },
            "token": (data / "proxy.token").read_text(encoding="ascii").strip(),
            "owner": here.keys.owner.public.hex(),
            "log": list(here.log.entries()),
        }
        broken = here.log.broken()
        if as_json:
            click.echo(json.dumps(told))
        else:
            for name, each in told["collections"].items():
                click.echo(shown(f"{name}: {each['records']:,} records after {each['counter']:,} changes"))
                for field, layers in each["fields"].items():
                    click.echo(shown(f"  {field}: {', '.join(layers)}"))
            click.echo(f"token {told['token']}\nowner {told['owner']}   for [owners] of the key holder's csp.toml")
            show_log(here.log)
    end_if_broken(broken)


@vault.command()
@click.argument("name")
def person(name: str) -> None:
    """Make a token for a person who may read views, and print it with the line for vault.toml. The folder keeps its hash alone.

    \b
    cloister vault person ana
    """
    import hashlib

    from cloister.crypto import new_key

    token = new_key().hex()
    click.echo(f"token {token}")
    line = {name: hashlib.sha256(token.encode()).hexdigest()}
    click.echo(f"for [people] in vault.toml:\n{json.dumps(line, ensure_ascii=False, separators=(',', ' = '))[1:-1]}")


@vault.command()
@_DATA
@click.option("--json", "as_json", is_flag=True, help="Print JSON: what the hub's page of the data set can show its owner.")
def verify(data: Path, as_json: bool) -> None:
    """Compare everything that the store has with what was written; exit code 1, and an entry of the log, where something differs.

    \b
    cloister vault verify --data vault
    """
    with _opened(data) as here:
        told = _verified(here)
    words = "\n".join(told["problems"]) or "every record, and every entry that leads to one, is as this client wrote it"
    click.echo(json.dumps(told) if as_json else words, err=bool(told["problems"]) and not as_json)
    if told["problems"]:
        raise SystemExit(1)


def _verified(here: _Here) -> dict[str, Any]:
    """What verification found; problems are entries of the log."""
    found = here.store.verify()
    for problem in found.problems:
        here.log.add("alert", {"what": problem})
    changes = sum(here.store.root(name)[0] for name in here.store.collections()) if found else 0
    return {"problems": list(found.problems), "changes": changes, "epoch": here.store.epoch}


@vault.command()
@_DATA
@click.option("--owner", is_flag=True, help="Replace owner.keys, too: somebody may know it. No proxy may run meanwhile.")
def rotate(data: Path, owner: bool) -> None:
    """Encrypt and file everything again under new keys, and delete the old ones. What was stopped goes on when it is run again.

    \b
    cloister vault rotate --data vault
    cloister vault rotate --owner --data vault
    """
    from cloister.vault import Keys

    with alone_at(data) if owner else contextlib.nullcontext():
        if owner:
            own_files()
            Keys.replace(data / "owner.keys").close()
        with _opened(data) as here:
            here.store.rotate()
            here.log.add("rotated", {"owner": here.keys.owner.public.hex()} if owner else {})
            click.echo("everything is under new keys")
            if owner:
                click.echo(
                    f"make a new backup, delete those from before, and have the key holder's operator put\n"
                    f"{here.keys.owner.public.hex()} in place of the owner's key in [owners]"
                )


@vault.command()
@_DATA
@click.argument("person")
@click.option("--number", is_flag=True, help="PERSON is a whole number in the documents, and no text.")
def forget(data: Path, person: str, number: bool) -> None:
    """Delete a person's records, and the key without which no old copy of one can be read.

    \b
    cloister vault forget p17 --data vault
    """
    if number and not (person.isascii() and person.isdigit()):
        raise InvalidParameter("The person is invalid", why="it is not a whole number", instead="a number, or no --number")
    with _opened(data) as here:
        if not here.store.knows(who := int(person) if number else person):
            why, instead = "no key is left of this person, and so no record is", "--number for a whole number"
            raise InvalidParameter("Nobody was forgotten", why=why, instead=instead)
        try:
            gone = here.store.forget(who)
        except BaseException:
            if not here.store.has_key(who):
                here.log.add("forgot", {"records": "the key alone"})
                click.echo("the key is gone: no record can be read. Delete what is left by the same command", err=True)
            raise
        here.log.add("forgot", {"records": str(gone)})
    click.echo(f"{gone} records are gone, and the key; cells at a hub go once the next batch is uploaded (cloister vault mask)")


@vault.command()
@_DATA
@click.argument("copy", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--expires", help="The last day on which the copy opens, as YYYY-MM-DD.")
def backup(data: Path, copy: Path, expires: str | None) -> None:
    """Copy keys and state. Let copies expire: someone who is forgotten is forgotten once those from before are deleted.

    \b
    cloister vault backup monday.keys --expires 2030-12-31 --data vault
    """
    try:
        last = None if expires is None else date.fromisoformat(expires)
    except ValueError:
        raise InvalidParameter("--expires is invalid", why="it is not a day", instead="--expires 2030-12-31") from None
    with _opened(data) as here:
        here.keys.backup(copy, expires=last)
    until = f"; they open until {last}: then delete both" if last else ""
    click.echo(f"the keys are in {copy}, the state is beside it{until}")


@vault.command()
@_DATA
@click.option("--delete-people", is_flag=True, help="Delete the records of people whose keys are not in the state.")
def restore(data: Path, delete_people: bool) -> None:
    """Make a lost state again from the store, or go on with a store that comes from a backup. Keys of people are in the state
    alone: first put the newest backup's state in its place, as owner.keys.state.

    \b
    cloister vault restore --data vault
    """
    with _opened(data, restore=True, delete_people=delete_people) as here:
        here.log.add("restored", {})
        click.echo(
            f"{len(here.store.collections())} collections are there, under new keys; that they are the newest is not known"
        )


@vault.command()
@_DATA
@click.argument("collection")
@click.argument("field")
@click.option("--equal", is_flag=True, help="Score it as if it were found by equality.")
@click.option("--words", type=int, help="Score it as if it were found by so many words.")
@click.option("--range", "bounds", help="Score it as if it were found by ranges, such as 0:120, or 0:1:0.01 with a step.")
@click.option("--deterministic", is_flag=True, help="Score it as if equal values looked equal at any time.")
@click.option("--order-revealing", "order", help="Score it as if the order showed at any time, of a range such as 0:120.")
@click.option("--pad", type=int, help="Score it with so many bytes for each value.")
def score(
    data: Path,
    collection: str,
    field: str,
    equal: bool,
    words: int | None,
    bounds: str | None,
    deterministic: bool,
    order: str | None,
    pad: int | None,
) -> None:
    """Attack a column as the store could, and say how many cells that recovers: as it is declared, or as it might be.

    \b
    cloister vault score people town --equal --data vault
    """
    from cloister.vault import Deterministic, Equal, OrderRevealing, Random, Range, Words

    parts: list[Field] = [Equal()] * equal + [Deterministic()] * deterministic
    parts += [Words(words)] if words is not None else []
    parts += [Range(*_bounds("--range", bounds))] if bounds is not None else []
    parts += [OrderRevealing(*_bounds("--order-revealing", order))] if order is not None else []
    parts += [Random(pad=pad)] if pad is not None else []
    declared = functools.reduce(operator.or_, parts) if parts else None
    with _opened(data) as here:
        click.echo(str(here.store.collection(collection).leakage(field, declared)))


def _bounds(option: str, text: str) -> list[int | float]:
    """Two numbers, or two and a step."""
    with contextlib.suppress(ValueError):
        found = [int(each) if re.fullmatch(r"[+-]?[0-9]+", each) else float(each) for each in text.split(":")]
        if len(found) in (2, 3):
            return found
    why, instead = "it is not two numbers, or two and a step", f"{option} 0:120, or {option} 0:1:0.01"
    raise InvalidParameter(f"{option} is invalid", why=why, instead=instead)


@vault.command()
@_DATA
@click.argument("collection")
@click.option("--hub", required=True, help="The hub that has its masked cells, such as https://hub.example.org.")
@click.option("--data-set", required=True, help="What the hub calls them.")
@click.option("--token", envvar="CLOISTER_TOKEN", help="Your API token; better in the variable CLOISTER_TOKEN.")
@click.option("--authority", type=click.Path(exists=True, dir_okay=False), help="Who signed the hub's certificate (PEM).")
def report(data: Path, collection: str, hub: str, data_set: str, token: str | None, authority: str | None) -> None:
    """Send the hub how each field is stored, what attackers would get of it, and whether the store is as it was written. Its page
    of the data set shows that to you alone, for a week. No document leaves.

    \b
    cloister vault report people --hub https://hub.example.org --data-set patients --data vault
    """
    from cloister.client import connect

    with _opened(data) as here:
        found = here.store.collection(collection)
        scores = {name: str(found.leakage(name)) for name in found.fields} if found.count_documents({}) else {}
        verified, layers = _verified(here), found.layers()
    with connect(hub, token=token, verify=authority or True) as session:
        session.report_store(data_set, layers=layers, scores=scores, verified=verified)
    click.echo(f"{hub} shows {len(layers)} fields, {len(scores)} scores and the comparison with the store, to you alone")


@vault.command()
@_DATA
@click.argument("collection")
@click.option("--out", required=True, type=FOLDER, help="The folder of batches.")
@click.option("--dry-run", is_flag=True, help="Say what can be asked, and how many bytes a row takes; read no record.")
@click.option("--restart", is_flag=True, help="Begin with all records, for another data set of the hub.")
def mask(data: Path, collection: str, out: Path, dry_run: bool, restart: bool) -> None:
    """Write a batch of masked cells, with what is new or has changed since the last one, to upload to a hub.

    \b
    cloister vault mask people --out batches --data vault
    """
    from cloister.together import MaskedFormat, Sealer

    named = _settings(data)["collections"].get(collection)
    told = named.get("masked") if isinstance(named, dict) else None
    if not isinstance(told, dict):
        why = "is not declared" if named is None else "says nothing of masked cells"
        raise _wrong(f"the collection {collection!r} {why}", f"[collections.{collection}.masked]")
    public, marginals = str(told.pop("key_holder", "")), told.get("marginals", [])
    if not isinstance(marginals, list) or not all(isinstance(each, dict) for each in marginals):
        raise _wrong("its marginals are not a list of tables", f'[[collections.{collection}.masked.marginals]]\nsums = ["age"]')
    parts = [{"by": [], "sums": [], "squares": [], "products": [], **each} for each in marginals]
    declared = MaskedFormat.from_plain({**told, "marginals": parts})
    click.echo(f"{declared}\n{declared.bytes_a_row:,} bytes a row")
    if dry_run:
        return
    try:
        to = bytes.fromhex(public)
    except ValueError:
        raise _wrong("key_holder has other characters than digits and a–f", "cloister csp show") from None
    with _opened(data) as here:
        found = here.store.collection(collection).mask(Sealer(declared, to, owner=here.keys.owner), out, restart=restart)
        here.log.add("masked", {"added": str(found.added), "withdrawn": str(found.withdrawn)})
    if found.path is None:
        click.echo("nothing has changed since the last batch")
    else:
        click.echo(f"{found.path}: {found.added:,} records added, {found.withdrawn:,} withdrawn")


@vault.command()
@_DATA
@click.option("--listen", default="127.0.0.1:8766", show_default=True, help="Where programs call, as HOST:PORT.")
@click.option("--certificate", type=FILE, help="Of the proxy (PEM).")
@click.option("--certificate-key", type=FILE, help="The key of the certificate.")
@click.option("--page", type=int, default=0, help="The port of the page on this machine (default: a free one).")
def proxy(data: Path, listen: str, certificate: Path | None, certificate_key: Path | None, page: int) -> None:
    """Serve the collections to programs, and to this machine's browser a page of documents beside what the store has.

    \b
    cloister vault proxy --data vault --listen 127.0.0.1:8766
    """
    from cloister.crypto import new_key
    from cloister.together.agent import no_core_dumps
    from cloister.vault import proxy as applications

    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit() or (certificate is None) != (certificate_key is None):
        raise InvalidParameter(
            "--listen is invalid", why="it is not HOST:PORT, or a certificate comes without its key", instead="127.0.0.1:8766"
        )
    if certificate is None and host not in ("127.0.0.1", "[::1]", "localhost"):
        raise InvalidParameter(
            "--listen is invalid", why="without TLS only this machine is served", instead="--certificate, --certificate-key"
        )
    no_core_dumps()
    with alone_at(data), _opened(data) as here:
        token = (data / "proxy.token").read_text(encoding="ascii").strip()
        key = new_key().hex()
        tls: dict[str, Any] = {"ssl_certfile": str(certificate), "ssl_keyfile": str(certificate_key)} if certificate else {}
        programs = applications.documents(here.store, token, here.log.add, _views(here.store, data))
        own = applications.page(here.store, key, here.log.add)
        _serve([(programs, host.strip("[]"), int(port), tls), (own, "127.0.0.1", page, {})], key)


def _serve(wanted: list[tuple[Any, str, int, dict[str, Any]]], key: str) -> None:
    import asyncio
    import socket

    import uvicorn

    quiet: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "lifespan": "off"}
    kinds = {True: socket.AF_INET6, False: socket.AF_INET}
    places = []
    for _, host, port, _ in wanted:
        try:
            places.append(socket.create_server((host, port), family=kinds[":" in host], backlog=256))
        except (OSError, OverflowError):
            why = f"port {port} of {host} is taken, or may not be listened on"
            raise InvalidParameter("The proxy was not started", why=why, instead="--listen 127.0.0.1:8767") from None
    servers = [uvicorn.Server(uvicorn.Config(app, **quiet, **tls)) for app, _, _, tls in wanted]
    for (_, host, _, tls), place in zip(wanted, places, strict=True):
        name = f"[{host}]" if ":" in host else host
        address = f"{'https' if tls else 'http'}://{name}:{place.getsockname()[1]}"
        click.echo(f"documents at {address}" if place is places[0] else f"the page of this machine at {address}/{key}")

    async def all_of_them() -> None:
        running = [asyncio.create_task(each.serve([place])) for each, place in zip(servers, places, strict=True)]
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for each in servers:
            each.should_exit = True
        await asyncio.gather(*running)

    try:
        asyncio.run(all_of_them())
    finally:
        for place in places:
            place.close()


def alone_at(data: Path) -> contextlib.AbstractContextManager[None]:
    """Of two proxies of one folder the second is refused."""
    _settings(data)
    return alone(data / "proxy.lock", "proxy")


@dataclass(frozen=True, kw_only=True)
class _Here:
    keys: Keys
    store: Vault
    log: AuditLog


@contextlib.contextmanager
def _opened(data: Path, *, restore: bool = False, delete_people: bool = False) -> Iterator[_Here]:
    """The vault of a folder, with the collections that are declared there."""
    from cloister.together.owner import AuditLog
    from cloister.vault import Keys, Vault

    own_files()
    settings = _settings(data)
    keys = Keys.load(data / "owner.keys")
    try:
        address, name = settings["store"], settings["data_set"]
        made = functools.partial(Vault.restore, delete_people=delete_people) if restore else Vault
        with made(address, keys, data_set=name) as store:
            for each, told in settings["collections"].items():
                _collection(store, each, told)
            yield _Here(keys=keys, store=store, log=AuditLog(data / "audit-log.jsonl", keys.log_key))
    finally:
        keys.close()


def _collection(store: Vault, name: str, told: Any) -> Collection:
    fields = told.get("fields", {}) if isinstance(told, dict) else None
    if not isinstance(fields, dict) or not fields:
        raise _wrong(f"the collection {name!r} has no fields", f"[collections.{name}.fields]")
    check_words("vault.toml", f"collections.{name}", told, ("fields", "person", "masked"))
    return store.collection(name, {field: _field(field, how) for field, how in fields.items()}, person=told.get("person"))


def _field(name: str, told: Any) -> Field:
    from cloister.vault import Deterministic, Equal, OrderRevealing, PaillierSum, Random, Range, Sum, Words

    known = {"equal", "sum", "range", "deterministic", "order_revealing", "words", "pad", "paillier_sum"}
    if not isinstance(told, dict) or told.keys() - known:
        raise _wrong(f"the field {name!r} is declared by other words", "age = { range = [0, 120], sum = true }")
    found: Field = Random(pad=told.get("pad"))
    if "words" in told:
        found |= Words(told["words"])
    for word, part in (("equal", Equal), ("sum", Sum), ("deterministic", Deterministic)):
        if told.get(word):
            found |= part()
    for word, made in (("range", Range), ("order_revealing", OrderRevealing), ("paillier_sum", PaillierSum)):
        bounds = told.get(word)
        if bounds is None:
            continue
        if not isinstance(bounds, list) or len(bounds) not in ((2,) if word == "paillier_sum" else (2, 3)):
            raise _wrong(f"the range of {name!r} is not two bounds, or two and a step", "range = [0, 120]")
        found |= made(*bounds)
    return found


def _views(store: Vault, data: Path) -> Views:
    from cloister.vault import View, Views

    settings = _settings(data)
    try:
        return Views(store, {name: View(**told) for name, told in settings["views"].items()}, settings["people"])
    except (TypeError, AttributeError):
        raise _wrong("a view has a part that is not known, or lacks one", "collections, on, where, people, purposes") from None


def _settings(data: Path) -> dict[str, Any]:
    told = settings_in(data / "vault.toml", "cloister vault init vault --store …", vault=("store", "data_set"))
    own, parts = told.get("vault", {}), {part: told.get(part, {}) for part in ("collections", "views", "people")}
    if not isinstance(own, dict) or not isinstance(own.get("store"), str):
        raise _wrong("it names no store", '[vault]\nstore = "sqlite:///sealed.db"')
    if not all(isinstance(each, dict) for each in parts.values()) or not all(
        isinstance(one, str) for one in parts["people"].values()
    ):
        raise _wrong("collections, views or people are not tables of names", '[people]\nana = "…"')
    return {"store": own["store"], "data_set": str(own.get("data_set", "default")), **parts}


def _wrong(why: str, instead: str) -> InvalidDeclaration:
    return InvalidDeclaration("The file vault.toml is invalid", why=why, instead=instead)
