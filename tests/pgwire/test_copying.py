"""COPY (SELECT …) TO STDOUT as readers use it, against what the same SELECT gives; and what is no such thing."""

from __future__ import annotations

import asyncio
import csv
import io
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.pgwire.copying import CopyFormat, copied
from cloister.pgwire.failures import Refused
from cloister.pgwire.reading import read_one
from cloister.pgwire.results import Column
from tests.pgwire.conftest import TOKEN, Running
from tests.pgwire.test_clients import module

EVERYTHING = "SELECT smoker, COUNT(*) AS n, AVG(pay) AS pay, MEDIAN(born) AS born, MODE(sex) AS sex FROM people GROUP BY smoker"


def copy_of(connection: psycopg.Connection[Any], text: str) -> bytes:
    with connection.cursor().copy(text) as stream:  # type: ignore[arg-type]
        return b"".join(bytes(piece) for piece in stream)


def test_a_copy_is_the_answer_in_three_formats_under_one_charge(running: Running):
    with running.connect() as connection:
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="no spend is set"):
            copy_of(connection, f"COPY ({EVERYTHING}) TO STDOUT")
        connection.execute("SET cloister.spend = 9")
        connection.execute("SET cloister.margins = on")
        rows = connection.execute(EVERYTHING).fetchall()
        assert len(rows[0]) == 9
        for form in ("text", "binary"):
            with connection.cursor().copy(f"COPY ({EVERYTHING}) TO STDOUT (FORMAT {form})") as stream:  # type: ignore[arg-type]
                stream.set_types(["bool", "int8", "float8", "float8", "float8", "date", "float8", "text", "float8"])
                assert list(stream.rows()) == rows
        text = copy_of(connection, f"COPY ({EVERYTHING}) TO STDOUT WITH CSV HEADER").decode()
        told = list(csv.reader(io.StringIO(text)))
        assert told[0][:3] == ["smoker", "n", "n_margin"]
        assert [line[1] for line in told[1:]] == [str(row[1]) for row in rows]
        with connection.transaction():  # what cannot be asked is refused as the question is
            pass
        with pytest.raises(psycopg.errors.UndefinedColumn):
            copy_of(connection, "COPY (SELECT COUNT(shoe) FROM people) TO STDOUT")
        assert copy_of(connection, "COPY (SELECT 1 AS one, NULL AS two) TO STDOUT") == b"1\t\\N\n"
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert running.charges == 1


def test_asyncpg_copies(running: Running, tmp_path: Path):
    asyncpg = module("asyncpg")

    async def go() -> None:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=running.port, user="ada", password=TOKEN, database="hub", ssl=False
        )
        await connection.execute("SET cloister.spend = 9")
        question = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
        said = await connection.copy_from_query(question, output=str(tmp_path / "answer.csv"), format="csv", header=True)
        assert said == "COPY 2"
        await connection.close()

    asyncio.run(go())
    assert (tmp_path / "answer.csv").read_text().startswith("sex,n\nF,")
    assert running.charges == 1


texts = st.text("ab,\"'\\.N é", max_size=8) | st.sampled_from(["\\N", "\\.", ""])


def lines_of(rows: list[tuple[str | None, str | None]], how: CopyFormat) -> str:
    """What a reader gets: the bodies of the messages between the first and the last."""
    columns, body = [Column(name="a", kind="text"), Column(name="b", kind="text")], b""
    stream = b"".join(copied(columns, rows, how))
    while stream:
        size = 1 + int.from_bytes(stream[1:5])
        body, stream = body + (stream[5:size] if stream[:1] == b"d" else b""), stream[size:]
    return body.decode()


@given(rows=st.lists(st.tuples(texts | st.none(), texts | st.none()), max_size=4))
def test_csv_is_read_back_as_it_was(rows: list[tuple[str | None, str | None]]):
    body = lines_of(rows, CopyFormat(format="csv", null="nil", force=True))
    marked = [tuple("nil" if value is None else value for value in row) for row in rows]
    assert [tuple(line) for line in csv.reader(io.StringIO(body, newline=""), strict=True)] == marked
    plain = [line.split("\t") for line in lines_of(rows, CopyFormat()).split("\n")[:-1]]
    read = [tuple(None if each == "\\N" else each.replace("\\\\", "\\") for each in line) for line in plain]
    assert read == rows


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("COPY people TO STDOUT", "25006"),
        ("COPY people FROM STDIN", "25006"),
        ("COPY (DELETE FROM people) TO STDOUT", "25006"),
        ("COPY (SELECT 1) TO '/tmp/x'", "42501"),
        ("COPY (SELECT 1) TO PROGRAM 'sh'", "42501"),
        ("COPY (SELECT 1 TO STDOUT", "42601"),
        ("COPY (SELECT 1) TO STDOUT (FORMAT xml)", "22023"),
        ("COPY (SELECT 1) TO STDOUT (FORMAT binary, HEADER)", "22023"),
        ("COPY (SELECT 1) TO STDOUT (DELIMITER '\\')", "22023"),
        ("COPY (SELECT 1) TO STDOUT (FORMAT csv, DELIMITER ',,')", "22023"),
        ("COPY (SELECT 1) TO STDOUT (ENCODING 'LATIN1')", "0A000"),
    ],
)
def test_what_is_no_copy_of_an_answer_is_refused(text: str, code: str):
    with pytest.raises(Refused) as refusal:
        read_one(text)
    assert refusal.value.code == code
