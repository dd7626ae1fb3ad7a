"""Moved: `cloister.hub.records.trail`."""

from cloister.hub.records.trail import *  # noqa: F403
