"""`cloister hub`: a hub for an institution; what is wrong with its settings; its keys and links."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.errors import InvalidParameter, MissingDependency

if TYPE_CHECKING:
    from cloister.hub.hub import Hub
    from cloister.hub.settings import Settings

__all__ = ["hub", "open_hub"]

_DATA = click.option(
    "--data", type=click.Path(file_okay=False, path_type=Path), default=Path("hub"), show_default=True, help="The hub's folder."
)
_SETTINGS = click.option(
    "--settings",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The settings file; without it, hub.toml in the folder.",
)


@click.group(invoke_without_command=True)
@_DATA
@_SETTINGS
@click.option("--host", help="The address to listen on.")
@click.option("--port", type=int, help="The port to listen on.")
@click.option("--pg-port", type=int, help="The port for PostgreSQL clients.")
@click.option("--database", help="postgresql://… of the hub's own database, for several processes.")
@click.option("--ledger", help="postgresql://… of the ledger; without it, the one of --database.")
@click.pass_context
def hub(context: click.Context, data: Path, file: Path | None, **given: Any) -> None:
    """Run a hub: people, data sets, budgets and questions, in a browser, in Python and in psql.

    \b
    cloister hub --data /srv/cloister
    cloister hub --data /srv/cloister check
    cloister hub --data /srv/cloister link
    """
    if given["database"] and not given["ledger"]:
        given["ledger"] = given["database"]
    context.obj = (data, file, given)
    if context.invoked_subcommand is None:
        _serve(_settings(context))


@hub.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def check(context: click.Context, as_json: bool) -> None:
    """Say what is wrong or weak about the settings; exit code 1 where something is wrong.

    \b
    cloister hub --data /srv/cloister check
    """
    from cloister.hub.settings import weaknesses

    settings = _settings(context)
    found = weaknesses(settings)
    if as_json:
        told = [{"setting": weak.name, "grave": weak.grave, "why": weak.why, "instead": weak.instead} for weak in found]
        click.echo(json.dumps({"settings": settings.shown(), "weaknesses": told}))
    else:
        for name, value in settings.shown().items():
            click.echo(f"{name} = {value}")
        click.echo("")
        click.echo("\n".join(str(weak) for weak in found) or "nothing is wrong or weak")
    if any(weak.grave for weak in found):
        context.exit(1)


@hub.command()
def key() -> None:
    """Print a new master key.

    \b
    cloister hub key > master.key
    """
    from cloister.noise import default_random

    click.echo(base64.b64encode(default_random().bytes(32)).decode())


@hub.command()
@click.argument("email", required=False)
@click.pass_context
def link(context: click.Context, email: str | None) -> None:
    """Print a one-time link: the first administrator's, or one with which a person sets a new password.

    \b
    cloister hub --data /srv/cloister link
    cloister hub --data /srv/cloister link ada@example.org
    """
    from cloister.hub.services.accounts import first_link, password_link

    with open_hub(_settings(context)) as opened:
        found = password_link(opened, email) if email else first_link(opened)
    if found is None:
        raise InvalidParameter("No link was made", why="this hub has people already", instead="cloister hub link ada@example.org")
    click.echo(found)


@hub.command("rotate-key")
@click.argument("new", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.pass_context
def rotate_key(context: click.Context, new: Path) -> None:
    """Wrap every stored key by a new master key. The hub must not be running; interrupted, it is simply run again.

    \b
    cloister hub key > new.key
    cloister hub --data /srv/cloister rotate-key new.key
    """
    from cloister.hub.keys import Keys, master_key
    from cloister.hub.rotation import rotate

    settings = _settings(context)
    with open_hub(settings, services=False) as opened:
        counted = rotate(opened, Keys(master_key(None, new, make=False)))
    click.echo(f"{counted} keys are wrapped by {new.name}; put it in the place of the old one before the hub starts")


def open_hub(settings: Settings, *, services: bool = True) -> Hub:
    """The hub of a folder, opened in this process."""
    from cloister.hub.hub import Hub
    from cloister.hub.services import all_services

    return Hub(settings, all_services() if services else [])


def _settings(context: click.Context) -> Settings:
    try:
        from cloister.hub.settings import load
    except ImportError:
        raise MissingDependency(
            "The hub was not started", why="its parts are not installed", instead='pip install "cloister[hub]"'
        ) from None
    data, file, given = context.obj
    return load(data, file=file, environment=os.environ, **given)


def _serve(settings: Settings) -> None:
    from cloister.hub.services.accounts import first_link
    from cloister.hub.serving import check as checked
    from cloister.hub.serving import serve
    from cloister.hub.settings import weaknesses

    checked(settings)
    with open_hub(settings) as opened:
        first = first_link(opened)

        def ready() -> None:
            click.echo(f"{settings.title} is at {settings.origin}")
            if first is not None:
                click.echo(f"nobody is in it yet; this link, used once, makes the administrator:\n  {first}")
            for weak in weaknesses(settings):
                click.echo(str(weak), err=True)

        serve(opened, ready=ready)
