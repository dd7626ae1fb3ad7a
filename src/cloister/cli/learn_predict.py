"""`cloister learn --predict`: a saved model and a file of rows; a prediction for each row.

The names of the model's features say how they are made: `age` is the column age as a number (a day counts from 1970, yes is 1),
and `sex=F` is 1 where the column sex holds F. A row with a missing value, or with a category that the model does not know, gets
no prediction.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from cloister.cli import spreadsheets
from cloister.errors import InvalidParameter, UnknownColumn


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
    """The features of the rows of a file, by their names."""
    import duckdb

    from cloister.tables.engines.connection import connected

    if not path.is_file():
        raise InvalidParameter(f"The file {str(path)!r} is invalid", why="no such file can be read", instead="rows.csv")
    with connected() as engine:
        try:
            rows = engine.read_parquet(str(path)) if path.suffix == ".parquet" else engine.read_csv(str(path), all_varchar=True)
            columns = list(rows.columns)
            made = [_expression(name, columns) for name in names]
            values = rows.project(", ".join(f"{text} AS f{place}" for place, text in enumerate(made))).fetchnumpy()
        except duckdb.Error:
            raise InvalidParameter(f"The file {path.name!r} is invalid", why="it is no table", instead="rows.csv") from None
    filled = [np.ma.filled(np.ma.asarray(values[f"f{place}"], dtype=np.float64), np.nan) for place in range(len(names))]
    X = np.column_stack(filled)
    for column in dict.fromkeys(name.partition("=")[0] for name in names if name not in columns):
        places = [place for place, name in enumerate(names) if name not in columns and name.partition("=")[0] == column]
        unknown = X[:, places].sum(axis=1) == 0
        X[np.ix_(unknown, places)] = np.nan  # a category that was not declared
    return X


def _expression(name: str, columns: list[str]) -> str:
    """A feature as SQL over columns of text; names and values are quoted."""
    if name in columns:
        text = f'CAST("{_doubled(name)}" AS VARCHAR)'
        day = f"date_diff('day', DATE '1970-01-01', TRY_CAST({text} AS DATE))"
        return f"COALESCE(TRY_CAST({text} AS DOUBLE), CAST(TRY_CAST({text} AS BOOLEAN) AS DOUBLE), CAST({day} AS DOUBLE))"
    column, equals, value = name.partition("=")
    if not equals or column not in columns:
        raise UnknownColumn(
            f"The column {column!r} is missing", why="the model learnt from it", instead=f"a file with {column} in its first line"
        )
    literal = value.replace("'", "''")
    return f"CAST(CAST(\"{_doubled(column)}\" AS VARCHAR) = '{literal}' AS DOUBLE)"


def _doubled(name: str) -> str:
    return name.replace('"', '""')
