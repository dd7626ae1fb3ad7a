"""What commands of parties that dial out to a hub (`cloister site`, `cloister csp`) share: a folder, a key, a log."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.written import FOLDER
from cloister.errors import InvalidDeclaration, InvalidParameter
from cloister.parsers import toml_in
from cloister.printable import shown
from cloister.privacy.rational import legible

if TYPE_CHECKING:
    from cloister.ledger import Ledger
    from cloister.together.owner import AuditLog

CERTIFICATE = click.option(
    "--certificate", type=click.Path(dir_okay=False, path_type=Path), help="The authority of the hub's certificate (PEM)."
)

PROXY = click.option("--proxy", help="The HTTP proxy through which the hub is called, such as http://proxy.example.org:3128.")


def folder_option(whose: str, usual: str) -> Callable[[Any], Any]:
    """The folder of a party; `usual`: where it is by itself, under the present one."""
    return click.option("--data", type=FOLDER, default=Path(usual), help=f"{whose} (default: ./{usual}).")


def settings_in(path: Path, instead: str, **parts: Collection[str]) -> dict[str, Any]:
    """What a TOML file of a party says, each of the named `parts` in no other words than these."""
    try:
        told = toml_in(path)
    except OSError:
        why = f"no {path.name} can be read in it"
        raise InvalidDeclaration(f"The folder {str(path.parent)!r} is invalid", why=why, instead=instead) from None
    except ValueError as error:
        why = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
        raise InvalidDeclaration(f"The file {path.name} is invalid", why=why, instead="the same, as TOML in UTF-8") from None
    for part, known in parts.items():
        check_words(path.name, part, told.get(part), known)
    return told


def check_words(file: str, part: str, told: Any, known: Collection[str]) -> None:
    """Refuse a word that nothing reads: what its writer means by it would not hold."""
    for word in told if isinstance(told, dict) else ():
        if word not in known:
            why = f"{word!r} is not one of the words of [{part}]"
            raise InvalidDeclaration(f"The file {file} is invalid", why=why, instead=", ".join(known))


@contextlib.contextmanager
def alone(lock: Path, party: str) -> Iterator[None]:
    """Of two processes with one folder the second is refused."""
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidParameter(
                f"The {party}'s folder is in use",
                why=f"a process runs the one in {lock.parent.name} already",
                instead="stop that process first; the folder is for one alone",
            ) from None
        yield


def own_files() -> None:
    """What this process writes is for its own user."""
    os.umask(0o077)


def show_key(name: str, public: bytes) -> None:
    """The public key as the hub takes it, and its fingerprint."""
    from cloister.crypto import fingerprint

    click.echo(f"{json.dumps({name: public.hex()})}\nfingerprint {fingerprint(public)}")


def show_log(log: AuditLog, ledger: Ledger | None = None, people: Mapping[str, Collection[str]] | None = None) -> None:
    """A line for each entry; before them one for each budget of a ledger, of these people by these names."""
    if ledger is not None:
        for population, named in (people or {each: (each,) for each in ledger.populations()}).items():
            budget, spent = legible(ledger.budget(population)), legible(ledger.spent(population))
            click.echo(shown(f"{', '.join(named)}{': ' * bool(named)}budget {budget}, of which {spent} is spent"))
            if ledger.unbounded(population):
                click.echo("something left that is not differentially private: the budget does not bound what is known")
    for entry in log.entries():
        said = ", ".join(f"{name} {value}" for name, value in entry.items() if name not in ("at", "event", "seal"))
        click.echo(shown(f"{entry['at']}  {entry['event']}: {said}"))


def end_if_broken(broken: int | None) -> None:
    """Exit code 1 where an entry of the log was changed."""
    if broken is not None:
        click.echo(f"BROKEN: entry {broken} of the log was changed", err=True)
        sys.exit(1)
