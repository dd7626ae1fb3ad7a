"""What no test runs is counted folder by folder, and a folder that lost lines is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scripts import coverage_by_folder

CODE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
TEST = "from cloister.small import one\n\n\ndef test_one():\n    assert one() == 1\n"


def test_lines_that_no_worker_ran_are_counted_and_a_loss_is_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A project of its own: two workers run one of two functions, and another commit runs both."""
    files = {"src/cloister/__init__.py": "", "src/cloister/small.py": CODE, "tests/small/test_small.py": TEST}
    files["pytest.ini"] = "[pytest]\nmarkers =\n    slow: by night\n    spark: with Spark\n"
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(coverage_by_folder, "ROOT", tmp_path)
    measured, kept = coverage_by_folder.measured, list[Any]()

    def once(*given: Any) -> Any:
        """The second measures what the first did."""
        kept[:] = kept or [measured(*given)]
        return kept[0]

    monkeypatch.setattr(coverage_by_folder, "measured", once)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "src"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr("sys.argv", ["coverage", "small", "--write", str(tmp_path / "now.json"), "-p", "xdist.plugin"])
    assert coverage_by_folder.main() == 0
    assert json.loads((tmp_path / "now.json").read_text(encoding="utf-8")) == {"small": [4, 1]}
    (tmp_path / "before.json").write_text('{"small": [4, 0]}', encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["coverage", "small", "--against", str(tmp_path / "before.json"), "-p", "xdist.plugin"])
    assert coverage_by_folder.main() == 1
    assert "small: 1 of 4 statements are not run, and were 0 of 4" in capsys.readouterr().out
