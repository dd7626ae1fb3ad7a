"""`cloister learn`: a private model from a file of rows, its card, its predictions, and what privacy costs."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import numpy.typing as npt

from cloister.cli import spreadsheets
from cloister.cli.bounds import BOUNDS, declared_table
from cloister.cli.opened import COMMAS, names_in, open_ledger, waiting
from cloister.cli.written import CHART, FILE, WRITTEN, Written, check_apart
from cloister.errors import InvalidParameter, UnknownColumn
from cloister.parsers import is_parquet
from cloister.tables import Category, Domain, PrivateTable
from cloister.tables.declaring.table import kinds_under
from cloister.tables.expression.names import quotation
from cloister.tables.sourcing.reading import PLAIN_INTEGER, read_days, read_number, read_truth

if TYPE_CHECKING:
    from cloister.learn.assessment.curve import Curve
    from cloister.learn.frame.base import PrivateModel
    from cloister.privacy import Guarantee

_FAR = 1e300
_EXAMPLE = "cloister learn census --model GaussianNB --features age --target income"


@click.command()
@click.argument("data", required=False)
@click.option("--model", "name", help="A method, for example GaussianNB (--list names them).")
@click.option("--features", help=f"The columns to learn from, {COMMAS}.")
@click.option("--target", help="The column to predict, where the method has one.")
@click.option("--bounds", help=BOUNDS)
@click.option("--epsilon", help="The ε to spend (default: 1).")
@click.option("--delta", help="The δ to spend, for example 1e-6.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of the method, in JSON; may be repeated."
)
@click.option("--save", type=WRITTEN, help="Write the model as JSON.")
@click.option("--card", type=Written(".md", ".html", ".json", ".txt"), help="Write the model card: .md, .html, .json or .txt.")
@click.option("--ledger", help="Charge a ledger (a file or a postgresql:// address); otherwise the charge is not recorded.")
@click.option("--predict", type=FILE, help="Predict with a saved model.")
@click.option("--curve", is_flag=True, help="Plot quality against ε. NOT PRIVATE: for public rows, or for the owner alone.")
@click.option("--epsilons", help="Of --curve: the values of ε, separated by commas (default: 0.1,0.3,1,3,10).")
@click.option("--runs", type=click.IntRange(1, 10_000), help="Of --curve: runs of each ε (default: 10).")
@click.option("--out", type=WRITTEN, help="Of --curve: .html, .svg, .png or .json; of --predict: .csv.")
@spreadsheets.OPTION
@click.option("--list", "listed", is_flag=True, help="Name the methods.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def learn(**given: Any) -> None:
    """Learn a model that may be published; DATA is a CSV or Parquet file, or the name of a sample table.

    \b
    cloister learn census --model GaussianNB --features age,education --target income --epsilon 1 --save model.json
    cloister learn people.csv --model LinearRegression --features age,sex --target pay --bounds "age=17:90,sex=F|M,pay=0:9000"
    cloister learn --predict model.json people.csv
    cloister learn census --curve --model GaussianNB --features age,education --target income --out curve.html
    """
    if given["listed"]:
        _print_methods(as_json=given["as_json"])
        return
    _check(given)
    for read in (given["data"], given["predict"]):
        check_apart(read, given["save"], given["card"], given["out"])
    if given["predict"] is not None:
        how = {"as_json": given["as_json"], "for_spreadsheets": given["for_spreadsheets"]}
        predict(given["predict"], Path(given["data"]), given["out"], **how)
        return
    with warnings.catch_warnings(), waiting("learning") as progress:
        warnings.simplefilter("ignore")  # of other libraries, about their own versions; refusals are errors here
        model = _model(given)
        table_name, table = declared_table(given["data"], given["bounds"])
        features = names_in(given["features"], table.columns)
        if given["curve"]:
            curve = _curve(model, table_name, table, features, given, progress)
        else:
            _fit(model, table_name, table, features, given)
    if given["curve"]:
        _show_curve(curve, given)
    else:
        _show_model(model, given, table_name, features)


def _check(given: dict[str, Any]) -> None:
    """What does not fit together on the line, each with its own message."""
    asked = "--predict" if given["predict"] is not None else "--curve" if given["curve"] else ""
    of_fitting, of_curves = ("save", "card", "ledger"), ("epsilons", "runs")
    of_models = ("name", "features", "target", "bounds", "epsilon", "delta", "settings")
    unused = {"--predict": (*of_models, *of_fitting, *of_curves), "--curve": ("epsilon", *of_fitting)}.get(
        asked, (*of_curves, "out")
    )
    for key in unused:
        if given[key] not in (None, ()):
            option = {"name": "--model", "settings": "--set"}.get(key, f"--{key}")
            belongs = "it belongs to --curve" + (" or --predict" if key == "out" else "")
            why = f"it does not belong to {asked}" if asked else belongs
            raise InvalidParameter(f"{option} is invalid", why=why, instead="cloister learn --help")
    if given["curve"] and given["out"] is not None:
        CHART.check(given["out"], "--out")
    if given["for_spreadsheets"] and (asked != "--predict" or given["as_json"]):
        why, instead = "it changes CSV alone", "cloister learn --predict model.json people.csv --for-spreadsheets"
        raise InvalidParameter("--for-spreadsheets is invalid", why=why, instead=instead)
    if given["predict"] is not None and given["curve"]:
        raise InvalidParameter("--curve is invalid", why="--predict learns nothing", instead="cloister learn --help")
    needed = ("data",) if asked == "--predict" else ("data", "name", "features")
    for key in needed:
        if not given[key]:
            words = {"data": "the rows", "name": "--model", "features": "--features"}[key]
            what = "Nothing was learnt" if asked != "--predict" else "Nothing was predicted"
            raise InvalidParameter(what, why=f"{words} {'are' if key == 'data' else 'is'} missing", instead=_EXAMPLE)


def _model(given: dict[str, Any]) -> PrivateModel:
    """The method with its parameters, as the line says."""
    import cloister.learn
    from cloister.learn.frame.catalogue import METHODS

    name = given["name"]
    if name not in METHODS:
        raise InvalidParameter(f"--model {name} is invalid", why=f"known are {', '.join(METHODS)}", instead="--model GaussianNB")
    model: PrivateModel = getattr(cloister.learn, name)()
    known = model.get_params(deep=False)
    chosen = {key: given[key] for key in ("epsilon", "delta") if given[key] is not None}
    taken = ("random", "privacy", "bounds", "bounds_y", "classes", "epsilon", "delta")
    free = [each for each in known if each not in taken]
    for setting in given["settings"]:
        key, equals, text = setting.partition("=")
        if not equals or key not in free:
            why, instead = f"parameters of {name} are {', '.join(free) or 'none'}", "--set NAME=VALUE"
            raise InvalidParameter(f"--set {setting} is invalid", why=why, instead=instead)
        try:
            chosen[key] = json.loads(text)
        except ValueError:
            chosen[key] = text
    strange = [key for key in chosen if key not in known]
    if strange:
        raise InvalidParameter(f"--{strange[0]} is invalid", why=f"{name} has no such parameter", instead=f"--model {name}")
    return model.set_params(**chosen)  # type: ignore[no-any-return]


def _fit(model: PrivateModel, name: str, table: PrivateTable, features: list[str], given: dict[str, Any]) -> None:
    """Through the one door, which charges a ledger: the one that is named, or one that ends with the command."""
    from cloister.session import Door

    promise = model.promise()
    assert promise is not None
    with open_ledger(given["ledger"]) as book:
        budget = None if (table.population or name) in book.populations() else _budget(promise)
        with Door({name: table}, budget=budget, ledger=book, who="command line") as door:
            model.fit_table(door, name, features=features, target=given["target"], purpose="cloister learn")


def _budget(promise: Guarantee) -> Guarantee:
    """The first budget of a population that no ledger knows: what is spent now, or 1 where nothing is."""
    from cloister.privacy import PureDP, zero_of

    return PureDP(1) if promise == zero_of(promise) else promise


def _curve(
    model: PrivateModel,
    name: str,
    table: PrivateTable,
    features: list[str],
    given: dict[str, Any],
    progress: Callable[[str], None],
) -> Curve:
    """Of the prepared rows, read by their owner."""
    from cloister.learn.assessment.curve import price_of_privacy
    from cloister.learn.frame.encoding import Encoder
    from cloister.learn.frame.from_tables import checked_features, declare, rows_of
    from cloister.privacy import PureDP
    from cloister.session import Door

    encoder = Encoder.of(table.columns, checked_features(model, features, given["target"]))
    declare(model, encoder, table, given["target"])
    with Door({name: table}, budget=PureDP(1)) as door:
        codes = door.prepared(name).rows([*features, *([given["target"]] if given["target"] else [])])
    rows = rows_of(model, encoder, given["target"], codes, table)
    y = model.classes_[rows.y] if model.target_kind == "class" else rows.y
    return price_of_privacy(
        model,
        rows.X,
        y,
        epsilons=[part.strip() for part in (given["epsilons"] or "0.1,0.3,1,3,10").split(",")],
        runs=given["runs"] or 10,
        rows=f"the rows of {name}",
        progress=progress,
    )


def _show_curve(curve: Curve, given: dict[str, Any]) -> None:
    out: Path | None = given["out"]
    if out is not None:
        if out.suffix in (".svg", ".png"):
            import vl_convert  # noqa: F401  # its absence is then told as that of a package

        curve.chart().save(str(out))
    click.echo(curve.to_json() if given["as_json"] else curve.text())


def _show_model(model: PrivateModel, given: dict[str, Any], name: str, features: list[str]) -> None:
    card = model.card(data=name, target=given["target"] or "")
    if given["save"] is not None:
        given["save"].write_text(model.to_json(), encoding="utf-8")
    if given["card"] is not None:
        forms = {".md": card.markdown, ".html": card.fragment, ".json": card.to_json, ".txt": card.text}
        given["card"].write_text(forms[given["card"].suffix](), encoding="utf-8")
    if not given["as_json"]:
        click.echo(card.text())
        if given["save"] is not None:
            click.echo(f"  saved as {given['save']}")
        return
    from cloister.learn.frame.catalogue import name_of
    from cloister.learn.frame.portable import spent_of, write_guarantee

    document = {
        "model": name_of(model),
        "table": name,
        "columns": features,
        "features": [str(feature) for feature in model.feature_names_in_],
        "target": given["target"],
        "guarantee": write_guarantee(model.guarantee_),
        "spent": spent_of(model.spent_),
        "marked": model.marked_,
        "saved": None if given["save"] is None else str(given["save"]),
    }
    click.echo(json.dumps(document, ensure_ascii=False))


def _print_methods(*, as_json: bool) -> None:
    from cloister.learn.frame.catalogue import METHODS

    if as_json:
        methods = [
            {"name": each.name, "title": each.title, "learns": each.task, "delta": not each.pure} for each in METHODS.values()
        ]
        click.echo(json.dumps(methods, ensure_ascii=False))
        return
    for each in METHODS.values():
        click.echo(f"{each.name:<28} {each.title} ({each.task}{'' if each.pure else '; needs --delta'})")


def predict(model_path: Path, rows: Path, out: Path | None, *, as_json: bool, for_spreadsheets: bool) -> None:
    """Print predictions, or write them: a column `prediction`, one line a row.

    Of a model that learnt from a table, columns are what that declared. Else the names of features say how they are made: `age`
    is the column age as a number (a day counts from 1970, yes is 1), and `sex=F` is 1 where the column sex holds F. A row with a
    missing value, or with a category that the model does not know, gets no prediction.
    """
    from cloister.learn.frame.portable import load

    model = load(model_path)
    if not hasattr(model, "predict"):
        why = f"a {type(model).__name__} predicts nothing"
        raise InvalidParameter(f"The model {model_path.name} is invalid", why=why, instead="--model GaussianNB")
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if not names:
        why, instead = "it learnt from arrays, so no column is found for its features", "cloister.learn.load(path).predict(X)"
        raise InvalidParameter(f"The model {model_path.name} is invalid", why=why, instead=instead)
    found = _predicted(model, features_of(rows, names, model.declared_))
    if as_json:
        click.echo(json.dumps({"prediction": found}, ensure_ascii=False, default=str))
        return
    cells = [["" if value is None else value] for value in found]
    lines = spreadsheets.as_written(["prediction"], cells, for_spreadsheets=for_spreadsheets)
    with nullcontext(sys.stdout) if out is None else out.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)


def _predicted(model: Any, X: npt.NDArray[np.float64]) -> list[Any]:
    known = ~np.isnan(X).any(axis=1)
    found: list[Any] = [None] * len(X)
    if known.any():
        model.feature_names_in_ = None
        del model.feature_names_in_  # the columns were found by name already
        for place, value in zip(np.flatnonzero(known).tolist(), model.predict(X[known]).tolist(), strict=True):
            found[place] = value
    return found


def features_of(path: Path, names: list[str], declared: Sequence[tuple[str, Domain]] = ()) -> npt.NDArray[np.float64]:
    """The features of the rows of a file, as its columns were declared, or by their names."""
    from cloister.learn.frame.encoding import Encoder

    if declared:
        kinds = kinds_under(dict(declared), None, None)
        return Encoder(columns=tuple(declared)).transform(_texts(path, list(kinds), kinds))
    found, place = _texts(path, names, dict.fromkeys(names, ("decimal", "date"))), 0
    parts = []
    for column, texts in found.items():
        values = [name.removeprefix(f"{column}=") for name in names[place:] if _column(name, found) == column]
        place += len(values)
        if values == [column]:
            parts.append(np.array([_number(text) for text in texts], dtype=np.float64)[:, None])
        else:
            parts.append(Encoder(columns=((column, _category(values)),)).transform({column: texts}))
    return np.concatenate(parts, axis=1)


def _texts(path: Path, names: list[str], kinds: Mapping[str, Collection[str]]) -> dict[str, list[str | None]]:
    """The columns of these features as texts, in their order."""
    from cloister.tables.engines.connection import connected
    from cloister.tables.engines.guard import guarded
    from cloister.tables.sourcing.sources import CsvSource, ParquetSource

    if not path.is_file():
        raise InvalidParameter(f"The file {str(path)!r} is invalid", why="no such file can be read", instead="rows.csv")
    source = (ParquetSource if is_parquet(path) else CsvSource)(path).read_under(kinds)
    columns = dict.fromkeys(_column(name, source.schema) for name in names)
    if strange := [each for each in columns if source.schema[each] == "other"]:
        why, instead = "its cells are lists or another type that no model learns from", "a column of numbers, texts or days"
        raise InvalidParameter(f"The column {strange[0]!r} is invalid", why=why, instead=instead)
    cells = {each: f"CAST({quotation(each)} AS VARCHAR)" for each in columns}
    whole = r"regexp_replace({}, '\.0$', '')"  # 1.0 is yes, as in the rows that were learnt from
    chosen = ", ".join(whole.format(cell) if source.schema[each] == "float" else cell for each, cell in cells.items())
    with connected() as engine:
        if source.malformed(engine):
            why, instead = "it is not a table, or a line has more or fewer cells than the first", "rows.csv"
            raise InvalidParameter(f"The file {path.name!r} is invalid", why=why, instead=instead)
        select = f"SELECT {chosen} FROM {source.attach(engine)}"  # noqa: S608
        what = f"The file {path.name!r} could not be read"
        found = guarded(what, lambda: engine.execute(select).fetchall(), why="it is damaged")
    return {column: [cell[place] for cell in found] for place, column in enumerate(columns)}


def _column(name: str, columns: Collection[str]) -> str:
    """The column that a feature is of: of the name itself, or of what stands before one of its =."""
    if name in columns:
        return name
    found = max((column for column in columns if name.startswith(f"{column}=")), key=len, default=None)
    if found is None:
        column = name.partition("=")[0]
        why = f"the model learnt from it, and the file has only {', '.join(map(repr, columns))}"
        raise UnknownColumn(f"The column {column!r} is missing", why=why, instead=f"a file with {column} in its first line")
    return found


def _category(values: list[str]) -> Category:
    """What was declared, as far as names tell: numbers and truth values may be spelled in several ways."""
    if set(values) <= {"True", "False"}:
        return Category([value == "True" for value in values])
    return Category([int(value) for value in values] if all(re.fullmatch(PLAIN_INTEGER, value) for value in values) else values)


def _number(text: str | None) -> float:
    """A number, a truth value or a day; a number that is too large for a float counts as beyond every bound."""
    for read in (read_number, read_truth, read_days):
        if text is not None and (found := read(text)) is not None:
            return float(np.clip(found, -_FAR, _FAR))
    return math.nan
