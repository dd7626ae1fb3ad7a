"""What `cloister ledger` prints."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import click

from cloister.errors import InvalidParameter
from cloister.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from cloister.privacy.rational import text_of
from cloister.session import text_table

if TYPE_CHECKING:
    from cloister.ledger import Ledger


def show(book: Ledger, population: str | None, *, as_json: bool) -> None:
    """All populations, or the charges of one."""
    if population is None:
        _show_populations(book, as_json=as_json)
    else:
        _show_charges(book, population, as_json=as_json)


def budget_of(epsilon: str | None, delta: str | None, rho: str | None) -> Guarantee:
    """The budget that the options write."""
    if rho is not None and epsilon is None:
        return ZCDP(rho, delta or 0)
    if epsilon is not None and rho is None:
        return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
    raise InvalidParameter("The budget is invalid", why="it needs either --epsilon or --rho", instead="--epsilon 2")


def restore(book: Ledger, losses: tuple[str, ...], *, who: str, why: str) -> None:
    """Enter the losses; without any, say which are needed."""
    freeze = book.frozen
    if freeze is None:
        raise InvalidParameter("Nothing was restored", why="this ledger is not frozen", instead="cloister ledger show budget.db")
    least = dict(freeze.losses)
    given = {}
    for loss in losses:
        population, sign, amount = loss.rpartition("=")
        if not sign or population not in least:
            raise InvalidParameter(
                f"--loss {loss} is invalid",
                why=f"the populations are {', '.join(least)}",
                instead=loss_option(next(iter(least), "people"), "1"),
            )
        known = least[population]
        entered = given[population] = ZCDP(amount, known.delta) if isinstance(known, ZCDP) else _epsilon(amount, known)
        if not known <= entered:
            raise InvalidParameter(
                "The ledger stays frozen",
                why=f"the loss of {population!r} is known to be at least {known} in all, and {entered} was entered",
                instead=f"{loss_option(population, _amount(known))}, or more",
            )
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


def _amount(known: Guarantee) -> str:
    """How the least loss is typed, exactly."""
    return text_of(known.rho if isinstance(known, ZCDP) else known.epsilon)


def _epsilon(amount: str, known: Guarantee) -> Guarantee:
    return ApproxDP(amount, known.delta) if isinstance(known, ApproxDP) else PureDP(amount)


def _left(book: Ledger, population: str) -> str:
    return "frozen" if book.frozen is not None else str(book.remaining(population))


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
        click.echo("no population has a budget here yet")


def _show_charges(book: Ledger, population: str, *, as_json: bool) -> None:
    book.budget(population)
    rows = [
        {
            "when": charge.when.isoformat(timespec="seconds"),
            "who": charge.who,
            "cost": str(charge.cost),
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
