"""Searches: ways of finding a recoding that meets the models and loses little."""
