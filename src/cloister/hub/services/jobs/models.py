"""Moved: `cloister.hub.records.jobs`."""

from cloister.hub.records.jobs import *  # noqa: F403
