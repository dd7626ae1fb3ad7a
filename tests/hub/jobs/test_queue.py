"""The queue and its workers: each job once, whatever becomes of who runs it."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from cloister.errors import InvalidParameter
from cloister.hub.platform.jobs import Timing, Workers, cancel
from cloister.hub.platform.jobs.queue import beat, claim, finish, give_back
from cloister.hub.platform.trail import verify
from cloister.hub.problems import Missing
from cloister.hub.records.trail import AuditLine
from tests.hub.jobs.conftest import ask, look
from tests.hub.trail.conftest import add_person

LOST = timedelta(seconds=60)
QUICK = Timing(look=0.02, beat=0.05, lost=60)


@pytest.fixture
def ada(hub):
    return add_person(hub, "ada", "analyst")


def run_all(hub) -> int:
    """Everything that waits, one after another, in this thread."""
    workers, count = Workers(hub, 0), 0
    while workers.run_one():
        count += 1
    return count


def wait_for(hub, job: str, *states: str) -> None:
    stop = threading.Event()
    for _ in range(1500):
        if look(hub, job).state in states:
            return
        stop.wait(0.02)
    raise AssertionError(f"{look(hub, job).state} is none of {states}")


def test_a_job_runs_and_keeps_its_result(hub, ada, bench):
    job = ask(hub, ada, "note", name="one")
    assert look(hub, job).state == "waiting"
    assert run_all(hub) == 1
    row = look(hub, job)
    assert (row.state, row.result, row.attempts, row.title) == ("done", {"name": "one", "who": "ada"}, 1, "Note")
    assert row.begun is not None
    assert row.ended is not None
    assert bench.ran == ["one"]


def test_the_oldest_job_is_first(hub, ada, bench, clock):
    for name in ("a", "b", "c"):
        ask(hub, ada, "note", name=name)
        clock.now += timedelta(seconds=1)
    assert run_all(hub) == 3
    assert bench.ran == ["a", "b", "c"]


def test_what_cannot_be_run_is_refused(hub, ada):
    with pytest.raises(InvalidParameter, match="no service runs"):
        ask(hub, ada, "dance")
    with pytest.raises(InvalidParameter, match="over 1 MiB"):
        ask(hub, ada, "note", name="x" * 2**20)
    with pytest.raises(Missing), hub.database.begin() as db:
        cancel(hub, db, ada, "nothing")


def test_an_undone_transaction_leaves_no_job(hub, ada):
    from cloister.hub.platform.jobs import submit

    with pytest.raises(ZeroDivisionError), hub.database.begin() as db:  # noqa: PT012
        submit(hub, db, ada, "note", {"name": "x"})
        raise ZeroDivisionError
    assert run_all(hub) == 0


def test_a_refusal_is_kept_as_a_problem(hub, ada):
    job = ask(hub, ada, "refuse")
    run_all(hub)
    row = look(hub, job)
    assert row.state == "failed"
    assert row.problem["title"] == "The query is not supported"
    assert row.problem["instead"] == "SELECT COUNT(*)"
    assert row.problem["status"] == 422


@pytest.mark.parametrize("kind", ["break", "odd"])
def test_an_unforeseen_failure_shows_nothing(hub, ada, kind, caplog):
    job = ask(hub, ada, kind)
    run_all(hub)
    row = look(hub, job)
    assert (row.state, row.problem["title"], row.problem["code"]) == ("failed", "The job failed", "failed")
    assert "Ada Lovelace" not in str(row.problem) + caplog.text
    assert row.problem["detail"].removeprefix("the log knows it as ") in caplog.text


def test_a_job_that_waits_is_cancelled_at_once(hub, ada, bench):
    job = ask(hub, ada, "note", name="never")
    with hub.database.begin() as db:
        assert cancel(hub, db, ada, job) == "cancelled"
    assert run_all(hub) == 0
    assert bench.ran == []
    with hub.database.begin() as db:
        assert cancel(hub, db, ada, job) == "cancelled"  # once more changes nothing


def test_one_worker_claims_a_job(hub, ada, opens, services):
    ask(hub, ada, "note", name="one")
    hubs = [hub, *(opens(services) for _ in range(3))]
    claims = []
    barrier = threading.Barrier(4)

    def take(one):
        barrier.wait()
        claims.append(claim(one, "w", LOST))

    threads = [threading.Thread(target=take, args=(one,)) for one in hubs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(each is not None for each in claims) == 1


def test_many_workers_run_each_job_once(hub, ada, bench, opens, services):
    jobs = [ask(hub, ada, "note", name=str(number)) for number in range(40)]
    groups = [Workers(one, 2, QUICK) for one in (hub, opens(services))]
    for group in groups:
        group.start()
    for job in jobs:
        wait_for(hub, job, "done")
    for group in groups:
        group.stop()
    assert sorted(bench.ran, key=int) == [str(number) for number in range(40)]
    assert {look(hub, job).attempts for job in jobs} == {1}
    assert verify(hub) is True


def test_a_silent_worker_loses_its_job_to_another_once(hub, ada, clock):
    job = ask(hub, ada, "note", name="one")
    first = claim(hub, "first", LOST)
    assert claim(hub, "second", LOST) is None
    clock.now += timedelta(seconds=59)
    assert beat(hub, first, "counting", 0.25) is False
    clock.now += timedelta(seconds=59)
    assert claim(hub, "second", LOST) is None
    clock.now += timedelta(seconds=2)
    second = claim(hub, "second", LOST)
    assert (second.job, second.attempt) == (job, 2)
    assert beat(hub, first, "counting", 0.5) is None  # the first one is alive after all, and hears that the job is another's
    assert finish(hub, first, "done", result={"from": "first"}) is False
    assert give_back(hub, first) is False
    assert finish(hub, second, "done", result={"from": "second"}) is True
    assert look(hub, job).result == {"from": "second"}


def test_a_job_that_was_begun_twice_has_failed(hub, ada, clock):
    job = ask(hub, ada, "note", name="one")
    for _ in range(2):
        assert claim(hub, "w", LOST).job == job
        clock.now += timedelta(seconds=61)
    assert claim(hub, "w", LOST) is None
    row = look(hub, job)
    assert (row.state, row.problem["code"], row.attempts) == ("failed", "lost", 2)


def test_a_kind_that_may_not_begin_again_has_failed(hub, ada, clock):
    job = ask(hub, ada, "once")
    assert claim(hub, "w", LOST).job == job
    clock.now += timedelta(seconds=61)
    assert claim(hub, "w", LOST) is None
    assert look(hub, job).problem["code"] == "lost"


def test_a_lost_job_that_was_to_stop_is_cancelled(hub, ada, clock):
    job = ask(hub, ada, "note", name="one")
    claim(hub, "w", LOST)
    with hub.database.begin() as db:
        assert cancel(hub, db, ada, job) == "running"
    clock.now += timedelta(seconds=61)
    assert claim(hub, "w", LOST) is None
    assert look(hub, job).state == "cancelled"


def test_a_running_job_hears_that_it_should_stop(hub, ada, bench):
    workers = Workers(hub, 1, QUICK)
    workers.start()
    job = ask(hub, ada, "held")
    assert bench.begun.wait(30)
    assert look(hub, job).stage == "holding"
    with hub.database.begin() as db:
        assert cancel(hub, db, ada, job) == "running"
    wait_for(hub, job, "cancelled")
    workers.stop()


def test_submitting_wakes_a_worker(hub, ada):
    hub.parts["jobs"] = workers = Workers(hub, 1, Timing(look=3600, beat=3600, lost=7200))
    workers.start()
    for name in ("one", "two"):
        wait_for(hub, ask(hub, ada, "note", name=name), "done")


def test_ending_waits_for_what_runs(hub, ada, bench):
    workers = Workers(hub, 1, QUICK)
    workers.start()
    job = ask(hub, ada, "held")
    assert bench.begun.wait(30)
    threading.Timer(0.2, bench.go.set).start()
    workers.stop(grace=30)
    assert look(hub, job).state == "done"


def test_ending_gives_back_what_takes_too_long(hub, ada, bench):
    workers = Workers(hub, 1, QUICK)
    workers.start()
    job = ask(hub, ada, "held")
    assert bench.begun.wait(30)
    workers.stop(grace=0.05)
    assert look(hub, job).state == "waiting"
    bench.go.set()
    assert run_all(hub) == 1
    row = look(hub, job)
    assert (row.state, row.attempts) == ("done", 2)


def test_ending_leaves_what_may_not_begin_again(hub, ada, bench):
    workers = Workers(hub, 1, QUICK)
    workers.start()
    job = ask(hub, ada, "once")
    assert bench.begun.wait(30)
    workers.stop(grace=0.05)
    assert look(hub, job).state in ("running", "cancelled")  # it may have seen that it is to stop; it never waits again
    bench.go.set()


def test_a_database_that_is_away_for_a_moment_loses_nothing(hub, ada, monkeypatch):
    from cloister.hub.database import DatabaseUnavailable
    from cloister.hub.platform.jobs import workers as room

    times = iter([True, False])

    def sometimes(*arguments, **options):
        if next(times):
            raise DatabaseUnavailable("The hub's database did not answer")
        return finish(*arguments, **options)

    monkeypatch.setattr(room, "finish", sometimes)
    job = ask(hub, ada, "note", name="one")
    assert Workers(hub, 0).run_one()
    assert look(hub, job).state == "done"


def test_the_trail_tells_of_jobs(hub, ada):
    ask(hub, ada, "note", name="one")
    run_all(hub)
    with hub.database.reading() as db:
        lines = [(line.action, line.person, line.purpose) for line in db.query(AuditLine).order_by(AuditLine.number)]
    assert lines == [("job.submit", "ada", "a study"), ("job.end", "", "")]
