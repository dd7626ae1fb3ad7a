"""An order whose expected error is larger than the table: said beside its price, and confirmed before it is charged."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

from tests.hub.synthesising.conftest import ORDER, Stage

SAID = re.compile(r"the expected error, ± [\d,]+ rows, is larger than the table, which has about 300")
BOX = 'name="confirmed"'


def sent(stage: Stage, path: str, **changed: Any) -> Any:
    """The form, filled in."""
    page = stage.ana.client.get("/synthesise?about=people").text
    token, key = (html.unescape(re.search(rf'name="{name}" value="([^"]+)"', page)[1]) for name in ("form_token", "key"))  # type: ignore[index]
    return stage.ana.client.post(path, data={"form_token": token, "key": key, **ORDER, "method": "pairs", **changed})


def test_noise_is_said_beside_the_price_and_confirmed_before_it_is_charged(stage: Stage) -> None:
    order = {"spend": "0.04", "columns": ["age", "sex", "pay"]}
    priced = sent(stage, "/synthesise/price", **order)
    assert (priced.status_code, bool(SAID.search(priced.text)), BOX in priced.text) == (200, True, True)
    refused = sent(stage, "/synthesise", **order)
    assert (refused.status_code, BOX in refused.text) == (422, True)
    assert SAID.search(refused.text)
    assert stage.get("/jobs").json()["jobs"] == []
    ordered = sent(stage, "/synthesise", **order, confirmed="yes")
    assert ordered.headers["location"].startswith("/jobs/")


@pytest.mark.parametrize("changed", [{"spend": "1"}, {"spend": "0"}])
def test_what_is_sharp_enough_or_measures_nothing_takes_no_confirmation(stage: Stage, changed: Any) -> None:
    order = {"method": "auto", **changed}
    priced = sent(stage, "/synthesise/price", **order).text
    assert (SAID.search(priced), BOX in priced) == (None, False)
    assert sent(stage, "/synthesise", **order).headers["location"].startswith("/jobs/")
