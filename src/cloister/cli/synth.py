"""`cloister synth`: a synthetic model of a table, rows from it, answers from it, and its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli import spreadsheets
from cloister.cli.bounds import BOUNDS, declared_table
from cloister.cli.opened import COMMAS, names_in, open_ledger, waiting
from cloister.cli.written import FILE, WRITTEN, check_apart
from cloister.errors import InvalidParameter
from cloister.printable import finite
from cloister.session import unknown_column

if TYPE_CHECKING:
    from cloister.synth import SyntheticModel

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_PAGES = (".html", ".json", ".txt")


@click.group()
def synth() -> None:
    """Synthetic tables: spend once, then draw rows and ask questions at no further cost.

    \b
    cloister synth fit census --columns age,sex,education --epsilon 1 --out census.json
    cloister synth sample census.json --rows 1000 --out rows.csv
    cloister synth answer census.json "SELECT sex, COUNT(*) AS n FROM census GROUP BY sex"
    cloister synth report census.json --out report.html
    """


@synth.command("fit")
@click.argument("data")
@click.option("--out", type=WRITTEN, required=True, help="Write the model as JSON.")
@click.option("--epsilon", default="1", show_default=True, help="The ε to spend.")
@click.option("--delta", help="The δ to spend, for example 1e-9; it lets the noise of many columns be Gaussian.")
@click.option("--method", default="auto", show_default=True, help="The method; auto chooses by public facts.")
@click.option("--columns", help=f"The columns of the synthetic table, {COMMAS} (default: all).")
@click.option("--about", multiple=True, help=f"What it must answer well: a column, or columns {COMMAS}; may be repeated.")
@click.option("--rules", multiple=True, help='What every row obeys: "age < 15 => marital = never"; may be repeated.')
@click.option("--bins", multiple=True, help="Quantile bins of a column with a long tail: income, or income=20; may be repeated.")
@click.option("--calendar", multiple=True, help="A column of days whose weekday and season are kept; may be repeated.")
@click.option("--bounds", help=BOUNDS)
@click.option("--ledger", help="Charge a ledger (a file or a postgresql:// address); otherwise the charge is not recorded.")
@click.option("--report", type=WRITTEN, help="Write the report, too: .html, .json or .txt.")
@_JSON
def fit(
    data: str,
    out: Path,
    epsilon: str,
    delta: str | None,
    method: str,
    columns: str | None,
    about: tuple[str, ...],
    rules: tuple[str, ...],
    bins: tuple[str, ...],
    calendar: tuple[str, ...],
    bounds: str | None,
    ledger: str | None,
    report: Path | None,
    as_json: bool,
) -> None:
    """Fit a synthetic model; DATA is a CSV or Parquet file, or the name of a sample table.

    \b
    cloister synth fit census --columns age,sex,education --out census.json
    cloister synth fit people.csv --bounds "age=17:90,sex=F|M" --epsilon 0.5 --delta 1e-9 --ledger budget.db --out people.json
    cloister synth fit stays.csv --bounds … --bins charge=50 --calendar came --rules "came <= left" --out stays.json

    --method microaggregation makes Gaussians in groups, for small tables. --method k_anonymous is NOT PRIVATE: nothing is
    charged, and the spending of the population reads unbounded from then on.
    """
    from cloister.privacy import ApproxDP, PureDP
    from cloister.query import Session
    from cloister.synth import Calendar
    from cloister.synth import fit as fit_model

    check_apart(data, out, report)
    _page(report)
    chosen: Any = method
    cuts = {each.name: each for each in (*map(_bins, bins), *(Calendar(each.strip()) for each in calendar))}
    promise = PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
    name, table = declared_table(data, bounds)
    kept: list[Any] | None = None if columns is None else names_in(columns, table.columns)
    if cuts:
        kept = kept or [each for each in table.columns if each != table.unit]
        if unknown := [each for each in cuts if each not in kept]:
            raise unknown_column(unknown[0], name, kept)
        kept = [cuts.get(each, each) for each in kept]
    with waiting("fitting") as progress, open_ledger(ledger) as book:
        budget = None if (table.population or name) in book.populations() else promise
        with Session({name: table}, budget=budget, ledger=book, who="command line") as session:
            model: Any = fit_model(
                session,
                name,
                spend=promise,
                method=chosen,
                columns=kept,
                about=[names_in(each, table.columns) for each in about] or None,
                rules=rules,
                purpose="cloister synth fit",
                progress=progress,
            )
        model.save(out)  # before the report: it is paid for
        if report is not None:
            model.report(progress=progress).save(report)
    if as_json:
        told = {"table": name, "method": getattr(model, "method", method), "cost": str(model.cost), "saved": str(out)}
        if (rows := getattr(model, "rows", None)) is not None:
            told["rows"] = rows
        click.echo(json.dumps(told, ensure_ascii=False))
    else:
        click.echo(f"{model}\n  saved as {out}" + (f", its report as {report}" if report is not None else ""))


@synth.command("sample")
@click.argument("model", type=FILE)
@click.option("--rows", type=click.IntRange(0), help="How many (default: as many as the noisy count says).")
@click.option("--given", multiple=True, help="A condition: age=60:70, plan=month|family, smoker=missing; may be repeated.")
@click.option("--out", type=WRITTEN, help="Write .csv, .parquet or .json; left out, CSV is printed.")
@spreadsheets.OPTION
def sample(model: Path, rows: int | None, given: tuple[str, ...], out: Path | None, for_spreadsheets: bool) -> None:
    """Draw rows from a model. They cost nothing more.

    \b
    cloister synth sample census.json --rows 1000 --out rows.csv
    cloister synth sample census.json --rows 20 --given age=80:90 --given "sex=Female"
    """
    if out is not None and out.suffix not in (".csv", ".parquet", ".json"):
        raise InvalidParameter(f"--out {out.name} is invalid", why="its ending names no format", instead=f"--out {out.stem}.csv")
    check_apart(model, out)
    loaded = _load(model)
    _warned(loaded)
    frame = loaded.sample(rows, given=_conditions(loaded, given)).to_polars()
    guarded, changed = spreadsheets.guarded(frame)
    if for_spreadsheets:
        frame = guarded
    elif out is None or out.suffix == ".csv":
        spreadsheets.warn(map(repr, changed))
    if out is None:
        click.echo(frame.write_csv(), nl=False)
        return
    {".csv": frame.write_csv, ".parquet": frame.write_parquet, ".json": frame.write_json}[out.suffix](out)
    click.echo(f"{len(frame):,} rows saved as {out}")


@synth.command("answer")
@click.argument("model", type=FILE)
@click.argument("sql")
@_JSON
def answer(model: Path, sql: str, as_json: bool) -> None:
    """Answer an SQL query from a model, each number with an interval and how sure it is. It costs nothing more.

    \b
    cloister synth answer census.json "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM census GROUP BY sex"
    """
    found = _load(model).answer(sql)
    click.echo(json.dumps(found.to_pydict(), default=str, ensure_ascii=False) if as_json else str(found))


@synth.command("report")
@click.argument("model", type=FILE)
@click.option("--out", type=WRITTEN, help="Write a page to read: .html, .json or .txt; left out, the text is printed.")
@click.option("--compare", help="NOT PRIVATE, for the owner alone: the rows that the model was made of, .csv or .parquet.")
@click.option("--others", help="With --compare: rows of the same population that the model never saw, to attack it with.")
@click.option("--target", help="With --compare: the column that learners predict.")
@_JSON
def report(model: Path, out: Path | None, compare: str | None, others: str | None, target: str | None, as_json: bool) -> None:
    """Report what was measured, the margins, the errors to expect and the cost: from the model alone, so it may be published.

    With --compare, hold the model against its rows instead. That is NOT PRIVATE: exact numbers, for their owner alone.

    \b
    cloister synth report census.json
    cloister synth report census.json --out report.html
    cloister synth report people.json --compare people.csv --others held-out.csv --out owner-only.html
    """
    _page(out)
    if compare is None and (others or target):
        why, instead = "it belongs to --compare", "--compare people.csv"
        raise InvalidParameter("--others is invalid" if others else "--target is invalid", why=why, instead=instead)
    with waiting("reporting") as progress:
        loaded = _load(model)
        found: Any = (
            loaded.report(progress=progress)
            if compare is None
            else _comparable(loaded).compare(compare, others=others, target=target, progress=progress)
        )
    if out is not None:
        found.save(out)
    if as_json:
        click.echo(json.dumps(finite(found.to_dict()), ensure_ascii=False))
    else:
        click.echo(str(found) if out is None else f"saved as {out}" + ("" if compare is None else " (NOT PRIVATE)"))


def _load(path: Path) -> Any:
    from cloister.synth import load

    return load(path)


def _warned(model: Any) -> None:
    """Classes of k say that they are not private, wherever their rows go."""
    from cloister.synth import KAnonymousModel
    from cloister.synth.k_anonymous import MARK

    if isinstance(model, KAnonymousModel):
        click.echo(MARK, err=True)


def _comparable(model: Any) -> SyntheticModel:
    from cloister.synth import SyntheticModel

    if isinstance(model, SyntheticModel):
        return model
    raise InvalidParameter(
        "--compare is invalid", why="it compares models of marginals", instead="cloister synth report without it"
    )


def _bins(text: str) -> Any:
    """`pay` or `pay=20`."""
    from cloister.synth import QuantileBins

    name, equals, number = text.partition("=")
    if equals and not number.strip().isdecimal():
        raise InvalidParameter(f"--bins {text} is invalid", why=f"{number!r} is no number of bins", instead="--bins pay=50")
    return QuantileBins(name.strip(), int(number)) if equals else QuantileBins(name.strip())


def _page(path: Path | None) -> None:
    """Refused before anything is spent."""
    if path is not None and path.suffix not in _PAGES:
        raise InvalidParameter(
            f"The file {path.name!r} is invalid", why="its ending names no format", instead=f"{path.stem}.html"
        )


def _conditions(model: Any, given: tuple[str, ...]) -> dict[str, Any]:
    """`age=60:70`, `plan=month|family`, `smoker=missing`: as `SyntheticModel.sample` takes them."""
    from cloister.tables import Date, Integer, Real

    domains = {each.name: each.domain for each in (*getattr(model, "by", ()), *model.columns)}
    found: dict[str, Any] = {}
    for text in given:
        name, equals, wanted = text.partition("=")
        name = name if name in domains else name.strip()
        if not equals or name not in domains:
            raise InvalidParameter(
                f"--given {text} is invalid", why=f"the model has {', '.join(domains)}", instead="--given age=60:70"
            )
        domain = domains[name]

        def value(part: str, domain: Any = domain, text: str = text, name: str = name) -> str | None:
            said = part if domain.encode(part) is not None else part.strip()
            if said == "missing" and domain.nullable:
                return None
            if domain.encode(said) is None:
                why, instead = f"{part!r} is not a value of {domain!r}", f"--given {name}={domain.decode(domain.low_code)}"
                raise InvalidParameter(f"--given {text} is invalid", why=why, instead=instead)
            return said

        low, colon, high = wanted.replace("：", ":").partition(":")
        if colon and isinstance(domain, Integer | Real | Date):
            found[name] = (value(low), value(high))
        else:
            found[name] = [value(part) for part in wanted.split("|")]
    return found
