"""What respondents send: kept apart from their tokens, believed only when it could be a report, counted once."""

from __future__ import annotations

import csv
import io
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import select, text, update
from sqlalchemy.exc import OperationalError

from cloister.hub.records.accounts import Person
from cloister.hub.records.surveys import HeldSurvey, SurveyReport, SurveyTicket
from cloister.hub.records.trail import AuditLine
from cloister.hub.services.surveys.composing import composed
from cloister.hub.services.surveys.counting import receive_all
from cloister.hub.web.render import LANGUAGE_COOKIE
from cloister.local.survey import Choice, Results, Survey, Tally, hash_of, respond
from cloister.local.survey.tokens import new_token
from cloister.noise import Random
from cloister.printable import is_printable, kept
from tests.hub.surveys.conftest import COPIED, ODD, Field, stored


def test_answers_come_in_and_are_estimated(field: Field) -> None:
    number = field.opened()
    for seed in range(60):
        said = {"copied": seed % 4 == 0, "why": "time" if seed % 4 == 0 else None}
        answer = field.send(number, field.report(number, said, "open" if seed % 2 else "careful", seed=seed))
        assert (answer.status_code, answer.json()) == (201, {"received": True})
    told = field.results(number)
    copied, why = told["questions"]
    assert (told["n"], copied["people"], why["people"]) == (60, {"careful": 30, "open": 30}, {"careful": 30, "open": 30})
    assert [each["answer"] for each in copied["combined"]["answers"]] == ["no", "yes", "no answer"]
    yes = copied["combined"]["answers"][1]
    assert abs(yes["count"] - 15) < 3 * yes["margin"]
    assert set(why["levels"]) == {"careful", "open"}
    page = field.ana.client.get(f"/surveys/{number}")
    assert page.status_code == 200
    assert "data:image/svg+xml" in page.text


def test_three_answers_are_no_result_on_the_page(field: Field) -> None:
    number = field.opened(questions=[COPIED])
    for seed in range(3):
        assert field.send(number, field.report(number, {"copied": True}, "careful", seed=seed)).status_code == 201
    page = field.ana.client.get(f"/surveys/{number}").text
    assert "Too few answers yet: each share may still lie anywhere. About " in page
    assert "Estimated share" not in page
    assert "data:image/svg+xml" not in page
    assert len(field.results(number)["questions"][0]["combined"]["answers"]) == 3, "the file has what there is, with its margins"


def test_each_question_is_counted_at_the_level_that_was_chosen_for_it(field: Field) -> None:
    number = field.opened()
    for seed in range(100):  # of 40, intervals of few reports do not tell the levels apart
        said = {"copied": seed % 4 == 0, "why": "time"}
        levels = {"copied": "careful", "why": "open"} if seed % 4 else {"copied": "open", "why": "open"}
        assert field.send(number, field.report(number, said, levels, seed=seed)).status_code == 201
    told = field.results(number)
    assert [each["people"] for each in told["questions"]] == [{"careful": 75, "open": 25}, {"careful": 0, "open": 100}]
    assert set(told["questions"][0]["levels"]) == {"careful", "open"}
    assert set(told["questions"][1]["levels"]) == {"open"}
    assert told["questions"][0]["alike"] is not None
    page = field.ana.client.get(f"/surveys/{number}").text
    assert "ε = 1</a><br>n = 75" in page
    assert "ε = 3<br>n = 100" in page
    assert "People at different levels" in page
    lines = field.ana.client.get(f"/surveys/{number}/results.csv").text.splitlines()
    assert {tuple(line.split(",")[:2]) for line in lines[1:]} == {
        ("copied", ""), ("copied", "careful"), ("copied", "open"), ("why", ""), ("why", "open")}  # fmt: skip


def test_levels_beyond_the_cap_are_garbage(field: Field) -> None:
    """The cap allows 4; both questions at the open level come to 6. The library refuses to make such a report; who makes it all
    the same (here: from the same questions under a larger cap) is not believed."""
    number = field.opened(cap="4")
    survey = field.survey(number)
    assert field.send(number, field.report(number, {}, {"copied": "open", "why": "careful"}, seed=1)).status_code == 201
    bold = Survey(survey.id, survey.title, survey.questions, levels={each.name: each.epsilon for each in survey.levels}, cap=6)
    sent = respond(bold, {}, "open", random=Random.deterministic(2)).to_dict() | {"version": survey.version}
    refused = field.send(number, json.dumps(sent))
    assert refused.status_code in (400, 422)
    assert "more than this survey allows" in refused.json()["detail"]
    told = field.results(number)
    assert (told["n"], told["refused"]) == (1, {"over the cap": 1})


def test_the_same_report_counts_once(field: Field) -> None:
    number = field.opened()
    report = field.report(number, {"copied": True}, seed=1)
    assert [field.send(number, report).status_code for _ in range(3)] == [201, 201, 201]
    assert field.results(number)["n"] == 1


def test_equal_reports_of_two_people_with_one_token_are_not_merged_in_silence(field: Field) -> None:
    """Of 40 people who were all given one token in an open survey, many draw the same values. Each of them is told whether their
    report was here before, and counts under a token of their own."""
    number = field.opened(questions=[COPIED])
    told = []
    for seed in range(40):
        report = json.loads(field.report(number, {"copied": seed % 2 == 0}, seed=seed, token="ab" * 16))
        told.append(field.send(number, json.dumps(report)).json())
        if told[-1].get("again"):
            fresh = field.send(number, json.dumps({**report, "token": new_token()}))
            assert (fresh.status_code, fresh.json()) == (201, {"received": True})
    again = sum(each.get("again", False) for each in told)
    assert again > 30
    assert all(each["received"] for each in told)
    assert field.results(number)["n"] == 40


def test_a_report_is_kept_without_its_token_and_without_a_time(field: Field) -> None:
    number = field.opened(invited=True)
    (token,) = field.ask("POST", f"/{number}/invitations", {"count": 1}).json()["tokens"]
    sent = json.loads(field.report(number, {"copied": True}, seed=2, token=token))
    assert field.send(number, json.dumps(sent)).status_code == 201
    with field.hub.database.reading() as db:
        (row,) = db.scalars(select(SurveyReport)).all()
        (ticket,) = db.scalars(select(SurveyTicket)).all()
        kept = json.loads(row.body)
    assert kept["values"] == sent["values"]
    assert kept["token"] != token
    assert token not in row.body
    assert (ticket.digest, ticket.used) == (hash_of(token), True)
    assert hash_of(kept["token"]) != ticket.digest
    assert {column.name for column in SurveyReport.__table__.columns} == {"id", "survey", "body", "counted"}
    assert {column.name for column in SurveyTicket.__table__.columns} == {"digest", "survey", "used"}


def test_neither_reports_nor_tickets_stand_in_the_order_in_which_they_came(field: Field) -> None:
    number = field.opened()
    for seed in range(3):
        assert field.send(number, field.report(number, {}, seed=seed)).status_code == 201
    with field.hub.database.reading() as db:
        assert db.bind is not None
        if db.bind.dialect.name != "sqlite":
            pytest.skip("only SQLite numbers rows as they come")
        for table in ("survey_report", "survey_ticket"):
            with pytest.raises(OperationalError, match="no such column: rowid"):
                db.execute(text(f"SELECT rowid FROM {table}"))


def test_results_are_worked_out_outside_of_transactions_and_once(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    number = field.opened()
    for seed in range(3):
        assert field.send(number, field.report(number, {}, seed=seed)).status_code == 201
    worked: list[int] = []

    class Slow(Results):
        """Somebody else writes while these are worked out."""

        def to_dict(self, *args: Any, **more: Any) -> dict[str, Any]:
            worked.append(self.tally.n)
            assert field.send(number, field.report(number, {}, seed=99)).status_code == 201
            return super().to_dict(*args, **more)

    monkeypatch.setattr("cloister.hub.services.surveys.results.Results", Slow)
    assert field.results(number)["n"] == 3
    with ThreadPoolExecutor(4) as threads:
        assert {told["n"] for told in threads.map(lambda _: field.results(number), range(4))} == {4}
    assert field.send(number, json.dumps({"survey": "garbage"})).status_code in (400, 422)
    assert field.results(number)["refused"] == {"not a report": 1}
    assert worked == [3, 4]
    for path in (f"/surveys/{number}", f"/surveys/{number}/fresh"):
        assert field.ana.client.get(path).status_code == 200


def test_an_invitation_is_good_for_one_report(field: Field) -> None:
    number = field.opened(invited=True)
    first, second = field.ask("POST", f"/{number}/invitations", {"count": 2}).json()["tokens"]
    assert field.send(number, field.report(number, {}, seed=1, token=first)).status_code == 201
    again = field.send(number, field.report(number, {}, seed=2, token=first))
    assert again.status_code == 403
    assert "invitation was used already" in again.json()["detail"]
    assert field.send(number, field.report(number, {}, seed=3)).status_code == 403
    other = field.opened(invited=True)
    assert field.send(other, field.report(other, {}, seed=4, token=second)).status_code == 403
    assert field.send(number, field.report(number, {}, seed=5, token=second)).status_code == 201
    assert field.results(number)["n"] == 2


@pytest.mark.parametrize("invited", [True, False])
def test_many_reports_at_once_under_one_token(field: Field, invited: bool) -> None:
    """An invitation is good for one. In an open survey anybody may have chosen the token, and whoever did silences nobody."""
    number = field.opened(invited=invited)
    token = field.ask("POST", f"/{number}/invitations", {"count": 1}).json()["tokens"][0] if invited else new_token()
    reports = [field.report(number, {"copied": True}, seed=seed, token=token) for seed in range(12)]
    with ThreadPoolExecutor(6) as threads:
        statuses = list(threads.map(lambda report: field.send(number, report).status_code, reports))
    assert statuses.count(201) == (1 if invited else 12)
    assert field.results(number)["n"] == (1 if invited else len(set(reports)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda said: said["values"].update(copied=7), "impossible values"),
        (lambda said: said["values"].update(copied="yes"), "impossible values"),
        (lambda said: said["values"].pop("why"), "other questions"),
        (lambda said: said.update(version="1-000000000000"), "of another version"),
        (lambda said: said.update(survey="other"), "of another survey"),
        (lambda said: said["levels"].update(copied="all"), "of an unknown level"),
        (lambda said: said["levels"].pop("why"), "of an unknown level"),
        (lambda said: said.update(format=1), "of another format"),
        (lambda said: said.update(token="short"), "without a token"),
        (lambda said: said.update(name="Ana"), "not a report"),
    ],
)
def test_garbage_is_counted_and_not_believed(field: Field, change: object, reason: str) -> None:
    number = field.opened()
    said = json.loads(field.report(number, {"copied": True}, seed=3))
    change(said)  # type: ignore[operator]
    answer = field.send(number, json.dumps(said))
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"].startswith("application/problem+json")
    told = field.results(number)
    assert (told["n"], told["refused"]) == (0, {reason: 1})


@pytest.mark.parametrize("sent", [b"", b"{", b"[]", b"\xff\xfe", b"null", b"[" * 100_000, b'{"values": NaN}'], ids=range(7))
def test_what_is_no_report_stops_nothing(field: Field, sent: bytes) -> None:
    number = field.opened()
    assert field.send(number, sent).status_code in (400, 422)
    assert field.send(number, field.report(number, {}, seed=1)).status_code == 201
    assert field.results(number)["n"] == 1


def test_a_report_that_is_too_long_is_not_read_to_its_end(field: Field) -> None:
    number = field.opened()
    assert field.send(number, b"x" * (1 << 21)).status_code in (400, 413, 422)


def test_a_draft_and_a_closed_survey_take_nothing(field: Field) -> None:
    number = field.draft()
    assert field.house.client().get(f"/s/{number}").status_code == 404
    assert field.house.client().get(f"/api/v1/surveys/{number}/form").status_code == 404
    assert field.send(number, b"{}").status_code == 404
    field.ask("POST", f"/{number}/open")
    report = field.report(number, {}, seed=1)
    assert field.ask("POST", f"/{number}/close").json()["state"] == "closed"
    for late in (report, "{}"):
        refused = field.send(number, late)
        assert refused.status_code == 409
        assert "closed" in refused.json()["detail"]
    assert field.results(number)["refused"] == {}
    assert "closed" in field.house.client().get(f"/s/{number}").text


def test_a_closed_survey_awaits_no_results(field: Field) -> None:
    number = field.opened()
    assert "Results appear here as they come in" in field.ana.client.get(f"/surveys/{number}").text
    field.ask("POST", f"/{number}/close")
    page = field.ana.client.get(f"/surveys/{number}").text
    assert "No one answered." in page
    assert "as they come in" not in page


def test_a_survey_takes_nothing_while_its_author_is_blocked(field: Field) -> None:
    """Nobody could read what came in, or close it."""
    number, open_page = field.opened(), field.house.client()
    for blocked, status in ((True, 409), (False, 201)):
        with field.house.hub.database.begin() as db:
            db.execute(update(Person).values(blocked=blocked))
        assert ("This survey is closed" in open_page.get(f"/s/{number}").text) is blocked
        assert field.send(number, field.report(number, {}, seed=1)).status_code == status
    assert field.results(number)["n"] == 1


def test_who_sends_a_counted_report_again_is_not_told_that_it_came_too_late(field: Field) -> None:
    """The hub's first answer was lost, and the survey closed before the second try."""
    number, invited = field.opened(), field.opened(invited=True)
    (token,) = field.ask("POST", f"/{invited}/invitations", {"count": 1}).json()["tokens"]
    reports = {number: field.report(number, {}, seed=1), invited: field.report(invited, {}, seed=2, token=token)}
    for each, report in reports.items():
        assert field.send(each, report).status_code == 201
        field.ask("POST", f"/{each}/close")
    assert field.send(number, reports[number]).json() == {"received": True, "again": True}
    used = field.send(invited, reports[invited])
    assert (used.status_code, "invitation was used already" in used.json()["detail"]) == (403, True)
    assert [field.results(each)["n"] for each in reports] == [1, 1]


def test_the_trail_counts_surveys_and_holds_nothing_of_respondents(field: Field) -> None:
    number = field.opened(invited=True)
    tokens = field.ask("POST", f"/{number}/invitations", {"count": 3}).json()["tokens"]
    for seed, token in enumerate(tokens):
        field.send(number, field.report(number, {}, seed=seed, token=token))
    field.ask("POST", f"/{number}/close")
    field.ask("GET", f"/{number}/reports")
    with field.hub.database.reading() as db:
        lines = [line for line in db.scalars(select(AuditLine)) if line.kind == "survey"]
        told = [(line.action, line.details.get("count"), line.details.get("reports")) for line in lines]
    assert told == [
        ("survey.compose", None, None),
        ("survey.open", None, None),
        ("survey.invite", 3, None),
        ("survey.close", None, 3),
        ("survey.download", None, None),
    ]
    assert all(line.person == field.ana.id for line in lines)


def test_the_reports_leave_in_no_order(field: Field) -> None:
    number = field.opened()
    for seed in range(30):
        field.send(number, field.report(number, {"copied": seed < 15}, "open", seed=seed))
    file = field.ask("GET", f"/{number}/reports").json()
    assert len(file["reports"]) == 30
    with field.hub.database.reading() as db:
        ids = db.scalars(select(SurveyReport.id).order_by(SurveyReport.id)).all()
        by_id = {row.id: json.loads(row.body) for row in db.scalars(select(SurveyReport))}
    assert file["reports"] == [by_id[each] for each in ids]


def test_the_table_of_a_number_has_its_mean(field: Field) -> None:
    """Of all, and of each level that somebody chose; what a mean has no share for stays empty."""
    hours = {"kind": "number", "name": "hours", "text": "Hours?", "low": "0", "high": "40"}
    scale = {"kind": "scale", "name": "often", "text": "How often?", "steps": ["never", "often"], "no_answer": False}
    number = field.opened(questions=[hours, scale, COPIED], cap="9")
    for seed in range(30):
        said = {"hours": 20, "often": "often"}
        assert field.send(number, field.report(number, said, "open", seed=seed)).status_code == 201
    told = {each["question"]: each for each in field.results(number)["questions"]}
    lines = list(csv.DictReader(io.StringIO(field.ana.client.get(f"/surveys/{number}/results.csv").text)))
    means = [line for line in lines if line["answer"] == "mean"]
    assert [(line["question"], line["level"]) for line in means] == [
        ("hours", ""), ("hours", "open"), ("often", ""), ("often", "open")]  # fmt: skip
    for line in means:
        mean = told[line["question"]]["combined"]["mean"]
        assert [float(line[name]) for name in ("mean", "mean_low", "mean_high")] == [
            mean[name] for name in ("value", "low", "high")
        ]
        assert {line[name] for name in ("count", "count_margin", "share", "share_margin", "consistent_share")} == {""}
    assert all(line["mean"] == "" and float(line["share"]) < 9 for line in lines if line["answer"] != "mean")


def test_a_part_of_a_long_list_is_called_one(field: Field) -> None:
    """Of 65 answers the page shows 40, and says so; the file has all."""
    home = {"kind": "place", "name": "home", "text": "Where?"} | {"south": 47.0, "west": 8.0, "north": 48.0, "east": 9.0}
    number = field.opened(
        questions=[{**home, "rows": 8, "columns": 8}, COPIED], levels=[{"name": "open", "epsilon": "8"}], cap="16"
    )
    survey, random = field.survey(number), Random.deterministic(1)
    receive_all(field.hub, number, [respond(survey, {"home": "1,2"}, "open", random=random).to_dict() for _ in range(60)])
    page = field.ana.client.get(f"/surveys/{number}").text
    assert page.count("These are the 40 answers with the largest estimates, of 65; ") == 1
    assert len(field.results(number)["questions"][0]["combined"]["answers"]) == 65
    results = Results(survey, Tally(survey))
    assert "the 20 commonest of 65 answers" in results.text()
    assert results.chart("home").to_dict()["title"]["subtitle"] == ["the 30 commonest of 65 answers"]


def test_a_formula_in_an_option_is_no_formula_in_the_file(field: Field) -> None:
    number = field.opened()
    field.send(number, field.report(number, {"why": "=1+1"}, seed=1))
    text = field.ana.client.get(f"/surveys/{number}/results.csv").text
    assert ",'=1+1," in text
    assert ",=1+1," not in text


HIDING = ["bell \u0007", "\ufffe", "line\u2028separator", "turned \u202e round"]


@pytest.mark.parametrize("option", HIDING)
def test_a_text_that_cannot_be_printed_is_not_asked(field: Field, option: str) -> None:
    asked = {"kind": "choice", "name": "which", "text": "Which?", "options": [option, "b"]}
    for changed in (asked, {**asked, "options": ["a", "b"], "text": option}):
        answer = field.ask("POST", "", {"title": "Exams", "purpose": "a study", "questions": [changed]})
        assert (answer.status_code, "printable" in answer.json()["detail"]) == (422, True)


def test_a_survey_that_an_older_version_took_can_still_be_read(field: Field) -> None:
    """Its options hold what no picture may; pages and files show them by their numbers, and answers are still taken."""
    number = field.opened()
    with kept(), field.hub.database.begin() as db:
        row = db.get_one(HeldSurvey, number)
        draft = {**row.draft, "questions": [Choice("which", "Which?", HIDING).to_dict()]}
        row.draft, row.body = draft, composed(row.title, draft, identity=row.id).to_json()
    for seed, option in enumerate(HIDING * 3):
        assert field.send(number, field.report(number, {"which": option}, seed=seed)).status_code == 201
    page = field.ana.client.get(f"/surveys/{number}")
    assert page.status_code == 200
    assert "turned ⟨U+202E⟩ round" in page.text
    told = field.ana.client.get(f"/surveys/{number}/results.csv")
    assert told.status_code == 200
    assert all(is_printable(line) for line in told.text.split("\r\n"))
    assert [each["answer"] for each in field.results(number)["questions"][0]["combined"]["answers"]] == [*HIDING, "no answer"]


@pytest.mark.parametrize("odd", ODD)
def test_a_stored_survey_with_any_texts_opens_by_the_api(field: Field, odd: str) -> None:
    """Its JSON says every text exactly, so that the library's own check of what it was given holds, and reports are taken."""
    number = stored(field, odd)
    answer = field.house.client().get(f"/api/v1/surveys/{number}/form")
    assert answer.status_code == 200
    assert is_printable(answer.text)
    survey = Survey.from_dict(answer.json()["survey"])
    assert (survey.title, survey.levels[0].name, survey.questions[0].text) == (odd, odd, odd)
    report = field.report(number, {"which": odd}, odd, seed=1)
    assert is_printable(report)
    assert field.send(number, report).status_code == 201
    assert field.results(number)["questions"][0]["text"] == odd
    for path in (f"/api/v1/surveys/{number}", f"/api/v1/surveys/{number}/reports", f"/surveys/{number}", f"/s/{number}"):
        page = field.ana.client.get(path)
        assert page.status_code == 200, path
        assert is_printable(page.text, lines=True)


def test_what_a_researcher_wrote_is_not_translated(field: Field) -> None:
    """The hub has words of its own for these; the page of results shows the options as they were written."""
    number = field.opened(questions=[{"kind": "choice", "name": "which", "text": "Which?", "options": ["Answer", "yes"]}])
    for seed in range(30):  # of fewer, no share is told
        field.send(number, field.report(number, {"which": "yes"}, "open", seed=seed))
    field.ana.client.cookies.set(LANGUAGE_COOKIE, "zh_CN")
    page = field.ana.client.get(f"/surveys/{number}").text
    assert '<html lang="zh-Hans"' in page
    assert '<th scope="row">Answer</th>' in page
    assert '<th scope="row">yes</th>' in page


def test_a_token_of_one_survey_is_none_of_another(field: Field) -> None:
    first, second = field.opened(), field.opened()
    for number in (first, second):
        assert field.send(number, field.report(number, {}, seed=1, token="ab" * 16)).status_code == 201
    assert [field.results(number)["n"] for number in (first, second)] == [1, 1]
