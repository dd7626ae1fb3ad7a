"""The runner of benchmarks takes only whole results, and fails where a promise is broken or nothing was measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts import bench

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
    assert "**no**" in row
    assert row.count("|") == 6


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
