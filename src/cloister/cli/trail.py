"""`cloister audit-trail`: the hub's audit log, verified and exported, with or without a running hub."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cloister.hub.hub import Hub

_DATA = click.option(
    "--data", required=True, type=click.Path(path_type=Path, file_okay=False, exists=True), help="The hub's folder."
)
_SETTINGS = click.option(
    "--settings", type=click.Path(path_type=Path, dir_okay=False), help="The settings file (default: DIR/hub.toml)."
)


@click.group("audit-trail")
def audit_trail() -> None:
    """Verify or export the audit log: who did what, to what, when, why and at what cost.

    \b
    cloister audit-trail verify --data /srv/hub
    cloister audit-trail export --data /srv/hub > log.jsonl
    """


@audit_trail.command()
@_DATA
@_SETTINGS
def verify(data: Path, settings: Path | None) -> None:
    """Check every entry of the chain. Exit code 1, with the first broken line, if one was changed, dropped or rolled back.

    \b
    cloister audit-trail verify --data /srv/hub
    """
    from cloister.hub.platform.trail import verify as verify_trail

    with _hub(data, settings) as hub:
        outcome = verify_trail(hub)
    if not outcome:
        click.echo(f"BROKEN: {outcome}", err=True)
        sys.exit(1)
    click.echo("every line was checked: none was changed, dropped or rolled back")


@audit_trail.command()
@_DATA
@_SETTINGS
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "csv"]), default="jsonl", show_default=True, help="The file format."
)
@click.option("--person", default="", help="Entries of a person: an id, or a part of the address or the name.")
@click.option("--action", default="", help='Entries of an action, or of an area such as "dataset".')
@click.option("--object", "object_", default="", help="Entries about an object.")
@click.option("--since", default="", help="From this day on.")
@click.option("--until", default="", help="Up to this day.")
@click.option("--outcome", default="", help="done, denied or failed.")
def export(
    data: Path, settings: Path | None, form: str, person: str, action: str, object_: str, since: str, until: str, outcome: str
) -> None:
    """Print the entries, the oldest first.

    \b
    cloister audit-trail export --data /srv/hub --action question --since 2026-01-01 > questions.jsonl
    """
    from cloister.hub.platform.trail.reading import Filters, Scope
    from cloister.hub.platform.trail.reading import export as pieces

    asked = {"person": person, "action": action, "object": object_, "since": since, "until": until, "outcome": outcome}
    with _hub(data, settings) as hub:
        for piece in pieces(hub, "csv" if form == "csv" else "jsonl", Filters.of(asked), Scope()):
            sys.stdout.write(piece)


@audit_trail.command()
@_DATA
@_SETTINGS
@click.option("--who", required=True, help="The person who acknowledges the loss.")
@click.option("--why", required=True, help="The reason; the audit log keeps it.")
def accept(data: Path, settings: Path | None, who: str, why: str) -> None:
    """Acknowledge missing lines, for example after a restore; the log then verifies and records the gap.

    \b
    cloister audit-trail accept --data /srv/hub --who "data board" --why "the disk of May"
    """
    from cloister.hub.hub import Caller
    from cloister.hub.platform.trail import accept as accept_loss

    with _hub(data, settings) as hub:
        number = accept_loss(hub, Caller(name=who, via="system"), who=who, why=why)
        click.echo(f"written as line {number}")


def _hub(data: Path, settings: Path | None) -> Hub:
    """The hub with its audit log alone: no page, no worker."""
    from cloister.cli.hub import of_a_hub, settings_of
    from cloister.hub.hub import Hub
    from cloister.hub.platform.trail import SERVICE

    return Hub(of_a_hub(settings_of(data, settings)), [SERVICE])
