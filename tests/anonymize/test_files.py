"""Files: DuckDB counts, the search works on what differs, and what is written is what the table in memory would have become."""

from __future__ import annotations

import csv
import datetime
import io
import resource
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from cloister.anonymize import Anonymizer, DeltaPresence, HiddenRows, Hierarchy, KAnonymity, LDiversity
from cloister.anonymize.files import anonymize_file
from cloister.anonymize.files_checked import check_written, rows_of
from cloister.anonymize.frames import read_frame
from cloister.anonymize.problem import silent
from cloister.anonymize.queries import watched
from cloister.errors import CloisterError, InvalidParameter, UnknownColumn
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


def released(folder: Path, source: str, *parts: str, **roles: Any) -> list[str]:
    """The lines, sorted, that leave of CSV parts with these texts, as many to a class as there are."""
    for number, text in enumerate(parts):
        (folder / f"part-{number}.csv").write_text(text, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HiddenRows)
        wanted = Anonymizer(models=[KAnonymity(1)], **roles)
        done = anonymize_file(wanted, folder / source, folder / "released.csv")
    lines = (folder / "released.csv").read_text(encoding="utf-8").split("\n")[1:-1]
    assert done.rows == done.written == len(lines)
    return sorted(lines)


def test_parts_of_csv_are_read_each_as_it_is(tmp_path: Path) -> None:
    parts = "id,age\n1,30\n#2,31\n", "a title\nid,age\n3,32\n", "age;id\n33;4\n"
    assert released(tmp_path, "part-*.csv", *parts, quasi=["age"]) == ['"#2",31', "1,30", "3,32", "4,33"]
    dates = "day,n\n2020-01-02,1\n", "day,n\n31/12/2020,2.5\n"
    assert released(tmp_path, "part-[01].csv", *dates, quasi=["day"]) == ["2020-01-02,1.0", "31/12/2020,2.5"]
    with pytest.raises(InvalidParameter, match=r"columns of 'part-1.csv' are not those of 'part-0.csv'"):
        released(tmp_path, "part-[01].csv", "id,age\n1,30\n", "2,31\n3,32\n", quasi=["age"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("twice", ["Name", "name"])
def test_no_part_has_two_columns_that_are_called_alike(tmp_path: Path, kind: str, twice: str) -> None:
    for number in range(2):
        path = tmp_path / f"part-{number}.{kind}"
        table = pl.DataFrame({"name": ["ann"], "age": [30], "Name": ["ann"]})
        if kind == "csv":
            path.write_text(f"name,age,{twice}\nann,30,ann\n", encoding="utf-8")
        else:
            table.write_parquet(path)
    with pytest.raises(InvalidParameter, match="two of its columns are called 'name'"):
        released(tmp_path, f"part-*.{kind}", quasi=["age"], identifying=["name"])
    assert not (tmp_path / "released.csv").exists()


def test_cells_that_look_like_another_dialect_leave_as_they_are(tmp_path: Path) -> None:
    table = pl.DataFrame({"ill": ["A;B", "x|y", "u\tv", "'"]})
    table.write_parquet(tmp_path / "one.parquet")
    assert released(tmp_path, "one.parquet", quasi=["ill"]) == ["'", "A;B", "u\tv", "x|y"]
    assert released(tmp_path, "part-0.csv", "id,age\n1,30\n#3,30\n", quasi=["age"]) == ['"#3",30', "1,30"]
    assert released(tmp_path, "part-0.csv", "2019,2020\n1,30\n2,30\n", quasi=["2020"]) == ["1,30", "2,30"], "years are names"
    with pytest.raises(InvalidParameter, match="pandas writes none above its index"):
        released(tmp_path, "part-0.csv", ",age\n0,30\n1,31\n", quasi=["age"])


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
    with pytest.raises(InvalidParameter, match="a list is expected"):
        anonymize_file(anonymizer("mondrian", models=KAnonymity(2)), tmp_path / "people.parquet", released)
    with pytest.raises(InvalidParameter, match="a list is expected"):
        anonymize_file(anonymizer("mondrian", quasi=None), tmp_path / "people.parquet", released)
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


def test_rows_that_are_no_part_of_the_table_stay_behind(tmp_path: Path) -> None:
    table = pl.DataFrame({"age": [20, 20, 20, 20, 50, 50, 50, 50], "in": [True, False] * 4, "ill": list("abababab")})
    table.write_parquet(tmp_path / "people.parquet")
    asked = Anonymizer(quasi=["age"], models=[DeltaPresence("0.2", "0.8")], research="in", search="mondrian")
    in_memory = asked.fit_transform(table)
    done = asked.transform_file(tmp_path / "people.parquet", tmp_path / "released.parquet")
    released = pl.read_parquet(tmp_path / "released.parquet")
    assert released.columns == in_memory.columns
    assert sorted(released.rows()) == sorted(in_memory.rows())
    assert (done.rows, done.written) == (8, 4)


def test_what_counts_as_one_value_is_written_in_one_way(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "pay": [0.0, -0.0, float("nan"), None] * 5,
            "town": ["?", None, "", "Ulm"] * 5,
            "ill": [0.0, None, -0.0, float("nan")] * 5,
        },
        strict=False,
    )
    table.write_parquet(tmp_path / "people.parquet")
    asked = Anonymizer(quasi=["pay", "town"], sensitive=["ill"], models=[KAnonymity(5)], search="mondrian", missing_values=["?"])
    in_memory = asked.fit_transform(table)
    for ending in ("parquet", "csv"):
        anonymize_file(asked, tmp_path / "people.parquet", tmp_path / f"released.{ending}")
    released = pl.read_parquet(tmp_path / "released.parquet")
    texts = [frame.select(pl.all().cast(pl.String)).sort(pl.all(), nulls_last=True) for frame in (released, in_memory)]
    assert texts[0].equals(texts[1])
    assert (tmp_path / "released.csv").read_text(encoding="utf-8").count("-0") == 0


def test_rows_leave_in_a_secret_order(tmp_path: Path) -> None:
    """An order that is neither the old one nor one that the rows decide; the chance that two agree is 1 in 200!."""
    people(200).with_row_index("place").write_parquet(tmp_path / "people.parquet")
    orders = []
    for number in range(2):
        asked = anonymizer("mondrian", identifying=["name"])
        with pytest.warns(HiddenRows, match="'place'"):
            anonymize_file(asked, tmp_path / "people.parquet", tmp_path / f"{number}.csv")
        orders.append(pl.read_csv(tmp_path / f"{number}.csv")["place"].to_list())
    assert sorted(orders[0]) == sorted(orders[1])
    assert len({tuple(sorted(orders[0])), *map(tuple, orders)}) == 3
    kept = anonymizer("mondrian", identifying=["name"], shuffle=False)
    with pytest.warns(HiddenRows, match="the order of the rows stays"):
        anonymize_file(kept, tmp_path / "people.parquet", tmp_path / "kept.csv")
    assert kept.report_.kept == ("place", "the order of the rows")
    with pytest.raises(InvalidParameter, match="no labels"):
        anonymize_file(anonymizer("mondrian", keep_index=True), tmp_path / "people.parquet", tmp_path / "kept.csv")


@pytest.mark.parametrize("name", ["cloister_row", "Cloister_Row", "file_row_number"])
def test_no_column_of_the_file_decides_the_secret_order(tmp_path: Path, name: str) -> None:
    pl.DataFrame({"age": range(40), name: [0] * 40}).write_parquet(tmp_path / "people.parquet")
    asked = Anonymizer(quasi=["age"], models=[KAnonymity(1)])
    anonymize_file(asked, tmp_path / "people.parquet", tmp_path / "released.parquet")
    left = pl.read_parquet(tmp_path / "released.parquet")
    assert left.columns == ["age", name]
    assert sum(place == age for place, age in enumerate(left["age"])) < 20, "of a random order one row stands where it stood"


def test_the_type_of_a_column_is_that_of_all_its_values(tmp_path: Path) -> None:
    rows = "".join(f"{number % 50}\n" for number in range(60_000))
    (tmp_path / "people.csv").write_text(f"age\n{rows}" + "unknown\n" * 5, encoding="utf-8")
    asked = Anonymizer(quasi=["age"], models=[KAnonymity(5)], search="mondrian")
    done = anonymize_file(asked, tmp_path / "people.csv", tmp_path / "released.csv")
    assert (done.rows, done.combinations) == (60_005, 51)


def test_interrupted_nothing_is_left_and_what_was_there_stays(tmp_path: Path) -> None:
    people(300).write_parquet(tmp_path / "people.parquet")
    goal = tmp_path / "released.parquet"
    goal.write_bytes(b"of yesterday")
    stages: list[str] = []
    anonymize_file(anonymizer("mondrian", progress=lambda stage, done: stages.append(stage)), tmp_path / "people.parquet", goal)
    assert {"counting combinations", "cutting", "writing", "counting classes again"} <= set(stages)
    for stage in dict.fromkeys(stages):
        goal.write_bytes(b"of yesterday")

        def interrupt(here: str, done: float, stage: str = stage) -> None:
            if here == stage:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            anonymize_file(anonymizer("mondrian", progress=interrupt), tmp_path / "people.parquet", goal)
        assert goal.read_bytes() == b"of yesterday"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["people.parquet", "released.parquet"]


KILLED = """
import os, signal, sys
from cloister.anonymize import Anonymizer, KAnonymity
def killed(stage, done):
    if stage == "counting classes again":
        os.kill(os.getpid(), signal.SIGKILL)
asked = Anonymizer(quasi=["age"], models=[KAnonymity(2)], search="mondrian", progress=killed)
asked.transform_file(*sys.argv[1:3], temporary_directory=sys.argv[3])
"""


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("smokes", ["yes", "no"]),
        ("smokes", ["T", "F"]),
        (" of a blank", ["a ", " b"]),
        ("day", ["01/03/2024", "02/03/2024"]),
        ("day", ["02/13/2024", "01/03/2024"]),
        ("day", ["02-01-24", "03-01-24"]),
        ("code", ["0x1F", "0x2A"]),
        ("day", ["1/2/2024", "3/4/2024"]),
        ("until", ["Infinity", "-Infinity"]),
        ("until", ["infinity", "2024-01-01"]),
        ("from", ["2024-01-01 (BC)", "2024-01-02"]),
        ("score", ['""', "7"]),
        ("mark", ["'1'", "'2'"]),
        ("day", ["2024-01-02", "13/01/2024"]),
        ("of a blank", [" 1", "2 "]),
        ("icd", ["008.45", "250.01"]),
    ],
)
@pytest.mark.parametrize("larger", [False, True])
def test_what_may_mean_two_things_is_published_as_it_was_written(
    name: str, cells: list[str], larger: bool, tmp_path: Path
) -> None:
    source, goal = tmp_path / "people.csv", tmp_path / "released.csv"
    source.write_text("".join(f"{age},{cell}\n" for age, cell in zip(["age", *[30, 31] * 2], [name, *cells * 2], strict=True)))
    asked = Anonymizer(quasi=["age"], models=[KAnonymity(2)], search="mondrian")
    if larger:
        asked.transform_file(source, goal)
    else:
        asked.fit_transform(source).write_csv(goal)
    first, *rows = csv.reader(io.StringIO(goal.read_text()))
    assert first == ["age", name]
    assert sorted(cell for _, cell in rows) == sorted(cell.strip('"') for cell in cells * 2)


def test_killed_half_way_there_is_no_file_of_that_name_and_the_next_one_removes_its_rows(tmp_path: Path) -> None:
    pl.DataFrame({"age": [20, 21, 40, 41]}).write_parquet(tmp_path / "people.parquet")
    goal, between = tmp_path / "released.parquet", tmp_path / "between"
    between.mkdir()
    ended = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "people.parquet", goal, between], check=False)
    assert ended.returncode == -9
    assert not goal.exists()
    asked = Anonymizer(quasi=["age"], models=[KAnonymity(2)], search="mondrian")
    anonymize_file(asked, tmp_path / "people.parquet", goal, temporary_directory=between)
    assert list(between.iterdir()) == [], "the rows that the killed one had put there"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["between", "people.parquet", "released.parquet"]


def test_a_folder_for_what_does_not_fit_that_is_not_there_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"age": [20, 21, 40, 41]}).write_parquet(tmp_path / "people.parquet")
    asked = Anonymizer(quasi=["age"], models=[KAnonymity(2)], search="mondrian")
    with pytest.raises(InvalidParameter, match="there is no such folder"):
        anonymize_file(asked, tmp_path / "people.parquet", tmp_path / "out.csv", temporary_directory=tmp_path / "none")


def test_no_row_is_taken_for_the_names(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age,town\n20,secret,z\n21,b,z\n22,c,z\n", encoding="utf-8")
    asked = Anonymizer(quasi=["age"], models=[KAnonymity(1)], search="mondrian")
    with pytest.raises(InvalidParameter, match="another number of cells") as found:
        asked.transform_file(tmp_path / "people.csv", tmp_path / "released.csv")
    assert "secret" not in str(found.value)


def test_no_cell_of_a_single_column_is_shown_as_a_name(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("ill\nsecret;cough\nflu;cold\n", encoding="utf-8")
    Anonymizer(quasi=["ill"], models=[KAnonymity(1)], search="mondrian").transform_file(
        tmp_path / "people.csv", tmp_path / "released.csv"
    )
    assert sorted((tmp_path / "released.csv").read_text().split()) == ["flu;cold", "ill", "secret;cough"]


@pytest.mark.parametrize("text", [",age\n0,30\n1,30\n", "age,\n30,\n30,\n"])
def test_a_column_without_a_name_is_refused_in_memory_too(text: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(text, encoding="utf-8")
    asked = Anonymizer(quasi=["age"], models=[KAnonymity(2)], search="mondrian")
    with pytest.raises(InvalidParameter, match="pandas writes none above its index"):
        asked.fit_transform(tmp_path / "people.csv")


@pytest.mark.parametrize("rows", [0, 6])
def test_a_column_of_no_type_since_no_row_has_a_value_is_a_column(rows: int, tmp_path: Path) -> None:
    pl.DataFrame({"age": [30, 30, 30, 60, 60, 60][:rows], "town": [None] * rows}).write_parquet(tmp_path / "people.parquet")
    asked = Anonymizer(quasi=["age", "town"], models=[KAnonymity(3)], suppression=0, search="mondrian")
    done = anonymize_file(asked, tmp_path / "people.parquet", tmp_path / "released.parquet")
    released = pl.read_parquet(tmp_path / "released.parquet")
    assert (done.written, released.height, released["town"].null_count()) == (rows, rows, rows)
    assert asked.report_.classes == rows // 3


def test_brackets_in_the_name_of_a_file_are_no_pattern(tmp_path: Path) -> None:
    (tmp_path / "people[1].csv").write_text("age\n30\n30\n", encoding="utf-8")
    (tmp_path / "people1.csv").write_text("age\n99\n99\n", encoding="utf-8")
    asked = Anonymizer(quasi=["age"], models=[KAnonymity(2)], search="mondrian")
    assert asked.fit_transform(tmp_path / "people[1].csv")["age"].to_list() == [30, 30]


def test_what_duckdb_says_of_a_value_is_not_told(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people AS SELECT 'secret' AS age")
        connection.execute("CREATE VIEW numbers AS SELECT CAST(age AS INTEGER) AS age FROM people")
        asked = Anonymizer(quasi=["age"], models=[KAnonymity(1)], search="mondrian")
        with pytest.raises(CloisterError, match="counting combinations") as found:
            anonymize_file(asked, "numbers", tmp_path / "released.csv", connection=connection)
    assert "secret" not in str(found.value)
    assert found.value.__suppress_context__
    assert not list(tmp_path.iterdir())


def test_a_file_that_does_not_hold_what_was_checked_is_withheld(tmp_path: Path) -> None:
    frame = read_frame(pl.DataFrame({"age": [20, 21, 40, 41]}))
    asked = Anonymizer(quasi=["age"], models=[KAnonymity(2)], search="mondrian")
    recoded = asked.recode(frame)
    path = tmp_path / "released.csv"
    more: dict[str, Any] = {"star": False, "outside": None, "progress": silent}
    with duckdb.connect() as duck:
        for text, holds in (("20–21 20–21 40–41 40–41", True), ("20–21 20–21 20–21 40–41", False), ("20–21 20–21 40–41", False)):
            path.write_text("\n".join(["age", *text.split()]), encoding="utf-8")
            if holds:
                check_written(duck, rows_of(path, ["age"]), frame, recoded, {}, **more)
            else:
                with pytest.raises(CloisterError, match="withheld"):
                    check_written(duck, rows_of(path, ["age"]), frame, recoded, {}, **more)


def test_duckdb_says_how_far_it_is_and_prints_nothing() -> None:
    """By itself it does neither in a program, and both in a notebook."""
    with duckdb.connect() as owner, duckdb.connect() as locked:
        locked.execute("SET lock_configuration = true")
        for connection in (watched(owner.cursor()), watched(owner)):
            assert setting(connection, "enable_progress_bar") is True
            assert setting(connection, "enable_progress_bar_print") is False
        assert watched(locked) is locked


def setting(connection: duckdb.DuckDBPyConnection, name: str) -> object:
    found = connection.execute(f"SELECT current_setting('{name}')").fetchone()
    assert found is not None
    return found[0]


def test_many_different_values_and_a_small_memory_of_duckdb(tmp_path: Path) -> None:
    rows = 60_000
    table = pl.select(pl.int_range(rows).alias("id"), pl.format("c{}", pl.int_range(rows, 0, -1)).alias("code"))
    table.write_parquet(tmp_path / "people.parquet")
    asked = Anonymizer(quasi=["id", "code"], models=[KAnonymity(100)], search="mondrian")
    done = anonymize_file(asked, tmp_path / "people.parquet", tmp_path / "released.parquet", memory_limit="200MiB")
    assert done.rows == done.written == done.combinations == rows
    assert done.report.risk.k >= 100


LARGE = """
import sys
from cloister.anonymize import Anonymizer, KAnonymity
names = ["age", "sex", "income", "town", "hours"]
done = Anonymizer(quasi=names, models=[KAnonymity(5)], search="mondrian").transform_file(*sys.argv[1:])
print(done.rows, done.written, done.report.risk.k)
"""


@pytest.mark.slow
def test_a_large_file_in_little_memory(tmp_path: Path) -> None:
    source, goal = tmp_path / "people.parquet", tmp_path / "released.parquet"
    with duckdb.connect(config={"memory_limit": "1GiB"}) as connection:
        connection.execute(
            "COPY (SELECT 17 + hash(i) % 73 AS age, CASE hash(i, 1) % 2 WHEN 0 THEN 'F' ELSE 'M' END AS sex, "
            "hash(i, 2) % 90000 AS income, 'town ' || hash(i, 3) % 900 AS town, 1 + hash(i, 4) % 98 AS hours, "
            f"'{'x' * 200}' || i AS note FROM range(3_000_000) t(i)) TO '{source}' (FORMAT parquet)"
        )
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    said = subprocess.run([sys.executable, "-W", "ignore", "-c", LARGE, source, goal], check=True, capture_output=True, text=True)
    rows, written, k = map(int, said.stdout.split())
    assert rows == written == 3_000_000
    assert k >= 5
    with duckdb.connect() as connection:
        counted = connection.sql(
            f"SELECT min(n), sum(n) FROM (SELECT count(*) AS n FROM '{goal}' GROUP BY age, sex, income, town, hours)"
        )
        assert counted.fetchall() == [(k, 3_000_000)]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert peak == before or peak * 1024 < 3 * 2**30


def test_a_memory_limit_that_is_no_size_is_refused_in_words(tmp_path: Path) -> None:
    people(20).write_parquet(tmp_path / "people.parquet")
    with pytest.raises(InvalidParameter, match="memory_limit='much' is invalid"):
        anonymize_file(anonymizer("mondrian"), tmp_path / "people.parquet", tmp_path / "out.csv", memory_limit="much")
