"""What routes share, in the API and on pages."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Header, Path, Query, Request

from cloister.hub.web.forms import written_here

Number = Annotated[str, Path(max_length=32, pattern=r"^[A-Za-z0-9_-]+$")]
After = Annotated[str, Query(max_length=32, pattern=r"^[A-Za-z0-9_-]*$", description="The `next` of the page before.")]
Confidence = Annotated[float, Query(gt=0.5, lt=1)]
IdempotencyKey = Annotated[str, Header(alias="Idempotency-Key", min_length=1, max_length=200)]


async def ticked(request: Request) -> None:
    """Let the answer, whatever it is, wait for the next tick of the clock (`middleware.py`)."""
    request.state.ticked = True


TICKED = Depends(ticked)
WRITTEN = Depends(written_here)


def attachment(name: str) -> dict[str, str]:
    """The headers that make a browser keep an answer as a file."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}
