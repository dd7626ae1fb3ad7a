"""The runner of benchmarks takes only whole results, and fails where a promise is broken or nothing was measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scripts import bench
from scripts.folded import folded, unfolded

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


def test_rows_measured_anew_take_the_places_of_the_old_ones() -> None:
    def result(name: str, ratio: float) -> bench.Result:
        return bench.Result(benchmark=name, ratio=ratio, limit=1, holds=True, detail="x")

    old = bench.page([result("draws", 2), result("sums", 3)])
    new = bench.merged(old, [result("sums", 7), result("medians", 8)])
    assert bench.merged(new, [result("sums", 3)]) == bench.merged(old, [result("medians", 8)])
    assert [line.split("|")[2].strip() for line in new.splitlines()[-3:]] == ["2", "7", "8"]
    assert new.splitlines()[: len(old.splitlines()) - 1] == old.splitlines()[:-1]


def test_the_page_holds_every_word_of_its_results_once() -> None:
    page = bench.PAGE.read_text(encoding="utf-8")
    assert bench.merged(page, []) == page
    under = page.partition("\n".join(bench.HEAD) + "\n")[2].splitlines()
    rows = list(unfolded([tuple(line.removeprefix("| ").removesuffix(" |").split(" | ")) for line in under]))
    assert len({row[0] for row in rows}) == len(rows) > 300
    assert not any("…" in "".join(row) or not all(row[1:3]) for row in rows)


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
