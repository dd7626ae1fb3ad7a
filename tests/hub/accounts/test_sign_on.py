"""Single sign-on against an identity provider of our own, and against those who would abuse it."""

from __future__ import annotations

import hashlib
import hmac
import html
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from cloister.hub.platform.accounts.people import roles_of
from cloister.hub.records.accounts import Person
from tests.hub.accounts.identity_provider import CLIENT, SECRET, IdentityProvider, encoded
from tests.hub.accounts.world import Browser, World
from tests.hub.house import START, Clock


@pytest.fixture
def provider(clock: Clock) -> Iterator[IdentityProvider]:
    made = IdentityProvider(clock)
    yield made
    made.close()


@pytest.fixture
def joined(world: World, provider: IdentityProvider) -> Iterator[World]:
    """A hub that trusts the provider."""
    made = world.again(oidc_issuer=provider.issuer, oidc_client=CLIENT, oidc_secret=SECRET)
    yield made
    made.close()


def leave(browser: Browser, page: str = "/login", **form: str) -> tuple[str, str]:
    """Go to the provider: the address there, and the state."""
    answer = browser.post("/login/sso", page, **form)
    assert answer.status_code == 200, answer.text
    address = answer.headers["refresh"].removeprefix("0; url=")
    assert html.escape(address) in answer.text
    return address, parse_qs(urlsplit(address).query)["state"][0]


def visit(browser: Browser, provider: IdentityProvider, page: str = "/login", **more: Any) -> Any:
    """There and back."""
    address, state = leave(browser, page)
    code = provider.authorize(address)
    return browser.get("/login/sso/callback", params={"code": code, "state": state, **more})


def people(world: World) -> int:
    with world.hub.database.reading() as db:
        return db.query(Person).count()


def test_somebody_comes_and_comes_again(joined: World, provider: IdentityProvider) -> None:
    browser = joined.browser()
    address, state = leave(browser, next="/account")
    answer = browser.get("/login/sso/callback", params={"code": provider.authorize(address), "state": state})
    assert answer.headers["location"] == "/login/second?next=/account"
    assert browser.who() == "ada@example.org"
    person = joined.find("ada@example.org")
    assert person.subject == f"{provider.issuer} 248289761001"
    with joined.hub.database.reading() as db:
        assert roles_of(db, person.id) == ("analyst",)
    provider.claims |= {"email": "another@example.org", "email_verified": False}
    again = joined.browser()
    assert visit(again, provider).status_code == 303
    assert again.who() == "ada@example.org", "the subject counts, not the address"
    assert people(joined) == 1


def test_a_hub_without_a_provider_has_none(world: World) -> None:
    assert world.browser().post("/login/sso", "/login").status_code == 404
    assert world.browser().get("/login/sso/callback?code=a&state=b").status_code == 404
    assert "Single sign-on" not in world.browser().get("/login").text


CLAIMS: dict[str, dict[str, Any]] = {
    "another nonce": {"nonce": "x" * 43},
    "no nonce": {"nonce": None},
    "another audience": {"aud": "another-hub"},
    "several audiences and no azp": {"aud": [CLIENT, "another-hub"]},
    "issued to another": {"aud": [CLIENT, "another-hub"], "azp": "another-hub"},
    "another issuer": {"iss": "http://127.0.0.1:1"},
    "a list of issuers": {"iss": ["http://127.0.0.1:1", "THE ISSUER"]},
    "a list of the issuer": {"iss": ["THE ISSUER"]},
    "issuer with a slash": {"iss": "http://127.0.0.1:1/"},
    "expired": {"exp": int(START) - 1_000},
    "no end": {"exp": None},
    "an end that is none": {"exp": "never"},
    "made long ago": {"iat": int(START) - 10_000},
    "made tomorrow": {"iat": int(START) + 90_000},
    "no moment": {"iat": None},
    "no subject": {"sub": None},
    "empty subject": {"sub": ""},
    "subject that is a number": {"sub": 7},
    "subject without end": {"sub": "x" * 300},
    "subject with a NUL": {"sub": "ada\0"},
    "subject with half a character": {"sub": "ada\ud800"},
    "subject with a line's end": {"sub": "ada\u2028"},
    "a list of nonces": {"nonce": ["x" * 43]},
    "issued to a list": {"azp": [CLIENT]},
    "an end beyond all numbers": {"exp": float("inf"), "iat": float("inf")},
    "not yet": {"nbf": int(START) + 90_000},
    "wrong hash of the access token": {"at_hash": "AAAA"},
}


@pytest.mark.parametrize("case", list(CLAIMS))
def test_a_proof_that_does_not_hold_is_refused(joined: World, provider: IdentityProvider, case: str) -> None:
    provider.change = CLAIMS[case]
    if isinstance(named := CLAIMS[case].get("iss"), list):
        provider.change = {"iss": [each.replace("THE ISSUER", provider.issuer) for each in named]}
    browser = joined.browser()
    assert visit(browser, provider).status_code == 403
    assert browser.who() == ""
    assert people(joined) == 0


@pytest.mark.parametrize("part", [0, 1])
def test_a_proof_of_endless_depth_is_refused(joined: World, provider: IdentityProvider, part: int) -> None:
    """Its parser gives up: that is a refusal like any other, and no failure of the hub."""
    deep = encoded(b'{"kid":' + b"[" * 100_000 + b"]" * 100_000 + b"}")

    def forge(claims: dict[str, Any]) -> str:
        parts = provider.signed(claims).split(".")
        parts[part] = deep
        if part:
            signed = provider.key.sign(".".join(parts[:2]).encode(), padding.PKCS1v15(), hashes.SHA256())
            parts[2] = encoded(signed)
        return ".".join(parts)

    provider.forge = forge
    assert visit(joined.browser(), provider).status_code == 403


@pytest.mark.parametrize("email", ["ada\0@example.org", "ada\ud800@example.org"])
def test_an_address_that_no_database_holds_is_none(joined: World, provider: IdentityProvider, email: str) -> None:
    provider.change = {"email": email}
    assert visit(joined.browser(), provider).status_code == 403
    assert people(joined) == 0


@pytest.mark.parametrize("case", ["none", "None", "HS256 with the public key", "another key", "no signature", "cut", "no token"])
def test_a_forged_signature_is_refused(joined: World, provider: IdentityProvider, case: str) -> None:
    another = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = provider.key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    def forge(claims: dict[str, Any]) -> str:
        if case == "another key":
            real, provider.key = provider.key, another
            made = provider.signed(claims)
            provider.key = real
            return made
        if case == "no signature":
            return provider.signed(claims).rpartition(".")[0] + "."
        if case == "cut":
            return provider.signed(claims)[:-8]
        if case == "no token":
            return ""
        algorithm = case.split()[0]
        text = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": algorithm, "kid": "one"}, claims))
        mac = hmac.new(public, text.encode(), hashlib.sha256).digest() if algorithm == "HS256" else b""
        return f"{text}.{encoded(mac)}"

    provider.forge = forge
    browser = joined.browser()
    assert visit(browser, provider).status_code == 403
    assert browser.who() == ""


def test_a_code_is_no_good_twice_nor_elsewhere(joined: World, provider: IdentityProvider) -> None:
    browser = joined.browser()
    address, state = leave(browser)
    code = provider.authorize(address)
    stranger = joined.browser()
    stranger.get("/login")
    answer = {"code": code, "state": state}
    assert stranger.get("/login/sso/callback", params=answer).status_code == 403, "another browser"
    assert browser.get("/login/sso/callback", params=answer).status_code == 403, "the state is used up by the attempt"
    address, state = leave(browser)
    answer = {"code": provider.authorize(address), "state": state}
    assert browser.get("/login/sso/callback", params=answer).status_code == 303
    browser.post("/logout", "/account")
    assert browser.get("/login/sso/callback", params=answer).status_code == 403
    _, fresh = leave(browser)
    assert browser.get("/login/sso/callback", params=answer | {"state": fresh}).status_code == 403, "a code counts once"
    assert browser.who() == ""


def test_a_code_of_another_visit_does_not_fit(joined: World, provider: IdentityProvider) -> None:
    """Code injection: Mallory's code in Ada's browser, whose verifier is another."""
    mallory, ada = joined.browser(), joined.browser()
    code = provider.authorize(leave(mallory)[0])
    _, state = leave(ada)
    assert ada.get("/login/sso/callback", params={"code": code, "state": state}).status_code == 403
    assert ada.who() == ""


@pytest.mark.parametrize(
    "given",
    [
        {"state": "x" * 43},
        {"state": ""},
        {"error": "access_denied"},
        {"code": ""},
        {"code": "unknown"},
        {"code": "x" * 5000},
        {"iss": "https://evil.example"},
        {"iss": ""},
    ],
)
def test_an_answer_that_does_not_fit_is_refused(joined: World, provider: IdentityProvider, given: dict[str, str]) -> None:
    browser = joined.browser()
    answer = visit(browser, provider, **given)
    assert answer.status_code == 403
    assert browser.who() == ""


def test_a_provider_that_promises_its_name_must_give_it(joined: World, provider: IdentityProvider) -> None:
    """Mix-up (RFC 9207)."""
    provider.metadata = {"authorization_response_iss_parameter_supported": True}
    assert visit(joined.browser(), provider).status_code == 403
    assert visit(joined.browser(), provider, iss=provider.issuer).status_code == 303


def test_a_visit_takes_ten_minutes_at_most(joined: World, provider: IdentityProvider) -> None:
    browser = joined.browser()
    address, state = leave(browser)
    code = provider.authorize(address)
    joined.clock.move(minutes=11)
    assert browser.get("/login/sso/callback", params={"code": code, "state": state}).status_code == 403


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"authorization_endpoint": "http://evil.example/authorize"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": None},
        {"authorization_endpoint": "file:///etc/passwd"},
    ],
)
def test_what_the_provider_publishes_is_not_believed_blindly(
    joined: World, provider: IdentityProvider, metadata: dict[str, Any]
) -> None:
    provider.metadata = metadata
    assert joined.browser().post("/login/sso", "/login").status_code == 403


@pytest.mark.parametrize("name", ["token_endpoint", "jwks_uri"])
def test_no_secret_goes_to_an_unprotected_address(joined: World, provider: IdentityProvider, name: str) -> None:
    provider.metadata = {name: "http://192.0.2.1/steal"}
    assert visit(joined.browser(), provider).status_code == 403


def test_a_provider_that_is_away_is_told_so(joined: World, provider: IdentityProvider) -> None:
    provider.close()
    answer = joined.browser().post("/login/sso", "/login")
    assert answer.status_code == 502
    assert "did not answer" in answer.text


def test_a_new_key_counts_at_once_and_one_that_was_withdrawn_no_more(joined: World, provider: IdentityProvider) -> None:
    assert visit(joined.browser(), provider).status_code == 303
    withdrawn = provider.key, provider.name_of_key
    provider.key, provider.name_of_key = rsa.generate_private_key(public_exponent=65537, key_size=2048), "two"
    assert visit(joined.browser(), provider).status_code == 303

    def forge(claims: dict[str, Any]) -> str:
        (provider.key, provider.name_of_key), present = withdrawn, (provider.key, provider.name_of_key)
        made = provider.signed(claims)
        provider.key, provider.name_of_key = present
        return made

    provider.forge = forge
    assert visit(joined.browser(), provider).status_code == 403


def test_the_address_may_come_from_the_provider_itself(joined: World, provider: IdentityProvider) -> None:
    provider.claims = {"sub": "7"}
    provider.userinfo = {"sub": "8", "email": "ada@example.org", "email_verified": True}
    assert visit(joined.browser(), provider).status_code == 403
    provider.userinfo["sub"] = "7"
    browser = joined.browser()
    assert visit(browser, provider).status_code == 303
    assert browser.who() == "ada@example.org"


@pytest.mark.parametrize(
    "change",
    [
        {"email_verified": False},
        {"email_verified": "true"},
        {"email_verified": None},
        {"email": ""},
        {"email": ["ada@example.org"]},
    ],
)
def test_an_address_that_nobody_verified_opens_nothing(joined: World, provider: IdentityProvider, change: dict[str, Any]) -> None:
    provider.change = change
    assert visit(joined.browser(), provider).status_code == 403
    assert people(joined) == 0


def test_an_address_alone_does_not_open_an_account(joined: World, provider: IdentityProvider) -> None:
    joined.person("ada@example.org", "owner")
    browser = joined.browser()
    answer = visit(browser, provider)
    assert answer.status_code == 409
    assert "connect the two at /account" in answer.text
    assert browser.who() == ""
    browser.log_in("ada@example.org")
    assert visit(browser, provider, "/account").headers["location"] == "/account"
    assert joined.find("ada@example.org").subject == f"{provider.issuer} 248289761001"
    other = joined.browser()
    assert visit(other, provider).status_code == 303
    assert other.who() == "ada@example.org"
    assert "sign-on.connect" in [line[0] for line in joined.trail()]


def test_an_identity_belongs_to_one_person(joined: World, provider: IdentityProvider) -> None:
    assert visit(joined.browser(), provider).status_code == 303
    eve = joined.logged_in("eve@example.org", "analyst")
    assert visit(eve, provider, "/account").status_code == 409
    assert joined.find("eve@example.org").subject is None


def test_a_connection_is_made_for_who_began_it(joined: World, provider: IdentityProvider) -> None:
    """Mallory begins, and Ada is logged in when the answer comes: nothing is connected, nobody changes places."""
    browser = joined.logged_in("mallory@example.org", "analyst")
    address, state = leave(browser, "/account")
    code = provider.authorize(address)
    browser.post("/logout", "/account")
    joined.person("ada@example.org", "owner")
    browser.log_in("ada@example.org")
    assert browser.get("/login/sso/callback", params={"code": code, "state": state}).status_code == 403
    assert joined.find("ada@example.org").subject is None
    assert joined.find("mallory@example.org").subject is None


def test_who_is_blocked_stays_out(joined: World, provider: IdentityProvider) -> None:
    visit(joined.browser(), provider)
    with joined.hub.database.begin() as db:
        db.get_one(Person, joined.find("ada@example.org").id).blocked = True
    browser = joined.browser()
    assert visit(browser, provider).status_code == 403
    assert browser.who() == ""


def test_an_invitation_counts_where_there_is_one(joined: World, provider: IdentityProvider) -> None:
    root = joined.logged_in("root@example.org", "administrator")
    root.api("POST", "/people/invitations", json={"email": "ada@example.org", "roles": ["owner"]})
    assert visit(joined.browser(), provider).status_code == 303
    with joined.hub.database.reading() as db:
        assert roles_of(db, joined.find("ada@example.org").id) == ("owner",)


def test_an_invitation_without_roles_counts_too(joined: World, provider: IdentityProvider) -> None:
    root = joined.logged_in("root@example.org", "administrator")
    root.api("POST", "/people/invitations", json={"email": "ada@example.org", "roles": []})
    assert visit(joined.browser(), provider).status_code == 303
    with joined.hub.database.reading() as db:
        assert roles_of(db, joined.find("ada@example.org").id) == ()


def test_without_roles_nobody_comes_uninvited(world: World, provider: IdentityProvider) -> None:
    world = world.again(oidc_issuer=provider.issuer, oidc_client=CLIENT, oidc_secret=SECRET, oidc_roles="")
    assert visit(world.browser(), provider).status_code == 403
    assert people(world) == 0
    world.close()


def test_the_second_factor_is_asked_for_here_too(world: World, provider: IdentityProvider) -> None:
    world = world.again(oidc_issuer=provider.issuer, oidc_client=CLIENT, oidc_secret=SECRET, second_factor="everyone")
    browser = world.browser()
    assert visit(browser, provider).status_code == 303
    assert browser.who() == ""
    assert browser.get("/login/second").headers["location"] == "/account/second-factor"
    world.close()
