"""Moved: `cloister.hub.records.access`."""

from cloister.hub.records.access import *  # noqa: F403
