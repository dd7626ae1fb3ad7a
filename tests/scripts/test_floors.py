"""The floors of the house hold, and the contract sees a step upwards, a knock next door and a room without a floor."""

from __future__ import annotations

import configparser
import re
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


FORBIDDEN = {
    "up within the calculus": ("privacy/planted.py", "from cloister.noise import planted", "cloister.noise.planted"),
    "up to the ground": ("noise/planted.py", "import cloister.ledger.planted", "cloister.ledger.planted"),
    "up, inside a function": (
        "tables/planted.py",
        "def f():\n    from cloister.session import planted",
        "cloister.session.planted",
    ),
    "next door on the ground": ("ledger/planted.py", "from cloister.tables import planted", "cloister.tables.planted"),
    "keys know no rows": ("crypto/planted.py", "from cloister.tables import planted", "cloister.tables.planted"),
    "keys know no promise": ("crypto/planted.py", "from cloister.privacy import planted", "cloister.privacy.planted"),
    "ciphers have one home": ("query/planted.py", "from cryptography import x509", "cryptography"),
    "next door among the crafts": ("attacks/planted.py", "from cloister.query import planted", "cloister.query.planted"),
    "the door knows no craft": ("session/planted.py", "from cloister.query import planted", "cloister.query.planted"),
    "up to the command line": ("query/planted.py", "from cloister.cli import planted", "cloister.cli.planted"),
    "the ground stone": ("errors.py", "import cloister.privacy.planted", "cloister.privacy.planted"),
}
"""A line in a module, and what it may not import."""


@pytest.fixture(scope="module")
def said_of_all(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of a copy with all these lines. Without them it stands, with a module in each room."""
    folder = tmp_path_factory.mktemp("planted")
    copied(folder)
    for room in ("privacy", "noise", "crypto", "tables", "ledger", "session", "query", "attacks", "cli"):
        plant(folder, f"{room}/planted.py", "")
    assert lint(folder).returncode == 0
    for module, line, _ in FORBIDDEN.values():
        plant(folder, module, line)
    said = lint(folder)
    assert said.returncode == 1
    return said.stdout


def test_the_house_stands(house: Path) -> None:
    said = lint(house)
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_forbidden_import_is_seen(said_of_all: str, name: str) -> None:
    """Named as a fault of its own: this module imports that one, and nothing between them."""
    module, _, imported = FORBIDDEN[name]
    importer = "cloister." + module.removesuffix(".py").replace("/", ".")
    assert re.search(rf"^ *- *{re.escape(importer)} -> {re.escape(imported)} \(l\.\d+\)$(?!\n +\S)", said_of_all, re.MULTILINE), (
        said_of_all
    )


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
