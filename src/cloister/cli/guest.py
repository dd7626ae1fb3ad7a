"""`cloister guest`: run somebody's algorithm near rows that it may not see, or try one's own on made-up rows."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.bounds import BOUNDS, declared_table
from cloister.cli.opened import COMMAS, names_in, open_ledger, text_in, waiting
from cloister.cli.written import FILE
from cloister.errors import InvalidParameter
from cloister.printable import json_of, shown

if TYPE_CHECKING:
    from cloister.guests import Admission, Guest
    from cloister.guests.sandbox.processes import Language
    from cloister.tables import PrivateTable

_PACKAGES_HELP = "Modules that it imports, separated by commas: it runs in a process of the machine."
_BOUNDS_HELP = "By blocks: the range of each number that it returns, such as 0:120,-1:1."


@click.group()
def guest() -> None:
    """Guests: an algorithm runs near rows that its author may not see.

    What `@cl.guest(…)` declares in the file need not be said again.

    \b
    cloister guest try middle.py census --inputs age --output 0:120 --blocks 50
    cloister guest run middle.py census --inputs age --output 0:120 --blocks 50 --epsilon 1
    cloister guest run slope.R census --inputs age,hours --output=-2:2 --blocks 20 --seconds 1 --by Ana
    cloister guest build
    """


@guest.command("build")
def build() -> None:
    """Build the image that guests run in, which the first run would do by itself.

    \b
    cloister guest build
    """
    from cloister.guests.sandbox.image import image

    with waiting("building"):
        found = image()
    click.echo(f"the sandbox is ready: {found.name}, {found.stat().st_size / 2**20:.0f} MiB")


@guest.group("environment")
def environments() -> None:
    """Named environments: the packages of native guests, installed in advance and offline, each by its hash.

    \b
    cloister guest environment build statistics requirements.txt --wheels wheels
    cloister guest environment list
    """


@environments.command("build")
@click.argument("name")
@click.argument("requirements", type=FILE)
@click.option(
    "--wheels", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path), help="A folder of wheels."
)
def build_environment(name: str, requirements: Path, wheels: Path) -> None:
    """Install what a file of requirements names, each line with hashes, from a folder of wheels. Nothing is downloaded.

    \b
    pip download --require-hashes --only-binary=:all: -r requirements.txt -d wheels    # where there is a network
    cloister guest environment build statistics requirements.txt --wheels wheels
    """
    from cloister.guests.sandbox.environments import build_environment

    with waiting("building"):
        found = build_environment(name, requirements, wheels)
    click.echo(f"{found.name}  {found.digest[:16]}  {', '.join(found.distributions)}")


@environments.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_environments(as_json: bool) -> None:
    """List what was built, with digests and packages.

    \b
    cloister guest environment list
    """
    from cloister.guests.sandbox import environments

    found = environments.environments()
    if as_json:
        click.echo(json.dumps([each.describe() for each in found]))
    else:
        lines = [f"{each.name}  {each.digest[:16]}  {', '.join(each.distributions)}" for each in found]
        click.echo("\n".join(lines) or "none was built")


def _with_guest(command: Callable[..., None]) -> Callable[..., None]:
    """The arguments of a command about a guest and a table, which is called with both."""

    @wraps(command)
    def called(
        code: Path,
        data: str,
        entry: str | None,
        way: str | None,
        inputs: str | None,
        output: str | None,
        blocks: int | None,
        seconds: float | None,
        bounds: str | None,
        packages: str | None,
        environment: str,
        author: str,
        mechanism: str,
        proof: Path | None,
        **how: Any,
    ) -> None:
        from cloister.guests import Guest, Vector
        from cloister.guests.code import last_function, written_down

        text = text_in(code)
        language: Language = "r" if code.suffix in (".R", ".r") else "python"
        text, found, declared = (text, "", {}) if language == "r" else written_down(text)
        known = [name for name in inspect.signature(Guest).parameters if name not in ("code", "entry", "function")]
        for strange in set(declared).difference(known):
            why = f"@cl.guest(…) knows {', '.join(known)} and uses"
            raise InvalidParameter(f"{strange}= of the decorator is invalid", why=why, instead="@cl.guest(inputs=[…], blocks=50)")
        declared |= {name: each for name, each in (("way", way), ("blocks", blocks), ("seconds", seconds)) if each is not None}
        given = (("author", author), ("mechanism", mechanism), ("environment", environment))
        declared |= {name: each for name, each in given if each}
        if proof is not None:
            declared["proof"] = text_in(proof)
        for name, words in (("inputs", inputs), ("packages", packages)):
            if words:
                declared[name] = names_in(words)
        if output is not None:
            declared["output"] = Vector([_range(each) for each in output.split(",")])
        declared = {"name": code.stem, "language": language, **declared}
        made = Guest(code=text, entry=entry or found or last_function(text, language), **declared)
        command(made, *declared_table(data, bounds), **how)

    for option in reversed(
        [
            click.argument("code", type=FILE),
            click.argument("data"),
            click.option("--entry", help="The function that is called (default: the last one of the file)."),
            click.option(
                "--way",
                type=click.Choice(["blocks", "ask", "declared"]),
                help="How it runs (default: as the file declares, or by blocks).",
            ),
            click.option("--inputs", help=f"By blocks: the columns that it reads, {COMMAS}."),
            click.option("--output", help=_BOUNDS_HELP),
            click.option("--blocks", type=int, help="Into how many parts people fall (default: by the declared size)."),
            click.option("--seconds", type=float, help="The time of one run (default: as the file declares, or 0.05)."),
            click.option("--bounds", help=BOUNDS),
            click.option("--packages", help=_PACKAGES_HELP),
            click.option("--environment", default="", help="Of which the modules are (default: of those beside cloister)."),
            click.option("--author", default="", help="Declared: whose mechanism it is."),
            click.option("--mechanism", default="", help="Declared: which mechanism it claims to be."),
            click.option("--proof", type=FILE, help="Declared: a file that says why it keeps the spend."),
        ]
    ):
        called = option(called)
    return called


@guest.command("try")
@_with_guest
@click.option("--tests", type=FILE, help="A file of functions test_…() that call the guest's.")
@click.option("--rows", type=click.IntRange(1), help="How many rows a run may meet (default: as DATA declares).")
def attempt(made: Guest, name: str, table: PrivateTable, tests: Path | None, rows: int | None) -> None:
    """Run a guest on made-up rows that follow the declarations of DATA: it costs nothing, and says where the code fails.

    \b
    cloister guest try middle.py census --inputs age --output 0:120 --blocks 50
    """
    from cloister.guests import run_tests
    from cloister.privacy import PureDP
    from cloister.query import Session

    if tests is not None:
        given = None if made.needs.native or made.way == "ask" else made.made_up(table)
        own = run_tests(made, text_in(tests), given)
        _say("\n".join([f"{own.passed} tests passed", *(f"failed: {each}" for each in own.failed)]))
        if own.failed:
            raise SystemExit(1)
    with waiting("trying"), Session({name: table}, budget=PureDP(1)) as session:
        found = made.rehearse(session, name, rows=rows)
    faults = [made.why_not(each) for each in found]
    failed = sum(map(bool, faults))
    size = "" if made.way == "ask" else f", {made.rehearsed(table, rows=rows)}"
    click.echo(f"{made.name} on made-up rows{size}: {len(found) - failed} of {len(found)} runs returned what is declared")
    for each, fault in list(zip(found, faults, strict=True))[:3]:
        _say("  " + fault.replace("\n", "\n  ") if fault else f"  {json_of(each.value)}")
        if each.printed:
            _say("  printed: " + each.printed.rstrip().replace("\n", "\n           "))
    if failed:
        raise SystemExit(1)


@guest.command("review")
@_with_guest
@click.option("--epsilon", default="1", show_default=True, help="The ε to audit it at.")
@click.option("--runs", default=2000, show_default=True, help="Runs of the audit on each side.")
def review(made: Guest, name: str, table: PrivateTable, epsilon: str, runs: int) -> None:
    """Print what two people read before a declared mechanism or native code comes near rows: code, declaration, proof, and what
    an audit on made-up rows found of it and of its twin with a tenth of the noise; exit code 1 where it may not be admitted.

    \b
    cloister guest review total.py census --way declared --inputs age --output=-1e6:4e6 \\
        --author Pia --mechanism Laplace --proof total.proof.md
    """
    from cloister.guests import audit_declared
    from cloister.privacy import PureDP

    _say(f"{made.name}, digest {made.digest}\n\n{made.code.rstrip()}\n")
    click.echo(json.dumps({**made.describe(), "proof": None} if made.way == "declared" else made.describe(), indent=2))
    if made.way == "declared":
        _say(f"\n{made.proof.rstrip()}\n")
        with waiting("auditing"):
            found = audit_declared(made, table, PureDP(epsilon), runs=runs)
        click.echo(str(found))
        if not (found.kept and found.telling):
            raise SystemExit(1)


@guest.command("run")
@_with_guest
@click.option("--by", multiple=True, help="Who read native code; two, for a declared mechanism, which is audited first.")
@click.option("--epsilon", default="1", show_default=True, help="The ε to spend.")
@click.option("--ledger", help="Charge a ledger (a file or a postgresql:// address); otherwise the charge is not recorded.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def run(
    made: Guest, name: str, table: PrivateTable, by: tuple[str, ...], epsilon: str, ledger: str | None, as_json: bool
) -> None:
    """Run a guest near the rows of DATA, a CSV or Parquet file or the name of a sample table: a private result leaves.

    \b
    cloister guest run middle.py census --inputs age --output 0:120 --blocks 50 --epsilon 1 --ledger budget.db
    """
    from cloister.guests import admit, audit_declared
    from cloister.privacy import PureDP
    from cloister.query import Session

    admitted: str | Admission = ""
    if by:
        with waiting("auditing"):
            audited = audit_declared(made, table, PureDP(epsilon)) if made.way == "declared" else None
        admitted = admit(made, by=by, audited=audited)
    with waiting("running"), open_ledger(ledger) as book:
        budget = None if (table.population or name) in book.populations() else PureDP(epsilon)
        with Session({name: table}, budget=budget, ledger=book, who="command line") as session:
            if made.way == "declared" and not (ran := made.rehearse(session, name)[0]).done:
                instead = f"cloister guest try; --seconds {min(2 * made.seconds, 60):g} gives it more time"
                raise InvalidParameter(f"{made.name} was not run", why=f"on made-up rows {ran.why}", instead=instead)
            purpose = f"cloister guest run {click.get_current_context().params['code'].name}"
            found = made.run(session, name, PureDP(epsilon), purpose=purpose, admitted=admitted)
    if as_json:
        told = {"guest": found.guest, "way": found.way, "values": found.values, "margins": dict(found.margins)}
        if (failed := found.failed) is not None:
            told["failed"] = {"count": failed.count, "margin": failed.margin, "blocks": failed.blocks}
        click.echo(json_of({**told, "cost": str(found.cost), "why": found.why, "provenance": found.provenance}))
    else:
        click.echo(str(found))


def _say(text: str) -> None:
    """A guest's words, of which no terminal takes commands."""
    click.echo(shown(text, lines=True))


def _range(text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        raise InvalidParameter(
            f"--output {text} is invalid", why="a range is two numbers", instead="--output 0:120,-1:1"
        ) from None
    return low, high
