"""Moved: `cloister.hub.records.accounts`."""

from cloister.hub.records.accounts import *  # noqa: F403
