"""Jobs in a browser and through the API: whose they are, progress, cancelling."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cloister.hub.platform import access, accounts
from cloister.hub.platform.jobs import Workers, submit
from cloister.hub.platform.jobs.queue import beat, claim
from tests.hub.jobs.conftest import look
from tests.hub.trail.browsing import Visitor


@pytest.fixture
def hub(opens, services):
    return opens((*services[:2], accounts.SERVICE, access.SERVICE, services[2]))


@pytest.fixture
def people(hub):
    roles = (("ada", "analyst"), ("bob", "analyst"), ("root", "administrator"), ("sue", "steward"))
    return {name: Visitor(hub, name, role) for name, role in roles}


@pytest.fixture
def job(hub, people) -> str:
    with hub.database.begin() as db:
        payload = {"name": "<b>sesame</b>"}
        return submit(hub, db, people["ada"].caller, "note", payload, title="A <b>table</b>", purpose="a study")


def test_nobody(hub, job):
    assert Visitor(hub).get("/jobs").headers["location"].startswith("/login")
    assert Visitor(hub).api("POST", f"/jobs/{job}/cancel").status_code == 401


def test_a_job_from_beginning_to_end(hub, people, job):
    ada = people["ada"]
    page = ada.get(f"/jobs/{job}").text
    assert "It waits for a free worker." in page
    assert "A &lt;b&gt;table&lt;/b&gt;" in page
    assert f'data-poll="/jobs/{job}"' in page
    claimed = claim(hub, "w", timedelta(seconds=60))
    beat(hub, claimed, "counting rows", 0.25)
    fragment = ada.get(f"/jobs/{job}", headers={"X-Fragment": "1"})
    assert "<html" not in fragment.text
    assert "counting rows" in fragment.text
    assert 'value="0.25"' in fragment.text
    assert "x-done" not in fragment.headers
    with hub.database.begin() as db:
        from cloister.hub.records.jobs import Job

        db.get(Job, job).state = "waiting"
    Workers(hub, 0).run_one()
    fragment = ada.get(f"/jobs/{job}", headers={"X-Fragment": "1"})
    assert fragment.headers["x-done"] == "1"
    assert "&lt;b&gt;sesame&lt;/b&gt;" in fragment.text
    assert "data-poll" not in ada.get(f"/jobs/{job}").text
    told = ada.api("GET", f"/jobs/{job}").json()
    assert (told["state"], told["result"]["name"], told["share"]) == ("done", "<b>sesame</b>", None)


def test_a_failure_is_shown_in_its_three_parts(hub, people):
    with hub.database.begin() as db:
        job = submit(hub, db, people["ada"].caller, "refuse", {})
    Workers(hub, 0).run_one()
    page = people["ada"].get(f"/jobs/{job}").text
    for part in ("The query is not supported", "it cannot be proved safe", "SELECT COUNT(*)"):
        assert part in page
    assert "cannot be proved safe" not in people["root"].get(f"/jobs/{job}").text


def test_jobs_of_others_are_not_told_from_none(hub, people, job):
    bob = people["bob"]
    other, none = bob.api("GET", f"/jobs/{job}"), bob.api("GET", "/jobs/nothing")
    assert (other.status_code, other.json()) == (none.status_code, none.json())
    assert other.status_code == 404
    assert bob.get(f"/jobs/{job}").status_code == 404
    assert bob.api("POST", f"/jobs/{job}/cancel").status_code == 404
    assert bob.post(f"/jobs/{job}/cancel", "/jobs").status_code == 404
    assert bob.api("GET", "/jobs?everybody=true").json()["jobs"] == []
    assert "b&gt;table" not in bob.get("/jobs?who=everybody").text
    assert look(hub, job).state == "waiting"


def test_those_who_watch_over_jobs_see_that_they_run_and_no_more(hub, people, job):
    Workers(hub, 0).run_one()
    for name in ("root", "sue"):
        (told,) = people[name].api("GET", "/jobs?everybody=true").json()["jobs"]
        assert (told["id"], told["state"], told["result"], told["purpose"]) == (job, "done", {}, "")
        assert people[name].api("GET", "/jobs").json()["jobs"] == []
        assert "Ada" in people[name].get("/jobs?who=everybody").text
        assert "sesame" not in people[name].get(f"/jobs/{job}", headers={"X-Fragment": "1"}).text


def test_cancelling(hub, people, job):
    assert people["ada"].post(f"/jobs/{job}/cancel", f"/jobs/{job}").headers["location"] == f"/jobs/{job}"
    assert look(hub, job).state == "cancelled"
    page = people["ada"].get(f"/jobs/{job}").text
    assert "The job was cancelled." in page
    assert "/cancel" not in page
    people["ada"].post(f"/jobs/{job}/cancel", "/jobs")
    assert look(hub, job).state == "cancelled"


def test_a_form_without_its_token_cancels_nothing(hub, people, job):
    assert people["ada"].client.post(f"/jobs/{job}/cancel").status_code == 403
    assert look(hub, job).state == "waiting"


def test_an_administrator_cancels_and_a_steward_does_not(hub, people, job):
    assert people["sue"].api("POST", f"/jobs/{job}/cancel").status_code == 403
    assert people["root"].api("POST", f"/jobs/{job}/cancel").json()["state"] == "cancelled"


def test_pages_of_jobs(hub, people, clock):
    jobs = []
    for number in range(60):
        clock.now += timedelta(seconds=1)
        with hub.database.begin() as db:
            jobs.append(submit(hub, db, people["ada"].caller, "note", {"name": "x"}, title=f"Job {number}."))
    first = people["ada"].get("/jobs").text
    assert "Job 59." in first
    assert "Job 9." not in first
    assert f"before={jobs[10]}" in first
    second = people["ada"].get(f"/jobs?before={jobs[10]}").text
    assert "Job 9." in second
    assert "Job 10." not in second
    told = people["ada"].api("GET", "/jobs?limit=7").json()
    assert [job["id"] for job in told["jobs"]] == jobs[:-8:-1]
    assert told["older"] == jobs[-7]


def test_the_first_page_shows_what_runs(hub, people, job):
    assert "A &lt;b&gt;table" in people["ada"].get("/").text
    assert "A &lt;b&gt;table" not in people["bob"].get("/").text
