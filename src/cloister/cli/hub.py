"""`cloister hub`: a hub for an institution; what is wrong with its settings; its keys and links. `cloister worker`: a process
that runs its jobs and nothing else.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import functools
import json
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.written import FILE, FOLDER
from cloister.errors import CloisterError, InvalidParameter
from cloister.lazily import needing

if TYPE_CHECKING:
    from cloister.hub.checking import Weakness
    from cloister.hub.hub import Hub
    from cloister.hub.settings import Settings

_HERE = Path("hub")
_DATA = click.option("--data", type=FOLDER, help="The hub's folder (default: CLOISTER_HUB_DATA, or ./hub).")
_SETTINGS = click.option(
    "--settings",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The settings file (default: hub.toml in the folder).",
)


def _with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """The settings of the hub, as the options of the command say, or else those that were named before it."""

    @functools.wraps(command)
    def called(context: click.Context, /, data: Path | None, file: Path | None, **given: Any) -> None:
        before, before_file, others = context.obj
        command(settings_of(data or before, file or before_file, **others), **given)

    return _DATA(_SETTINGS(click.pass_context(called)))


@click.group(invoke_without_command=True)
@_DATA
@_SETTINGS
@click.option("--host", help="The address to listen on.")
@click.option("--port", type=int, help="The port to listen on.")
@click.option("--pg-port", type=int, help="The port for PostgreSQL clients.")
@click.option("--database", help="postgresql://… of the hub's own database, for several processes.")
@click.option("--ledger", help="postgresql://… of the ledger (default: that of --database).")
@click.pass_context
def hub(context: click.Context, /, data: Path | None, file: Path | None, **given: Any) -> None:
    """Run a hub: people, data sets, budgets and queries, in a browser, in Python and in psql.

    \b
    cloister hub --data /srv/cloister
    cloister hub check --data /srv/cloister
    cloister hub link --data /srv/cloister
    """
    if given["database"] and not given["ledger"]:
        given["ledger"] = given["database"]
    context.obj = (data, file, given)
    if context.invoked_subcommand is None:
        _serve(settings_of(data, file, **given))


@hub.command()
@_with_settings
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(settings: Settings, as_json: bool) -> None:
    """Report errors and weaknesses of the settings, what is not installed, stored grants, rules, policies and rows that can't be
    read, and which sandboxes for guests this machine has; exit code 1 where something is wrong.

    \b
    cloister hub check --data /srv/cloister
    """
    from cloister.guests.sandbox.environments import environments
    from cloister.guests.sandbox.opening import sandboxes
    from cloister.hub.checking import unoffered, weaknesses

    found, held = weaknesses(settings) + unoffered(), sandboxes()
    unreadable = _stored(settings, found)
    if as_json:
        told = [{"setting": weak.name, "grave": weak.grave, "why": weak.why, "instead": weak.instead} for weak in found]
        rows = [{"what": what, "why": why} for what, why in unreadable]
        about = {"settings": settings.shown(), "weaknesses": told, "unreadable": rows, "sandboxes": dict(held)}
        about["environments"] = {each.name: each.digest for each in environments()}
        click.echo(json.dumps(about))
    else:
        for name, value in settings.shown().items():
            click.echo(f"{name} = {value}")
        click.echo("")
        for name, why in held:
            click.echo(f"sandbox: {name}: {why or 'there'}")
        for each in environments():
            click.echo(f"environment of guests: {each.name}: {each.digest[:16]}, {', '.join(each.distributions)}")
        click.echo("")
        lines = [str(weak) for weak in found]
        instead = "end it on the hub's pages, and write it once more; a damaged row: put a backup back"
        lines += [f"{what} can't be read: {why}\n  Instead: {instead}" for what, why in unreadable]
        click.echo("\n".join(lines) or "nothing is wrong or weak")
    if unreadable or any(weak.grave for weak in found):
        sys.exit(1)


@hub.command()
def key() -> None:
    """Print a new master key.

    \b
    cloister hub key > master.key
    """
    from cloister.crypto import new_key

    click.echo(base64.b64encode(new_key()).decode())


@hub.command()
@click.argument("email", required=False)
@_with_settings
def link(settings: Settings, email: str | None) -> None:
    """Print a one-time link: the first administrator's, or one to reset a person's password.

    \b
    cloister hub link --data /srv/cloister
    cloister hub link ada@example.org --data /srv/cloister
    """
    from cloister.hub.platform.accounts import first_link

    with open_hub(_beside(of_a_hub(settings) if email else settings)) as opened:
        found = _password_link(opened, email) if email else first_link(opened)
    if found is None:
        raise InvalidParameter("No link was made", why="this hub has people already", instead="cloister hub link ada@example.org")
    click.echo(found)


@hub.command("rotate-key")
@click.argument("new", type=FILE)
@_with_settings
def rotate_key(settings: Settings, new: Path) -> None:
    """Re-encrypt every stored key under a new master key.

    Stop the hub and its workers first; after an interruption, run it again.

    \b
    cloister hub key > new.key
    cloister hub rotate-key new.key --data /srv/cloister
    """
    from cloister.crypto import WrongKey
    from cloister.hub.keys import hub_keyring, master_key, rotate
    from cloister.hub.locks import exclusive_lock

    of_a_hub(settings)
    with exclusive_lock(settings, "The master key was not changed"):
        try:
            opened = open_hub(settings, services=False)
        except WrongKey:  # a run that was interrupted had done all of it
            opened = open_hub(dataclasses.replace(settings, master_key="", master_key_file=str(new)), services=False)
        with opened:
            counted = rotate(opened, hub_keyring(master_key(None, new, make=False)))
    click.echo(f"{counted} keys are wrapped by {new.name}; put it in the place of the old one before the hub starts")


@hub.command()
@click.argument("database")
@click.option("--ledger", default="", help="postgresql://… of the ledger (default: the same database).")
@click.option("--dry-run", is_flag=True, help="Copy and compare everything, then undo it.")
@_with_settings
def move(settings: Settings, database: str, ledger: str, dry_run: bool) -> None:
    """Copy a hub's databases to PostgreSQL, or back into its folder ("files"), and compare every row.

    Stop the hub and its workers first. The old databases stay as they are.

    \b
    cloister hub move postgresql://hub@db.example.org/hub --dry-run --data /srv/cloister
    cloister hub move postgresql://hub@db.example.org/hub --data /srv/cloister
    cloister hub move files --data /srv/cloister
    """
    from cloister.hub import moving
    from cloister.hub.locks import exclusive_lock

    of_a_hub(settings)
    with exclusive_lock(settings, "The hub was not moved"), open_hub(settings, services=False) as opened:
        found = moving.move(opened, database, ledger, dry_run=dry_run)
    click.echo(f"{found.rows} rows of {found.tables} tables and {found.lines} lines of the ledger were copied and compared")
    if dry_run:
        click.echo("and undone: nothing has changed")
    elif database == moving.FILES:
        click.echo("now take the lines database and ledger out of hub.toml, and start the hub")
    else:
        click.echo("now put the addresses into hub.toml as database and ledger, and start the hub")
        click.echo(
            "hub.db and ledger.db are as they were: keep them until the hub has run for a while, and start nothing on them"
        )


@hub.command()
@click.argument("folder", type=FOLDER)
@_with_settings
def backup(settings: Settings, folder: Path) -> None:
    """Copy a hub into a new folder while it runs: databases, encrypted tables, the head of the audit log.

    The master key is left out on purpose.

    \b
    cloister hub backup /backup/monday --data /srv/cloister
    """
    from cloister.hub.backup import back_up as copied

    count = copied(settings, folder)
    click.echo(f"{count} files are in {folder}, with a manifest")
    click.echo("left out on purpose: master.key and hub.toml; keep them elsewhere, since who has both has the data")


@hub.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@_with_settings
def restore(settings: Settings, folder: Path) -> None:
    """Restore a backup in place of a lost hub. Its ledger stays frozen until the total spending is entered.

    \b
    cloister hub restore /backup/monday --data /srv/cloister
    cloister ledger restore /srv/cloister --loss people=0.7 --who "data board" --why "disk of May"
    """
    from cloister.cli.ledgers import thawing
    from cloister.hub.backup import put_back as placed
    from cloister.hub.locks import exclusive_lock

    with exclusive_lock(settings, "The backup was not put back"):
        count = placed(folder, settings)
    click.echo(f"{count} files are back in {settings.data}")
    click.echo("sessions and links ended; tokens, grants and roles are as they were then: revoke again what was revoked since")
    key = Path(settings.master_key_file) if settings.master_key_file else settings.path("master.key")
    if not settings.master_key and not key.is_file():
        click.echo(f"now put the hub's master key back as {key}: without it nothing can be read")
        click.echo(f"then: cloister ledger show {shlex.quote(str(settings.data))}")
        return
    with open_hub(settings, services=False) as opened:
        frozen = opened.ledger.frozen
    if frozen is None:
        click.echo("the ledger lacks nothing that its head knows, and is open")
        return
    click.echo(f"the ledger is frozen: {frozen.reason}")
    click.echo(f"its owner says what was spent in all: {thawing(settings.data, frozen)}")
    click.echo(f"the trail tells what it lacks: cloister audit-trail verify --data {shlex.quote(str(settings.data))}")


def open_hub(settings: Settings, *, services: bool = True) -> Hub:
    """The hub of a folder, opened in this process."""
    from cloister.hub.hub import Hub
    from cloister.hub.services import all_services

    return Hub(settings, all_services() if services else [])


def of_a_hub(settings: Settings) -> Settings:
    """The settings of a hub that is there: what looks at a hub makes none in a folder that has another name."""
    if not _is_there(settings):
        where = str(settings.data)
        raise InvalidParameter(
            f"The hub {where!r} is invalid", why="there is none in this folder", instead="the folder of a hub, as /srv/cloister"
        )
    return settings


def _is_there(settings: Settings) -> bool:
    return bool(settings.database) or settings.path("hub.db").is_file()


def _stored(settings: Settings, found: list[Weakness]) -> list[tuple[str, str]]:
    """What is stored and can't be read, and why; where the ledger is frozen, that is found first."""
    unreadable: list[tuple[str, str]] = []
    if not _is_there(settings):
        return unreadable
    from cloister.cli.ledgers import thawing
    from cloister.hub.checking import Weakness

    if not settings.ledger and not settings.path("ledger.db").is_file():  # one would be made
        why = "ledger.db is missing, and so is what was spent"
        found.insert(0, Weakness(name="ledger", why=why, instead="put it back from the backup of hub.db"))
        return unreadable
    from cloister.hub.hub import Hub
    from cloister.hub.migrations import waits_for_steps
    from cloister.hub.platform.access.views import every_unreadable_view
    from cloister.hub.services import all_services

    all_services()  # what one of them lets people do is an action that grants name
    try:
        with Hub(settings, (), migrate=False) as opened:
            if waits_for_steps(opened.database):
                why = "what is stored was not looked at: the hub was not started since cloister was updated"
                found.append(Weakness(name="data", why=why, instead="start the hub, and check it then", grave=False))
                return unreadable
            unreadable, frozen = every_unreadable_view(opened.database), opened.ledger.frozen
        if frozen is not None:
            instead = thawing(settings.data, frozen)
            found.insert(0, Weakness(name="ledger", why=f"it is frozen: {frozen.reason}", instead=instead))
    except CloisterError as error:
        found.insert(0, Weakness(name="data", why=f"what is stored was not looked at: {error.why}", instead=error.instead))
    return unreadable


def _beside(settings: Settings) -> Settings:
    """For a command that serves nobody, beside a hub that does: it listens to no client, and takes no job from the others."""
    return dataclasses.replace(settings, pg_port=0, workers=0)


def settings_of(data: Path | None, file: Path | None = None, **given: Any) -> Settings:
    """The settings of the hub in a folder, where the hub's parts are installed."""
    with needing("The hub was not started", "its parts are not installed", "hub"):
        from cloister.hub.settings import load
    return load(data or Path(os.environ.get("CLOISTER_HUB_DATA") or _HERE), file=file, environment=os.environ, **given)


def _password_link(opened: Hub, address: str) -> str:
    from cloister.hub.hub import Caller
    from cloister.hub.platform.accounts.links import password_link
    from cloister.hub.records.accounts import person_of_address

    with opened.database.begin() as db:
        person = person_of_address(db, address)
        if person is None:
            why = "no one here has this e-mail address"
            raise InvalidParameter("No link was made", why=why, instead="the page /people, to invite")
        return password_link(opened, db, Caller(name="command line", via="system"), person)


def _serve(settings: Settings) -> None:
    from cloister.hub.checking import weaknesses
    from cloister.hub.locks import serving_lock
    from cloister.hub.platform.accounts import first_link
    from cloister.hub.serving import bound, private_files, serve
    from cloister.hub.serving import check as checked

    checked(settings)
    with serving_lock(settings), private_files(), contextlib.ExitStack() as held:
        free = f"port = {8766 if settings.port == 8765 else 8765}, or another that is free"
        at = bound(settings.host, settings.port, "The hub was not started", free)
        for each in at:
            held.enter_context(each)
        opened = held.enter_context(open_hub(settings))
        first = first_link(opened)

        def ready() -> None:
            click.echo(f"{settings.title} is at {settings.origin}")
            if first is not None:
                click.echo(f"nobody is in it yet; this link, used once, makes the administrator:\n  {first}")
            for weak in weaknesses(settings):
                click.echo(str(weak), err=True)

        serve(opened, ready=ready, at=at, ends=True)


@click.command()
@click.option("--data", required=True, type=click.Path(path_type=Path, file_okay=False, exists=True), help="The hub's folder.")
@click.option("--settings", type=click.Path(path_type=Path, dir_okay=False), help="The settings file (default: DIR/hub.toml).")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1, 64), help="Number of jobs that run at once.")
@click.option("--grace", default=30.0, show_default=True, type=click.FloatRange(0), help="Seconds to finish when asked to stop.")
def worker(data: Path, settings: Path | None, jobs: int, grace: float) -> None:
    """Run a hub's jobs. SIGTERM lets the current jobs finish, and returns those that take longer than the grace period.

    \b
    cloister worker --data /srv/hub
    cloister worker --data /srv/hub --jobs 2 --grace 120
    """
    from cloister.hub.locks import shared_lock
    from cloister.hub.platform.jobs import stop_workers
    from cloister.hub.serving import end_by

    chosen = dataclasses.replace(of_a_hub(settings_of(data, settings)), workers=jobs, pg_port=0)
    told = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: told.set())
    with shared_lock(chosen, "The worker was not started"), open_hub(chosen) as opened:
        click.echo(f"ready: {jobs} at once, for {chosen.title}")
        told.wait()
        click.echo("ending")
        end_by(grace + 5)
        stop_workers(opened, grace)
