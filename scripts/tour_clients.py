"""The pictures of clients that no one here wrote, in docs/images/hub: what psql prints, and what R prints and draws.

`scripts/tour.py` calls it, with a page of its own and what a demonstration says of itself. Each program is asked for real, at the
PostgreSQL port of that hub; the page shows what it printed, as a terminal does. Where a program is missing, its picture stays.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Page

from scripts.engines import r_program

__all__ = ["CLIENTS", "client_pictures"]

CLIENTS = ("psql", "r")
"""The pictures' names."""
_WIDE, _COLUMNS = 1040, 146
_PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "ask-a-hub.md"
_QUESTIONS = """SET cloister.spend = '0.1';
SET cloister.margins = on;
SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM census GROUP BY sex;
SELECT * FROM cloister.help;
"""
_STYLE = """
body { margin: 0; padding: 12px; background: #fff; }
main { border: 1px solid #ccc; border-radius: 6px; padding: 12px 16px; }
pre { font: 11px/1.35 "DejaVu Sans Mono", monospace; margin: 0; color: #1a1a1a; white-space: pre-wrap; }
img { display: block; height: 280px; margin: -20px 0 -24px; }
"""


def client_pictures(page: Page, address: tuple[int, str, str], picture: Callable[[Page, str, str, int], Path]) -> Iterator[Path]:
    """Take them, of a hub at a port, as a person with a token. `picture` takes the page, a name, the upper edge, and a height."""
    port, person, token = address
    page.set_viewport_size({"width": _WIDE, "height": 900})
    known = {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": person, "PGPASSWORD": token, "PGDATABASE": "hub"}
    psql, r = shutil.which("psql"), r_program()
    if psql is None:
        print("psql is not here, and its picture stays: apt-get install postgresql-client", file=sys.stderr)
    else:
        words = ["-a", "-P", "format=wrapped", "-P", f"columns={_COLUMNS}"]
        shown = _printed([psql, "-X", *words], _QUESTIONS, known)
        yield _drawn(page, "psql", f"psql {' '.join(words)} < ask.sql", shown, picture)
    if r is None:
        print("R is not here, and its picture stays: apt-get install r-base-core r-cran-rpostgresql", file=sys.stderr)
    else:
        with tempfile.TemporaryDirectory() as folder:
            plot = Path(folder) / "plot.svg"
            script = "\n".join(re.findall(r"```r\n(.*?)```", _PAGE.read_text(encoding="utf-8"), re.DOTALL))
            script = (
                f"options(width = 110, device = function() svg('{plot}', width = 5, height = 4, bg = 'transparent'))\n" + script
            )
            script = script.replace("FROM people", "FROM census WHERE age > 75")  # few enough for margins that are seen
            shown = _printed([str(r.with_name("R")), "-q", "--vanilla"], script, known)
            shown = shown[shown.index("> library") :].rstrip("> \n")
            yield _drawn(page, "r", "R -q < ask.R", shown, picture, plot.read_text(encoding="utf-8"))


def _printed(words: Sequence[str], script: str, known: dict[str, str]) -> str:
    """What a program prints that reads a script."""
    told = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": os.environ.get("HOME", "/"), **known}
    done = subprocess.run(words, input=script, env=told, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode or "ERROR" in done.stderr:
        raise SystemExit(f"{words[0]} was refused: {done.stderr}")
    return done.stdout


def _drawn(page: Page, name: str, line: str, shown: str, picture: Callable[[Page, str, str, int], Path], plot: str = "") -> Path:
    image = f'<img alt="" src="data:image/svg+xml;charset=utf-8,{quote(plot)}">' if plot else ""
    page.set_content(f"<style>{_STYLE}</style><main><pre>$ {escape(line)}\n{escape(shown.rstrip())}</pre>{image}</main>")
    for each in page.locator("img").all():
        each.evaluate("image => image.decode()")
    box = page.locator("main").bounding_box()
    assert box is not None
    return picture(page, name, "main", round(box["height"]) + 24)
