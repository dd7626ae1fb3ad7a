"""`cloister csp`: the key holder of sealed tables, as a process that dials out to its hub; and how an owner seals rows to it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.party import CERTIFICATE, PROXY, alone, end_if_broken, folder_option, own_files, settings_in, show_key, show_log
from cloister.cli.written import FILE, FOLDER, WRITTEN
from cloister.errors import CloisterError, InvalidDeclaration, InvalidParameter
from cloister.printable import shown

if TYPE_CHECKING:
    from cloister.crypto import SigningKey
    from cloister.together import KeyHolder, MaskedFormat
    from cloister.together.owner import AuditLog

_DATA = folder_option("The key holder's folder", "csp")
_TEMPLATE = """[key_holder]
name = {name}
hub = "https://hub.example.org"
hub_key = ""                             # the hub's public key, after its fingerprint was compared
# certificate = "authority.pem"          # of the hub's certificate, where this system does not know it
# proxy = "http://proxy.example.org:3128"  # where the network has no other way out
a_day = 1000                             # charges in 24 hours, about each population
batches = 10000                          # that are kept
exact = false                            # true: garble circuits of exact components, which are not differentially private

[budgets]                                # of each population; no other is answered about
# patients = {{ rho = "0.5" }}

[owners]                                 # of each population, who may bring rows, from the next start: their tools print the keys
# patients = ["5f3a…"]
"""


@click.group(invoke_without_command=True)
@_DATA
@click.option("--hub", help="The hub's address (default: that of csp.toml).")
@CERTIFICATE
@PROXY
@click.pass_context
def csp(context: click.Context, data: Path, hub: str | None, certificate: Path | None, proxy: str | None) -> None:
    """Run a key holder: it never sees a value, and calls the hub. Ends with SIGTERM or Ctrl-C, and goes on where it was.

    \b
    cloister csp init keys --name keys
    cloister csp --data keys --hub https://hub.example.org
    cloister csp show --data keys
    """
    if context.invoked_subcommand is None:
        _run(data, hub, certificate, proxy)
    elif data != context.command.params[0].default:  # else "csp --data north show" would show another folder
        context.default_map = {context.invoked_subcommand: {"data": data}}


@csp.command()
@click.argument("folder", type=FOLDER)
@click.option("--name", required=True, help="The key holder's name at the hub.")
def init(folder: Path, name: str) -> None:
    """Make a key holder's folder: its key, and a csp.toml to fill in. Prints the public key for owners and hub.

    \b
    cloister csp init keys --name keys
    """
    from cloister.crypto import make_key_file, new_key
    from cloister.together.roster import is_name

    if not is_name(name):
        raise InvalidParameter(f"--name {shown(name)!r} is invalid", why="it can't be shown in a line", instead="--name keys")
    own_files()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "csp.toml").exists():
        (folder / "csp.toml").write_text(_TEMPLATE.format(name=json.dumps(name, ensure_ascii=False)), encoding="utf-8")
    make_key_file(folder / "csp.key", new_key().hex())
    with _opened(folder) as here:
        show_key(here.holder.name, here.holder.public)
    click.echo(f"now fill in {folder / 'csp.toml'}, and give the public key to owners and hub")


@csp.command()
@click.argument("declarations", type=FILE)
@click.option("--to", "public", required=True, help="The key holder's public key (128 digits).")
@click.option("--out", required=True, type=WRITTEN, help="The batch to write (*.masked).")
@click.option("--counts", type=FOLDER, help="The owner's folder of how many rows each person had.")
@click.option(
    "--owner",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The owner's key file (default: owner.key beside DECLARATIONS).",
)
@click.option("--dry-run", is_flag=True, help="Say what can be asked, and how many bytes a row takes; read no row.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def seal(
    declarations: Path, public: str, out: Path, counts: Path | None, owner: Path | None, dry_run: bool, as_json: bool
) -> None:
    """Seal an owner's table to a key holder: a batch of masked cells, to upload to the hub. Run it where the rows are. The
    owner's key signs it, and is made where it is missing; the key holder's operator is given its public half.

    \b
    cloister csp seal people.toml --to 5f3a… --out first.masked
    """
    from cloister.together import Journal, Sealer

    source, declared = _format(declarations)
    told: dict[str, Any] = {"bytes a row": declared.bytes_a_row, "format": declared.plain(), "bytes": 0}
    signed = ""
    if not dry_run:
        own_files()
        key = _owner(owner or declarations.with_name("owner.key"))
        sealer = Sealer(declared, _digits(public), counts=None if counts is None else Journal(counts), owner=key)
        told |= {"bytes": sealer.seal(source, out).stat().st_size, "owner": key.public.hex()}
        told |= {"rows": sealer.rows, "over max_rows": sealer.over}  # the owner's own numbers
        signed = f"\n{sealer.rows:,} rows count; {sealer.over:,} are left out, over the most that one person may have"
        signed += f"\nsigned by the owner {told['owner']}: for [owners] of csp.toml"
    words = f"{declared}\n{declared.bytes_a_row:,} bytes a row, {told['bytes']:,} in all{signed}"
    click.echo(json.dumps(told) if as_json else words)


@csp.command()
@_DATA
@click.option("--to", "public", required=True, help="The public key of the key holder that takes over (128 digits).")
@click.option("--out", required=True, type=FOLDER, help="The folder for the differences.")
def renew(data: Path, public: str, out: Path) -> None:
    """After this key holder's key was copied: write, for each batch, the difference to another key holder's pads, for the hub.

    \b
    cloister csp renew --data keys --to 5f3a… --out differences
    """
    from cloister.together import renewed

    with _opened(data) as here:
        written = renewed(here.holder, _digits(public), out)
        ledger = here.holder.ledger
        spent = {name: str(ledger.spent(name)) for name in ledger.populations()}
        here.log.add("renewed", {"batches": str(len(written)), "to": public[:16]})
    click.echo(f"{len(written)} differences in {out}: upload them in this order, and delete them")
    for name, each in spent.items():
        click.echo(shown(f"{name}: {each} is spent; the other key holder's budget is what is left"))


@csp.command()
@_DATA
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(data: Path, as_json: bool) -> None:
    """Show the key holder's public key, its budgets and what is spent, and its log; exit code 1 where an entry was changed.

    \b
    cloister csp show --data keys
    """
    from cloister.crypto import fingerprint

    with _opened(data) as here:
        ledger, broken = here.holder.ledger, here.log.broken()
        told = {
            "name": here.holder.name,
            "key": here.holder.public.hex(),
            "exact": fingerprint(here.holder.signing.public),
            "populations": {
                name: {"budget": str(ledger.budget(name)), "spent": str(ledger.spent(name))} for name in ledger.populations()
            },
            "log": list(here.log.entries()),
            "broken": broken,
        }
        if as_json:
            click.echo(json.dumps(told))
        else:
            show_key(here.holder.name, here.holder.public)
            click.echo(f"fingerprint {told['exact']}   in plans of exact components")
            show_log(here.log, ledger)
    end_if_broken(broken)


@dataclass(frozen=True, kw_only=True)
class _Here:
    holder: KeyHolder
    log: AuditLog
    settings: dict[str, Any]


def _run(data: Path, hub: str | None, certificate: Path | None, proxy: str | None) -> None:
    from cloister.together import KeyHolderAgent
    from cloister.together.agent import no_core_dumps

    no_core_dumps()
    own_files()
    _settings(data)  # of a folder that is none, the file that is missing is named
    with alone(data / "csp.lock", "key holder"), _opened(data) as here:
        try:
            key = bytes.fromhex(here.settings["hub_key"])
        except ValueError:
            key = b""
        if len(key) != 32:
            raise _invalid("hub_key is not the public key of a hub", 'hub_key = "…"   # 64 digits')
        address, known = hub or here.settings["hub"], here.settings["certificate"]
        click.echo(f"the key holder {here.holder.name!r} calls {address}")
        authority = certificate or (data / known if known else None)
        KeyHolderAgent(here.holder, key, exact=here.settings["exact"]).run(
            address, authority=authority, proxy=proxy or here.settings["proxy"], told=lambda text: click.echo(text, err=True)
        )


@contextlib.contextmanager
def _opened(data: Path) -> Iterator[_Here]:
    """The key holder of a folder, with its own key, ledger, journal and log."""
    from cloister.cli.declared import budget_of
    from cloister.ledger import Ledger
    from cloister.together import Journal, KeyHolder
    from cloister.together.owner import AuditLog, first_name

    own_files()
    settings = _settings(data)
    budgets = {name: budget_of(name, told) for name, told in settings["budgets"].items()}
    try:
        key = bytes.fromhex((data / "csp.key").read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        raise InvalidParameter(
            f"The key holder in {data.name} has no key", why="csp.key is missing or invalid", instead="cloister csp init"
        ) from None
    with Ledger(data / "ledger.db") as ledger:
        log = AuditLog(data / "audit-log.jsonl", ledger.derive("audit log", first_name(ledger, settings["name"])))
        holder = KeyHolder(
            settings["name"],
            budgets=budgets,
            owners=settings["owners"],
            key=key,
            ledger=ledger,
            journal=Journal(data / "charges"),
            a_day=settings["a_day"],
            most_batches=settings["batches"],
            note=log.add,
        )
        yield _Here(holder=holder, log=log, settings=settings)


def _settings(data: Path) -> dict[str, Any]:
    known = ("name", "hub", "hub_key", "certificate", "proxy", "a_day", "batches", "exact")
    told = settings_in(data / "csp.toml", "cloister csp init FOLDER --name NAME", key_holder=known)
    own, budgets = told.get("key_holder", {}), told.get("budgets", {})
    texts = {part: own.get(part, "") for part in known[:5]} if isinstance(own, dict) else {}
    if not texts.get("name") or not all(isinstance(each, str) for each in texts.values()) or not isinstance(budgets, dict):
        raise _invalid("it names no key holder", '[key_holder]\nname = "keys"')
    numbers = {part: own.get(part, usual) for part, usual in (("a_day", 1000), ("batches", 10_000))}
    if any(type(each) is not int or each < 1 for each in numbers.values()):
        raise _invalid("a_day or batches is not a number from 1", "a_day = 1000")
    if not isinstance(exact := own.get("exact", False), bool):
        raise _invalid("exact is true or false", "exact = false")
    owners = told.get("owners", {})
    try:
        keys = {name: [bytes.fromhex(each) for each in listed] for name, listed in owners.items()}
    except (AttributeError, TypeError, ValueError):
        keys = {"": [b""]}
    if any(len(each) != 32 for listed in keys.values() for each in listed):
        raise _invalid("[owners] is not a list of public keys for each population", 'patients = ["…"]   # 64 digits each')
    return {**texts, **numbers, "exact": exact, "budgets": budgets, "owners": keys}


def _owner(path: Path) -> SigningKey:
    """The owner's key in a file, made where there is none."""
    from cloister.crypto import SigningKey, make_key_file, new_key

    make_key_file(path, new_key().hex() + "\n")
    try:
        return SigningKey(bytes.fromhex(path.read_text(encoding="ascii").strip()))
    except (CloisterError, ValueError):
        raise InvalidParameter("--owner is invalid", why="the file has no key", instead="a file that is not there yet") from None


def _digits(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        why = "it has other characters than digits and a–f"
        raise InvalidParameter("--to is invalid", why=why, instead="cloister csp show") from None


def _format(path: Path) -> tuple[Any, MaskedFormat]:
    """An owner's table, and the format that it is sealed in."""
    from cloister.cli.declared import load
    from cloister.tables import PrivateTable
    from cloister.together import Marginal, MaskedFormat

    tables, _ = load(path)
    told = settings_in(path, "[[marginals]]")
    own = told.get("format", {})
    if len(tables) != 1 or not isinstance(next(iter(tables.values())), PrivateTable):
        raise _wrong(path, "one private table is sealed", "[tables.people]")
    [table] = tables.values()
    assert isinstance(table, PrivateTable)
    if table.through is not None or table.during is not None:
        raise _wrong(
            path, "rows are sealed as the file has them, and through or during says otherwise", "a file of the rows that count"
        )
    if table.population is None:
        raise _wrong(path, "the table names no population, whose budget the key holder charges", 'population = "patients"')
    try:
        found = MaskedFormat(
            columns=table.columns,
            marginals=tuple(Marginal(**each) for each in told.get("marginals", [])),
            population=table.population,
            unit=table.unit,
            max_rows=table.max_rows,
            **own,
        )
    except TypeError:
        raise _wrong(path, "its format has parts of another form", '[[marginals]]\nby = ["sex"]\nsums = ["age"]') from None
    return table.source, found


def _wrong(path: Path, why: str, instead: str) -> InvalidDeclaration:
    return InvalidDeclaration(f"The file {path.name} is invalid", why=why, instead=instead)


def _invalid(why: str, instead: str) -> InvalidDeclaration:
    return _wrong(Path("csp.toml"), why, instead)
