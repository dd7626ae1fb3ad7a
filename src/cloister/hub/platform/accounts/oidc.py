"""An identity provider, as OpenID Connect Core 1.0 and RFC 9700 say: authorization code with PKCE, nonce and state; nothing is
believed that was not signed by the provider's published keys, for this hub, for this sign-in, just now.

The provider is the administrator's setting; the addresses that it publishes must be as well protected as its own.
"""

import base64
import ipaddress
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri  # type: ignore[import-untyped]
from authlib.oauth2.rfc7636 import create_s256_code_challenge  # type: ignore[import-untyped]
from authlib.oidc.core import CodeIDToken  # type: ignore[import-untyped]
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import import_key

from cloister.errors import AccessDenied, EngineError
from cloister.hub.web.languages import N_

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
"""Signatures by the provider's own key: neither none, nor one by a secret that we know too."""
_LARGEST = 2**20
_SECONDS = 10.0
_FRESH = 3600.0
_LEEWAY = 60
_OLDEST = 600
"""Seconds since a proof of identity was made: it comes straight from the provider."""
_LONGEST_SUBJECT = 255


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who somebody is, as the provider says."""

    subject: str
    """Issuer and subject: no other pair of them is this person."""
    email: str
    verified: bool
    name: str


class Provider:
    """One provider. What it publishes is asked for once an hour, but its keys for each proof: one that it withdrew is none."""

    def __init__(self, *, issuer: str, client: str, secret: str, clock: Callable[[], float]) -> None:
        self.issuer = issuer
        self._client = client
        self._secret = secret
        self._clock = clock
        self._lock = threading.Lock()
        self._metadata: tuple[float, Mapping[str, Any]] | None = None

    def address(self, *, back: str, state: str, nonce: str, verifier: str) -> str:
        """Where to send the browser."""
        return str(
            prepare_grant_uri(
                self._endpoint("authorization_endpoint"),
                client_id=self._client,
                response_type="code",
                redirect_uri=back,
                scope="openid email profile",
                state=state,
                nonce=nonce,
                code_challenge=create_s256_code_challenge(verifier),
                code_challenge_method="S256",
            )
        )

    def check_answer(self, given: str | None) -> None:
        """Refuse an answer of another provider (RFC 9207): the issuer that it names, and one that it must name."""
        promised = self._published().get("authorization_response_iss_parameter_supported") is True
        if given != self.issuer and (given is not None or promised):
            raise _refused("the answer is from another identity provider")

    def identity(self, *, code: str, back: str, verifier: str, nonce: str) -> Identity:
        """Who came back with a code: exchanged for a signed proof, every claim of which is checked."""
        tokens = self._exchange(code, back, verifier)
        claims = self._proven(str(tokens.get("id_token", "")), nonce, tokens.get("access_token"))
        told: Mapping[str, Any] = claims
        if "email" not in claims and self._published().get("userinfo_endpoint"):
            told = self._asked(str(tokens.get("access_token", "")), claims["sub"])
        email, name = told.get("email"), told.get("name")
        return Identity(
            subject=f"{self.issuer} {claims['sub']}",
            email=email if isinstance(email, str) and email.isprintable() else "",
            verified=told.get("email_verified") is True,
            name=name if isinstance(name, str) else "",
        )

    def _exchange(self, code: str, back: str, verifier: str) -> Mapping[str, Any]:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back, "code_verifier": verifier}
        headers = {}
        if self._secret:
            pair = f"{quote(self._client, safe='')}:{quote(self._secret, safe='')}"
            headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        else:
            form["client_id"] = self._client
        return self._json("POST", self._endpoint("token_endpoint"), data=form, headers=headers, refusal=N_("it refused the code"))

    def _proven(self, token: str, nonce: str, access: Any) -> Mapping[str, Any]:
        """The claims of an ID token whose signature and claims hold."""
        try:
            found = jwt.decode(token, self._key_for(token), algorithms=list(_ALGORITHMS))
            claims = CodeIDToken(
                found.claims,
                found.header,
                {
                    "iss": {"essential": True, "value": self.issuer},
                    "aud": {"essential": True, "value": self._client},
                    "sub": {"essential": True},
                },
                {"nonce": nonce, "client_id": self._client, "access_token": access if isinstance(access, str) else None},
            )
            now = int(self._clock())
            claims.validate(now, _LEEWAY)
            subject, made = claims["sub"], float(claims["iat"])
        except (JoseError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            raise _refused("the proof of identity does not hold") from None
        # what authlib takes a list for is one text here (OpenID Connect Core, 2)
        plain = claims["iss"] == self.issuer and claims.get("nonce") == nonce and claims.get("azp", self._client) == self._client
        good = isinstance(subject, str) and 0 < len(subject) <= _LONGEST_SUBJECT and subject.isprintable()
        if not plain or not good or not abs(now - made) <= _OLDEST:
            raise _refused("the proof of identity does not hold")
        return dict(claims)

    def _asked(self, access: str, subject: str) -> Mapping[str, Any]:
        """What the provider says of the person where the proof holds only who they are."""
        headers = {"Authorization": f"Bearer {access}"}
        told = self._json("GET", self._endpoint("userinfo_endpoint"), headers=headers, refusal=N_("it did not say who this is"))
        if told.get("sub") != subject:
            raise _refused("it spoke of another person")
        return told

    def _key_for(self, token: str) -> Any:
        head = token.split(".", 1)[0]
        header = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
        name, keys = header.get("kid"), self._published_keys()
        if name is None and len(keys) == 1:
            return next(iter(keys.values()))
        return keys[str(name)]

    def _published_keys(self) -> Mapping[str, Any]:
        """The provider's public keys of this moment by their names."""
        found: dict[str, Any] = {}
        listed = self._json("GET", self._endpoint("jwks_uri"), refusal=N_("it did not show its keys")).get("keys")
        for number, each in enumerate(listed if isinstance(listed, list) else []):
            if not isinstance(each, dict) or each.get("use", "sig") != "sig" or each.get("kty") not in ("RSA", "EC", "OKP"):
                continue
            try:
                found[str(each.get("kid", f"unnamed {number}"))] = import_key(each)
            except (JoseError, ValueError, TypeError, KeyError):
                continue  # a key of a kind that is new to us is no key for us
        return found

    def _published(self) -> Mapping[str, Any]:
        with self._lock:
            known = self._metadata
        if known is not None and self._clock() - known[0] < _FRESH:
            return known[1]
        address = self.issuer.rstrip("/") + "/.well-known/openid-configuration"
        found = self._json("GET", address, refusal=N_("it publishes no configuration"))
        if found.get("issuer") != self.issuer:
            raise _refused("the identity provider calls itself by another name than the setting oidc_issuer")
        with self._lock:
            self._metadata = (self._clock(), found)
        return found

    def _endpoint(self, name: str) -> str:
        address = self._published().get(name)
        if not isinstance(address, str) or not self._protected(address):
            raise _refused(f"the identity provider's {name} is not an address reached by https")
        return address

    def _protected(self, address: str) -> bool:
        """Whether an address is reached by https, or is on this machine as the provider itself is."""
        place = urlsplit(address)
        return place.scheme == "https" or (place.scheme == "http" and _here(self.issuer) and _here(address))

    def _json(self, method: str, address: str, *, refusal: str, **request: Any) -> Mapping[str, Any]:
        """The JSON object that an address of the provider answers with."""
        if not self._protected(address):
            raise _refused("the identity provider is not reached by https")
        try:
            with (
                httpx.Client(timeout=_SECONDS, follow_redirects=False, trust_env=not _here(address)) as client,
                client.stream(method, address, **request) as answer,
            ):
                body = b""
                for piece in answer.iter_bytes():
                    body += piece
                    if len(body) > _LARGEST:
                        raise _refused("the identity provider's answer is too large")
        except httpx.HTTPError:
            raise EngineError(
                "The identity provider did not answer", why="it is away or slow", instead="a password, or try again"
            ) from None
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if answer.status_code != 200 or not isinstance(found, dict):
            raise _refused(f"the identity provider was asked, and {refusal}")
        return found


def _here(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refused(why: str) -> AccessDenied:
    return AccessDenied("Single sign-on failed", why=why, instead="/login")
