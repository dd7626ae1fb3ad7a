"""`cloister survey`, as a person or a program would use it."""

from __future__ import annotations

import fcntl
import json
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner

from cloister.cli.main import cli
from cloister.cli.written import write_whole
from cloister.errors import CloisterError
from cloister.local.survey import Survey, respond
from cloister.local.survey.tokens import hash_of
from cloister.noise import Random


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The example's questions, composed."""
    cloister("make", "--example", "--out", "questions.toml", at=tmp_path)
    cloister("make", "questions.toml", "--out", "exams.json", at=tmp_path)
    return tmp_path


def cloister(*arguments: str, at: Path, refused: bool = False) -> str:
    """What the command prints, or the words of its refusal; in this process, since a start costs a second."""
    with chdir(at):
        said = CliRunner().invoke(cli, ["survey", *arguments])
    if refused:
        assert isinstance(said.exception, CloisterError), said.output
        return str(said.exception)
    assert said.exit_code == 0, f"{said.output}\n{said.exception!r}"
    return said.output


def test_make_says_what_is_promised(folder: Path) -> None:
    said = cloister("make", "questions.toml", "--out", "exams.json", at=folder)
    assert "level careful: ε = 0.5 an answer, 1.5 in all" in said
    assert "Even if you answer “yes”, whoever sees your report can be at most 1.65 times surer" in said
    survey = Survey.from_json((folder / "exams.json").read_text())
    assert [question.name for question in survey.questions] == ["copied", "why", "hours"]
    assert json.loads(cloister("make", "questions.toml", "--json", at=folder))["version"] == survey.version
    assert "[[questions]]" in cloister("make", "--example", at=folder)


def test_a_round_from_invitations_to_results(folder: Path) -> None:
    words = ["--tokens", "2", "--tokens-out", "tokens.txt", "--invited-out", "invited.txt"]
    cloister("make", "questions.toml", "--out", "exams.json", *words, at=folder)
    one, two = (folder / "tokens.txt").read_text().split()
    (folder / "answers.json").write_text(json.dumps({"hours": 12, "why": []}))
    cloister("respond", "exams.json", "--level", "open", "--answer", "copied=yes", "--answer", "why=time|grade", "--answer",
             "hours=12.5", "--token", one, "--out", "one.json", at=folder)  # fmt: skip
    other = cloister("respond", "exams.json", "--level", "careful", "--answers", "answers.json", "--token", two, at=folder)
    stranger = cloister("respond", "exams.json", "--level", "careful", at=folder)
    (folder / "more.jsonl").write_text(other + other + stranger + "garbage\n\n")
    collect = ["collect", "exams.json", "--tally", "tally.json", "--invited", "invited.txt", "--json"]
    first = json.loads(cloister(*collect, "one.json", at=folder))
    assert (first["n"], first["questions"][0]["people"]) == (1, {"careful": 0, "open": 1})
    second = json.loads(cloister(*collect, "more.jsonl", "one.json", at=folder))
    assert second["n"] == 2
    assert second["refused"] == {"token used before": 2, "token not issued": 1, "not JSON": 1}
    assert set(second["questions"][0]["combined"]["answers"][0]) >= {"answer", "share", "share_margin"}
    assert "Have you ever copied" in cloister("collect", "exams.json", "one.json", at=folder)
    again = cloister("make", "questions.toml", "--out", "exams.json", *words, at=folder, refused=True)
    assert "may have been sent" in again
    assert (folder / "tokens.txt").read_text().split() == [one, two]
    for hashes in ((hash_of(one), hash_of(two)), (hash_of(two), hash_of(one))):  # as an editor saves it
        (folder / "marked.txt").write_text("\n".join(hashes), encoding="utf-8-sig")
        assert json.loads(cloister("collect", "exams.json", "one.json", "--invited", "marked.txt", "--json", at=folder))["n"] == 1
    for text in ((folder / "tokens.txt").read_bytes(), "é".encode("latin-1"), "\n".join(first).encode("utf-16")):
        (folder / "other.txt").write_bytes(text)
        assert "not a list of the hashes" in cloister(*collect[:2], "--invited", "other.txt", at=folder, refused=True)


@pytest.mark.parametrize(("stopped", "file"), [("write_text", "invited"), ("replace", "tokens")])
def test_tokens_whose_making_was_interrupted_are_made_by_the_same_command(
    folder: Path, stopped: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, whole = ["--tokens", "2", "--tokens-out", "tokens.txt", "--invited-out", "invited.txt"], getattr(Path, stopped)

    def interrupted(path: Path, *given: object, **how: object) -> object:
        if file in path.name:
            raise KeyboardInterrupt
        return whole(path, *given, **how)

    with monkeypatch.context() as patched, chdir(folder):
        patched.setattr(Path, stopped, interrupted)
        CliRunner().invoke(cli, ["survey", "make", "questions.toml", *words])
    cloister("make", "questions.toml", *words, at=folder)
    sent, kept = ((folder / name).read_text().split() for name in ("tokens.txt", "invited.txt"))
    assert (len(sent), {hash_of(each) for each in sent}) == (2, {*kept})
    assert "may have been sent" in cloister("make", "questions.toml", *words, at=folder, refused=True)
    (folder / "tokens.txt").unlink()  # sent, and forgotten
    assert "may have been sent" in cloister("make", "questions.toml", *words, at=folder, refused=True)


def test_a_second_process_with_a_tally_waits_until_it_is_written_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # or the reports that it counts meanwhile are lost with its text
    report, waited = cloister("respond", "exams.json", "--level", "careful", "--answer", "copied=no", at=folder), []
    (folder / "one.jsonl").write_text(report)

    def written(path: Path, text: str) -> None:
        with (folder / ".tally.json.lock").open("a") as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        waited.append(path.name)
        write_whole(path, text)

    monkeypatch.setattr("cloister.cli.survey.write_whole", written)
    for _ in range(2):
        cloister("collect", "exams.json", "one.jsonl", "--tally", "tally.json", at=folder)
    assert waited == ["tally.json"] * 2


@pytest.mark.parametrize("stopped", ["write_text", "replace"])
def test_an_interruption_leaves_the_tally_as_it_was(folder: Path, stopped: str, monkeypatch: pytest.MonkeyPatch) -> None:
    report = cloister("respond", "exams.json", "--level", "careful", "--answer", "copied=no", at=folder)
    (folder / "one.jsonl").write_text(report)
    collect = ["collect", "exams.json", "one.jsonl", "--tally", "tally.json"]
    cloister(*collect, at=folder)
    before = (folder / "tally.json").read_bytes()

    def interrupted(path: Path, *_: object, **__: object) -> None:
        path.write_bytes(b"{")  # half of it
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, stopped, interrupted)
    with chdir(folder):
        CliRunner().invoke(cli, ["survey", *collect])
    monkeypatch.undo()
    assert (folder / "tally.json").read_bytes() == before
    cloister(*collect, at=folder)


def test_a_confidence_is_a_fraction_in_both_forms(folder: Path) -> None:
    (folder / "none.jsonl").write_text("")
    collect = ["collect", "exams.json", "none.jsonl", "--confidence", "19/20"]
    cloister(*collect, at=folder)
    assert json.loads(cloister(*collect, "--json", at=folder))["confidence"] == 0.95


def test_a_level_for_each_question(folder: Path) -> None:
    levels = ["--level", "careful", "--level", "hours=open"]
    said = json.loads(cloister("respond", "exams.json", *levels, "--answer", "hours=12", at=folder))
    assert said["levels"] == {"copied": "careful", "why": "careful", "hours": "open"}
    each = ["--level", "copied=open", "--level", "why=careful", "--level", "hours=open"]
    told = cloister("respond", "exams.json", *each, "--out", "report.json", at=folder)
    assert "level open, careful, ε = 4.5 in all" in told
    collected = json.loads(cloister("collect", "exams.json", "report.json", "--json", at=folder))
    assert [question["people"] for question in collected["questions"]] == [
        {"careful": 0, "open": 1},
        {"careful": 1, "open": 0},
        {"careful": 0, "open": 1},
    ]


def test_a_level_that_is_too_much_for_all_is_still_one_for_some(folder: Path) -> None:
    capped = (folder / "questions.toml").read_text().replace("cap = 8", "cap = 4")
    (folder / "capped.toml").write_text(capped)
    said = cloister("make", "capped.toml", "--out", "capped.json", at=folder)
    assert "level open: ε = 2 an answer, too much for all questions: the cap is 4" in said
    assert "nobody give more than ε = 4" in cloister("respond", "capped.json", "--level", "open", at=folder, refused=True)
    levels = ["--level", "careful", "--level", "copied=open"]
    assert json.loads(cloister("respond", "capped.json", *levels, at=folder))["levels"]["copied"] == "open"


def test_many_reports_find_the_truth(folder: Path) -> None:
    """Everybody says yes at ε = 2: the share lies within 6 standard deviations, but for one run in 10⁸."""
    survey = Survey.from_json((folder / "exams.json").read_text())
    random = Random.deterministic(1)
    lines = [respond(survey, {"copied": True, "hours": 20}, "open", random=random).to_json() for _ in range(1500)]
    (folder / "reports.jsonl").write_text("\n".join(lines))
    said = json.loads(cloister("collect", "exams.json", "reports.jsonl", "--json", at=folder))["questions"]
    yes = said[0]["combined"]["answers"][1]
    assert yes["answer"] == "yes"
    assert abs(yes["share"] - 1) < 3.1 * yes["share_margin"]
    mean = said[2]["combined"]["mean"]
    assert abs(mean["value"] - 20) < 3.1 * mean["margin"]


def test_the_file_of_a_hub_holds_survey_and_reports(folder: Path) -> None:
    survey = json.loads((folder / "exams.json").read_text())
    reports = [json.loads(cloister("respond", "exams.json", "--level", "open", at=folder)) for _ in range(3)]
    (folder / "hub.json").write_text(json.dumps({"survey": survey, "reports": [*reports, reports[0], "garbage"]}))
    (folder / "lines.jsonl").write_text("\n".join(json.dumps(each) for each in [*reports, reports[0], "garbage"]))
    told = json.loads(cloister("collect", "hub.json", "--json", at=folder))
    apart = json.loads(cloister("collect", "exams.json", "lines.jsonl", "--json", at=folder))
    assert (told["n"], told["questions"]) == (3, apart["questions"])
    assert sum(told["refused"].values()) == 2
    (folder / "hub.json").write_text(json.dumps({"survey": {**survey, "title": "Other"}, "reports": []}))
    assert "changed" in cloister("collect", "hub.json", at=folder, refused=True)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_file_is_one_report_or_a_list_of_them_however_it_is_laid_out(folder: Path, indent: int | None, encoding: str) -> None:
    """A respondent's page shows the report on several lines, to be copied."""
    reports = [json.loads(cloister("respond", "exams.json", "--level", "open", at=folder)) for _ in range(3)]
    (folder / "one.json").write_text("\n" + json.dumps(reports[0], indent=indent), encoding="utf-8")
    (folder / "list.json").write_text(json.dumps([*reports[1:], "garbage"], indent=indent), encoding=encoding)
    (folder / "garbage.jsonl").write_text("garbage\n\n" + json.dumps(reports[0]) + "\r\n[]\n{\n")
    (folder / "empty.jsonl").write_text("")
    files = ("one.json", "list.json", "garbage.jsonl", "empty.jsonl")
    told = json.loads(cloister("collect", "exams.json", *files, "--json", at=folder))
    assert (told["n"], sum(told["refused"].values())) == (3, 5)


def test_expected(folder: Path) -> None:
    text = cloister("expected", "exams.json", "1000", at=folder)
    assert "careful" in text
    assert "(mean)" in text
    told = json.loads(cloister("expected", "exams.json", "4000", "--json", at=folder))
    assert len(told) == 6
    at_thousand = json.loads(cloister("expected", "exams.json", "1000", "--json", at=folder))
    assert 0.45 < told[0]["rare"] / at_thousand[0]["rare"] < 0.5  # by the root of the people, and by what fewer add


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["make"], "file of questions is missing"),
        (["make", "--example", "--out", "questions.toml"], "perhaps with questions of yours"),
        (["make", "questions.toml", "--tokens", "3"], "belong together"),
        (["make", "exams.json"], "not TOML"),
        (["make", "less.toml"], "levels is missing"),
        (["make", "more.toml"], "colour is unknown"),
        (["respond", "exams.json", "--level", "reckless"], "does not offer"),
        (["respond", "exams.json", "--level", "whi=open"], "not ask 'whi'.\n  Instead: --level why=open"),
        (["respond", "exams.json", "--level", "open", "--level", "hors=careful"], "--level hours=careful"),
        (["respond", "exams.json", "--level", "open", "--level", "careful"], "two are for all"),
        (["respond", "exams.json", "--level", "copied=open"], '"why" has none'),
        (["respond", "exams.json", "--level", "copied=open"], "Instead: --level careful --level copied=open"),
        (["respond", "exams.json", "--level", "open", "--answer", "copied"], "no ="),
        (["respond", "exams.json", "--level", "open", "--answer", "copied=perhaps"], "not among the answers"),
        (["respond", "exams.json", "--level", "open", "--answer", "hours=many"], "not among the answers"),
        (["respond", "exams.json", "--level", "open", "--answer", "hours=nan"], "NaN"),
        (["respond", "exams.json", "--level", "open", "--answer", "where=here"], "does not ask"),
        (["respond", "exams.json", "--level", "open", "--answers", "questions.toml"], "not JSON"),
        (["respond", "questions.toml", "--level", "open"], "not JSON"),
        (["respond", "exams.json", "--level", "open", "--answer", "copied=No"], "one of no, yes, or None"),
        (["collect", "exams.json", "--tally", "questions.toml"], "not what to_json wrote"),
        (["collect", "exams.json", "--confidence", "2"], "confidence"),
        (["collect", "exams.json", "--confidence", "95%", "--json"], "not a finite number"),
        (["collect", "exams.json", "--confidence", "2", "--tally", "no.json"], "confidence"),
    ],
)
def test_refusals(folder: Path, arguments: list[str], why: str) -> None:
    (folder / "less.toml").write_text('id = "a"\ntitle = "A"\n')
    (folder / "more.toml").write_text('colour = "red"\n')
    assert why in cloister(*arguments, at=folder, refused=True)
    assert not (folder / "no.json").exists()
