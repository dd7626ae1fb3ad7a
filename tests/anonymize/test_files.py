"""Files: DuckDB counts, the search works on what differs, and what is written is what the table in memory would have become."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from cloister.anonymize import Anonymizer, HiddenRows, Hierarchy, KAnonymity, LDiversity
from cloister.anonymize.files import anonymize_file
from cloister.errors import InvalidParameter, UnknownColumn
from cloister.noise import Random

HOSTILE = 'a"; DROP TABLE x; -- 🏰'


def people(rows: int = 600) -> pl.DataFrame:
    """Made-up patients, with missing values of each kind."""
    random = Random.deterministic(3)

    def drawn(bound: int) -> list[int]:
        return [int(each) for each in random.below(bound, rows)]

    return pl.DataFrame(
        {
            "name": [f"person {number}" for number in range(rows)],
            "age": [None if each > 60 else 18 + each for each in drawn(64)],
            HOSTILE: [("Ulm", "Bonn", "O'Hara", "", None)[each] for each in drawn(5)],
            "pay": [(0.5, -1.25, float("nan"), None, 1e9)[each] for each in drawn(5)],
            "born": [datetime.date(1990, 1, 1) + datetime.timedelta(days=each) for each in drawn(40)],
            "ill": [("flu", "cold", "gout", None)[each] for each in drawn(4)],
        }
    )


def anonymizer(search: str, **more: Any) -> Anonymizer:
    """One for those patients."""
    arguments: dict[str, Any] = {
        "quasi": ["age", HOSTILE, "pay", "born"],
        "sensitive": ["ill"],
        "models": [KAnonymity(4), LDiversity(2)],
        "identifying": ["name"],
        "suppression": "0.2",
        "search": search,
    }
    return Anonymizer(**(arguments | more))


@pytest.mark.parametrize("search", ["mondrian", "optimal"])
@pytest.mark.parametrize("suppressed", ["drop", "star"])
@pytest.mark.parametrize("missing", ["value", "suppress"])
def test_a_file_becomes_what_the_table_becomes(tmp_path: Path, search: str, suppressed: str, missing: str) -> None:
    table = people()
    table.write_parquet(tmp_path / "people.parquet")
    more = {"suppressed": suppressed, "missing": missing, "suppression": "0.9"}
    whole, asked = anonymizer(search, **more), anonymizer(search, **more)
    in_memory = whole.fit_transform(table)
    done = anonymize_file(asked, tmp_path / "people.parquet", tmp_path / "released.parquet")
    released = pl.read_parquet(tmp_path / "released.parquet")
    assert released.columns == in_memory.columns
    assert (done.rows, done.written) == (600, released.height)
    texts = [frame.select(pl.all().cast(pl.String).fill_null("∅")).sort(pl.all()) for frame in (released, in_memory)]
    assert texts[0].equals(texts[1])
    assert asked.report_.suppressed == whole.report_.suppressed
    assert asked.report_.rows == 600
    assert asked.report_.dropped == ("name",)
    assert asked.report_.risk.k == whole.report_.risk.k


def test_equal_rows_are_counted_once(tmp_path: Path) -> None:
    rows = pl.concat([people(50).drop("name")] * 40)
    rows.write_csv(tmp_path / "people.csv")
    done = anonymize_file(anonymizer("mondrian", identifying=[]), tmp_path / "people.csv", tmp_path / "released.csv")
    assert done.combinations <= 50
    assert done.rows == done.written == 2000
    assert pl.read_csv(tmp_path / "released.csv").height == 2000


def test_a_table_of_a_connection(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE "my people" AS SELECT (i % 40) AS age, i % 3 AS ill FROM range(400) t(i)')
        asked = Anonymizer(quasi=["age"], models=[KAnonymity(15)], search="mondrian")
        done = anonymize_file(asked, "my people", tmp_path / "it's.parquet", connection=connection)
        assert done.combinations == 40
        sizes = connection.sql(f"SELECT count(*) FROM '{tmp_path}/it''s.parquet' GROUP BY age").fetchall()
        assert min(sizes)[0] >= 15
        assert {name for (name,) in connection.sql("SHOW TABLES").fetchall()} == {"my people"}, "nothing is left behind"


def test_several_files_by_a_pattern(tmp_path: Path) -> None:
    for part in range(3):
        people(100).write_parquet(tmp_path / f"part-{part}.parquet")
    done = anonymize_file(anonymizer("mondrian"), tmp_path / "part-*.parquet", tmp_path / "released.csv")
    assert done.rows == 300


def test_no_row(tmp_path: Path) -> None:
    people(5).head(0).write_parquet(tmp_path / "none.parquet")
    done = anonymize_file(anonymizer("mondrian"), tmp_path / "none.parquet", tmp_path / "released.parquet")
    assert (done.rows, done.written) == (0, 0)


def test_what_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    people(40).write_parquet(tmp_path / "people.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"no parquet")
    released = tmp_path / "released.parquet"
    with pytest.raises(InvalidParameter, match="neither CSV nor Parquet"):
        anonymize_file(anonymizer("mondrian"), tmp_path / "people.parquet", tmp_path / "released.xlsx")
    with pytest.raises(InvalidParameter, match="no such file"):
        anonymize_file(anonymizer("mondrian"), tmp_path / "none.csv", released)
    with pytest.raises(InvalidParameter, match="could not be read"):
        anonymize_file(anonymizer("mondrian"), tmp_path / "broken.parquet", released)
    with pytest.raises(UnknownColumn, match="height"):
        anonymize_file(anonymizer("mondrian", quasi=["age", "height"]), tmp_path / "people.parquet", released)
    with pytest.raises(UnknownColumn, match="nickname"):
        anonymize_file(anonymizer("mondrian", identifying=["nickname"]), tmp_path / "people.parquet", released)
    with pytest.raises(InvalidParameter, match="the table has 40 rows"):
        anonymize_file(anonymizer("mondrian", models=[KAnonymity(41)]), tmp_path / "people.parquet", released)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.parquet", "people.parquet"]


def test_a_column_that_names_each_row_is_pointed_at(tmp_path: Path) -> None:
    people(200).write_parquet(tmp_path / "people.parquet")
    with pytest.warns(HiddenRows, match="'name' stays"):
        anonymize_file(anonymizer("mondrian", identifying=[]), tmp_path / "people.parquet", tmp_path / "released.parquet")


def test_a_hierarchy_given_by_the_owner(tmp_path: Path) -> None:
    people(300).write_csv(tmp_path / "people.csv")
    asked = Anonymizer(
        quasi=["age"], models=[KAnonymity(5)], hierarchies={"age": Hierarchy.intervals(10, 20, 40)}, identifying=["name"]
    )
    done = anonymize_file(asked, tmp_path / "people.csv", tmp_path / "released.csv")
    assert done.report.levels == asked.report_.levels
    assert done.report.models[0].holds
