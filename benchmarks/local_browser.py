"""A survey of 20 questions, randomised by the browser's twin in Node: within 10 ms for one respondent.

Questions of every kind; the first report, which a respondent waits for, is measured in a fresh process, so that nothing has been
compiled; it is reported by itself. The ratio is the median of the reports after some that do not count.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from _report import report

from cloister.local.survey import Choice, Number, Place, Scale, Several, Survey, Word, YesNo

ROUNDS = 3 if os.environ.get("CLOISTER_BENCH_QUICK") else 9
LIMIT = 10.0
TWIN = Path(__file__).resolve().parent.parent / "src" / "cloister" / "local" / "browser" / "cloister-survey.js"

MEASURE = """
import {{ readFileSync }} from "node:fs";
import {{ respond }} from "{twin}";
const {{ survey, answers }} = JSON.parse(readFileSync("{file}", "utf8"));
crypto.getRandomValues(new Uint8Array(1)); // Node loads its cryptography at the first use; a browser has it
const times = [];
for (let round = 0; round < 30; round += 1) {{
  const begun = performance.now();
  respond(survey, answers, "open");
  times.push(performance.now() - begun);
}}
console.log(JSON.stringify({{ first: times[0], later: times.slice(5).sort((a, b) => a - b)[12] }}));
"""


def main() -> None:
    """Print both."""
    node = shutil.which("node")
    if node is None:
        print("Node is not here: nothing was measured")
        return
    with tempfile.TemporaryDirectory() as folder:
        data, script = Path(folder) / "survey.json", Path(folder) / "measure.mjs"
        data.write_text(json.dumps({"survey": twenty().to_dict(), "answers": ANSWERS}), encoding="utf-8")
        script.write_text(MEASURE.format(twin=TWIN.as_uri(), file=data), encoding="utf-8")
        runs = [json.loads(subprocess.run([node, str(script)], capture_output=True, check=True).stdout) for _ in range(ROUNDS)]
    later = statistics.median(run["later"] for run in runs)
    first = statistics.median(run["first"] for run in runs)
    report("browser, 20 questions (ms)", later, LIMIT, f"a report {later:.2f} ms", most=True)
    report("browser, the first report (ms)", first, LIMIT, f"in a fresh process {first:.2f} ms", most=True)


def twenty() -> Survey:
    """Twenty questions of seven kinds."""
    questions = [YesNo(f"yes-no-{place}", f"Yes or no {place}?") for place in range(5)]
    questions += [Choice(f"choice-{place}", f"Which {place}?", [f"option {each}" for each in range(8)]) for place in range(4)]
    questions += [Scale(f"scale-{place}", f"How often {place}?", ["never", "once", "often", "always"]) for place in range(4)]
    questions += [Several(f"several-{place}", f"Which ones {place}?", list("abcdef"), most=3) for place in range(2)]
    questions += [Number("hours", "How many hours?", low=0, high=60), Number("pay", "How much?", low=0, high=9000, want="spread")]
    questions += [Place("home", "Where?", south=47, west=8, north=48, east=9, rows=16, columns=16)]
    questions += [Choice("town", "Which town?", [f"town {each}" for each in range(1000)]), Word("word", "In a word?")]
    return Survey("twenty", "Twenty questions", questions, levels={"open": 1}, cap=20)


ANSWERS = {
    **{f"yes-no-{place}": "yes" for place in range(5)},
    **{f"choice-{place}": "option 3" for place in range(4)},
    **{f"scale-{place}": "often" for place in range(4)},
    **{f"several-{place}": ["a", "f"] for place in range(2)},
    "hours": 38.5,
    "pay": 4200,
    "home": [47.4, 8.5],
    "town": "town 700",
    "word": "fine",
}

if __name__ == "__main__":
    main()
