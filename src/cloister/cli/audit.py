"""`cloister audit`: run a mechanism in two worlds that must look alike, and say what was found against what is promised."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import click
import numpy as np

from cloister.attacks import AuditResult, ChannelAudit
from cloister.cli.audited import NAMED, Options, Subject, demonstration, imported, named, twin, twin_names
from cloister.cli.opened import progress_bar
from cloister.cli.written import FILE
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.printable import finite
from cloister.privacy import ZCDP, Guarantee, text_of

_CONFIDENCE = "0.999999999"
_FEWEST = 400
_FIRST, _LARGEST = 32, 1 << 17
_SECONDS = 0.2
"""How long a chunk of runs should take, so that the bar moves and Ctrl-C is heard."""


@click.command()
@click.argument("mechanism", required=False)
@click.argument("sql", required=False)
@click.option("--epsilon", help="The claimed ε, for example 0.5.")
@click.option("--delta", help="The claimed δ, with an ε or a ρ.")
@click.option("--rho", help="The claimed ρ.")
@click.option("--sensitivity", help="How much one person changes the noised value (default: 1).")
@click.option("--categories", type=int, help="Of kary-response: the number of answers (default: 4).")
@click.option("--left", help="One world: JSON such as 0, '[1, 0]' or true, or package.module:object.")
@click.option("--right", help="Its neighbour.")
@click.option("--runs", type=int, help="Runs in each world (default: as many as take seconds).")
@click.option("--confidence", default=_CONFIDENCE, show_default=True, help="The probability with which the bound holds.")
@click.option("--spend", help="Of sql: the spend of the answer.")
@click.option("--remove", help="Of sql: a row of the person who is missing in the other world, 0 being the first; or visits:0.")
@click.option("--tables", type=FILE, help="Of sql: a TOML file of tables.")
@click.option("--dialect", help="Of sql: the SQL dialect of the query.")
@click.option("--broken", metavar="NAME", help="A mechanism that is broken on purpose; the audit must refute it.")
@click.option("--list", "listed", is_flag=True, help="Name the mechanisms and the broken ones.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def audit(mechanism: str | None, sql: str | None, **given: Any) -> None:
    """Test a privacy guarantee: a lower bound on ε from many runs in two neighbouring worlds.

    MECHANISM is a name (cloister audit --list), package.module:object of your own code, or sql with a question. The exit code is
    1 where a promise is refuted.

    \b
    cloister audit laplace --epsilon 0.5 --left 0 --right 1
    cloister audit mypackage.noise:mechanism --epsilon 1 --left 0 --right 1
    cloister audit sql "SELECT COUNT(*) FROM census" --spend 0.5 --remove 0
    cloister audit --broken "noise used twice"
    """
    if given["listed"]:
        print_names(as_json=given["as_json"])
        return
    _check(mechanism, sql, given)
    with _subject(mechanism, sql, given) as subject:
        if subject is None:
            shown = _by_arithmetic(given["broken"])
        else:
            shown = _audited(subject, given["runs"] or subject.runs, given["confidence"])
    print_found(shown, as_json=given["as_json"])
    if shown.stopped:
        sys.exit(130)
    if shown.refuted != (given["broken"] is not None):
        sys.exit(1)


def _check(mechanism: str | None, sql: str | None, given: dict[str, Any]) -> None:
    """What does not fit together on the line, each with its own message."""
    question, broken = mechanism == "sql", given["broken"] is not None
    if (mechanism is None) != broken:
        why = "--broken brings its own mechanism" if broken else "it names nothing to audit"
        raise InvalidParameter("The audit is invalid", why=why, instead="cloister audit laplace --epsilon 0.5")
    if question and sql is None:
        raise InvalidParameter(
            "The audit is invalid", why="sql needs a question", instead='cloister audit sql "SELECT COUNT(*) FROM census"'
        )
    if sql is not None and not question:
        raise InvalidParameter(
            "A second word is invalid", why=f"{mechanism} takes options alone", instead='cloister audit sql "SELECT …"'
        )
    for name in ("spend", "remove"):
        if question and given[name] is None:
            raise InvalidParameter(
                "The audit is invalid", why=f"a question needs --{name}", instead=f"--{name} {'0.5' if name == 'spend' else '0'}"
            )
    of_sql = ("spend", "remove", "tables", "dialect")
    of_mechanisms = ("epsilon", "delta", "rho", "sensitivity", "categories", "left", "right")
    unused = ((*of_mechanisms, *of_sql) if broken else of_mechanisms) if question or broken else of_sql
    for name in unused:
        if given[name] is not None:
            owner = "a mechanism" if name in of_mechanisms else "sql"
            raise InvalidParameter(
                f"--{name} is invalid", why=f"it belongs to an audit of {owner}", instead="cloister audit --help"
            )
    runs = given["runs"]
    if runs is not None and runs < _FEWEST:
        raise InvalidParameter(
            f"--runs {runs} is invalid", why=f"an audit needs at least {_FEWEST} runs in each world", instead="--runs 100000"
        )


@contextmanager
def _subject(mechanism: str | None, sql: str | None, given: dict[str, Any]) -> Iterator[Subject | None]:
    if given["broken"] is not None:
        yield demonstration(twin(given["broken"]))
    elif sql is not None:
        from cloister.cli.audited_sql import question

        with question(sql, **{name: given[name] for name in ("spend", "remove", "tables", "dialect")}) as subject:
            yield subject
    else:
        assert mechanism is not None
        options = Options(**{name: given[name] for name in Options.__dataclass_fields__})
        yield imported(mechanism, options) if ":" in mechanism else named(mechanism, options)


def _by_arithmetic(name: str) -> Shown:
    """A broken mechanism whose whole law is written down."""
    found = twin(name)
    return Shown(
        title=f"{found.name} (broken on purpose)",
        worlds="every two inputs",
        claims=found.claims,
        found=found.audit(),
        runs=0,
        stopped=False,
        note=f"{found.mistake} {found.reason}",
    )


def _audited(subject: Subject, runs: int, confidence: str) -> Shown:
    """The audit; stopped by Ctrl-C, the audit of the runs that there are, of which the choice to stop knew nothing."""
    from cloister.attacks import audit as audit_of

    stopped = False
    with progress_bar("running in both worlds", total=2 * runs) as update:
        kept = Kept(subject, lambda done: update(advance=done))
        try:
            found = audit_of(kept, "left", "right", runs=runs, against=subject.claims, confidence=confidence)
        except KeyboardInterrupt:
            stopped, runs = True, kept.whole()
    if stopped:
        if runs < _FEWEST:
            click.echo(f"interrupted; nothing was found yet: {runs:,} runs in each world are too few", err=True)
            sys.exit(130)
        found = audit_of(kept.again(), "left", "right", runs=runs, against=subject.claims, confidence=confidence)
    return Shown(
        title=subject.title,
        worlds=subject.worlds,
        claims=subject.claims,
        found=found,
        runs=runs,
        stopped=stopped,
        note=subject.note,
    )


class Kept:
    """Runs in chunks that take a moment each, and keeps the outputs, so that there is something to look at when it is stopped."""

    def __init__(self, subject: Subject, advance: Callable[[int], None]) -> None:
        self._run, self._data, self._advance = subject.run, {"left": subject.left, "right": subject.right}, advance
        self._outputs: dict[str, list[Any]] = {"left": [], "right": []}
        self._chunk = _FIRST

    def __call__(self, world: str, n: int, random: Random) -> Any:
        parts: list[Any] = []
        left = n
        while left:
            size = min(left, self._chunk)
            start = time.perf_counter()
            part = self._run(self._data[world], size, random)
            took = time.perf_counter() - start
            if np.ndim(part) == 0 if not isinstance(part, list) else len(part) != size:
                return part  # the audit says what is wrong with it
            self._outputs[world].append(part)
            parts.append(part)
            left -= size
            self._advance(size)
            self._chunk = max(1, min(_LARGEST, 2 * size, int(size * _SECONDS / max(took, 1e-9)) if took > _SECONDS else _LARGEST))
        return joined(parts)

    def whole(self) -> int:
        """How many runs there are in each world."""
        return min(sum(len(part) for part in parts) for parts in self._outputs.values())

    def again(self) -> Callable[[str, int, Random], Any]:
        """The outputs that were kept, once more from the first."""
        outputs, place = {world: joined(parts) for world, parts in self._outputs.items()}, {"left": 0, "right": 0}

        def replay(world: str, n: int, random: Random) -> Any:
            start = place[world]
            place[world] += n
            return outputs[world][start : start + n]

        return replay


def joined(parts: list[Any]) -> Any:
    """Chunks of outputs as one: an array where all are, else a list.

    >>> joined([[1], [2, 3]]), joined([np.array([1]), np.array([2])]).tolist()
    ([1, 2, 3], [1, 2])
    """
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [each for part in parts for each in part]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What is printed of an audit, as text or as JSON."""

    title: str
    worlds: str
    claims: Guarantee
    found: AuditResult | ChannelAudit
    runs: int
    stopped: bool
    note: str

    @cached_property
    def refuted(self) -> bool:
        """Whether the promise was found to be broken."""
        return self.found.contradicts(self.claims)

    @cached_property
    def epsilon(self) -> float:
        """The lower bound on ε, at the δ that is promised."""
        return float(self.found.epsilon_at(self.claims.delta))


def print_found(shown: Shown, *, as_json: bool) -> None:
    """The promise, the bound, the event that shows it, the verdict."""
    if as_json:
        click.echo(json.dumps(finite(_document(shown))))
        return
    found = shown.found
    exact = shown.runs == 0
    sign, sure = ("=", "by arithmetic, nothing sampled") if exact else ("≥", f"with confidence {_confidence(shown)}")
    amount = f"ρ {sign} {_text(found.rho)}" if isinstance(shown.claims, ZCDP) else f"ε {sign} {_text(shown.epsilon)}"
    at = f" at δ = {text_of(shown.claims.delta)}" if shown.claims.delta else ""
    lines = [
        ("audited", shown.title),
        ("worlds", shown.worlds),
        ("claimed", str(shown.claims)),
        ("found", f"{amount}{at}, {sure}"),
    ]
    if not exact:
        lines += [("event", _event(found)), ("runs", f"{shown.runs:,} in each world{' (stopped)' if shown.stopped else ''}")]
    lines.append(("verdict", "REFUTED: the promise is broken" if shown.refuted else "no contradiction found"))
    for name, text in lines:
        click.echo(f"{name:<9}{text}")
    if shown.note:
        click.echo(f"\n{shown.note}")


def _document(shown: Shown) -> dict[str, Any]:
    found: Any = shown.found
    document = {
        "audited": shown.title,
        "worlds": shown.worlds,
        "claimed": str(shown.claims),
        "epsilon": shown.epsilon if math.isfinite(shown.epsilon) else None,
        "delta": float(shown.claims.delta),
        "rho": found.rho,
        "confidence": _confidence(shown) if shown.runs else "1",
        "runs": shown.runs,
        "refuted": shown.refuted,
        "stopped": shown.stopped,
    }
    if shown.runs:
        document |= {name: getattr(found, name) for name in ("event", "likelier", "likely", "unlikely")}
    return document


def _confidence(shown: Shown) -> str:
    return text_of(shown.found.confidence)  # type: ignore[union-attr]


def _event(found: Any) -> str:
    other = "right" if found.likelier == "left" else "left"
    least, most = math.floor(found.likely * 100_000) / 1000, math.ceil(found.unlikely * 100_000) / 1000
    return f"{found.event}: {found.likelier} in at least {least:g}%, {other} in at most {most:g}%"


def _text(amount: float) -> str:
    """Rounded down: it is a lower bound.

    >>> _text(0.48679), _text(float("inf"))
    ('0.4867', '∞')
    """
    return "∞" if math.isinf(amount) else f"{math.floor(amount * 10_000) / 10_000:g}"


def print_names(*, as_json: bool) -> None:
    """What can be audited by name."""
    names = {"mechanisms": list(NAMED), "broken": twin_names()}
    if as_json:
        click.echo(json.dumps(names))
        return
    click.echo("mechanisms\n  " + "\n  ".join(names["mechanisms"]) + "\n\nbroken on purpose\n  " + "\n  ".join(names["broken"]))
