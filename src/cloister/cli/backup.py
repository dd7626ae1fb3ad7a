"""`cloister hub backup` and `cloister hub restore`: a hub's folder copied while it runs, and put back."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cloister.hub.settings import Settings


def back_up(settings: Settings, folder: Path) -> None:
    """Copy the hub, and say what was left out."""
    from cloister.hub.backup import back_up as copied

    count = copied(settings, folder)
    click.echo(f"{count} files are in {folder}, with a manifest")
    click.echo("left out on purpose: master.key and hub.toml; keep them elsewhere, since who has both has the data")


def put_back(settings: Settings, folder: Path) -> None:
    """Put a backup back, and say what its owner has to do now."""
    from cloister.cli.hub import open_hub
    from cloister.cli.ledgers import loss_option
    from cloister.hub.backup import put_back as placed

    count = placed(folder, settings)
    click.echo(f"{count} files are back in {settings.data}")
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
    losses = " ".join(loss_option(population, "…") for population in frozen.losses)
    where = shlex.quote(str(settings.data))
    click.echo(f"its owner says what was spent in all: cloister ledger restore {where} {losses} --who … --why …")
    click.echo(f"the trail tells what it lacks: cloister audit-trail verify --data {where}")
