"""`cloister`: the command line."""

import gc
import io
import json
import os
import sys
import traceback
from errno import EACCES, EDQUOT, EEXIST, EIO, EISDIR, EMFILE, ENAMETOOLONG, ENFILE, ENOSPC, ENOTDIR, EPERM, EROFS
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click

from cloister.cli.speaking import on_command_line
from cloister.cli.written import FOLDER
from cloister.errors import CloisterError, EngineError, MissingDependency, brief
from cloister.installed import DISTRIBUTION, edition, install

_OF_THEIR_OWN = "anonymize audit csp declare guest helper hub learn mine risk rows site stream survey synth vault"
_HOMES = {name: name for name in _OF_THEIR_OWN.split()} | {
    "audit-trail": "trail",
    "explain": "questions",
    "ledger": "ledgers",
    "query": "questions",
    "worker": "hub",
}
"""The module of each command that has one. It is imported when the command is called: a question needs no attacks."""


_OF_THE_MACHINE = frozenset({EACCES, EDQUOT, EEXIST, EIO, EISDIR, EMFILE, ENAMETOOLONG, ENFILE, ENOSPC, ENOTDIR, EPERM, EROFS})
_OBJECTS = 50_000
"""After how many new objects the garbage collector looks for cycles: importing makes many, and no garbage."""


class _Commands(click.Group):
    """The commands of this file, and those of the modules beside it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All, sorted."""
        return sorted({*super().list_commands(ctx), *_HOMES})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imported with its module."""
        if cmd_name in _HOMES and cmd_name not in self.commands:
            home = import_module(f"cloister.cli.{_HOMES[cmd_name]}")
            self.add_command(getattr(home, cmd_name.replace("-", "_")))
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name=DISTRIBUTION, message="cloister %(version)s")
def cli() -> None:
    """Share what the data says, not the data.

    \b
    cloister demo
    cloister query "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM census GROUP BY sex" --spend 0.1
    """


def main() -> None:
    """The entry point: a refusal is one message and exit code 1, never a trace.

    A failure of cloister's own is one line and exit code 2. The words of an unforeseen error may hold a row, so they and the
    trace are shown only to who sets CLOISTER_DEBUG=1.

    >>> import sys
    >>> sys.argv = ["cloister", "version"]
    >>> main()  # doctest: +ELLIPSIS
    cloister ...
    """
    gc.set_threshold(_OBJECTS)
    try:
        cli(standalone_mode=False)
    except CloisterError as error:
        _refused(error, on_command_line(error, cli, sys.argv[1:]))
    except click.ClickException as error:
        said = io.StringIO()
        error.show(said)
        click.echo(brief(said.getvalue()), err=True, nl=False)
        sys.exit(1)  # a refusal, as any other: 2 is for failures of cloister
    except (KeyboardInterrupt, click.Abort) as error:
        refused = isinstance(error, click.Abort) and not isinstance(error.__cause__, KeyboardInterrupt)  # a no to a question
        stands = "what was reserved stays charged, and the same command goes on from there"
        click.echo("not confirmed: nothing was done" if refused else f"interrupted; {stands}", err=True)
        sys.exit(1 if refused else 130)
    except ModuleNotFoundError as error:
        if (error.name or "cloister").startswith("cloister"):
            _failed(error)
        why = f"the package {error.name} is not installed"
        _refused(MissingDependency("The command was not run", why=why, instead=install("hub")))
    except BrokenPipeError:
        _unread()
    except OSError as error:  # a full disk, a folder in place of a file: the system's own words name no row
        if error.errno not in _OF_THE_MACHINE:
            _failed(error)
        why = os.strerror(error.errno).lower() + (f": {str(error.filename)!r}" if error.filename else "")
        again = "the same command once that is mended; what was charged answers it"
        _refused(EngineError("The command ended early", why=why, instead=again))
    except Exception as error:  # the last resort: whatever it is, no trace and no words of it
        _failed(error)


def _refused(error: CloisterError, said: str = "") -> NoReturn:
    click.echo(f"{type(error).__name__}: {said or error}", err=True)
    sys.exit(1)


def _unread() -> NoReturn:
    """Nobody reads our output any more: the rest of it goes nowhere. A stream that a caller put in its place stays as it is."""
    for stream, own in ((sys.stdout, sys.__stdout__), (sys.stderr, sys.__stderr__)):
        if own is not None and stream is own:
            os.dup2(os.open(os.devnull, os.O_WRONLY), own.fileno())
    sys.exit(0)


def _failed(error: Exception) -> NoReturn:
    if os.environ.get("CLOISTER_DEBUG") == "1":
        traceback.print_exc()
    click.echo(
        f"InternalError: cloister failed ({type(error).__name__}); please report it."
        " CLOISTER_DEBUG=1 shows the trace, which may hold private data",
        err=True,
    )
    sys.exit(2)


@cli.command()
@click.option("--data", type=FOLDER, help="Keep the hub in this folder.")
@click.option("--port", type=click.IntRange(0, 65535), help="The port; 0: a free one (default: CLOISTER_HUB_PORT, or 8765).")
@click.option("--once", is_flag=True, help="Exit after printing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--no-sites", is_flag=True, help="Leave out the three clinics, which are processes of their own.")
@click.option("--terminal", is_flag=True, help="No hub: a session in this terminal, with a prompt.")
def demo(data: Path | None, port: int | None, once: bool, as_json: bool, no_sites: bool, terminal: bool) -> None:
    """Start a hub on this machine with sample tables, five people and three sites, and print the first private answers.

    \b
    cloister demo
    cloister demo --once
    cloister demo --terminal
    """
    from cloister.cli.demo_hub import run_demo, run_hub

    if terminal:
        run_demo(interactive=not once and not as_json and sys.stdin.isatty(), as_json=as_json)
        return
    run_hub(data, port=port, once=once, as_json=as_json, sites=not no_sites)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def version(as_json: bool) -> None:
    """Print the version of cloister and of its dependencies.

    \b
    cloister version --json
    """
    from importlib.metadata import version as version_of

    found = {"cloister": edition()}
    found |= {package: version_of(package) for package in ("duckdb", "ibis-framework", "numpy", "cryptography")}
    click.echo(json.dumps(found) if as_json else "\n".join(f"{package} {number}" for package, number in found.items()))
