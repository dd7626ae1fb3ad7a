"""Named environments: built of wheels by their hashes and of nothing else, and what was admitted with one runs with no other."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import cloister as cl
from cloister.cli.main import cli
from cloister.errors import AccessDenied, CloisterError, EngineError, InvalidParameter
from cloister.guests.sandbox import environments
from cloister.guests.sandbox.environments import build_environment, environment
from cloister.guests.sandbox.processes import why_not


def wheel(folder: Path, name: str, version: str, code: str, *, needs: str = "") -> str:
    """A wheel of one module; its hash."""
    about = f"{name}-{version}.dist-info"
    asks = f"Requires-Dist: {needs}\n" if needs else ""
    files = {
        f"{name}/__init__.py": code,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{asks}",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    for place, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{place},sha256={digest},{len(text.encode())}")
    files[f"{about}/RECORD"] = "\n".join([*lines, f"{about}/RECORD,,"]) + "\n"
    made = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for place, text in files.items():
            archive.writestr(place, text)
    return hashlib.sha256(made.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A folder with two packages, of which one needs the other, and their hashes."""
    folder = tmp_path_factory.mktemp("wheels")
    helper = wheel(folder, "helper_of_it", "1.0", "def half(x):\n    return x / 2\n")
    whole = wheel(folder, "halving", "2.1", "from helper_of_it import half\n", needs="helper-of-it>=1")
    return folder, whole, helper


@pytest.fixture(scope="module", autouse=True)
def own_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of environments of this file's own."""
    place = tmp_path_factory.mktemp("guests")
    place.chmod(0o700)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CLOISTER_GUESTS", str(place))
        yield place


def listed(folder: Path, *lines: str) -> Path:
    """A file of requirements."""
    file = folder / "requirements.txt"
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.fixture(scope="module")
def halves(own_place: Path, wheels: tuple[Path, str, str], tmp_path_factory: pytest.TempPathFactory) -> environments.Environment:
    folder, whole, helper = wheels
    file = listed(
        tmp_path_factory.mktemp("asked"),
        "# what the guests of this hub may import",
        f"halving==2.1 \\\n    --hash=sha256:{'0' * 64} --hash=sha256:{whole}",
        f"helper-of-it==1.0 --hash=sha256:{helper}  # of halving",
    )
    return build_environment("halves", file, folder)


def guest(**how: Any) -> cl.Guest:
    """A guest that needs it."""
    code = "def f(rows):\n    import halving\n    return [halving.half(max(rows['age']))]\n"
    about: dict[str, Any] = {"packages": ["halving"], "environment": "halves", "seconds": 2, "blocks": 5}
    return cl.Guest(code=code, entry="f", inputs=["age"], output=cl.Vector([(0, 100)]), **{**about, **how})


def test_it_is_built_of_wheels_by_their_hashes_and_named_by_its_bytes(halves: environments.Environment) -> None:
    assert halves.distributions == ("halving 2.1", "helper_of_it 1.0")
    assert environment("halves") == halves
    assert [each.name for each in environments.environments()] == ["halves"]
    told = CliRunner().invoke(cli, ["guest", "environment", "list", "--json"])
    assert json.loads(told.output)[0]["digest"] == halves.digest
    assert "halves" in CliRunner().invoke(cli, ["guest", "environment", "list"]).output


def test_a_guest_imports_from_it_and_nothing_beside(halves: environments.Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    if why := why_not():
        pytest.skip(why)
    needs = guest().needs
    with needs.sandbox(guest().code, "f", seconds=5, memory=64 << 20) as sandbox:
        assert sandbox.run([{"age": [30, 50]}]).value == [25]
    with (
        pytest.raises(InvalidParameter, match="'halves' has no such package"),
        guest(packages=["halving", "numpy"]).needs.sandbox("def f(rows): ...", "f", seconds=5, memory=64 << 20),
    ):
        pass


def test_what_was_admitted_with_one_runs_with_no_other(
    halves: environments.Environment, wheels: tuple[Path, str, str], tmp_path: Path
) -> None:
    folder, whole, helper = wheels
    admitted = guest().digest
    file = listed(tmp_path, f"halving==2.1 --hash=sha256:{whole}", f"helper-of-it==1.0 --hash=sha256:{helper}")
    with pytest.raises(InvalidParameter, match="there is one of that name"):
        build_environment("halves", file, folder)
    kept = halves.packages.parent.rename(tmp_path / "kept")
    try:
        again = tmp_path / "wheels"
        again.mkdir()
        other = wheel(again, "halving", "2.1", "def half(x):\n    return 100\n")
        changed = build_environment("halves", listed(tmp_path, f"halving==2.1 --hash=sha256:{other}"), again)
        assert changed.digest != halves.digest
        assert guest().digest != admitted
        people = cl.PrivateTable({"age": [30] * 9}, {"age": cl.Integer(0, 100)})
        with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
            with pytest.raises(AccessDenied, match="another version"):
                guest().run(session, "people", 1, admitted=admitted)
            assert str(session.spent) == "ε = 0"
    finally:
        shutil.rmtree(halves.packages.parent, ignore_errors=True)
        kept.rename(halves.packages.parent)
    assert guest().digest == admitted


def test_files_that_are_not_those_that_were_built_are_not_opened(halves: environments.Environment, tmp_path: Path) -> None:
    def refused(says: str) -> None:
        environments._checked.cache_clear()
        with pytest.raises(EngineError, match=says):
            environment("halves")

    code = halves.packages / "halving" / "__init__.py"
    before = code.read_text()
    code.write_text(before + "import os\n")
    refused("not those that were built")
    code.write_text(before)
    code.with_name("more.py").write_text("")
    refused("not those that were built")
    code.with_name("more.py").unlink()
    (shadow := code.parent.with_name("helper_of_it") / "__init__.pyc").parent.mkdir(exist_ok=True)
    shadow.write_bytes(b"compiled, and in place of a source")
    refused("not those that were built")
    shadow.unlink()
    with suppress(OSError):
        shadow.parent.rmdir()
    halves.packages.chmod(0o777)
    refused("others can write")
    halves.packages.chmod(0o755)
    record = halves.packages.parent / "environment.json"
    told = record.read_text()
    record.write_text(told.replace(halves.python, "cpython-27 linux vax"))
    refused("was built for cpython-27")
    record.write_text(told)
    environments._checked.cache_clear()
    assert environment("halves") == halves


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["halving==2.1"], "with its hashes"),
        (["--index-url https://example.org/simple", "halving==2.1 --hash=sha256:{whole}"], "nothing else"),
        (["-r other.txt"], "nothing else"),
        (["-e ."], "nothing else"),
        (["halving @ https://example.org/halving.whl --hash=sha256:{whole}"], "nothing else"),
        (["halving==2.1 --hash=sha256:{whole} --global-option=x"], "nothing else"),
        (["halving==2.1 --hash=md5:00"], "nothing else"),
        (["# nothing"], "name no package"),
        (["halving==2.1 --hash=sha256:{zeros}"], "has a hash that is listed"),
        (["numpy==2.1 --hash=sha256:{zeros}"], "no wheel of it"),
        (["halving==9 --hash=sha256:{whole}"], "pip said: .*halving==9"),
        (["halving==2.1 --hash=sha256:{whole}"], "pip said: .*helper"),
    ],
)
def test_what_could_be_downloaded_or_is_not_there_is_refused_in_its_own_words(
    wheels: tuple[Path, str, str], tmp_path: Path, lines: list[str], says: str
) -> None:
    folder, whole, _ = wheels
    file = listed(tmp_path, *(each.format(whole=whole, zeros="0" * 64) for each in lines))
    with pytest.raises(InvalidParameter, match=says):
        build_environment("wrong", file, folder)
    assert [each.name for each in environments.environments()] in ([], ["halves"])


@pytest.mark.parametrize(
    ("how", "says"),
    [({"environment": "nowhere"}, "built on this machine"), ({"environment": "../x"}, "built on this machine")],
)
def test_an_unknown_environment_is_named(how: dict[str, Any], says: str) -> None:
    with pytest.raises(CloisterError, match=says):
        _ = guest(**how).digest


@pytest.mark.parametrize("how", [{"packages": []}, {"environment": ["halves"]}])
def test_an_environment_without_modules_is_no_use(how: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="packages= names modules"):
        guest(**how)


@pytest.mark.parametrize("name", ["", "Statistics", "../up", "a/b", "a" * 64])
def test_a_name_that_is_none_is_refused(name: str, wheels: tuple[Path, str, str], tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="small letters"):
        build_environment(name, listed(tmp_path, "x==1"), wheels[0])
