"""`cloister learn --predict`: a saved model and a file of rows; a prediction for each row.

The names of the model's features say how they are made: `age` is the column age as a number (a day counts from 1970, yes is 1),
and `sex=F` is 1 where the column sex holds F. A row with a missing value, or with a category that the model does not know, gets
no prediction.
"""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from cloister.cli import spreadsheets
from cloister.errors import InvalidParameter, UnknownColumn
from cloister.tables import Category
from cloister.tables.sourcing.reading import PLAIN_INTEGER, read_days, read_number, read_truth

_FAR = 1e300


def predict(model_path: Path, rows: Path, out: Path | None, *, as_json: bool, for_spreadsheets: bool) -> None:
    """Print predictions, or write them: a column `prediction`, one line a row."""
    from cloister.learn.frame.portable import load

    model = load(model_path)
    if not hasattr(model, "predict"):
        raise InvalidParameter(
            f"The model {model_path.name} is invalid",
            why=f"a {type(model).__name__} predicts nothing",
            instead="--model GaussianNB",
        )
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if not names:
        raise InvalidParameter(
            f"The model {model_path.name} is invalid",
            why="it learnt from arrays without names, so no column can be found for its features",
            instead="cloister.learn.load(path).predict(X)",
        )
    found = _predicted(model, features_of(rows, names))
    if as_json:
        click.echo(json.dumps({"prediction": found}, ensure_ascii=False, default=str))
        return
    cells = [["" if value is None else value] for value in found]
    lines = spreadsheets.as_written(["prediction"], cells, for_spreadsheets=for_spreadsheets)
    if out is not None:
        with out.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(lines)
    else:
        csv.writer(sys.stdout).writerows(lines)


def _predicted(model: Any, X: npt.NDArray[np.float64]) -> list[Any]:
    known = ~np.isnan(X).any(axis=1)
    found: list[Any] = [None] * len(X)
    if known.any():
        model.feature_names_in_ = None
        del model.feature_names_in_  # the columns were found by name already
        for place, value in zip(np.flatnonzero(known).tolist(), model.predict(X[known]).tolist(), strict=True):
            found[place] = value
    return found


def features_of(path: Path, names: list[str]) -> npt.NDArray[np.float64]:
    """The features of the rows of a file, by their names; cells are read as those of rows to learn from are."""
    from cloister.learn.frame.encoding import Encoder

    found, place = _texts(path, names), 0
    parts = []
    for column, texts in found.items():
        values = [name.removeprefix(f"{column}=") for name in names[place:] if _column(name, found) == column]
        place += len(values)
        if values == [column]:
            parts.append(np.array([_number(text) for text in texts], dtype=np.float64)[:, None])
        else:
            parts.append(Encoder(columns=((column, _category(values)),)).transform({column: texts}))
    return np.concatenate(parts, axis=1)


def _texts(path: Path, names: list[str]) -> dict[str, list[str | None]]:
    """The columns of these features as texts, in their order."""
    import duckdb

    from cloister.tables.engines.connection import connected
    from cloister.tables.sourcing.lines import read_header

    if not path.is_file():
        raise InvalidParameter(f"The file {str(path)!r} is invalid", why="no such file can be read", instead="rows.csv")
    with connected() as engine:
        try:
            if path.suffix == ".parquet":
                rows = engine.read_parquet(str(path))
            else:
                header = read_header(path)
                rows = engine.read_csv(
                    str(path),
                    all_varchar=True,
                    header=True,
                    sep=header.delimiter,
                    names=list(header.names),
                    quotechar='"',
                    escapechar='"',
                )
            columns = dict.fromkeys(_column(name, rows.columns) for name in names)
            chosen = ", ".join(f'CAST("{_doubled(column)}" AS VARCHAR)' for column in columns)
            cells = rows.project(chosen).fetchall()
        except (duckdb.Error, UnicodeDecodeError):
            raise InvalidParameter(
                f"The file {path.name!r} is invalid",
                why="it is no table, or a line has more or fewer cells than the first",
                instead="rows.csv",
            ) from None
    return {column: [cell[place] for cell in cells] for place, column in enumerate(columns)}


def _column(name: str, columns: Collection[str]) -> str:
    """The column that a feature is of: of the name itself, or of what stands before one of its =."""
    if name in columns:
        return name
    found = max((column for column in columns if name.startswith(f"{column}=")), key=len, default=None)
    if found is None:
        column = name.partition("=")[0]
        raise UnknownColumn(
            f"The column {column!r} is missing", why="the model learnt from it", instead=f"a file with {column} in its first line"
        )
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


def _doubled(name: str) -> str:
    return name.replace('"', '""')
