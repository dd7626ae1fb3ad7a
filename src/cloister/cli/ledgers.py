"""`cloister ledger`: budgets and charges, verified, raised and restored."""

import json
import shlex
import sys
from pathlib import Path

import click

from cloister.cli.opened import existing_ledger, waiting
from cloister.errors import InvalidParameter
from cloister.ledger import Freeze, Ledger
from cloister.privacy import ZCDP, ApproxDP, Guarantee, PureDP, text_of
from cloister.session import text_table


@click.group()
def ledger() -> None:
    """Budgets and charges: look at them, verify them, raise them. A ledger is a file, a postgresql:// address, or the folder of a
    hub, site or key holder.

    \b
    cloister query "SELECT COUNT(*) FROM census" --spend 0.1 --ledger budget.db --budget 1
    cloister ledger show budget.db
    cloister ledger verify budget.db
    """


@ledger.command("show")
@click.argument("where")
@click.argument("population", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ledger_show(where: str, population: str | None, as_json: bool) -> None:
    """Show every population with its budget, or the charges of one.

    \b
    cloister query "SELECT COUNT(*) FROM census" --spend 0.1 --ledger budget.db --budget 1
    cloister ledger show budget.db
    cloister ledger show budget.db census --json
    """
    with existing_ledger(where) as book:
        if population is None:
            _show_populations(book, as_json=as_json)
        else:
            _show_charges(book, population, as_json=as_json)


@ledger.command("verify")
@click.argument("where")
def ledger_verify(where: str) -> None:
    """Check every line of the chain. Exit code 1, with the first broken line, if one was changed, dropped or rolled back.

    \b
    cloister query "SELECT COUNT(*) FROM census" --spend 0.1 --ledger budget.db --budget 1
    cloister ledger verify budget.db
    """
    with existing_ledger(where) as book, waiting("verifying"):
        outcome = book.verify()
        count = book.head[0]
    if outcome:
        click.echo(f"{count:,} lines, none changed, dropped or rolled back")
        return
    click.echo(f"BROKEN: {outcome}", err=True)
    sys.exit(1)


@ledger.command("raise")
@click.argument("where")
@click.argument("population")
@click.option("--epsilon", help="The new ε.")
@click.option("--delta", help="The new δ, of an (ε, δ) or a zCDP budget.")
@click.option("--rho", help="The new ρ.")
@click.option("--who", required=True, help="The person who decides.")
@click.option("--why", required=True, help="The reason; the ledger keeps it.")
def ledger_raise(
    where: str, population: str, epsilon: str | None, delta: str | None, rho: str | None, who: str, why: str
) -> None:
    """Raise a budget: an audited act of its owner.

    \b
    cloister query "SELECT COUNT(*) FROM census" --spend 0.1 --ledger budget.db --budget 1
    cloister ledger raise budget.db census --epsilon 2 --who "data board" --why "second study approved"
    """
    with existing_ledger(where) as book:
        book.raise_budget(population, _budget_of(epsilon, delta, rho), who=who, why=why)
        click.echo(f"{population}: budget {book.budget(population)}, of which {book.remaining(population)} is left")


@ledger.command("restore")
@click.argument("where")
@click.option(
    "--loss",
    "losses",
    multiple=True,
    metavar="POPULATION=AMOUNT",
    help="What a population has spent in all, for example people=0.7.",
)
@click.option("--who", required=True, help="The person who decides.")
@click.option("--why", required=True, help="The reason; the ledger keeps it.")
def ledger_restore(where: str, losses: tuple[str, ...], who: str, why: str) -> None:
    """Unfreeze a restored ledger: enter the total that each population has spent (at least the known amount).

    \b
    cloister ledger restore budget.db --loss people=0.7 --who "data board" --why "disk of May"
    cloister ledger restore /srv/cloister --loss people=0.7 --who "data board" --why "disk of May"
    """
    with existing_ledger(where) as book:
        _restore(book, losses, who=who, why=why)


@ledger.command("export")
@click.argument("where")
@click.argument("population", required=False)
def ledger_export(where: str, population: str | None) -> None:
    """Print the standing charges as dp_accounting events, one a line (needs dp-accounting).

    \b
    cloister query "SELECT COUNT(*) FROM census" --spend 0.1 --ledger budget.db --budget 1
    cloister ledger export budget.db census
    """
    with existing_ledger(where) as book:
        for event in book.export(population):
            click.echo(repr(event))


def _budget_of(epsilon: str | None, delta: str | None, rho: str | None) -> Guarantee:
    """The budget that the options write."""
    if rho is not None and epsilon is None:
        return ZCDP(rho, delta or 0)
    if epsilon is not None and rho is None:
        return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
    raise InvalidParameter("The budget is invalid", why="it needs either --epsilon or --rho", instead="--epsilon 2")


def _restore(book: Ledger, losses: tuple[str, ...], *, who: str, why: str) -> None:
    """Enter the losses; without any, say which are needed."""
    freeze = book.frozen
    if freeze is None:
        raise InvalidParameter("Nothing was restored", why="this ledger is not frozen", instead="cloister ledger show budget.db")
    least = dict(freeze.losses)
    given = {}
    for loss in losses:
        population, _, amount = loss.rpartition("=")
        if (known := least.get(population)) is None:
            like = loss_option(next(iter(least), "people"), "1")
            raise InvalidParameter(f"--loss {loss} is invalid", why=f"the populations are {', '.join(least)}", instead=like)
        like = f"{loss_option(population, text_of(known.rho if isinstance(known, ZCDP) else known.epsilon))}, or more"
        try:
            entered = given[population] = ZCDP(amount, known.delta) if isinstance(known, ZCDP) else _epsilon(amount, known)
        except InvalidParameter as error:
            raise InvalidParameter(f"--loss {loss} is invalid", why=error.why or error.what, instead=like) from None
        if not known <= entered:
            why = f"the loss of {population!r} is known to be at least {known} in all, and {entered} was entered"
            raise InvalidParameter("The ledger stays frozen", why=why, instead=like)
    missing = [population for population in least if population not in given]
    if missing:
        needed = "; ".join(f"{population}: at least {least[population]}" for population in missing)
        raise InvalidParameter(
            "The ledger stays frozen", why=f"a loss is missing for {needed}", instead=loss_option(missing[0], "…")
        )
    book.restore(given, who=who, why=why)
    click.echo("thawed; " + "; ".join(f"{population}: {_left(book, population)} left" for population in given))


def loss_option(population: str, amount: str) -> str:
    """The option as a shell takes it, whatever the population's name.

    >>> loss_option("people", "0.7"), loss_option("ward 2026-Q1", "0.7")
    ('--loss people=0.7', "--loss 'ward 2026-Q1=0.7'")
    """
    plain = shlex.quote(population) == population
    return f"--loss {population}={amount}" if plain else f"--loss {shlex.quote(f'{population}={amount}')}"


def thawing(where: Path, frozen: Freeze) -> str:
    """The command that a frozen ledger in a folder waits for."""
    losses = " ".join(loss_option(population, "…") for population in frozen.losses)
    return f"cloister ledger restore {shlex.quote(str(where))} {losses} --who … --why …"


def _epsilon(amount: str, known: Guarantee) -> Guarantee:
    return ApproxDP(amount, known.delta) if isinstance(known, ApproxDP) else PureDP(amount)


def _left(book: Ledger, population: str) -> str:
    if book.frozen is not None:
        return "frozen"
    return "unbounded" if book.unbounded(population) else str(book.remaining(population))


def _show_populations(book: Ledger, *, as_json: bool) -> None:
    rows = [
        {
            "population": name,
            "budget": str(book.budget(name)),
            "spent": "unbounded" if book.unbounded(name) else str(book.spent(name)),
            "remaining": _left(book, name),
        }
        for name in book.populations()
    ]
    if as_json:
        click.echo(json.dumps(rows))
    elif rows:
        click.echo(text_table(list(rows[0]), [list(row.values()) for row in rows]))
    else:
        frozen = book.frozen
        click.echo("no population has a budget here yet" if frozen is None else f"the ledger is frozen: {frozen.reason}")


def _show_charges(book: Ledger, population: str, *, as_json: bool) -> None:
    book.budget(population)
    rows = [
        {
            "when": charge.when.isoformat(timespec="seconds"),
            "who": charge.who,
            "cost": "not private" if charge.cost is None else str(charge.cost),
            "state": charge.state,
            "purpose": charge.purpose,
            "digest": charge.what,
        }
        for charge in book.charges(population)
    ]
    if as_json:
        click.echo(json.dumps(rows))
        return
    if rows:
        click.echo(text_table(list(rows[0]), [[*list(row.values())[:-1], row["digest"][:12]] for row in rows]))
    spent = "unbounded" if book.unbounded(population) else str(book.spent(population))
    click.echo(f"spent {spent} of {book.budget(population)}; {_left(book, population)} is left")
