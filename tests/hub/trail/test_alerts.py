"""Alerts on made-up histories: each kind fires when behaviour changes, and ordinary work makes none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cloister.hub.hub import Caller
from cloister.hub.platform.trail import question_details, watch, write_alone
from cloister.hub.platform.trail.alerts import Notice, Sensitivity, _alike, alerts, notices
from cloister.hub.platform.trail.fingerprints import closeness, fingerprint
from cloister.hub.platform.trail.profiles import Histories, History, Question, read_history, spend_of
from cloister.hub.records.trail import AuditLine
from tests.hub.trail.conftest import START, add_person

COUNT = "SELECT COUNT(*) FROM people"


def asked(when: datetime, sql: str = COUNT, *columns: str) -> Question:
    return Question(when=when, columns=columns, data_sets=("people",), shape=fingerprint(sql))


def history_of(questions: list[Question]) -> tuple[History, list[tuple[Question, str]]]:
    """The history, and what was noticed on the way."""
    history, noticed = History(), []
    for question in questions:
        noticed += [(question, each.kind) for each in notices(history, question)]
        history.add(question)
    return history, noticed


def working_days(days: int, a_day: int = 8, *, columns: tuple[str, ...] = ("people.age", "people.sex")) -> list[Question]:
    """Somebody who asks the same few questions between nine and five, Monday to Friday."""
    sqls = (COUNT, f"{COUNT} WHERE sex = 'F'", "SELECT sex, AVG(age) FROM people GROUP BY sex", f"{COUNT} WHERE age >= 65")
    return [
        asked(START + timedelta(days=day, hours=number), sqls[number % 4], *columns)
        for day in range(days)
        if day % 7 < 5
        for number in range(a_day)
    ]


def kinds(history: History, question: Question) -> list[str]:
    return [each.kind for each in notices(history, question)]


class TestOrdinaryWork:
    def test_months_of_it(self):
        assert history_of(working_days(90))[1] == []

    def test_a_first_day_with_many_questions(self):
        day = [asked(START + timedelta(minutes=2 * number), f"SELECT AVG(c{number}) FROM people") for number in range(150)]
        assert history_of(day)[1] == []

    def test_drilling_down(self):
        """A total, then by sex, by town, by both: each differs by one ordinary condition."""
        sqls = [COUNT] + [f"{COUNT} WHERE town = '{town}'" for town in ("A", "B", "C")]
        sqls += [f"{COUNT} WHERE town = 'A' AND sex = '{sex}'" for sex in ("F", "M")] + [f"{COUNT} WHERE age >= 65"]
        questions = [asked(START + timedelta(minutes=number), sql) for number, sql in enumerate(sqls)]
        assert history_of(questions)[1] == []

    def test_age_bands(self):
        bands = [f"{COUNT} WHERE age BETWEEN {low} AND {low + 9}" for low in range(20, 90, 10)]
        assert history_of([asked(START + timedelta(minutes=number), sql) for number, sql in enumerate(bands)])[1] == []

    def test_a_busier_day(self):
        history, _ = history_of(working_days(40))
        busy = [asked(START + timedelta(days=42, minutes=3 * number)) for number in range(20)]
        for question in busy:
            assert kinds(history, question) == []
            history.add(question)

    def test_the_same_dashboard_every_morning(self):
        tiles = [f"{COUNT} WHERE town = '{town}'" for town in "ABCDEFGH"]
        questions = [
            asked(START + timedelta(days=day, minutes=number), sql) for day in range(60) for number, sql in enumerate(tiles)
        ]
        assert history_of(questions)[1] == []

    def test_new_columns_while_learning_a_data_set(self):
        questions = [asked(START + timedelta(days=day), COUNT, f"people.c{day // 5}") for day in range(60)]
        assert history_of(questions)[1] == []


class TestChanges:
    def test_volume(self):
        history, _ = history_of(working_days(40))
        found = []
        for number in range(60):
            question = asked(START + timedelta(days=42, minutes=number))
            found += kinds(history, question)
            history.add(question)
        assert set(found) == {"volume"}
        assert len(found) == 60 - 28

    def test_volume_of_a_newcomer(self):
        _, noticed = history_of([asked(START + timedelta(seconds=number)) for number in range(301)])
        assert [kind for _, kind in noticed] == ["volume"]

    @pytest.mark.parametrize(("hour", "expected"), [(3, ["hours"]), (17, []), (8, []), (7, ["hours"])])
    def test_hours(self, hour, expected):
        history, _ = history_of(working_days(40))
        assert sorted(history.hours) == list(range(9, 17))
        assert kinds(history, asked(datetime(2026, 4, 20, hour, 5, tzinfo=START.tzinfo))) == expected

    def test_columns(self):
        history, _ = history_of(working_days(40))
        later = START + timedelta(days=42)
        assert kinds(history, asked(later, COUNT, "people.age")) == []
        (notice,) = notices(history, asked(later, COUNT, "people.age", "people.diagnosis"))
        assert (notice.kind, notice.about["columns"]) == ("columns", ["people.diagnosis"])

    def test_columns_after_a_short_period_are_no_news(self):
        history, _ = history_of(working_days(20))
        assert kinds(history, asked(START + timedelta(days=21), COUNT, "people.diagnosis")) == []

    @pytest.mark.parametrize(
        ("earlier", "later"),
        [
            ("", " WHERE NOT (name = 'Ada')"),
            (" WHERE age < 40", " WHERE age < 41"),
            (" WHERE age < 40 AND sex = 'F'", " WHERE sex = 'F' AND 41 > age"),
            (" WHERE born < '1990-05-01'", " WHERE born < '1990-05-02'"),
            (" WHERE age BETWEEN 30 AND 40", " WHERE age BETWEEN 30 AND 41"),
            (" WHERE id IN (1, 2, 3, 4, 5)", " WHERE id IN (1, 2, 4, 5)"),
            (" WHERE town = 'A' AND sex = 'F' AND job = 'x'", " WHERE town = 'A' AND sex = 'F' AND job = 'x' AND age = 33"),
        ],
    )
    def test_differencing(self, earlier, later):
        first, second = (asked(START + timedelta(minutes=each), COUNT + where) for each, where in enumerate((earlier, later)))
        for one, other in ((first, second), (second, first)):
            history = History()
            history.add(one)
            assert kinds(history, other) == ["differencing"]
        history = History()
        history.add(asked(START - timedelta(days=31), COUNT + earlier))
        assert kinds(history, second) == []

    def test_variations(self):
        questions = [asked(START + timedelta(minutes=4 * number), f"{COUNT} WHERE id = {number}") for number in range(12)]
        _, noticed = history_of(questions)
        assert noticed == [(questions[-1], "variations")]
        slowly = [asked(START + timedelta(minutes=10 * number), f"{COUNT} WHERE id = {number}") for number in range(40)]
        assert history_of(slowly)[1] == []


class TestFingerprints:
    @pytest.mark.parametrize(
        ("one", "other", "expected"),
        [
            ("SELECT AVG(age) FROM people", "SELECT AVG(pay) FROM people", "far"),
            (f"{COUNT} WHERE a = 1 AND b = 2", "select count(*) n from PEOPLE where 2 = b and a = 1", "same"),
            (f"{COUNT} WHERE a <> 1", f"{COUNT} WHERE NOT a = 1", "same"),
            (f"{COUNT} WHERE age < 40", f"{COUNT} WHERE age < 50", "far"),
            (f"{COUNT} WHERE a = 1", f"{COUNT} WHERE a = 2", "far"),
            (f"{COUNT} WHERE share < 0.5", f"{COUNT} WHERE share < 0.6", "narrow"),
            (f"{COUNT} WHERE a = 1 AND b = 2 AND c = 3", f"{COUNT} WHERE d = 4", "far"),
        ],
    )
    def test_closeness(self, one, other, expected):
        assert closeness(fingerprint(one), fingerprint(other)) == expected

    @pytest.mark.parametrize("sql", ["", "SELEC", "DROP TABLE people", "SELECT 1 UNION SELECT 2", "(" * 5000, "x" * 30_000])
    def test_what_is_no_question_has_none(self, sql):
        assert fingerprint(sql) is None


class TestWatching:
    @pytest.fixture
    def ada(self, hub) -> Caller:
        return add_person(hub, "ada", "analyst")

    def ask(self, hub, person, clock, minutes, sql=COUNT) -> list[str]:
        clock.now += timedelta(minutes=minutes)
        details = question_details(sql=sql, data_sets=["people"], columns=["people.age"])
        return watch(hub, person, write_alone(hub, person, "question.ask", cost={"people": "ε = 0.1"}, **details))

    def test_a_pair_is_one_alert_a_day(self, hub, ada, clock):
        assert self.ask(hub, ada, clock, 1, f"{COUNT} WHERE age < 40") == []
        (made,) = self.ask(hub, ada, clock, 1, f"{COUNT} WHERE age < 41")
        assert self.ask(hub, ada, clock, 1, f"{COUNT} WHERE age < 42") == []
        with hub.database.reading() as db:
            (alert,) = alerts(db, seen=False)
            assert (alert.id, alert.person, alert.kind, alert.about["times"]) == (made, "ada", "differencing", 2)
            assert alert.about["conditions"] == ["age < 41"]
            assert db.query(AuditLine).filter_by(action="alert.raise").one().object == made
        assert len(self.ask(hub, ada, clock, 60 * 24, f"{COUNT} WHERE age < 43")) == 1

    def test_denied_questions_and_those_of_others_are_not_looked_at(self, hub, ada, clock):
        self.ask(hub, ada, clock, 1, f"{COUNT} WHERE age < 40")
        details = question_details(sql=f"{COUNT} WHERE age < 41", data_sets=["people"])
        assert watch(hub, ada, write_alone(hub, ada, "question.ask", outcome="denied", **details)) == []
        bob = add_person(hub, "bob", "analyst")
        assert self.ask(hub, bob, clock, 1, f"{COUNT} WHERE age < 41") == []

    def test_questions_of_another_process_count(self, hub, ada, clock):
        """Each process has its own histories; both read the one trail, and make one alert."""
        there = hub.parts.pop("trail histories", None) or Histories()
        self.ask(hub, ada, clock, 1, f"{COUNT} WHERE age < 40")
        here = hub.parts["trail histories"]
        hub.parts["trail histories"] = there
        assert len(self.ask(hub, ada, clock, 1, f"{COUNT} WHERE age < 41")) == 1
        hub.parts["trail histories"] = here
        assert self.ask(hub, ada, clock, 1, f"{COUNT} WHERE sex = 'F'") == []
        with hub.database.reading() as db:
            assert len(alerts(db)) == 1

    def test_watching_late_judges_each_question_once(self, hub, ada, clock):
        """Two questions at once: whoever looks first judges both."""
        details = [question_details(sql=f"{COUNT} WHERE age < {age}", data_sets=["people"]) for age in (40, 41)]
        self.ask(hub, ada, clock, 1)
        first, second = (write_alone(hub, ada, "question.ask", **each) for each in details)
        assert len(watch(hub, ada, second)) == 1
        assert watch(hub, ada, first) == []

    def test_a_profile_is_read_from_the_trail(self, hub, ada, clock):
        for minutes in (1, 2, 60 * 24):
            self.ask(hub, ada, clock, minutes)
        with hub.database.reading() as db:
            history, spent = read_history(db, "ada"), spend_of(db, "ada")
        assert history.total == 3
        assert [number for _, number in history.daily(clock.now.date(), 3)] == [0, 2, 1]
        assert (history.columns["people.age"], history.data_sets["people"]) == (3, 3)
        assert str(spent["people", "ε"]) == "3/10"

    def test_what_was_spent_counts_whatever_has_a_cost(self, hub, ada):
        for action, outcome in (("model.train", "done"), ("synthesis.run", "done"), ("model.train", "denied")):
            write_alone(hub, ada, action, kind="model", outcome=outcome, cost={"people": "ε = 0.1"})
        with hub.database.reading() as db:
            assert {key: str(each) for key, each in spend_of(db, "ada").items()} == {("people", "ε"): "1/5"}

    def test_sensitivity_can_be_chosen(self, hub, ada, clock):
        self.ask(hub, ada, clock, 1)
        line = write_alone(hub, ada, "question.ask", **question_details(sql=COUNT, data_sets=["people"]))
        assert len(watch(hub, ada, line, Sensitivity(volume_of_newcomers=1))) == 1

    def test_a_database_that_is_away_makes_no_error_of_an_answer(self, hub, ada, clock, monkeypatch, caplog):
        from cloister.hub.database import DatabaseUnavailable
        from cloister.hub.platform.trail import alerts as room

        def away(*_):
            raise DatabaseUnavailable("The hub's database did not answer")

        self.ask(hub, ada, clock, 1, f"{COUNT} WHERE age < 40")
        with monkeypatch.context() as patch:
            patch.setattr(room, "questions_since", away)
            assert self.ask(hub, ada, clock, 1, f"{COUNT} WHERE age < 41") == []
        assert "could not be looked at" in caplog.text
        assert len(self.ask(hub, ada, clock, 1, f"{COUNT} WHERE sex = 'F'")) == 1  # the pair is found at the next look


class TestAlike:
    def test_what_is_the_same_within_a_day_is_kept_at_one_go(self):
        when = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

        def noticed(line, shape, hours):
            return line, Question(when=when + timedelta(hours=hours)), Notice(kind="variations", about={"shape": shape})

        found = _alike([noticed(1, "a", 0), noticed(2, "b", 1), noticed(3, "a", 2), noticed(4, "a", 25)])
        assert [[line for line, _, _ in each] for each in found] == [[1, 3], [2], [4]]
