"""Models that an older version stored open today, and say what they said. That version made the files, once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.learn import load
from cloister.learn.frame.catalogue import METHODS

HERE = Path(__file__).parent
SAID: dict[str, Any] = json.loads((HERE / "said.json").read_text(encoding="utf-8"))
ROWS = np.array([[0.1, 0.0], [0.45, 1.0], [0.9, 1.0]])


@pytest.mark.parametrize("name", SAID)
def test_a_stored_model_opens_and_says_what_it_said(name: str) -> None:
    model = load(HERE / "models" / f"{name}.json")
    said = model.predict(ROWS) if hasattr(model, "predict") else model.transform(ROWS)
    np.testing.assert_allclose(said, SAID[name], atol=1e-8)
    again = load(model.to_json())
    assert again.to_json() == model.to_json()
    assert again.report() == model.report()
    if hasattr(model, "margin"):
        wide = model.margin(0.95)
        for each in wide.values() if isinstance(wide, dict) else [wide]:
            assert (np.asarray(each) > 0).all()  # nor is any of them not a number


def test_every_kind_of_model_is_stored() -> None:
    assert set(SAID) == set(METHODS) == {path.stem for path in (HERE / "models").glob("*.json")}


def test_only_what_a_later_version_added_may_be_missing() -> None:
    document = json.loads((HERE / "models" / "GaussianNB.json").read_text(encoding="utf-8"))
    for learned in (
        {key: value for key, value in document["learned"].items() if key != "theta_"},
        {**document["learned"], "predict": None},
    ):
        with pytest.raises(InvalidParameter, match="does not hold what such a model learns"):
            load(json.dumps({**document, "learned": learned}))
