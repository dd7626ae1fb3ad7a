"""What an older version stored under names of classes, fields and modules is found under the same names today, byte for byte.

`panel.py` made `names.json` and `releases.json`, once, with the version before.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cloister.learn import load
from cloister.local.survey import Survey
from cloister.local.survey.results import collect
from cloister.session import Release
from tests.stored import panel
from tests.stored.renaming import renamed

HERE = Path(__file__).parent
STORED: dict[str, Any] = json.loads((HERE / "names.json").read_text(encoding="utf-8"))
RELEASES: dict[str, str] = json.loads((HERE / "releases.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def now() -> dict[str, dict[str, str]]:
    """The digests of today, which both tests of them hold against something else."""
    return panel.plans()


def test_a_question_has_the_digest_that_it_had(now: dict[str, dict[str, str]]) -> None:
    """Otherwise people would be charged again for what they own."""
    for kind, before in STORED["plans"].items():
        assert {name: now[kind].get(name) for name in before} == before
        assert len(before) > 140


def test_a_method_that_needs_rows_has_the_digest_that_it_had() -> None:
    now = panel.methods()
    assert {name: now.get(name) for name in STORED["methods"]} == STORED["methods"]


@pytest.mark.parametrize("name", RELEASES)
def test_a_stored_release_is_read_and_written_again(name: str) -> None:
    release = Release.from_json(RELEASES[name])
    assert release.to_json() == RELEASES[name]
    assert release.table.shape == release.margin().shape
    assert release.text()


def test_a_release_is_written_under_the_names_that_were_written() -> None:
    now = panel.releases()
    for name, text in RELEASES.items():
        assert forms(json.loads(now[name])) == forms(json.loads(text)), name


def forms(node: Any) -> set[tuple[str, ...]]:
    """The kinds of values in a release, each with the names of its fields."""
    found: set[tuple[str, ...]] = set()
    if isinstance(node, dict):
        found.add((str(node.get("$", "")), *sorted(node)))
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        found |= forms(inner)
    return found


def test_a_stored_survey_opens_and_counts_its_reports() -> None:
    document, report = STORED["survey"]["document"], STORED["survey"]["report"]
    survey = Survey.from_dict({**panel.survey().to_dict(), **document})
    assert survey.version == document["version"] == panel.survey().version
    assert {name: survey.to_dict()[name] for name in document} == document
    assert collect(survey, [report]).to_dict()["n"] == 1


def test_a_model_is_written_under_the_names_that_were_written() -> None:
    now = panel.models_written()
    for name, before in STORED["models"].items():
        assert set(before) <= set(now[name]), name


def test_a_protocol_counts_the_reports_that_it_counted() -> None:
    assert panel.protocols() == STORED["protocols"]


def test_nothing_that_is_stored_follows_the_name_of_a_class(now: dict[str, dict[str, str]]) -> None:
    """Under other names of all classes and modules, and other words of `repr`, the same is written and read."""
    with renamed() as changed:
        assert len(changed) > 1000
        assert panel.plans("approx") == {"approx": now["approx"]}
        test_a_method_that_needs_rows_has_the_digest_that_it_had()
        for name in RELEASES:
            test_a_stored_release_is_read_and_written_again(name)
        test_a_release_is_written_under_the_names_that_were_written()
        test_a_stored_survey_opens_and_counts_its_reports()
        test_a_protocol_counts_the_reports_that_it_counted()
        test_a_model_is_written_under_the_names_that_were_written()
        for path in sorted((HERE / "models").glob("*.json")):
            text = path.read_text(encoding="utf-8")
            assert json.loads(load(text).to_json())["model"] == json.loads(text)["model"] == path.stem
