"""The floors of the house hold, and the contract sees a step upwards, a knock next door and a room without a floor."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter as `make lint` does, on the package that lies in `folder/src`."""
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, 'src'); {LINT}", "--no-logo", "--no-cache"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": "src", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the package and of its contract, to break."""
    copied(tmp_path)
    return tmp_path


def copied(folder: Path) -> None:
    """The package and its contract, put there."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".importlinter", folder)


def plant(house: Path, module: str, line: str) -> None:
    """Append `line` to a module of the copy, which is made where it is missing."""
    path = house / "src" / "cloister" / module
    path.parent.mkdir(exist_ok=True)
    (path.parent / "__init__.py").touch()
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with a module in each room, which stands."""
    folder = tmp_path_factory.mktemp("planted")
    copied(folder)
    for room in ("privacy", "noise", "crypto", "tables", "ledger", "session", "query", "attacks", "cli"):
        plant(folder, f"{room}/planted.py", "")
    assert lint(folder).returncode == 0
    return folder


def test_the_house_stands(house: Path) -> None:
    said = lint(house)
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize(
    ("module", "line"),
    [
        pytest.param("privacy/planted.py", "from cloister.noise import planted", id="up within the calculus"),
        pytest.param("noise/planted.py", "import cloister.ledger.planted", id="up to the ground"),
        pytest.param("tables/planted.py", "def f():\n    from cloister.session import planted", id="up, inside a function"),
        pytest.param("ledger/planted.py", "from cloister.tables import planted", id="next door on the ground"),
        pytest.param("crypto/planted.py", "from cloister.tables import planted", id="keys know no rows"),
        pytest.param("crypto/planted.py", "from cloister.privacy import planted", id="keys know no promise"),
        pytest.param("query/planted.py", "from cryptography import x509", id="ciphers have one home"),
        pytest.param("attacks/planted.py", "from cloister.query import planted", id="next door among the crafts"),
        pytest.param("session/planted.py", "from cloister.query import planted", id="the door knows no craft"),
        pytest.param("query/planted.py", "from cloister.cli import planted", id="up to the command line"),
        pytest.param("errors.py", "import cloister.privacy.planted", id="the ground stone"),
    ],
)
def test_a_forbidden_import_is_seen(planted: Path, module: str, line: str) -> None:
    path = planted / "src" / "cloister" / module
    before = path.read_text(encoding="utf-8")
    plant(planted, module, line)
    try:
        said = lint(planted)
    finally:
        path.write_text(before, encoding="utf-8")
    assert said.returncode == 1
    assert "BROKEN" in said.stdout.upper()


def test_a_room_without_a_floor_is_seen(house: Path) -> None:
    plant(house, "attic/planted.py", "")
    said = lint(house)
    assert said.returncode == 1
    assert "attic" in said.stdout + said.stderr


def test_the_contract_is_exhaustive_and_ignores_nothing() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    floors = contracts["importlinter:contract:floors"]
    assert floors.getboolean("exhaustive")
    assert not {"ignore_imports", "exhaustive_ignores", "exclude_type_checking_imports"} & set(floors)
