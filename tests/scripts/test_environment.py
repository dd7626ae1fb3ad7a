"""Making ready is quick when it was done, is done again when what was asked for changed, and never touches a system service."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cloister.installed import DISTRIBUTION
from scripts import engines, environment


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty checkout with a virtual environment that nothing was installed into."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").touch()
    (tmp_path / ".venv" / "pyvenv.cfg").write_text("version = 3.11")
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    return tmp_path


def test_a_stamp_counts_until_something_changes(tree: Path) -> None:
    assert not environment.stamped("all")
    environment.stamp_of("all").write_text(environment.digest())
    assert environment.stamped("all")
    for name in ("pyproject.toml", "constraints.txt", ".venv/pyvenv.cfg"):
        before = (tree / name).read_text()
        (tree / name).write_text(before + " ")
        assert not environment.stamped("all"), name
        (tree / name).write_text(before)
    (tree / ".venv" / "bin" / "python").unlink()
    assert not environment.stamped("all")


def test_debians_own_python_is_taken_where_it_is_quicker_and_nothing_in_the_place_of_a_newer_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    debians = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    for quick in (True, False):
        monkeypatch.setattr(environment, "pace", lambda python, quick=quick: 1.0 if (python == debians) == quick else 2.0)
        taken = environment.quicker_of(sys.executable)
        there = Path(debians).exists() and not Path(debians).samefile(sys.executable)
        assert taken == (debians if quick and there else sys.executable)
    assert environment.quicker_of("/opt/python3.99") == "/opt/python3.99"
    assert environment.main(["all", "slowest"]) == 2


def test_everything_serves_where_the_base_is_asked_for_but_not_the_other_way(tree: Path) -> None:
    environment.stamp_of("base").write_text(environment.digest())
    assert environment.stamped("base")
    assert not environment.stamped("all")
    environment.stamp_of("base").unlink()
    environment.stamp_of("all").write_text(environment.digest())
    assert environment.stamped("base")


def test_the_wanted_extras_are_declared() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["optional-dependencies"]) >= {
        "learn",
        "anonymize",
        "postgres",
        "spark",
        "hub",
        "docs",
        "dev",
        "all",
    }


def of_base() -> set[str]:
    """The modules that `make demo` installs, by what this machine knows of the packages."""
    wanted = re.fullmatch(r"\.\[([a-z,]+)\]", environment.WANTS["base"])
    assert wanted is not None
    waiting, seen = [(DISTRIBUTION, extra) for extra in ("", *wanted[1].split(","))], set()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # for another system
            continue
        for each in map(Requirement, requires):
            if each.marker is None or each.marker.evaluate({"extra": extra}):
                waiting += [(canonicalize_name(each.name), more) for more in ("", *each.extras)]
    names = {name for name, _ in seen}
    return {module for module, owners in metadata.packages_distributions().items() if {*map(canonicalize_name, owners)} & names}


ALONE = """
import sys
from importlib.abc import MetaPathFinder

class OfTheBase(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.partition(".")[0])

sys.meta_path.insert(0, OfTheBase())
"""


def test_the_demo_installs_what_its_menu_and_the_command_line_offer(tmp_path: Path) -> None:
    """Each is tried in a process that finds no other package."""
    hidden = set(metadata.packages_distributions()) - of_base()
    assert {"hypothesis", "pandas", "pyspark"} <= hidden
    (tmp_path / "people.csv").write_text("age,sex,ill\n" + "30,F,flu\n40,M,gout\n" * 60)
    anonymised = ["anonymize", "people.csv", "--quasi", "age,sex", "--model", "k=2", "--out", "out.csv"]
    tried = f"""
from pathlib import Path
from click.testing import CliRunner
from cloister.cli.main import cli
for words in (["risk", "people.csv", "--quasi", "age,sex"], {anonymised!r}, ["learn", "--help"], ["mine", "--help"]):
    said = CliRunner().invoke(cli, words)
    assert said.exit_code == 0, (words, said.output, said.exception)
from cloister.installed import lacking
from cloister.hub.services.learning.order import class_of
from cloister.learn.frame.catalogue import METHODS
for extra in ("learn", "anonymize", "files", "guests", "together"):
    assert not lacking(extra), extra
for method in METHODS:
    class_of(method)
import cloister.hub.services, cloister.mining
"""
    text = f"HIDDEN = {sorted(hidden)!r}\n{ALONE}{tried}"
    said = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr


@pytest.mark.parametrize(
    ("said", "release"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_401"', 1),
        ('openjdk version "21" 2023-09-19', 21),
        ("no", None),
    ],
)
def test_a_java_is_known_by_what_it_says(tmp_path: Path, said: str, release: int | None) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    program.chmod(0o755)
    assert engines.java_release(tmp_path) == release


def test_no_java_is_no_release(tmp_path: Path) -> None:
    assert engines.java_release(tmp_path) is None


def test_what_cannot_be_installed_is_said_in_one_loud_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engines, "postgres_programs", lambda: None)
    monkeypatch.setattr(engines, "java_home", lambda: None)
    monkeypatch.setattr(engines, "chromium", lambda: None)
    monkeypatch.setattr(engines, "nginx", lambda: None)
    monkeypatch.setattr(engines, "mosquitto", lambda: None)
    monkeypatch.setattr(engines, "program", lambda *_: None)
    monkeypatch.setattr(engines, "clients", lambda: None)
    monkeypatch.setattr(engines, "privilege", lambda: None)
    engines.provide()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert all(line.startswith("!!!") and "SKIPPED" in line for line in lines)


def test_what_is_there_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_packages: str, any_of: bool = False) -> bool:
        raise AssertionError("nothing had to be installed")

    monkeypatch.setattr(engines, "postgres_programs", lambda: Path("bin"))
    monkeypatch.setattr(engines, "java_home", lambda: Path("java"))
    monkeypatch.setattr(engines, "chromium", lambda: Path("chromium-headless-shell"))
    monkeypatch.setattr(engines, "nginx", lambda: Path("nginx"))
    monkeypatch.setattr(engines, "mosquitto", lambda: Path("mosquitto"))
    monkeypatch.setattr(engines, "apt_install", refuse)
    engines.provide()


def test_the_server_is_installed_without_a_system_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    @contextlib.contextmanager
    def guard() -> Iterator[None]:
        steps.append("guard on")
        yield
        steps.append("guard off")

    def install(*packages: str, any_of: bool = False) -> bool:
        steps.append(" ".join(packages))
        return True

    found = iter([None, Path("bin")])
    monkeypatch.setattr(engines, "postgres_programs", lambda: next(found))
    monkeypatch.setattr(engines, "java_home", lambda: Path("java"))
    monkeypatch.setattr(engines, "chromium", lambda: Path("chromium-headless-shell"))
    monkeypatch.setattr(engines, "nginx", lambda: Path("nginx"))
    monkeypatch.setattr(engines, "mosquitto", lambda: Path("mosquitto"))
    monkeypatch.setattr(engines, "no_system_cluster", guard)
    monkeypatch.setattr(engines, "apt_install", install)
    engines.provide()
    assert steps == ["guard on", "postgresql", "guard off"]


def test_a_proxy_is_installed_without_being_started(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    @contextlib.contextmanager
    def guard() -> Iterator[None]:
        steps.append("guard on")
        yield
        steps.append("guard off")

    def install(*packages: str, any_of: bool = False) -> bool:
        steps.append(" or ".join(packages) if any_of else " ".join(packages))
        return True

    monkeypatch.setattr(engines, "postgres_programs", lambda: Path("bin"))
    monkeypatch.setattr(engines, "java_home", lambda: Path("java"))
    browsers, proxies = iter([None, Path("chromium")]), iter([None, Path("nginx")])
    monkeypatch.setattr(engines, "chromium", lambda: next(browsers))
    monkeypatch.setattr(engines, "nginx", lambda: next(proxies))
    monkeypatch.setattr(engines, "mosquitto", lambda: Path("mosquitto"))
    monkeypatch.setattr(engines, "no_services", guard)
    monkeypatch.setattr(engines, "apt_install", install)
    engines.provide()
    assert steps == ["chromium-headless-shell or chromium", "guard on", "nginx-light or nginx", "guard off"]


def test_no_service_is_started_while_a_package_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = tmp_path / "policy-rc.d"
    monkeypatch.setattr(engines, "STARTS", rule)
    monkeypatch.setattr(engines, "privilege", list)
    with engines.no_services():
        assert rule.read_text() == "#!/bin/sh\nexit 101\n"
        assert rule.stat().st_mode & 0o111
    assert not rule.exists()
    rule.write_text("another's")
    with engines.no_services():
        assert rule.read_text() == "another's"
    assert rule.read_text() == "another's"


def test_a_program_is_found_on_the_path_or_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("path", "aside"):
        (tmp_path / folder).mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert engines.program("browser", str(tmp_path / "aside")) is None
    for folder in ("aside", "path"):
        (tmp_path / folder / "browser").write_text("#!/bin/sh\n")
        (tmp_path / folder / "browser").chmod(0o755)
        assert engines.program("browser", str(tmp_path / "aside")) == tmp_path / folder / "browser"
    monkeypatch.setenv("CLOISTER_CHROMIUM", "browser")
    assert engines.chromium() == tmp_path / "path" / "browser"


def test_a_browser_without_windows_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLOISTER_CHROMIUM", raising=False)
    here = ["chromium"]
    monkeypatch.setattr(engines, "program", lambda name, folder: tmp_path / name if name in here else None)
    assert engines.chromium() == tmp_path / "chromium"
    here.append("chromium-headless-shell")
    assert engines.chromium() == tmp_path / "chromium-headless-shell"
    here.clear()
    assert engines.chromium() is None
