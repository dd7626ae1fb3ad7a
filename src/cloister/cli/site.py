"""`cloister site`: one owner's part in a joint table, as a process that dials out to its hub; and what the owner decides."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import sys
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.party import CERTIFICATE, PROXY, alone, end_if_broken, folder_option, own_files, settings_in, show_key, show_log
from cloister.cli.written import FILE, FOLDER
from cloister.errors import CloisterError, InvalidDeclaration, InvalidParameter
from cloister.printable import shown

if TYPE_CHECKING:
    from cloister.crypto import SigningKey
    from cloister.together import Site
    from cloister.together.owner import AuditLog, OwnersPolicy

_DATA = folder_option("The site's folder", "site")
_NEXT = "site.key.next"
"""The key of the roster after this one, until it takes the place of the present one."""
_STALE = "reread"
"""A file that is there while the owner waits for the rows to be read again."""
_TEMPLATE = """[site]
name = {name}
hub = "https://hub.example.org"
# certificate = "authority.pem"          # of the hub's certificate, where this system does not know it
# proxy = "http://proxy.example.org:3128"  # where the network has no other way out
time_limit = 300                         # seconds that one plan may take here

[policy]                                 # it and time_limit hold as soon as they are written; all else from the next start
otherwise = "ask me"                     # or "always", or "never"

# [[policy.rules]]                       # the first that fits decides; one without purpose or who fits any
# purpose = "quality report"
# who = "ada@example.org"
# table = "people"                       # where there are several
# answer = "always"

[tables.people]                          # as it is declared at every site
source = "people.csv"                    # or people.parquet, or "postgresql://…::people"

[tables.people.columns]
age = {{ kind = "integer", low = 17, high = 90 }}
sex = {{ kind = "category", values = ["F", "M"] }}

# more tables stand here alike; those without a population = "…" of their own are of the same people, under one budget

# [tables.towns]                         # a public table, which rows may be looked up in: the same file as the hub's
# source = "towns.csv"
# public = true

[budgets]
people = {{ rho = "0.5" }}
"""


@click.group(invoke_without_command=True)
@_DATA
@click.option("--hub", help="The hub's address (default: that of site.toml).")
@CERTIFICATE
@PROXY
@click.option("--with-parent", is_flag=True, hidden=True, help="End when standard input is closed, as when the parent is killed.")
@click.pass_context
def site(
    context: click.Context, data: Path, hub: str | None, certificate: Path | None, proxy: str | None, with_parent: bool
) -> None:
    """Run a site: the rows stay in this process, and it calls the hub. Ends with SIGTERM or Ctrl-C, and goes on where it was.

    \b
    cloister site init north --name north
    cloister site --data north --hub https://hub.example.org
    cloister site plans --data north
    """
    if with_parent:
        threading.Thread(target=_end_with_input, daemon=True).start()
    if context.invoked_subcommand is None:
        _run(data, hub, certificate, proxy)
    elif data != context.command.params[0].default:  # else "site --data north show" would show another folder
        context.default_map = {context.invoked_subcommand: {"data": data}}


@site.command()
@click.argument("folder", type=FOLDER)
@click.option("--name", required=True, help="The site's name in the roster.")
def init(folder: Path, name: str) -> None:
    """Make a site's folder: its key, and a site.toml to fill in. Prints the public key for the roster, and its fingerprint.

    \b
    cloister site init north --name north
    """
    from cloister.crypto import make_key_file, new_key
    from cloister.together.roster import is_name

    if not is_name(name):
        raise InvalidParameter(f"--name {shown(name)!r} is invalid", why="it can't be shown in a line", instead="--name north")
    own_files()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "site.toml").exists():
        (folder / "site.toml").write_text(_TEMPLATE.format(name=json.dumps(name, ensure_ascii=False)), encoding="utf-8")
    if (held := _settings(folder).name) != name:
        raise InvalidParameter(f"--name {name!r} is invalid", why="site.toml says another", instead=f"--name {held!r}")
    make_key_file(folder / "site.key", new_key().hex())
    show_key(name, _key(folder).public)
    click.echo(f"now fill in {folder / 'site.toml'}, and give the hub the public key")


@site.command()
@click.argument("roster", type=FILE)
@_DATA
@click.option("--yes", is_flag=True, help="Sign without asking: the fingerprints were compared before.")
def sign(roster: Path, data: Path, yes: bool) -> None:
    """Sign a roster, after comparing its fingerprints with the other owners (by phone, not through the hub).

    \b
    cloister site sign roster.json --data north
    """
    from cloister.crypto import fingerprint
    from cloister.together import Roster

    key, name = _key(data), _settings(data).name
    after = _key(data, _NEXT) if (data / _NEXT).exists() else None
    try:
        found = Roster.from_plain(json.loads(roster.read_text(encoding="utf-8-sig")))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidParameter(
            f"The file {roster.name} is invalid", why="it is not a roster", instead="the roster as its hub shows it"
        ) from None
    rotates = after is not None and found.sites.get(name) == after.public
    if not rotates and found.sites.get(name) != key.public:
        why = f"{name!r} is not in it under this key"
        raise InvalidDeclaration("The roster was not signed", why=why, instead="cloister site init")
    gone = len(found.sites) - found.quorum
    click.echo(
        f"roster number {found.epoch} of {len(found.sites)} sites; {found.missing} may collude with the hub, {gone} may drop out",
        err=True,
    )
    for other, digits in {**found.fingerprints(), "the hub": fingerprint(found.hub)}.items():
        click.echo(f"  {digits}  {other}", err=True)
    if not yes:
        click.confirm("Did every owner read out the same fingerprints?", abort=True, err=True)
    signatures = [each.sign(found.text).hex() for each in ((after, key) if rotates and after is not None else (key,))]
    click.echo(json.dumps({name: "".join(signatures)}))


@site.command()
@_DATA
@click.option("--finish", is_flag=True, help="Take the new key from now on: the hub has the roster with it.")
def rotate(data: Path, finish: bool) -> None:
    """Change the site's key. First make another one, for the next roster; sign that roster, by both keys; when the hub has it,
    stop the site, and finish.

    \b
    cloister site rotate --data north
    cloister site sign roster.json --data north
    cloister site rotate --data north --finish
    """
    from cloister.crypto import make_key_file, new_key

    own_files()
    name = _settings(data).name
    if not finish:
        make_key_file(data / _NEXT, new_key().hex())
        show_key(name, _key(data, _NEXT).public)
        return
    with alone(data / "site.lock", "site"):
        if not (data / _NEXT).exists() and any(data.glob("site.key.*")):
            click.echo("the rotation is finished: the site has the new key", err=True)
        elif _key(data, _NEXT):  # refused where it is missing or invalid
            make_key_file(data / f"site.key.{_key(data).public.hex()[:8]}", (data / "site.key").read_text(encoding="ascii"))
            (data / _NEXT).replace(data / "site.key")
    show_key(name, _key(data).public)


@site.command()
@_DATA
def reread(data: Path) -> None:
    """Have the running site read its rows again, because they have changed. It answers meanwhile.

    \b
    cloister site reread --data north
    """
    _settings(data)
    (data / _STALE).touch()
    said = "the running site reads its rows again within half a minute; `cloister site show` says when it did"
    with contextlib.suppress(InvalidParameter), alone(data / "site.lock", "site"):
        said = "no site runs here: it reads its rows when it starts"
    click.echo(said)


@site.command()
@_DATA
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def rows(data: Path, as_json: bool) -> None:
    """Show how the rows are read: lines that are left out, values that count as missing or are moved to a bound. They are exact
    numbers and values of your rows, and for you alone: nothing of this is sent to the hub.

    \b
    cloister site rows --data north
    """
    from cloister.cli.declared import load
    from cloister.cli.rows import show_rows

    _settings(data)
    show_rows(load(data / "site.toml")[0], as_json=as_json)


@site.command()
@_DATA
@click.option("--all", "every", is_flag=True, help="Show those that are decided or used, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plans(data: Path, every: bool, as_json: bool) -> None:
    """Show the plans that wait for the owner, in words.

    \b
    cloister site plans --data north
    """
    found = _policy(data, _settings(data)).plans("" if every else "waiting")
    if as_json:
        click.echo(json.dumps(found))
        return
    for each in found:
        click.echo(f"{each['plan']}  {each['state']}")
        if each.get("before"):
            click.echo("  the same question was answered before; another answer is charged again")
        for line in each["words"].splitlines():
            click.echo(f"  {line}")
    click.echo(f"{len(found)} plans" if found else "no plan waits")


@site.command()
@click.argument("plan")
@_DATA
def approve(plan: str, data: Path) -> None:
    """Allow a plan, for one charge.

    \b
    cloister site approve 5f3a0c11d2e4 --data north
    """
    _policy(data, _settings(data)).decide(plan, "allowed")
    click.echo(f"{plan} is allowed, for one charge")


@site.command()
@click.argument("plan")
@_DATA
def deny(plan: str, data: Path) -> None:
    """Deny a plan, until it is allowed.

    \b
    cloister site deny 5f3a0c11d2e4 --data north
    """
    _policy(data, _settings(data)).decide(plan, "denied")
    click.echo(f"{plan} is denied")


@site.command()
@_DATA
def results(data: Path) -> None:
    """Print the exact components that this site took part in, as JSON: one a line. They are not differentially private.

    \b
    cloister site results --data north
    """
    from cloister.together import Journal
    from cloister.together.exact.site import RESULTS

    _settings(data)
    kept = Journal(data / "rounds")
    names = kept.of(RESULTS).names() if kept.has(RESULTS) else []
    for name in names:
        click.echo((kept.of(RESULTS).get(name) or b"").decode())


@site.command()
@_DATA
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(data: Path, as_json: bool) -> None:
    """Show the site's key, budget, what is spent, and its audit log; exit code 1 where an entry was changed.

    \b
    cloister site show --data north
    """
    from cloister.ledger import Ledger
    from cloister.together.owner import AuditLog

    try:
        with _opened(data) as here:
            site, broken = next(iter(here.sites.values())), here.log.broken()
            tables = {name: _spent(each) for name, each in here.sites.items()}
            told = {"name": site.name, "key": site.public.hex(), **_spent(site), "tables": tables, "broken": broken}
            told |= {"rosters": [signed.roster.digest for signed in site.joined()], "log": list(here.log.entries())}
            if as_json:
                click.echo(json.dumps(told))
            else:
                show_key(site.name, site.public)
                people = [each.population for each in here.sites.values()]
                named = {each: [name for name, own in zip(tables, people, strict=True) if own == each] for each in people}
                show_log(here.log, site.ledger, named if len(tables) > 1 else dict.fromkeys(people, ()))
    except CloisterError:  # a table that can't be opened keeps nobody from seeing what was spent
        if not as_json and (data / "ledger.db").exists():
            with Ledger(data / "ledger.db") as ledger:
                show_log(AuditLog(data / "audit-log.jsonl", bytes(32)), ledger)
        raise
    end_if_broken(broken)


def _spent(site: Site) -> dict[str, Any]:
    ledger, population = site.ledger, site.population
    told = {"population": population, "budget": str(ledger.budget(population)), "spent": str(site.spent)}
    return {**told, "unbounded": ledger.unbounded(population)}


@dataclass(frozen=True, kw_only=True)
class _Settings:
    name: str
    hub: str
    certificate: str
    proxy: str
    time_limit: float
    policy: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class _Here:
    sites: dict[str, Site]
    """By the names of their tables: one of several tables has the same name, key, ledger and journal as the others."""
    log: AuditLog
    settings: _Settings


def _run(data: Path, hub: str | None, certificate: Path | None, proxy: str | None) -> None:
    from cloister.together.agent import SiteAgent, no_core_dumps

    no_core_dumps()
    own_files()
    _settings(data)  # of a folder that is none, the file that is missing is named
    with alone(data / "site.lock", "site"), _opened(data) as here:
        _asked_again(data)  # it reads them now
        agent = SiteAgent(here.sites, note=here.log.add, stale=lambda: _asked_again(data))
        agent.look = functools.partial(_follow, data, here, [(data / "site.toml").read_bytes()])
        address = hub or here.settings.hub
        authority = certificate or (data / here.settings.certificate if here.settings.certificate else None)
        click.echo(f"the site {here.settings.name!r} calls {address}")
        through = proxy or here.settings.proxy
        agent.run(address, authority=authority, proxy=through, told=lambda text: click.echo(text, err=True))


def _follow(data: Path, here: _Here, seen: list[bytes]) -> None:
    """Where the owner changed the file, its rules and time limit hold from now on; where it is wrong, those that did."""
    try:
        text = (data / "site.toml").read_bytes()
    except OSError:  # an editor puts another in its place
        text = b""
    if text != seen[0]:
        seen[0], event, details = text, "read", {"what": "site.toml"}
        try:
            settings = _settings(data)
            for each, policy in [(each, _policy(data, settings, name, here.sites)) for name, each in here.sites.items()]:
                each.policy, each.time_limit = policy, settings.time_limit
        except CloisterError as error:
            event, details = "not read", {"what": error.what, "why": error.why, "instead": error.instead}
        here.log.add(event, details)


def _asked_again(data: Path) -> bool:
    """Whether the owner asked for a new reading since this was looked at last."""
    try:
        (data / _STALE).unlink()
    except OSError:  # nobody did, or the disk can't be written
        return False
    return True


@contextlib.contextmanager
def _opened(data: Path) -> Iterator[_Here]:
    """The site of a folder, with its own key, ledger, journal, policy and log."""
    from cloister.cli.declared import load
    from cloister.ledger import Ledger
    from cloister.tables import PrivateTable, PublicTable
    from cloister.together import Journal, Site
    from cloister.together.owner import AuditLog, first_name

    own_files()
    settings = _settings(data)
    tables, budgets = load(data / "site.toml")
    private = {name: table for name, table in tables.items() if isinstance(table, PrivateTable)}
    public = {name: table for name, table in tables.items() if isinstance(table, PublicTable)}
    if not private:
        raise _invalid("a site has a private table", "[tables.people], without public = true")
    with Ledger(data / "ledger.db") as ledger:
        key, journal, sites = _key(data), Journal(data / "rounds"), dict[str, Site]()
        first = first_name(ledger, settings.name)
        people = {name: table.population or first for name, table in private.items()}
        new = {
            population: [budgets[name] for name in private if people[name] == population and name in budgets]
            for population in people.values()
        }
        for name, table in private.items():
            known, given = people[name] in ledger.populations(), new[people[name]]
            if not known and not given:
                raise _invalid(f"the table {name!r} has no budget", f'[budgets]\n{name} = {{ rho = "0.5" }}')
            if not known and any(each != given[0] for each in given):
                raise _invalid(
                    f"the tables of the same people {people[name]!r} have two budgets", "[budgets] for one of them alone"
                )
            sites[name] = Site(
                settings.name,
                PrivateTable.declared(table.source, table.columns, like=table, population=people[name]),
                public_tables=public,
                budget=None if known else given[0],
                ledger=ledger,
                policy=_policy(data, settings, name, private),
                key=key,
                journal=journal,
                time_limit=settings.time_limit,
                label=name if len(private) > 1 else "",
            )
        log = AuditLog(data / "audit-log.jsonl", ledger.derive("audit log", first))
        yield _Here(sites=sites, log=log, settings=settings)


def _settings(data: Path) -> _Settings:
    from cloister.session.questions.limits import checked_limit
    from cloister.together.site import TIME_LIMIT

    known = ("name", "hub", "certificate", "proxy", "time_limit")
    told = settings_in(data / "site.toml", "cloister site init FOLDER --name NAME", site=known)
    own, policy = told.get("site", {}), told.get("policy", {})
    texts = {part: own.get(part, "") for part in known[:4]} if isinstance(own, dict) else {}
    if not all(isinstance(each, str) for each in texts.values()) or not texts.get("name") or not isinstance(policy, dict):
        raise _invalid("it names no site", '[site]\nname = "north"')
    limit = own.get("time_limit", TIME_LIMIT)
    try:
        checked_limit(limit)
    except InvalidParameter as error:
        raise _invalid(error.what.replace("=", " = "), "[site]\ntime_limit = 300") from None
    return _Settings(**texts, time_limit=limit, policy=policy)


def _policy(data: Path, settings: _Settings, table: str = "", tables: Collection[str] = ()) -> OwnersPolicy:
    """The owner's rules about a table: those that name no other."""
    from cloister.together import Journal
    from cloister.together.owner import OwnersPolicy, Rule

    rules, unknown = settings.policy.get("rules", []), set(settings.policy) - {"rules", "otherwise"}
    try:
        if unknown:
            raise TypeError
        named = [({"table": "", **rule}, {part: rule[part] for part in rule if part != "table"}) for rule in rules]
        found = [Rule(**rest) for rule, rest in named if rule["table"] in ("", table)]
        found.append(Rule(answer=settings.policy.get("otherwise", "ask me")))
        absent = [rule["table"] for rule, _ in named if rule["table"] not in ("", *tables)] if tables else []
    except TypeError:
        raise _invalid("its policy has rules of another form", '[[policy.rules]]\npurpose = "…"\nanswer = "always"') from None
    if absent:
        raise _invalid(f"a rule is about the table {absent[0]!r}, which is none of its private ones", f'table = "{table}"')
    return OwnersPolicy(found, journal=Journal(data))


def _key(data: Path, file: str = "site.key") -> SigningKey:
    from cloister.crypto import SigningKey

    try:
        return SigningKey(bytes.fromhex((data / file).read_text(encoding="ascii").strip()))
    except (OSError, ValueError):
        raise InvalidParameter(
            f"The site in {data.name} has no key",
            why=f"{file} is missing or invalid",
            instead="cloister site init" if file == "site.key" else "cloister site rotate",
        ) from None


def _end_with_input() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _invalid(why: str, instead: str) -> InvalidDeclaration:
    return InvalidDeclaration("The file site.toml is invalid", why=why, instead=instead)
