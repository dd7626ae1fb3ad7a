"""No text that somebody else wrote breaks its parser: each is read or refused in words, within 64 MiB, by every parser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.security.hostile import PARSERS

ROOT = Path(__file__).parents[2]
OWN = {
    "cloister/hub/settings.py": "the administrator's own file",
    "cloister/cli/declared.py": "the person's own file",
    "cloister/cli/party.py": "the own file of a site, a key holder or a sealed store's owner",
    "cloister/cli/bounds.py": "the person's own file",
    "cloister/cli/survey.py": "the researcher's own file",
}
"""What reads TOML of any length (`toml_in`), and whose text it is."""


def test_every_parser_reads_or_refuses_every_text() -> None:
    words = [sys.executable, "-m", "tests.security.hostile"]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.stdout.splitlines(), ended.returncode) == ([f"tried {name}" for name in PARSERS], 0), ended.stderr[-2000:]


def test_whatever_reads_toml_of_others_has_bounds() -> None:
    src = ROOT / "src"
    sources = {path.relative_to(src).as_posix(): path.read_text(encoding="utf-8") for path in src.rglob("*.py")}
    assert {path for path, text in sources.items() if "tomllib.load" in text} == {"cloister/parsers.py"}
    assert {path for path, text in sources.items() if "toml_in(" in text} - {"cloister/parsers.py"} == set(OWN)
