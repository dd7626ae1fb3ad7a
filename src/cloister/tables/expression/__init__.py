"""Conditions and computed columns: one small typed language with one meaning on every engine."""
