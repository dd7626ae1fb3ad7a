"""One person who asks a hub, one question after another, and keeps what was told."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx

from tests.hub.faults.clients import question
from tests.hub.faults.prepared import COST, Prepared

REFUSALS = {(503, "database"), (503, "ledger"), (502, "engine")}
"""How a hub that lacks something says so."""


class Asker:
    """Asks questions that nobody asked before."""

    def __init__(self, place: Prepared, address: str) -> None:
        self.address = address
        bearer = {"Authorization": f"Bearer {place.tokens[0]}"}
        self._http = httpx.Client(base_url=address, timeout=60, trust_env=False, headers=bearer)
        self.received: list[dict[str, Any]] = []

    def ask(self) -> tuple[int, str]:
        """Status and code; 0 where no answer came."""
        number = len(self.received)
        body = {"sql": question(number), "spend": COST}
        try:
            answer = self._http.post("/api/v1/questions", json=body, headers={"Idempotency-Key": f"key-0-{number}"})
        except httpx.TransportError as error:
            self.received.append({"number": number, "status": 0})
            return 0, type(error).__name__
        told = answer.json()
        self.received.append(
            {
                "number": number,
                "status": answer.status_code,
                "release": told.get("id", ""),
                "digest": hashlib.sha256(answer.content).hexdigest(),
            }
        )
        return answer.status_code, told.get("code", "")

    def get(self, path: str) -> httpx.Response:
        """Something that only reads."""
        return self._http.get(path)

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()
