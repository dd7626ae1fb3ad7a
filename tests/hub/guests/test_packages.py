"""A provider's archive: doubted, read in memory, tested, versioned; each way in which one can be wrong has its own words."""

from __future__ import annotations

import io
import itertools
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.hub.guests.test_running import A1, Play, play_in
from tests.hub.house import House

ABOUT: dict[str, Any] = {"name": "half", "title": "Half of the ages", "inputs": ["age"], "low": [0], "high": [120], "blocks": 100}
RUNS = itertools.count()
"""How often a test of this file ran: the hub that they share keeps what a run registered (`make again`)."""
CODE = "def f(rows):\n    return [sum(rows['age']) / len(rows['age']) / 2]\n"
TESTS = """
def test_one():
    assert f({"age": [10]}) == [5]

def test_made_up(rows):
    assert 8 <= f(rows)[0] <= 45 and set(rows) == {"age"}
"""


def packed(about: Any = ABOUT, code: str = CODE, tests: str = TESTS, **more: Any) -> bytes:
    """An archive."""
    files = {"guest.json": about if isinstance(about, str) else json.dumps(about), "guest.py": code, "tests.py": tests}
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {**files, "LICENCE": "CC0", **more}.items():
            if text is not None:
                archive.writestr(name, text)
    return whole.getvalue()


def entry(name: str, *, mode: int = 0o100644, content: str = "x", flags: int = 0, size: int | None = None) -> bytes:
    """An archive with one more entry, as no tool writes it."""
    whole = io.BytesIO(packed())
    with zipfile.ZipFile(whole, "a", zipfile.ZIP_DEFLATED) as archive:
        info = zipfile.ZipInfo("placeholder" if name.startswith("\\") else name)
        info.filename = name
        info.external_attr, info.compress_type = mode << 16, zipfile.ZIP_DEFLATED
        archive.writestr(info, content)
    raw = bytearray(whole.getvalue())
    if flags:
        raw[raw.rindex(b"PK\1\2") + 8] |= flags
    if size is not None:
        place = raw.rindex(b"PK\1\2") + 24
        raw[place : place + 4] = size.to_bytes(4, "little")
    return bytes(raw)


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Any:
    house = House(tmp_path_factory.mktemp("packages") / "hub", lambda: 1_800_000_000.0)  # type: ignore[arg-type]
    yield play_in(house)
    house.close()


def sent(play: Play, archive: bytes, table: str = "") -> Any:
    """Uploaded by the provider."""
    path = "/api/v1/uploads/algorithms" + (f"?table={table}" if table else "")
    return play.provider.client.post(path, content=archive, headers=play.provider.bearer)


def test_a_package_is_tested_registered_and_versioned(play: Play) -> None:
    name = f"half{next(RUNS) or ''}"
    about = {**ABOUT, "name": name}
    made = sent(play, packed(about), "people")
    assert made.status_code == 201, made.text
    assert made.json() == {"name": name, "package": name, "version": 1, "passed": 2, "done": 5, "runs": 5}
    again = sent(play, packed(about))
    assert again.status_code == 409
    assert f"{name} is the same already" in again.text
    later = sent(play, packed(about, code=CODE.replace("/ 2", "/ 2.0")))
    assert later.json() == {"name": f"{name}-2", "package": name, "version": 2, "passed": 1, "done": 0, "runs": 0}
    third = sent(play, packed({**about, "blocks": 50}, **{"README.md": "Half of them."}))
    assert (third.json()["name"], third.json()["version"]) == (f"{name}-3", 3)
    shown = re.sub(r"<[^>]+>", "", play.provider.client.get(f"/algorithms/{name}-3").text)
    for told in ("Half of the ages", "Half of them.", "CC0", "test_made_up", "version 1", "version 2"):
        assert told in shown, told


def test_what_is_registered_is_what_the_form_would_have_registered(play: Play) -> None:
    listed = play.provider.client.get("/api/v1/algorithms", headers=play.provider.bearer).json()["items"]
    by_name = {each["name"]: each for each in listed}
    assert set(by_name["half"]["settings"]) - {"tests", "licence"} == set(A1) - {"names", "seconds"}


def test_by_the_page(play: Play) -> None:
    page = play.provider.client.get("/algorithm-packages")
    token = re.search(r'name="form_token" value="([^"]+)"', page.text)
    assert token is not None
    fields = {"form_token": token[1], "table": "people"}
    for archive, status in ((b"PK", 422), (packed({**ABOUT, "name": f"by-page-{next(RUNS)}"}), 303)):
        answer = play.provider.client.post("/uploads/algorithms", data=fields, files={"file": ("p.zip", archive)})
        assert answer.status_code == status, answer.text
    assert (
        "not a ZIP archive"
        in play.provider.client.post("/uploads/algorithms", data=fields, files={"file": ("p.zip", b"PK")}).text
    )
    assert play.provider.client.post("/uploads/algorithms", data={}, files={"file": ("p.zip", b"PK")}).status_code == 403
    assert play.u3.client.get("/algorithm-packages").status_code == 403
    assert play.house.client().post("/api/v1/uploads/algorithms", content=packed(), headers=play.u3.bearer).status_code == 403


BOMB = "0" * (64 << 20)
LINK = 0o120777


@pytest.mark.parametrize(
    ("archive", "says"),
    [
        (b"", "not a ZIP archive"),
        (b"\x1f\x8b\x08" + b"x" * 100, "not a ZIP archive"),
        (packed()[:-40], "not a ZIP archive"),
        (packed()[:60] + b"\0" * 30 + packed()[90:], "damaged one|no file"),
        (b"x" * (5 << 20), "more than 4 MiB"),
        (packed(**{"proof.md": BOMB}), "unpacked, a file has more than 1 MiB"),
        (entry("proof.md", content=BOMB[: 2 << 20], size=10), "damaged|more than 1 MiB"),
        (packed(**{f"{k}.txt": "x" for k in range(40)}), "more than 16 files"),
        (packed(**{"readme.md": "x", "README.md": "y"}), "two files for one thing"),
        (entry("/etc/cron.d/x"), "absolute path"),
        (entry("C:x"), "absolute path"),
        (entry("../../x"), "leads out of the archive"),
        (entry("..\\x"), "leads out of the archive"),
        (entry("a\x07b"), "characters that no file name should have"),
        (entry("proof.md", mode=LINK, content="/etc/passwd"), "symbolic link"),
        (entry("proof.md", mode=0o060666), "a device, a pipe or a socket"),
        (entry("proof.md", flags=1), "encrypted"),
        (packed(**{"inner/proof.md": "x"}), "several folders"),
        (packed(**{"setup.py": "x"}), "no package has a file 'setup.py'"),
        (packed(**{"proof.md": b"\xff\xfe"}), "proof.md is not UTF-8"),
        (packed(**{"guest.json": None}), "no file guest.json"),
        (packed(**{"guest.py": None}), "no file guest.py"),
        (packed("{"), "not JSON"),
        (packed("[]"), "the text is invalid|object"),
        (packed({**ABOUT, "name": ""}), "the name of the algorithm"),
        (packed({**ABOUT, "name": 5}), "the name of the algorithm"),
        (packed({**ABOUT, "name": "Half Of"}), "small letters"),
        (packed({**ABOUT, "code": "def g(rows): ..."}), "a file of its own"),
        (packed({**ABOUT, "low": [200]}), "larger one"),
        (packed({**ABOUT, "entry": "g"}), "no function of that name"),
        (packed(code="def f(rows:"), "line 1"),
        (packed(tests="def test_(:"), "line"),
        (packed(tests="def test_two():\n    assert f({'age': [3]}) == [5]"), "a test failed: test_two: AssertionError"),
        (packed(tests="def test_on():\n    while True: pass"), "no test ended"),
        (packed(code="def f(rows):\n    return '42'", tests=""), 'returned "42", and not 1 number'),
        (packed(code="def f(rows):\n    return [1] * 10**4", tests=""), "not 1 number"),
        (
            packed({**ABOUT, "seconds": 1, "blocks": 20}, code="def f(rows):\n    return [1] * 400_000", tests=""),
            "more than 1 MiB",
        ),
        (packed(code="def f(rows):\n    while True: pass", tests=""), "ran out of time"),
        (packed(code="import numpy\ndef f(rows):\n    return [1]", tests=""), "numpy"),
        (packed({**ABOUT, "packages": ["numpy"], "environment": "nowhere"}, tests=""), "environment='nowhere'"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_is_no_package_is_refused_in_its_own_words(
    play: Play, archive: bytes, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = sent(play, archive, "people")
    assert answer.status_code in (409, 422), answer.text
    assert re.search(says, answer.json()["title"] + ": " + answer.json()["detail"]), answer.text
    assert not list(tmp_path.iterdir())


def test_a_name_of_somebody_elses_and_a_data_set_that_one_knows_not_of(play: Play) -> None:
    other = play.house.person("algorithm-provider", email="otto@example.org", name="Otto")
    how = {"content": packed({**ABOUT, "name": "a1"}), "headers": other.bearer}
    assert "The name is taken" in other.client.post("/api/v1/uploads/algorithms", **how).text
    assert other.client.post("/api/v1/uploads/algorithms?table=people", **how).status_code == 404
