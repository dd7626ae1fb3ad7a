"""What a page posts: bound to one log-in or one visitor, limited, and refused in three parts otherwise."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from cloister.errors import AccessDenied, InvalidParameter
from cloister.hub.hub import NOBODY
from tests.hub.web.gallery import ADA, make_gallery

WHO = {"name": "Lin"}


def token_in(client: TestClient, path: str = "/gallery") -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', client.get(path).text)
    assert found is not None
    return found.group(1)


def post(client: TestClient, token: str, **more: str) -> int:
    return client.post("/save", data=WHO | {"form_token": token} | more, follow_redirects=False).status_code


def test_a_form_of_this_log_in_is_taken() -> None:
    client = TestClient(make_gallery())
    assert post(client, token_in(client)) == 303


@pytest.mark.parametrize("token", ["", "x", "0" * 64])
def test_a_form_without_its_token_is_refused(token: str) -> None:
    with pytest.raises(AccessDenied, match="load the page again"):
        post(TestClient(make_gallery()), token)


def test_a_form_of_another_log_in_is_refused() -> None:
    token = token_in(TestClient(make_gallery()))
    with pytest.raises(AccessDenied):
        post(TestClient(make_gallery(caller=replace(ADA, session="1" * 64))), token)


def test_a_visitors_form_is_bound_to_the_visitors_browser() -> None:
    app: FastAPI = make_gallery(caller=NOBODY)
    client = TestClient(app)
    token = token_in(client)
    assert post(client, token) == 303
    assert token_in(client) == token
    with pytest.raises(AccessDenied):
        post(TestClient(app), token)
    other = TestClient(app)
    token_in(other)
    with pytest.raises(AccessDenied):
        post(other, token)


def test_the_visitors_cookie_is_out_of_reach_of_scripts_and_other_sites() -> None:
    set_cookie = TestClient(make_gallery(caller=NOBODY)).get("/gallery").headers["set-cookie"]
    assert "HttpOnly" in set_cookie
    assert "SameSite=lax" in set_cookie


def test_a_text_that_no_database_takes_is_refused() -> None:
    client = TestClient(make_gallery())
    with pytest.raises(InvalidParameter, match="NUL"):
        post(client, token_in(client), name="a\x00b")


def test_a_text_that_is_too_long_is_refused() -> None:
    client = TestClient(make_gallery())
    token = token_in(client)
    with pytest.raises(InvalidParameter, match="10,000 characters"):
        post(client, token, name="a" * 10_001)


def test_a_form_that_cannot_be_read_is_refused() -> None:
    client = TestClient(make_gallery())
    with pytest.raises(InvalidParameter, match="could not be read"):
        client.post("/save", content=b"--x\r\nnothing", headers={"Content-Type": "multipart/form-data; boundary=y"})
    many = {f"field{number}": "1" for number in range(1_500)}
    with pytest.raises(InvalidParameter, match="could not be read"):
        client.post("/save", data=many)


@pytest.mark.parametrize(
    ("back", "goes_to"),
    [
        ("/gallery?page=2", "/gallery?page=2"),
        ("//elsewhere.example/", "/"),
        ("/\\elsewhere.example", "/"),
        ("https://elsewhere.example/", "/"),
        ("/a\nSet-Cookie: b", "/"),
        ("", "/"),
    ],
)
def test_choices_lead_back_to_this_hub_only(back: str, goes_to: str) -> None:
    client = TestClient(make_gallery())
    form = {"form_token": token_in(client), "theme": "dark", "back": back}
    answer = client.post("/preferences", data=form, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, goes_to)


def test_choices_are_kept_where_they_are_known() -> None:
    client = TestClient(make_gallery())
    token = token_in(client)
    form = {"form_token": token, "theme": "dark", "language": "zh_CN", "zone": "Asia/Shanghai"}
    client.post("/preferences", data=form, follow_redirects=False)
    page = client.get("/gallery").text
    assert 'data-theme="dark"' in page
    assert 'lang="zh-Hans"' in page
    assert "2026年3月14日 23:09<" in page
    odd = {"form_token": token, "theme": "<b>", "language": "../en", "zone": "../../etc/passwd"}
    answer = client.post("/preferences", data=odd, follow_redirects=False)
    assert "set-cookie" not in answer.headers
