"""Moved: `cloister.hub.records.budgets`."""

from cloister.hub.records.budgets import *  # noqa: F403
