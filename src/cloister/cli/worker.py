"""`cloister worker`: a process that runs a hub's jobs and nothing else."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from pathlib import Path

import click


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
    from cloister.hub.hub import Hub
    from cloister.hub.locks import shared_lock
    from cloister.hub.platform.jobs import stop_workers
    from cloister.hub.services import all_services
    from cloister.hub.serving import end_by
    from cloister.hub.settings import load

    chosen = dataclasses.replace(load(data, file=settings, environment=os.environ), workers=jobs, pg_port=0)
    told = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: told.set())
    with shared_lock(chosen, "The worker was not started"), Hub(chosen, all_services()) as hub:
        click.echo(f"ready: {jobs} at once, for {chosen.title}")
        told.wait()
        click.echo("ending")
        end_by(grace + 5)
        stop_workers(hub, grace)
