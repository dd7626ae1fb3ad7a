"""Every text of the hub's pages, from templates and Python into the catalogues, and what is still missing there.

    python -m scripts.translations           # bring the catalogues up to date, and list what has no translation
    python -m scripts.translations --check   # change nothing; fail where a text is missing or is not used any more

Texts are found by Babel's extractors: `_("…")`, `ngettext("…", "…", n)`, `N_("…")` and `{% trans %}`; with a context before
the text, `pgettext`, `npgettext` and `NC_`. What reaches a page in
other ways is found in the code (`scripts/translations_found.py`). What papers of anonymised tables say stands in the catalogue
with `anonymize` as its place: it stays as long as its words are said there. What was translated stays; a text that is not used
any more is dropped.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from babel.messages import Catalog, Message
from babel.messages.extract import extract_from_dir, extract_python
from babel.messages.pofile import read_po, write_po

from cloister.hub.decisions.policy.methods import offered
from cloister.hub.web.languages import PAPERS
from cloister.tables.declaring.create_table import PARTLY
from cloister.tables.declaring.vocabulary import reasons
from scripts.translations_found import said

ROOT = Path(__file__).resolve().parents[1]
HUB = ROOT / "src" / "cloister" / "hub"
BELOW = (
    *(
        f"anonymize/{each}.py"
        for each in ("encoded", "held", "models/diversity", "models/k", "searches/at_levels", "searches/unmet")
    ),
    *(f"anonymize/hierarchies/{each}.py" for each in ("dates", "hierarchy", "intervals", "ladder", "masking", "table")),
    "compress/from_tables.py",
    "compress/scatter.py",
    "crypto/keyring.py",
    "lazily.py",
    *(
        f"learn/**/{each}.py"
        for each in (
            "budget_account",
            "class_tables",
            "from_tables",
            "judged_tables",
            "kmeans_tables",
            "parameters",
            "regression_tables",
            "trees",
        )
    ),
    *(f"learn/{each}.py" for each in ("clustering/kmeans", "clustering/noisy_mean", "decomposition/pca", "frame/encoding")),
    *(
        f"learn/{each}.py"
        for each in ("linear_models/linear", "linear_models/linear_classes", "linear_models/poisson", "networks/neural")
    ),
    *(f"ledger/{each}.py" for each in ("book", "measure", "opening", "operations", "writer")),
    *(
        f"local/{each}.py"
        for each in ("numbers/interval", "survey/composed", "survey/models", "survey/question", "survey/questions")
    ),
    "noise/allowance.py",
    "noise/mechanism.py",
    "noise/shares.py",
    *(f"privacy/{each}.py" for each in ("conversion", "guarantee", "precision", "rational")),
    "query/*.py",
    "query/postprocessing/*.py",
    *(
        f"session/**/{each}.py"
        for each in (
            "abilities",
            "answer",
            "buying",
            "door",
            "grid",
            "limits",
            "lineage",
            "narrowing",
            "plan",
            "refinement",
            "table_snapshot",
        )
    ),
    *(f"session/**/{each}.py" for each in ("afford", "bias", "builder", "prepared_cache", "running", "summing")),
    *(f"session/**/{each}.py" for each in ("rehearsal", "scrubbed", "shape", "sharing", "spend", "threshold", "view", "within")),
    *(
        f"tables/**/{each}.py"
        for each in (
            "casts",
            "choices",
            "codebooks",
            "columns",
            "create_table",
            "dates",
            "ddi",
            "derived",
            "draft",
            "during",
            "encrypted",
        )
    ),
    *(f"tables/**/{each}.py" for each in ("encrypted", "expression/places", "expressions", "guard", "labels")),
    *(f"tables/declaring/{each}.py" for each in ("places", "regions")),
    "tables/expression/distances.py",
    *(f"tables/relations/{each}.py" for each in ("numbered", "public", "public_values", "related", "relation")),
    *(
        f"tables/**/{each}.py"
        for each in ("joins", "lines", "plain", "quotients", "scalar", "source_factory", "sources", "table", "texts", "workspace")
    ),
    *(
        f"tables/**/{each}.py"
        for each in ("postgres", "postgres_lineage", "spark", "spark_calls", "spark_connect", "spark_connection")
    ),
    "guests/algorithm.py",
    "guests/blocks.py",
    "guests/code.py",
    "guests/outputs.py",
    "guests/package.py",
    "guests/declared.py",
    "guests/trial.py",
    *(f"guests/sandbox/{each}.py" for each in ("environments", "processes", "wasm")),
    *(f"synth/{each}.py" for each in ("choosing", "fitting", "pooling", "rules", "states", "workload")),
    *(f"together/{each}.py" for each in ("coordinator", "joint", "pooled", "prio3/joint_survey", "roster")),
    *(f"together/sealed/{each}.py" for each in ("batches", "renewing", "sums", "table")),
    "traces/journeys.py",
    "traces/moments.py",
    "traces/watch.py",
    "session/execution/stepping.py",
)
"""Files below the hub whose errors and notes an analyst or an owner reads on a page."""
_PLACE, _WORD = re.compile(r"\{\w+\}"), re.compile(r"[^\W\d_]{3,}")
_CALLS = re.compile(rb"\b(?:_|n?p?gettext|NC?_)\(")


def _python(file: BinaryIO, *given: Any, **how: Any) -> Iterator[Any]:
    """Babel's extractor, for a file in which there is something to extract: it takes most of a second for a hundred files."""
    if _CALLS.search(file.read()):
        file.seek(0)
        yield from extract_python(file, *given, **how)


FOLDER = HUB / "web" / "translations"
LANGUAGES = ("zh_CN",)
METHODS = [("**.py", _python), ("**/templates/**.html", "jinja2"), ("**/templates/**.svg", "jinja2")]
OPTIONS = {
    "**/templates/**.html": {"extensions": "jinja2.ext.i18n,jinja2.ext.do", "trimmed": "true", "silent": "false"},
    "**/templates/**.svg": {"extensions": "jinja2.ext.i18n,jinja2.ext.do", "trimmed": "true", "silent": "false"},
}
SHOWN = (
    "services/",
    "platform/",
    "decisions/",
    "work/",
    "releases/",
    "app.py",
    "hub.py",
    "checking.py",
    "database.py",
    "max_delta.py",
    "middleware.py",
    "guard.py",
    "keys.py",
    "guidance.py",
    "labels.py",
    "records/",
    "storage/",
    "web/",
    "workbooks.py",
)
KEYWORDS = {
    **dict.fromkeys(("_", "gettext", "N_")),
    "ngettext": (1, 2),
    **dict.fromkeys(("pgettext", "NC_"), ((1, "c"), 2)),
    "npgettext": ((1, "c"), 2, 3),
}
HEADER = "# The pages of cloister's hub. Maintained by hand; `python -m scripts.translations` adds new texts."
DETAILS = (
    "about, address, after, algorithm, attempt, before, by, bytes, changed, charged by, columns, data sets, days, "
    "decision, ended, filters, form, format, grants, job, joined, ledger lines, made by, name, outcome, person, "
    "policy, population, project, purpose, reason, release, request, roles, rows, rule, scopes, service, share, "
    "state, title, until, version, via, wanted, who, why, withdrawn"
)
"""What an entry of the audit log may say besides, as a page names it."""


def extracted(folder: Path = HUB) -> Catalog:
    """A catalogue of every text in use, in the order of files, without line numbers (they change with every edit)."""
    found = Catalog(header_comment=HEADER, charset="utf-8", fuzzy=False)
    for file, _line, message, comments, context in extract_from_dir(folder, METHODS, OPTIONS, KEYWORDS):
        if message:
            found.add(message, locations=[(file.replace("\\", "/"), None)], auto_comments=comments, context=context)
    for path in sorted(folder.rglob("*.py")):
        file = path.relative_to(folder).as_posix()
        for text in said(ast.parse(path.read_text(encoding="utf-8")), errors=file.startswith(SHOWN)):
            found.add(text, locations=[(file, None)])
    for method in offered().values() if folder == HUB else ():
        found.add(method.title, locations=[("learn/frame/catalogue.py", None)])
    for text in (*reasons(), PARTLY) if folder == HUB else ():
        found.add(text, locations=[("tables/declaring", None)])
    for text in DETAILS.split(", ") if folder == HUB else ():
        found.add(text, locations=[("platform/trail/words.py", None)])
    for path in [each for pattern in BELOW for each in sorted(folder.parent.glob(pattern))] if folder == HUB else ():
        for text in said(ast.parse(path.read_text(encoding="utf-8")), errors=True):
            found.add(text, locations=[(path.relative_to(folder.parent).as_posix(), None)])
    words = _words_of(folder.parent / PAPERS) if folder == HUB else set()
    for message in read(LANGUAGES[0]) if words else ():
        if (PAPERS, None) in message.locations and set(_WORD.findall(_PLACE.sub("", str(message.id)))) <= words:
            found.add(message.id, locations=[(PAPERS, None)], context=message.context)
    return found


def _words_of(folder: Path) -> set[str]:
    """The words of all texts in the code of a folder, with the plurals that it may make of them."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py"))]
    texts = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    found = {word for text in texts if isinstance(text, str) for word in _WORD.findall(text)}
    return found | {f"{word}s" for word in found}


def read(code: str, folder: Path = FOLDER) -> Catalog:
    """The catalogue of a language as it is kept; an empty one where there is none."""
    path = folder / f"{code}.po"
    if not path.exists():
        return Catalog(locale=code, header_comment=HEADER)
    with path.open("rb") as file:
        return read_po(file, locale=code)


def merged(kept: Catalog, used: Catalog) -> Catalog:
    """Every text in use, with the translation that is kept; no guesses from similar texts."""
    made = Catalog(locale=kept.locale_identifier, header_comment=HEADER, project="cloister", charset="utf-8", fuzzy=False)
    for message in used:
        if message.id:
            old = kept.get(message.id if isinstance(message.id, str) else message.id[0], message.context)
            made.add(message.id, old.string if old is not None else None, message.locations, context=message.context)
    return made


def untranslated(catalogue: Catalog) -> Iterator[Message]:
    """The texts without a translation, or with half of one."""
    for message in catalogue:
        if message.id:
            texts = (message.string,) if isinstance(message.string, str) else tuple(message.string or ())
            if not texts or not all(texts):
                yield message


def unused(kept: Catalog, used: Catalog) -> list[str]:
    """What is kept and not used any more."""

    def names(catalogue: Catalog) -> dict[str, None]:
        texts = ((message.context, message.id if isinstance(message.id, str) else message.id[0]) for message in catalogue)
        return {f"{text} [{context}]" if context else text: None for context, text in texts if text}

    now = names(used)
    return [name for name in names(kept) if name not in now]


def written(catalogue: Catalog) -> bytes:
    """The file: no dates and no line numbers, so that it changes only where a text does."""
    buffer = BytesIO()
    write_po(buffer, catalogue, width=120, omit_header=True, sort_by_file=False, ignore_obsolete=True, include_lineno=False)
    head = f'{HEADER}\nmsgid ""\nmsgstr ""\n"Language: {catalogue.locale_identifier}\\n"\n'
    head += f'"Content-Type: text/plain; charset=utf-8\\n"\n"Plural-Forms: {catalogue.plural_forms}\\n"\n\n'
    return head.encode() + buffer.getvalue()


def main() -> int:
    """Update or check every catalogue; the number of texts that are missing or stale, at most 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing")
    check = parser.parse_args().check
    used = extracted()
    wrong = 0
    for code in LANGUAGES:
        kept = read(code)
        new = merged(kept, used)
        missing = list(untranslated(new))
        stale = unused(kept, used) if check else []
        for message in missing:
            where = ", ".join(sorted({place for place, _ in message.locations}))
            print(f"{code}: no translation: {message.id!r} ({where})")
        for name in stale:
            print(f"{code}: not used any more: {name!r}")
        if not check:
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / f"{code}.po").write_bytes(written(new))
        wrong += len(missing) + len(stale)
        print(f"{code}: {len(new)} texts, {len(missing)} without translation")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
