"""Shares of a randomised survey."""

from __future__ import annotations

from typing import Any

from scripts.gallery import drawn


def chart() -> Any:
    """As the gallery's snippet draws it."""
    return drawn("gallery_survey")
