"""Links lead somewhere, Python in the pages is run, nothing names one machine, the front page shows its two commands."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from scripts import figures

ROOT = Path(__file__).resolve().parents[2]
MADE = ("_build", "api")
PAGES = [
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if not set(MADE) & set(path.parts)),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "benchmarks/README.md")),
]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_that_exist(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text)
    local = [target for target in targets if not target.startswith(("http://", "https://", "mailto:"))]
    there = {script.stem for script in figures.scripts(kept=False)}  # drawn when the pages are built
    missing = [target for target in local if not (page.parent / target).exists() and "reference/api" not in target]
    assert [target for target in missing if "_static/figures/" not in target or Path(target).stem not in there] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_block_that_looks_like_python_is_marked_so_and_therefore_run(page: Path) -> None:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert [
        body
        for mark, body in blocks
        if mark != "python" and re.search(r"^(import cloister|from cloister|>>> )", body, re.MULTILINE)
    ] == []


def test_pages_in_every_folder_are_collected() -> None:
    patterns = re.findall(r'"((?:docs/)?[\w*/]+\.md)"', (ROOT / "conftest.py").read_text(encoding="utf-8"))
    run = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8") and page.parent.name != "benchmarks"]
    assert len(run) > 40
    assert [name_of(page) for page in run if not any(page.match(pattern) for pattern in patterns)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_begins_with_its_title(page: Path) -> None:
    assert page.read_text(encoding="utf-8").startswith("# ")


PARTS = ["The question", "Decided", "Instead of", "Measured", "Consequences"]


READERS = ("Data owner", "Analyst", "Respondent", "Administrator", "Developer")


@pytest.mark.parametrize("folder", ["how-to", "explanation", "decisions"])
def test_the_index_of_a_folder_names_every_page_for_one_reader(folder: str) -> None:
    """By its title, once; and the site's menu has the same order."""
    index = (ROOT / "docs" / folder / "index.md").read_text(encoding="utf-8")
    groups = re.findall(r"^## (.+)$", index, re.MULTILINE)
    assert [any(each.startswith(reader) for each in groups) for reader in READERS] == [True] * len(READERS)
    listed = re.findall(r"^- \[(.+)\]\(([\w-]+)\.md\)$", index, re.MULTILINE)
    pages = [path for path in (ROOT / "docs" / folder).glob("*.md") if path.stem != "index"]
    assert sorted(name for _, name in listed) == sorted(path.stem for path in pages)
    titles = {path.stem: path.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ") for path in pages}
    assert [title for title, name in listed if title != titles[name]] == []
    menu = index.split(":maxdepth: 1\n\n")[1].removesuffix("\n```\n").split("\n")
    assert menu == [name for _, name in listed]


def parts_of(text: str) -> list[str]:
    """The bold words that begin the parts of a decision's page."""
    return re.findall(r"^\*\*(\w[^*]*)\.\*\*\s", text, re.MULTILINE)


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "decisions").glob("0*.md")), ids=lambda path: path.stem)
def test_decisions_have_one_form(page: Path) -> None:
    parts = parts_of(page.read_text(encoding="utf-8"))
    assert parts[:2] == PARTS[:2]
    assert parts == [part for part in PARTS if part in parts]
    assert len(parts) > 2


def test_a_decision_of_another_form_is_found() -> None:
    assert parts_of("# 1. A\n\n**Why.** x\n\n- **In a list.** y\n\n**Decided.** z") == ["Why", "Decided"]


PROMISED = re.compile(r"\| planned \||\(planned\b|not built yet|not there yet|should wait for")
"""Words of pages about what is to come. What is not built is said once, plainly ("is not built"), or left out."""


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_page_promises_what_is_not_there(page: Path) -> None:
    assert not PROMISED.findall(page.read_text(encoding="utf-8"))


def test_the_page_of_synthetic_tables_has_the_figures_that_were_measured() -> None:
    measured, page = (
        (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("benchmarks.md", "reference/synth/index.md")
    )
    for line, words in (
        (
            r"synthetic Adult, ε = 1, δ = 1e-9",
            "is {} for one column, {} for two and {} for three, in {} seconds of processor time",
        ),
        (r"synthetic Adult, ε = 1", "Under a pure ε = 1 it is {}, {} and {}."),
    ):
        found = re.search(rf"\*\*{line}: [^|]*\*\* \|  \|  \| ([\d.]+) / ([\d.]+) / ([\d.]+) in ([\d.]+) s;", measured)
        assert found is not None
        assert words.format(*(f"{float(each) + 1e-9:.3f}"[1:] for each in found.groups()[:3]), found[4]) in page


def test_nothing_names_one_machine() -> None:
    kept = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    found = []
    for name in kept.splitlines():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".txt", ".cfg", ".ini", ".yml", ".svg"} or name in {
            "Makefile",
            ".ci/run",
            ".importlinter",
        }:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
            found += [
                f"{name}:{number}"
                for number, line in enumerate(lines, 1)
                if re.search(r"(?<![\w.])/(?:home|root|Users)/\w", line)
            ]
    assert found == []


def test_the_readme_shows_both_commands_first() -> None:
    top = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:40])
    assert "make demo" in top
    assert "make test" in top


def test_every_target_of_make_explains_itself() -> None:
    rules = re.findall(r"^([a-z]+):(.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"demo", "test", "bench", "docs", "lint", "clean", "help"} <= {name for name, _ in rules}
    assert [name for name, rest in rules if "##" not in rest and name != "setup"] == []


def test_contributing_fits_a_screen() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= 60


def test_a_version_in_the_changelog_is_forty_lines_of_what_a_user_gets() -> None:
    versions = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1:]
    assert [each.splitlines()[0] for each in versions if len(each.splitlines()) > 40] == []
    assert versions[-1].startswith("[0.1.0]")


def test_constraints_pin_every_declared_dependency() -> None:
    import tomllib

    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [*project["dependencies"], *(text for extra in project["optional-dependencies"].values() for text in extra)]
    lines = [
        line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
    ]
    pins = {canonicalize_name(Requirement(line).name): Requirement(line) for line in lines}
    for requirement in map(Requirement, declared):
        if canonicalize_name(requirement.name) != project["name"]:
            pin = pins[canonicalize_name(requirement.name)]
            version = next(iter(pin.specifier)).version
            assert str(pin.specifier).startswith("=="), pin
            assert requirement.specifier.contains(version, prereleases=True), f"{requirement} and {pin} contradict one another"
