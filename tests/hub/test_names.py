"""Names are public by policy: where one is chosen, the page says so; a name that is taken is refused alike, whatever has it."""

from __future__ import annotations

import html

import pytest

from tests.hub.house import House

SAID = "Names are public: anyone who tries this one learns that it is taken."


@pytest.mark.parametrize(
    ("path", "role", "given"),
    [
        ("projects", "analyst", {"title": "A study", "purpose": "to learn"}),
        ("algorithms", "algorithm-provider", {"title": "Bayes", "service": "learning", "settings": {"method": "GaussianNB"}}),
    ],
)
def test_a_name_is_taken_whoever_has_it(house: House, path: str, role: str, given: dict[str, object]) -> None:
    ada, eve = house.person(role, email="ada@example.org"), house.person(role)
    assert SAID in html.unescape(eve.client.get(f"/{path}").text)
    made = ada.client.post(f"/api/v1/{path}", json={"name": "study", **given}, headers=ada.csrf())
    assert made.status_code == 201, made.text
    assert eve.client.get(f"/{path}/study").status_code == 404
    refused = eve.client.post(f"/api/v1/{path}", json={"name": "study", **given}, headers=eve.csrf())
    assert refused.status_code == 409
    assert "The name is taken" in refused.text
    assert "ada" not in refused.text
