"""Clients that speak another encoding than UTF-8, as psql does on Chinese and Western Windows."""

from __future__ import annotations

import psycopg
import pytest

from tests.pgwire.conftest import Running
from tests.pgwire.raw import Raw, bind, describe, error, execute, letters, message, parse, rows


@pytest.mark.parametrize(
    ("name", "spoken", "codec", "text"),
    [
        ("GBK", "GBK", "gbk", "北京\\誠"),
        ("cp936", "GBK", "gbk", "誠"),
        ("gb18030", "GB18030", "gb18030", "北京😀"),
        ("latin1", "LATIN1", "latin-1", "Größe"),
        ("iso_8859_1", "LATIN1", "latin-1", "é"),
        ("WIN1252", "WIN1252", "cp1252", "5 €"),
        ("utf-8", "UTF8", "utf-8", "北京 €"),
    ],
)
def test_texts_come_and_go_in_the_encoding_of_the_client(running: Running, name: str, spoken: str, codec: str, text: str) -> None:
    with Raw(running.port).log_in(client_encoding=name) as raw:
        assert rows(raw.query("SHOW client_encoding")) == [[spoken.encode()]]
        sent = text.encode(codec)
        quoted = message("Q", b"SELECT '" + sent + b"' AS \"" + sent + b'"\0')
        told = raw.ask(quoted)
        assert rows(told) == [[sent]]
        assert sent + b"\0" in next(body for letter, body in told if letter == "T")
        for binary in (False, True):
            told = raw.ask(parse("SELECT $1::text"), bind((sent,), binary=binary), describe("P"), execute(), message("S"))
            assert rows(told) == [[sent]]
        copied = raw.ask(message("Q", b"COPY (SELECT '" + sent + b"') TO STDOUT (FORMAT csv)\0"))
        assert [body for letter, body in copied if letter == "d"] == [sent + b"\n"]
        raw.query("SET client_encoding = 'UTF8'")
        assert rows(raw.query(f"SELECT '{text}'")) == [[text.encode()]]


def test_what_an_encoding_does_not_have_is_refused_in_words(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        told = raw.query("SET client_encoding = LATIN1; SELECT '北'")
        assert error(told)["C"] == "22P05"
        assert "LATIN1" in error(told)["M"]
        assert letters(told)[-1] == "Z"
        assert rows(raw.query("SELECT 1")) == [[b"1"]]
        raw.query("SET client_encoding = GBK")
        assert rows(raw.query("SHOW client_encoding")) == [[b"GBK"]]
        assert error(raw.ask(message("Q", b"SELECT '\xff\xff'\0")))["C"] == "22021"
    with pytest.raises(psycopg.OperationalError, match="client_encoding"):
        running.connect(client_encoding="EBCDIC")
