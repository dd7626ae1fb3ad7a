"""What the routes of questions share, in the API and on pages."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query, Request

from cloister.hub.web.forms import written_here

Number = Annotated[str, Path(max_length=32, pattern=r"^[A-Za-z0-9_-]+$")]
After = Annotated[str, Query(max_length=32, pattern=r"^[A-Za-z0-9_-]*$", description="The `next` of the page before.")]
Confidence = Annotated[float, Query(gt=0.5, lt=1)]


async def ticked(request: Request) -> None:
    """Let the answer, whatever it is, wait for the next tick of the clock (`gates.py`)."""
    request.state.ticked = True


TICKED = Depends(ticked)
WRITTEN = Depends(written_here)
