"""`cloister worker`: a process of its own, that ends when it is told to."""

from __future__ import annotations

import signal
import subprocess

from click.testing import CliRunner

from cloister.cli.hub import worker
from tests.hub import forked
from tests.tiers import some_by_day

SCRIPT = """
from cloister.cli.hub import worker
from cloister.hub import services
from tests.hub.jobs.charging import CHARGING, SERVICE, TRAIL
services.all_services = lambda: [TRAIL, SERVICE, CHARGING]
worker()
"""


@some_by_day("told", [signal.SIGTERM, signal.SIGINT], lambda told: told == signal.SIGINT)
def test_it_runs_jobs_until_it_is_told_to_end(tmp_path, told):
    from cloister.privacy import PureDP
    from tests.hub.jobs.charging import open_hub
    from tests.hub.jobs.conftest import ask
    from tests.hub.trail.conftest import add_person

    with open_hub(tmp_path / "hub") as hub:
        hub.ledger.open("people", PureDP(1), who="owner")
        ada = add_person(hub, "ada", "analyst")
        job = ask(hub, ada, "charge", what="plan")
        process = forked.python("-c", SCRIPT, "--data", str(tmp_path / "hub"), "--jobs", "2", stdout=subprocess.PIPE)
        try:
            assert process.stdout.readline() == "ready: 2 at once, for cloister\n"
            wait_for_end(hub, job)
            process.send_signal(told)
            assert process.wait(60) == 0
            assert process.stdout.read() == "ending\n"
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def wait_for_end(hub, job) -> None:
    import time

    from tests.hub.jobs.conftest import look

    for _ in range(1500):
        if look(hub, job).state == "done":
            return
        time.sleep(0.02)
    raise AssertionError(look(hub, job).state)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    outcome = CliRunner().invoke(worker, ["--data", str(tmp_path / "none")])
    assert outcome.exit_code == 2
    assert "does not exist" in outcome.output
