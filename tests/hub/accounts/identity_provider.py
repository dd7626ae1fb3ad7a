"""A small identity provider on loopback, which tells the truth unless a test says otherwise."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

CLIENT, SECRET = "hub", "s3cret & more"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@functools.cache
def _first_key() -> rsa.RSAPrivateKey:
    """The key that each provider begins with: to make one takes longer than most tests."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class IdentityProvider:
    """Codes, proofs and keys. `change` is what a test alters in the claims; `header` in the proof's header."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.key = _first_key()
        self.name_of_key = "one"
        self.claims: dict[str, Any] = {"sub": "248289761001", "email": "ada@example.org", "email_verified": True, "name": "Ada"}
        self.change: dict[str, Any] = {}
        self.metadata: dict[str, Any] = {}
        self.userinfo: dict[str, Any] = {}
        self.forge: Callable[[dict[str, Any]], str] | None = None
        self.asked: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.startswith("/authorize?"):
                    self.send_response(302)
                    self.send_header("Location", provider.agree(provider.issuer + self.path))
                    self.end_headers()
                    return
                self._answer(provider.get(self.path, self.headers.get("Authorization", "")))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self._answer(provider.exchange(parse_qs(body), self.headers.get("Authorization", "")))

            def _answer(self, what: tuple[int, dict[str, Any]]) -> None:
                status, found = what
                data = json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)  # to be closed at once
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=10)

    def get(self, path: str, authorization: str) -> tuple[int, dict[str, Any]]:
        self.asked.append(path)
        if path == "/.well-known/openid-configuration":
            return 200, {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "userinfo_endpoint": f"{self.issuer}/me",
            } | self.metadata
        if path == "/keys":
            numbers = self.key.public_key().public_numbers()
            known = {"kty": "RSA", "use": "sig", "kid": self.name_of_key, "alg": "RS256"}
            known |= {name: encoded(value.to_bytes((value.bit_length() + 7) // 8, "big")) for name, value in
                      (("n", numbers.n), ("e", numbers.e))}  # fmt: skip
            return 200, {"keys": [{"kty": "new"}, {"kty": "oct", "k": "AA", "kid": "oct"}, known]}
        if path == "/me" and authorization == "Bearer access":
            return 200, self.userinfo
        return 404, {}

    def authorize(self, address: str) -> str:
        """What the provider's page does when the person agrees: a code for what the browser brought."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert address.startswith(f"{self.issuer}/authorize?")
        assert (asked["response_type"], asked["client_id"], asked["code_challenge_method"]) == ("code", CLIENT, "S256")
        assert "openid" in asked["scope"].split()
        code = f"code-{len(self._codes)}"
        self._codes[code] = asked
        return code

    def agree(self, address: str) -> str:
        """Where the provider sends a browser back to."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        answer = urlencode({"code": self.authorize(address), "state": asked["state"], "iss": self.issuer})
        return f"{asked['redirect_uri']}?{answer}"

    def exchange(self, form: dict[str, list[str]], authorization: str) -> tuple[int, dict[str, Any]]:
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        asked = self._codes.pop(form["code"][0], None)
        if pair != "hub:s3cret%20%26%20more" or asked is None or form["redirect_uri"][0] != asked["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        if encoded(hashlib.sha256(form["code_verifier"][0].encode()).digest()) != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        now = int(self.clock())
        claims = {"iss": self.issuer, "aud": CLIENT, "exp": now + 300, "iat": now, "nonce": asked["nonce"]} | self.claims
        claims = {name: value for name, value in (claims | self.change).items() if value is not None}
        proof = self.forge(claims) if self.forge else self.signed(claims)
        return 200, {"access_token": "access", "token_type": "Bearer", "id_token": proof}

    def signed(self, claims: dict[str, Any], **header: Any) -> str:
        head = {"alg": "RS256", "typ": "JWT", "kid": self.name_of_key} | header
        text = ".".join(encoded(json.dumps(part).encode()) for part in (head, claims))
        return f"{text}.{encoded(self.key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"
