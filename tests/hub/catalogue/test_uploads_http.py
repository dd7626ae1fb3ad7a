"""Files that are sent over HTTP: whole or not at all, and never beyond the limits. The table store has tests of its own."""

from __future__ import annotations

import asyncio
import html
import io
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloister.hub.platform.catalogue.sources import table_store_of
from cloister.hub.records.catalogue import Arrival
from cloister.hub.storage import Limits, RefusedUpload
from cloister.hub.web.forms import TOKEN_FIELD
from cloister.hub.web.multipart import FileForm
from cloister.printable import UNPRINTABLE
from tests.hub.catalogue.world import CANARY, PEOPLE, Sender, World, text_of
from tests.hub.storage.test_foreign import xlsx, zipped
from tests.tiers import by_day_and_night


def parquet(rows: int = 50) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"age": list(range(rows)), "town": [CANARY] * rows}), file)
    return file.getvalue()


def test_the_api_takes_the_file_as_its_body(world: World, ada: Sender) -> None:
    answer = ada.upload()
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert (told["kind"], told["length"]) == ("csv", len(PEOPLE))
    assert [column["name"] for column in told["columns"]] == ["age", "sex", "town", "pay"]
    assert CANARY not in answer.text
    assert ada.api("GET", "/uploads").json()["items"][0]["id"] == told["id"]
    more = ada.api("PUT", "/uploads", content=parquet(), headers={"Content-Type": "application/vnd.apache.parquet"})
    assert [(column["name"], column["kind"]) for column in more.json()["columns"]] == [("age", "integer"), ("town", "text")]
    assert ada.api("DELETE", f"/uploads/{told['id']}").status_code == 204
    assert ada.api("DELETE", f"/uploads/{told['id']}").status_code == 404
    assert len(world.left()[4]) == 1


def test_nothing_on_the_disk_is_plain(world: World, ada: Sender, tmp_path: Path) -> None:
    ada.arrival()
    ada.upload(parquet(), "application/vnd.apache.parquet")
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (b"", "people.csv", "it is empty"),
        (b"age\n\x81\x8d\n", "people.csv", "UTF-8"),
        (b"PK\x03\x04" + bytes(50), "people.csv", "spreadsheet or a ZIP"),
        (b"\x1f\x8b" + bytes(50), "people.csv", "it is compressed"),
        (PEOPLE, "people.parquet", "Parquet"),
        (PEOPLE, "people.exe", "not one that the hub reads"),
        (b"a" * 3_000_000, "people.csv", ""),
        ((",".join(f"c{n}" for n in range(1001)) + "\n1\n").encode(), "people.csv", "more than 1,000 columns"),
        (parquet()[:-20], "people.parquet", ""),
    ],
)
def test_what_is_no_table_leaves_nothing(world: World, ada: Sender, content: bytes, name: str, said: str) -> None:
    answer = ada.send(content, name)
    assert answer.status_code == 422
    assert said in answer.text
    kind = "application/vnd.apache.parquet" if name.endswith("parquet") else "text/csv" if name.endswith("csv") else "text/html"
    refused = ada.upload(content, kind)
    assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")
    assert set(refused.json()) >= {"title", "detail", "instead", "code"}
    assert world.left() == (0, 0, 0, 0, [])


UNLAWFUL = ["a\tb", "a\u202eb", "a\u2028b", "\u200b", "a\x00b", "a\x1b[2Jb", "\ufeffage",
            "\xad", "\ue000", "\ufffe", "\U000e0041", " ", "\u3000",
            "\u2800", "x" * 201, "a\nb"]  # fmt: skip
LAWFUL = ["<script>alert(1)</script>", "{{ 7 * 7 }}", "=1+1", "a'b", "a\\\\b", "%s",
          "{name}", "'; DROP TABLE people; --", "../../etc", "Größe",
          "年龄", "سن\u200cاش", "👩\u200d🔬", "x" * 200, "select", "__class__", "${x}"]  # fmt: skip


def with_header(names: list[str], kind: str) -> bytes:
    if kind == "parquet":
        file = io.BytesIO()
        pq.write_table(pa.table({"age": [30, 40], **{name: ["F", "M"] for name in names}}), file)
        return file.getvalue()
    quoted = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    return f"age,{quoted}\n30{',F' * len(names)}\n40{',M' * len(names)}\n".encode()


@by_day_and_night("doors", day=1, night=2)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_that_cannot_be_shown_is_refused_where_its_file_comes_in(
    world: World, ada: Sender, kind: str, doors: int
) -> None:
    """By day each name comes in by the API in a file of one kind, and by the form in one of the other."""
    media = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}[kind]
    for place, name in enumerate(UNLAWFUL, kind == "csv"):
        content = with_header([name], kind)
        for door in range(place, place + doors):
            answer = ada.upload(content, media) if door % 2 else ada.send(content, f"people.{kind}")
            assert answer.status_code == 422, repr(name)
            assert UNPRINTABLE.search(answer.text.replace("\n", "").replace("\t", "")) is None, repr(name)
    assert world.left() == (0, 0, 0, 0, [])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_any_other_name_is_shown_as_it_is_and_nowhere_as_anything_else(ada: Sender, kind: str) -> None:
    media = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}[kind]
    for names in (LAWFUL[:1], [*LAWFUL, *(['a"b'] if kind == "parquet" else [])]):
        answer = ada.upload(with_header(names, kind), media)
        assert answer.status_code == 201, answer.text
        told = answer.json()
        assert [column["name"] for column in told["columns"]] == ["age", *names]
        page = ada.get(f"/register/{told['id']}").text
        assert [name for name in names if name not in html.unescape(page)] == []
        assert "<script>alert(1)" not in page
        assert ada.api("DELETE", f"/uploads/{told['id']}").status_code == 204


def test_a_file_over_the_limit_is_refused_while_it_comes(world: World, ada: Sender) -> None:
    small = world.again(upload_megabytes=1)
    sender = Sender(small)
    sender.log_in("ada@example.org")
    sent = 0

    def endless() -> Any:
        nonlocal sent
        yield b"a,b\n"
        while sent < 16 * 2**20:
            sent += 2**18
            yield b"1,2\n" * 2**16

    answer = sender.api("POST", "/uploads", content=endless(), headers={"Content-Type": "text/csv"})
    assert answer.status_code == 422
    assert "more than 1,048,576 bytes" in answer.text
    assert sender.send(b"a,b\n" + b"1,2\n" * 300_000).status_code == 422
    assert small.left() == (0, 0, 0, 0, [])
    small.close()


def test_a_bomb_is_refused(world: World, ada: Sender) -> None:
    table_store_of(world.hub).limits = Limits(expanded=2**20)
    file = io.BytesIO()
    pq.write_table(pa.table({"a": ["x" * 2**20] * 64}), file, compression="zstd", use_dictionary=False)
    assert len(file.getvalue()) < 2**20
    for answer in (ada.send(file.getvalue(), "bomb.parquet"), ada.upload(file.getvalue(), "application/vnd.apache.parquet")):
        assert answer.status_code == 422
        assert "bytes when it is decompressed" in answer.text
    assert world.left() == (0, 0, 0, 0, [])


def test_a_sender_who_stops_leaves_nothing(world: World, ada: Sender) -> None:
    cookie = "; ".join(f"{name}={value}" for name, value in ada.client.cookies.items())
    token = ada.client.get("/api/v1/me").json()["csrf"]
    messages = [{"type": "http.request", "body": PEOPLE, "more_body": True}, {"type": "http.disconnect"}]
    status = _direct(world, "/api/v1/uploads", messages, cookie, [("content-type", "text/csv"), ("x-csrf-token", token)])
    assert status == 422
    page = ada.token("/register")
    head = f'--x\r\nContent-Disposition: form-data; name="{TOKEN_FIELD}"\r\n\r\n{page}\r\n'
    head += '--x\r\nContent-Disposition: form-data; name="file"; filename="people.csv"\r\n\r\n'
    form = [("content-type", "multipart/form-data; boundary=x")]
    messages = [{"type": "http.request", "body": head.encode() + PEOPLE, "more_body": True}, {"type": "http.disconnect"}]
    assert _direct(world, "/uploads", messages, cookie, form) == 422
    cut = [{"type": "http.request", "body": head.encode() + PEOPLE, "more_body": False}]
    assert _direct(world, "/uploads", cut, cookie, form) == 422
    assert world.left() == (0, 0, 0, 0, [])


def _direct(world: World, path: str, messages: list[dict[str, Any]], cookie: str, headers: list[tuple[str, str]]) -> int:
    """One request, message by message."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "path": path, "raw_path": path.encode(),
        "query_string": b"", "root_path": "", "client": ("192.0.2.7", 1), "server": ("127.0.0.1", 8765),
        "headers": [(b"host", b"127.0.0.1:8765"), (b"cookie", cookie.encode()), *((n.encode(), v.encode()) for n, v in headers)],
    }  # fmt: skip
    asyncio.run(world.app(scope, receive, send))
    return int(next(message["status"] for message in sent if message["type"] == "http.response.start"))


def test_forms_of_others_are_refused_before_a_byte_is_kept(world: World, ada: Sender) -> None:
    for fields in ({}, {TOKEN_FIELD: "x"}, {TOKEN_FIELD: world.owner("eve@example.org").token("/register")}):
        answer = ada.client.post("/uploads", data=fields, files={"file": ("people.csv", PEOPLE)})
        assert answer.status_code == 403
    foreign = ada.client.post("/uploads", content=PEOPLE, headers={"Origin": "https://evil.example"})
    assert foreign.status_code == 403
    assert ada.client.post("/api/v1/uploads", content=PEOPLE, headers={"Content-Type": "text/csv"}).status_code == 403
    assert ada.client.post("/uploads", content=PEOPLE, headers={"Content-Type": "text/csv"}).status_code == 422
    assert world.browser().client.post("/uploads", content=b"").status_code in (303, 401, 403)
    assert world.left() == (0, 0, 0, 0, [])


def test_no_file_and_several_files(world: World, ada: Sender) -> None:
    token = {TOKEN_FIELD: ada.token("/register")}
    assert "no file was chosen" in ada.client.post("/uploads", data=token, files={"x": (None, b"y")}).text
    two = [("file", ("a.csv", PEOPLE)), ("file", ("b.csv", PEOPLE))]
    assert ada.client.post("/uploads", data=token, files=two).status_code == 422
    assert world.left() == (0, 0, 0, 0, [])


def test_so_many_may_wait_and_no_more(world: World, ada: Sender) -> None:
    for _ in range(20):
        assert ada.upload(b"a\n1\n").status_code == 201
    answer = ada.upload(b"a\n1\n")
    assert (answer.status_code, answer.json()["detail"]) == (422, "20 of yours wait to be registered")
    assert len(world.left()[4]) == 20


def test_what_nobody_used_is_forgotten_after_a_day(world: World, ada: Sender) -> None:
    from cloister.hub.platform.catalogue.arrivals import forget_old

    ada.upload()
    assert forget_old(world.hub) == 0
    world.clock.move(hours=25)
    assert forget_old(world.hub) == 1
    assert world.left() == (0, 0, 0, 0, [])


def test_no_log_line_holds_a_row(world: World, ada: Sender, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        number = ada.arrival()
        ada.declare(number, title="x")
        ada.post(f"/register/{number}/rows", f"/register/{number}")
        ada.send(CANARY.encode() + b"\xff\n" + PEOPLE)
        ada.send(b"\0" + CANARY.encode())
        world.register()
        ada.api("POST", "/questions", json={"sql": "SELECT COUNT(*) AS n FROM people WHERE town = 'x'", "spend": "0.1"})
    assert CANARY not in caplog.text
    assert CANARY not in str([[line.details, line.object] for line in world.rows(_trail())])


def _trail() -> Any:
    from cloister.hub.records.trail import AuditLine

    return AuditLine


@pytest.mark.parametrize("step", [1, 7, 1000, 100_000])
def test_forms_are_read_however_they_are_cut(step: int) -> None:
    content = b"a,b\r\n--x\r\n1,2\r\n--" * 50
    whole = (
        b'--xyz\r\nContent-Disposition: form-data; name="token"\r\n\r\ns\xc3\xa9\r\n'
        b'--xyz\r\nContent-Disposition: form-data; name="file"; filename="C:\\\\dir\\\\p.csv"\r\nContent-Type: text/csv\r\n\r\n'
        + content
        + b'\r\n--xyz\r\nContent-Disposition: form-data; name="after"\r\n\r\nlate\r\n--xyz--\r\n'
    )

    async def read(data: bytes) -> tuple[dict[str, str], str, bytes]:
        form = FileForm("multipart/form-data; boundary=xyz", _pieces(data, step))
        fields = await form.head()
        return fields, form.file_name, b"".join([chunk async for chunk in form.file()])

    assert asyncio.run(read(whole)) == ({"token": "sé"}, "p.csv", content)
    for end in (10, 60, 200, len(whole) - 30):
        with pytest.raises(RefusedUpload):
            asyncio.run(read(whole[:end]))


async def _pieces(data: bytes, step: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), step):
        yield data[start : start + step]


@pytest.mark.parametrize(
    "data",
    [
        b"--xyz\r\n" + b'Content-Disposition: form-data; name="a"\r\n\r\n' + b"y" * 20_000,
        b"--xyz\r\n" + b"X: " + b"y" * 20_000,
        b"--xyz\r\nX: y\r\n\r\nz\r\n" * 60,
        b"rubbish",
        b"",
    ],
)
def test_endless_forms_are_refused(data: bytes) -> None:
    async def read() -> None:
        form = FileForm("multipart/form-data; boundary=xyz", _pieces(data, 500))
        await form.head()

    with pytest.raises(RefusedUpload):
        asyncio.run(read())


def test_arrivals_hold_no_row(world: World, ada: Sender) -> None:
    ada.upload()
    row = world.rows(Arrival)[0]
    assert CANARY not in str([row.columns, row.typed, row.shown, row.wrapped])


def test_how_values_are_written_is_said_in_the_form_and_in_the_api(world: World, ada: Sender) -> None:
    rows = b'born,pay,\n31-Mar-84,1\n"March 31, 2026",2\n'
    sent = ada.send(rows, dates="dmy", pivot="30")
    looked = text_of(ada.post(f"{sent.headers['location']}/rows", sent.headers["location"]).text)
    assert "1984-03-31" in looked
    assert "2026-03-31" in looked
    assert "column_3" in looked
    wrong = ada.send(rows, dates="dmy", pivot="x")
    assert wrong.status_code == 422
    assert "not a number from 0 to 99" in text_of(wrong.text)
    taken = ada.api("POST", "/uploads?dates=dmy&pivot=30", content=rows, headers={"Content-Type": "text/csv"}).json()
    number = taken["id"]
    assert "1984-03-31" in text_of(ada.post(f"/register/{number}/rows", f"/register/{number}").text)
    assert ada.api("POST", "/uploads?pivot=100", content=rows, headers={"Content-Type": "text/csv"}).status_code == 422


def test_a_workbook_in_an_archive(world: World, ada: Sender) -> None:
    pytest.importorskip("python_calamine")
    book = xlsx({"one": [["name", "age"], ["Zoe", 39]], "two": [["x"], [1]]})
    asked = ada.send(zipped({"people.xlsx": book}), "people.zip")
    assert asked.status_code == 422
    assert "Its sheets: one, two" in text_of(asked.text)
    sent = ada.send(zipped({"people.xlsx": book}), "people.zip", sheet="one")
    assert sent.status_code == 303
    assert "age" in text_of(ada.get(sent.headers["location"]).text)
