"""`cloister survey`: compose a survey, answer it, collect reports, and see in advance how exact the results will be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.party import own_files
from cloister.cli.written import FILE, WRITTEN, waiting_for, write_whole
from cloister.errors import InvalidParameter, nearest
from cloister.privacy.rational import text_of

if TYPE_CHECKING:
    from cloister.local.survey import Survey


@click.group()
def survey() -> None:
    """Ask sensitive questions: each answer is randomised on the respondent's device, and no one needs to be trusted.

    \b
    cloister survey make --example --out questions.toml
    cloister survey make questions.toml --out exams.json
    cloister survey respond exams.json --level careful --answer copied=yes --out report.json
    cloister survey collect exams.json report.json
    """


@survey.command("make")
@click.argument("questions", type=FILE, required=False)
@click.option("--out", type=WRITTEN, help="Write the survey as JSON; printed when left out.")
@click.option("--tokens", type=click.IntRange(1, 10**7), help="Number of one-time tokens to issue, one for each invitation.")
@click.option("--tokens-out", type=WRITTEN, help="Of --tokens: write the tokens to send, one a line; forget them afterwards.")
@click.option("--invited-out", type=WRITTEN, help="Of --tokens: write their hashes, to keep.")
@click.option("--example", is_flag=True, help="Print (or with --out write) questions to start from.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def make(
    questions: Path | None,
    out: Path | None,
    tokens: int | None,
    tokens_out: Path | None,
    invited_out: Path | None,
    example: bool,
    as_json: bool,
) -> None:
    """Compose a survey from a file of questions (TOML): protocols, guarantees and a version are computed.

    \b
    cloister survey make --example --out questions.toml
    cloister survey make questions.toml --out exams.json
    cloister survey make questions.toml --out exams.json --tokens 200 --tokens-out tokens.txt --invited-out invited.txt
    """
    draft = None if tokens_out is None else tokens_out.with_name(f".{tokens_out.name}.part")
    for path in (out,) if example else (tokens_out, invited_out):  # what cannot be made again
        stopped = path is invited_out and draft is not None and draft.exists()  # nobody has their tokens
        if path is not None and path.exists() and not stopped:
            why = "perhaps with questions of yours" if example else "and its tokens may have been sent"
            raise InvalidParameter(f"{path.name} was left as it is", why=f"it is there already, {why}", instead="another name")
    if example:
        if out is None:
            click.echo(_EXAMPLE.strip())
        else:
            out.write_text(_EXAMPLE.lstrip(), encoding="utf-8")
            click.echo(f"questions to start from saved as {out}")
        return
    if questions is None:
        raise InvalidParameter(
            "No survey was made", why="the file of questions is missing", instead="cloister survey make --example"
        )
    if (tokens is None) != (tokens_out is None) or (tokens is None) != (invited_out is None):
        raise InvalidParameter(
            "No tokens were issued",
            why="--tokens, --tokens-out and --invited-out belong together",
            instead="--tokens 200 --tokens-out tokens.txt --invited-out invited.txt",
        )
    made = _composed(questions)
    if out is not None:
        out.write_text(made.to_json() + "\n", encoding="utf-8")
    if tokens is not None and draft is not None and tokens_out is not None and invited_out is not None:
        from cloister.local.survey import issue_tokens

        own_files()  # each is a person's right to answer
        sent, kept = issue_tokens(tokens)
        draft.write_text("\n".join(sent) + "\n", encoding="utf-8")
        write_whole(invited_out, "\n".join(kept) + "\n")
        draft.replace(tokens_out)  # last: what was stopped before can be begun again
    if as_json or out is None:
        click.echo(made.to_json())
        return
    click.echo(f"{made.title}: {len(made.questions)} questions, version {made.version}, saved as {out}")
    for level in made.levels:
        fits = level in made.for_all
        all_ = (
            f"{text_of(made.spent(level.name))} in all" if fits else f"too much for all questions: the cap is {text_of(made.cap)}"
        )
        click.echo(f"  level {level.name}: ε = {text_of(level.epsilon)} an answer, {all_}")
    for question in made.questions:
        click.echo(f"\n{question.text}")
        for level in made.levels:
            click.echo(f"  {level.name}: {made.promise(question, level).text}")


@survey.command("respond")
@click.argument("file", type=FILE)
@click.option(
    "--level", "levels", multiple=True, required=True, metavar="[NAME=]LEVEL", help="For all questions, or NAME=… for one."
)
@click.option("--answer", "given", multiple=True, metavar="NAME=ANSWER", help="May be repeated; a question left out: no answer.")
@click.option("--answers", type=FILE, help="The answers as JSON: an object with a value for each name.")
@click.option("--token", help="The invitation's token (default: a new one).")
@click.option("--out", type=WRITTEN, help="Write the report; printed when left out.")
def respond(
    file: Path, levels: tuple[str, ...], given: tuple[str, ...], answers: Path | None, token: str | None, out: Path | None
) -> None:
    """Randomise one person's answers, on that person's own device. Send only what is printed or written.

    Levels are sent as they are, so choose them before you know the questions. They come to no more than the survey's cap. Several
    options are given with | between them, a place as "row,column".

    \b
    cloister survey make --example --out questions.toml
    cloister survey make questions.toml --out exams.json
    cloister survey respond exams.json --level careful --answer copied=yes --answer "why=grade|time"
    cloister survey respond exams.json --level careful --level hours=open --answer hours=12
    cloister survey respond exams.json --level open --answer copied=no --out report.json
    """
    from cloister.local.survey import respond as randomise

    asked, _ = _with_reports(file)
    chosen = _levels(asked, levels)
    report = randomise(asked, _answers(asked, given, answers), chosen, token=token)
    if out is None:
        click.echo(report.to_json())
        return
    out.write_text(report.to_json() + "\n", encoding="utf-8")
    names = ", ".join(dict.fromkeys(report.levels.values()))
    click.echo(f"report saved as {out}: level {names}, ε = {text_of(asked.spent(chosen))} in all, at most")


@survey.command("collect")
@click.argument("file", type=FILE)
@click.argument("reports", type=FILE, nargs=-1)
@click.option("--invited", type=FILE, help="The hashes of the tokens that were sent, one a line: only these count, each once.")
@click.option("--tally", type=WRITTEN, help="Go on from this tally if it is there, and write it back: reports may come in parts.")
@click.option("--confidence", default="0.95", help="Confidence of the margins (default: 0.95).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def collect(
    file: Path, reports: tuple[Path, ...], invited: Path | None, tally: Path | None, confidence: str, as_json: bool
) -> None:
    """Estimate what people answered, with margins, from files of reports: JSON, one report a line, or a list.

    Invalid reports are counted by reason and ignored. FILE is a survey, or the file of reports that a hub writes, which has
    both.

    \b
    cloister survey make --example --out questions.toml
    cloister survey make questions.toml --out exams.json
    cloister survey respond exams.json --level careful --answer copied=yes --out monday.jsonl
    cloister survey collect exams.json monday.jsonl
    cloister survey collect exams.json monday.jsonl --tally exams-tally.json --json
    """
    from cloister.local.survey import Results, Tally

    asked, held = _with_reports(file)
    hashes = None if invited is None else invited.read_text(encoding="utf-8-sig", errors="replace").split()
    with nullcontext() if tally is None else waiting_for(tally):
        before = None if tally is None or not tally.exists() else tally.read_bytes()
        kept = Tally(asked, invited=hashes) if before is None else Tally.from_json(asked, before, invited=hashes)
        kept.add(held)
        kept.add(_sent(reports))
        results = Results(asked, kept)
        said = results.to_json(confidence) if as_json else results.text(confidence)  # refused before reports count
        if tally is not None:
            write_whole(tally, kept.to_json() + "\n")
    click.echo(said)


@survey.command("expected")
@click.argument("file", type=FILE)
@click.argument("people", type=click.IntRange(1))
@click.option("--confidence", default="0.95", help="Confidence of the margins (default: 0.95).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def expected(file: Path, people: int, confidence: str, as_json: bool) -> None:
    """Show the expected margins of error for a number of respondents, all at one level: half-widths of shares (or of means).

    \b
    cloister survey make --example --out questions.toml
    cloister survey make questions.toml --out exams.json
    cloister survey expected exams.json 1000
    """
    asked, _ = _with_reports(file)
    told = asked.expected(people, confidence=confidence)
    if as_json:
        click.echo(json.dumps([each.to_dict() for each in told], ensure_ascii=False))
        return
    for question in asked.questions:
        mean = question.kind == "number"
        click.echo(question.text)
        for each in told:
            if each.question != question.name:
                continue
            margin = f"± {each.rare:.3g} (mean)" if mean else f"± {100 * each.rare:.1f} % of people"
            found = "" if each.least is None else f"; a word is found if {100 * each.least:.1f} % give it"
            click.echo(f"  {each.level:<16} {margin}{found}")


_EXAMPLE = """
id = "exams-2026"
title = "Exams"
cap = 8                                    # the most that all answers of one person may add up to, in ε

[levels]                                   # plain names; a respondent chooses, for each question, before seeing any
careful = "0.5"
open = 2

[[questions]]
kind = "yes-no"
name = "copied"
text = "Have you ever copied in an exam?"

[[questions]]
kind = "several"
name = "why"
text = "What makes it hard not to?"
options = ["time", "grade", "others do it"]
most = 2

[[questions]]
kind = "number"
name = "hours"
text = "How many hours a week do you learn?"
low = 0
high = 60
want = "mean"
"""


def _composed(path: Path) -> Survey:
    from cloister.local.survey import Survey
    from cloister.local.survey.questions import question_of
    from cloister.parsers import toml_in

    try:
        said = toml_in(path)
    except ValueError:
        raise InvalidParameter(
            f"{path.name} is invalid", why="it is not TOML", instead="cloister survey make --example"
        ) from None
    strange = sorted(set(said) - {"id", "title", "cap", "revision", "levels", "questions"})
    missing = [name for name in ("id", "title", "levels", "questions") if name not in said]
    if strange or missing or not isinstance(said["questions"], list):
        why = f"{strange[0]} is unknown" if strange else f"{missing[0]} is missing" if missing else "questions are not a list"
        raise InvalidParameter(f"{path.name} is invalid", why=why, instead="cloister survey make --example")
    return Survey(
        said["id"],
        said["title"],
        [question_of(each) for each in said["questions"]],
        levels=said["levels"],
        cap=said.get("cap", 8),
        revision=said.get("revision", 1),
    )


def _with_reports(path: Path) -> tuple[Survey, list[Any]]:
    """The survey of a file, and the reports that stand beside it where a hub wrote it."""
    from cloister.local.survey import Survey

    body = path.read_bytes()
    said = _json(body)
    if isinstance(said, dict) and set(said) == {"survey", "reports"} and isinstance(said["reports"], list):
        return Survey.from_json(json.dumps(said["survey"])), said["reports"]
    return Survey.from_json(body), []


def _levels(asked: Survey, said: tuple[str, ...]) -> str | dict[str, str]:
    """One name for all questions, then those of single ones. (A level's name may have an = in it, a question's not.)"""
    offered = [level.name for level in asked.levels]
    names = [question.name for question in asked.questions]
    whole = [each for each in said if each in offered or each.partition("=")[0] not in names]
    alone = dict(each.split("=", 1) for each in said if each not in whole)
    missing = [name for name in names if not whole and name not in alone]
    instead, why = f"--level {offered[0]} --level {names[0]}={offered[-1]}", ""
    if strange := [each.partition("=") for each in whole if each not in offered and "=" in each]:
        name, _, level = strange[0]
        why, instead = f"the survey does not ask {name!r}", f"--level {nearest(name, names, names[0])}={level}"
    elif len(whole) > 1 or missing:
        why = "two are for all questions" if whole else f'"{missing[0]}" has none; it takes one also where it is left unanswered'
    if why:
        raise InvalidParameter("--level is invalid", why=why, instead=instead)
    return {name: alone.get(name, *whole) for name in names} if alone else whole[0]


def _answers(asked: Survey, given: tuple[str, ...], path: Path | None) -> dict[str, Any]:
    """From a JSON file, and from the line, where texts become what the question wants."""
    said: dict[str, Any] = {}
    if path is not None:
        said = _json(path.read_bytes())
        if not isinstance(said, dict):
            raise InvalidParameter(f"{path.name} is invalid", why="it is not JSON, or no object", instead='{"copied": "yes"}')
    kinds = {question.name: question.kind for question in asked.questions}
    for each in given:
        name, equals, text = each.partition("=")
        if not equals:
            raise InvalidParameter("--answer is invalid", why="it has no =", instead="--answer copied=yes")
        said[name] = _typed(kinds.get(name, ""), text)
    return said


def _typed(kind: str, text: str) -> Any:
    if kind == "several":
        return [part for part in text.split("|") if part]
    with suppress(ValueError):
        return float(text) if kind == "number" else text
    return text


def _json(body: bytes) -> Any:
    """What it says; None where it is not JSON."""
    with suppress(ValueError, RecursionError):
        return json.loads(body)


def _sent(paths: tuple[Path, ...]) -> Iterator[Any]:
    """The reports of files: one a line, or the file is one of several lines, or a list of them."""
    for path in paths:
        with path.open("rb") as file:  # or a pipe, which is read once
            first = file.readline()
            body = b"" if isinstance(_json(first), dict) else first + file.read()
            said, lines = _json(body), body.splitlines() if body else chain([first], file)
            whole = [said] if isinstance(said, dict) else said
            yield from whole if isinstance(whole, list) else (line for line in lines if line.strip())
