"""The runner of benchmarks takes only whole results, and fails where a promise is broken or nothing was measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scripts import bench
from scripts.folded import folded, unfolded

ROOT = Path(__file__).resolve().parents[2]
GOOD = {"benchmark": "draws", "ratio": 60.0, "limit": 50, "holds": True, "detail": "against a|peer"}


def script(folder: Path, text: str) -> Path:
    path = folder / "planted.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_result_is_read_and_other_lines_are_not() -> None:
    assert bench.read(json.dumps(GOOD)) == bench.Result(
        benchmark="draws", ratio=60.0, limit=50, holds=True, detail="against a|peer"
    )
    assert bench.read("60 times faster") is None
    assert bench.read("{not json") is None


@pytest.mark.parametrize("name", GOOD)
def test_a_result_that_lacks_a_field_is_refused(name: str) -> None:
    with pytest.raises(SystemExit, match=name):
        bench.read(json.dumps({key: value for key, value in GOOD.items() if key != name}))


def test_words_go_through_and_results_are_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    results = bench.run(script(tmp_path, f"print('hello')\nprint({json.dumps(json.dumps(GOOD))})"), quick=False)
    assert [result.holds for result in results] == [True]
    assert capfd.readouterr().out == "hello\n"


@pytest.mark.parametrize("text", ["", "raise SystemExit(3)", f"print({json.dumps(json.dumps(GOOD))})\nraise SystemExit(3)"])
def test_a_benchmark_that_fails_or_says_nothing_holds_nothing(tmp_path: Path, text: str) -> None:
    assert not all(result.holds for result in bench.run(script(tmp_path, text), quick=False))


def test_a_short_run_is_announced_to_the_benchmark(tmp_path: Path) -> None:
    say = "import json, os\nprint(json.dumps({**" + repr(GOOD) + ", 'holds': os.environ.get('CLOISTER_BENCH_QUICK') == '1'}))"
    assert bench.run(script(tmp_path, say), quick=True)[0].holds
    assert not bench.run(script(tmp_path, say), quick=False)[0].holds


def test_the_table_shows_what_does_not_hold_and_bars_do_not_break_it() -> None:
    broken = bench.Result(benchmark="rate", ratio=1, limit=2, holds=False, detail="a|b")
    row = bench.table([broken]).splitlines()[-1]
    assert bench.MISSED in row
    assert row.count("|") == 5


def test_the_machine_is_described_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import platform

    described = " ".join(bench.machine().values())
    assert platform.node() not in described or len(platform.node()) < 4
    assert "/" not in bench.machine()["Python"]


def test_each_benchmark_has_a_section_that_is_written_as_soon_as_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(name: str, ratio: float, then: str = "") -> None:
        said = json.dumps({**GOOD, "benchmark": name, "ratio": ratio})
        (tmp_path / "benchmarks" / f"{name}.py").write_text(f"print({said!r})\n{then}", encoding="utf-8")

    def measured() -> dict[str, list[str]]:
        found = bench.sections(bench.PAGE.read_text(encoding="utf-8"))
        return {name: [row[1] for row in rows_of(text)] for name, text in found.items()}

    (tmp_path / "benchmarks").mkdir()
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    monkeypatch.setattr(bench, "PAGE", tmp_path / "page.md")
    bench.PAGE.write_text(bench.page({}), encoding="utf-8")
    planted("sums", 60)
    planted("draws", 70)
    assert bench.main([]) == 0
    assert measured() == {"draws": ["70"], "sums": ["60"]}
    planted("sums", 61)
    assert bench.main(["sums"]) == 0
    assert measured() == {"draws": ["70"], "sums": ["61"]}
    assert "Measured on 20" in bench.sections(bench.PAGE.read_text(encoding="utf-8"))["sums"]
    planted("sums", 62)
    assert bench.main(["--quick"]) == 0
    planted("sums", 63, "raise SystemExit(3)")
    planted("draws", 71)
    assert bench.main([]) == 1  # the one that fails keeps what it had, and the other is written
    assert measured() == {"draws": ["71"], "sums": ["61"]}
    (tmp_path / "benchmarks" / "draws.py").unlink()
    planted("sums", 64)
    assert bench.main([]) == 0
    assert measured() == {"sums": ["64"]}


def rows_of(section: str) -> list[tuple[str, ...]]:
    under = section.partition("\n".join(bench.HEAD) + "\n")[2].splitlines()
    return list(unfolded([tuple(line.removeprefix("| ").removesuffix(" |").split(" | ")) for line in under]))


def test_the_page_has_a_dated_section_of_each_benchmark_and_each_word_once() -> None:
    page = bench.PAGE.read_text(encoding="utf-8")
    found = bench.sections(page)
    assert bench.page(found) == page
    assert found.keys() == {path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py")}
    assert all(re.match(r"Measured on 20\d\d-\d\d-\d\d: .*Python 3", text) for text in found.values())
    rows = [row for text in found.values() for row in rows_of(text)]
    assert len({row[0] for row in rows}) == len(rows) > 300
    assert not any("…" in "".join(row) or not all(row[1:3]) for row in rows)


CLAIM = re.compile(
    r"[0-9][0-9,.]* ?(?:×|times) (?:faster|as fast|as many)|[0-9] (?:answers|questions|charges|reports|requests|rows) a second"
    r"|in [0-9][0-9.,]* (?:s|ms|seconds|milliseconds|minutes)\b|[0-9] (?:ms|seconds|milliseconds) (?:a|an|each|for)\b"
)
"""Words of pages that claim a speed."""


def test_what_a_page_claims_of_speed_stands_in_the_record() -> None:
    """A decision says what was measured when it was made."""
    known = bench.sections(bench.PAGE.read_text(encoding="utf-8")).keys()
    pages = [ROOT / "README.md", *(path for path in (ROOT / "docs").rglob("*.md") if path != bench.PAGE)]
    for path in pages:
        text = path.read_text(encoding="utf-8")
        named = {*re.findall(r"benchmarks/([a-z]\w*)\.py", text), *re.findall(r"benchmarks\.md#(\w+)", text)}
        assert named <= known, path
        dated = path.parent.name == "decisions"
        assert named or dated or not CLAIM.search(text), f"{path} claims a speed and names no benchmark of the record"
        assert "benchmarks.md)" not in text or path.name == "index.md", f"{path} names the record and no section of it"


WORDS = st.lists(st.sampled_from(["ours", "theirs,", "1.5", "–", "·", "…", "n:", "a;", "10,000"]), max_size=6).map(" ".join)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), WORDS, WORDS), max_size=6))
@example([("a", "x", "1.5 ours"), ("a", "y", "1.5 ours"), ("a", "z", "10,000 ours")])
def test_what_is_folded_is_read_back_as_it_was(parts: list[tuple[str, str, str]]) -> None:
    rows = [(f"{head} {name} {number}", "1", "2", detail) for number, (head, name, detail) in enumerate(parts)]
    rows = [(" ".join(row[0].split()), *row[1:]) for row in rows if not row[0].startswith("…")]
    assert list(unfolded(folded(rows))) == rows


def test_rows_that_share_words_stand_under_one_line() -> None:
    rows = [(f"draws, scale {each}", "1", "2", f"{each} ns a draw, best of 3 rounds") for each in (1, 10, 100)]
    assert folded(rows) == [
        ("**draws, scale …**", "", "", "… ns a draw, best of 3 rounds"),
        *((f"…{each}", "1", "2", str(each)) for each in (1, 10, 100)),
    ]
