"""Which tests `make test` runs and which `make prove`; which form of a long test runs by day, and which at night.

`make test` has what a change of logic can break. What proves the rest stands in `PROVED`, goes through a browser, or asks Spark.

A test that gets stronger with every run of a mechanism runs each day in a small form, and at night, marked `slow`, in full. None
goes to the night alone: what it looks for is looked for by day, too, with less power or in fewer cases. CONTRIBUTING.md lists
what each tier holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatch
from functools import cache
from typing import Any
from zlib import crc32

import pytest

PROVED = {
    "statistical/*": "distributions and coverage",
    "security/*": "attacks on the session from outside",
    "hub/security/*": "every request by everybody, API fuzzing, canaries",
    "hub/faults/*": "servers, databases and disks that fail",
    "hub/stories/*": "whole days of several people",
    "cli/test_help_examples.py": "every example of --help",
    "hub/jobs/test_restart.py": "kills",
    "hub/learning/test_begun_again.py": "kills",
    "*/test_killed.py": "kills",
    "*/test_hub_killed.py": "kills",
    "*/test_crashes.py": "kills",
    "*/test_in_browser.py": "browsers",
    "*/test_*_in_browser.py": "browsers",
    "hub/web/test_narrow.py": "browsers",
    "hub/web/test_screenshots.py": "browsers",
    "attacks/test_broken_twins.py": "audits of mechanisms",
    "attacks/test_canaries.py": "audits of mechanisms",
    "attacks/test_every_mechanism.py": "audits of mechanisms",
    "attacks/test_famous.py": "attacks of the literature",
    "attacks/test_held_rows.py": "audits of mechanisms",
    "attacks/test_models.py": "audits of models",
    "together/test_floods.py": "attacks over the wire",
    "cli/test_demo.py": "the demo",
    "docs/test_book_*.py": "figures and tables of books",
    "docs/test_build.py": "the site",
    "docs/test_commands.py": "commands of the documentation",
    "docs/test_deploy.py": "containers and services",
    "docs/test_examples.py": "programs of examples/",
    "docs/test_figures.py": "figures",
    "docs/test_notebooks.py": "notebooks",
    "scripts/test_bench.py": "the benchmarks' own frame",
    "stored/test_damaged.py": "each stored column, damaged",
    "test_samples.py": "the sample data",
}
"""Files of tests/ that `make prove` runs, by pattern, with what they prove."""
SPARK_BY_DAY = (
    "engines/test_engines.py::test_numbers_of_every_spelling[",
    "engines/test_engines.py::test_tables_of_no_rows_and_one[",
    "engines/test_engines.py::test_a_failure_says_nothing_of_the_rows[",
    "engines/test_relation.py::test_each_kind_of_relation[spark-base]",
    "engines/test_relation.py::test_each_kind_of_relation[spark-filtered]",
    "engines/test_relation.py::test_each_kind_of_relation[spark-joined]",
    "engines/test_scalars.py::test_dates[",
    "engines/test_session.py::test_every_construct_has_the_same_answer_on_every_engine[",
    "engines/test_sites.py::test_a_site_aggregates_where_its_rows_are[",
    "engines/test_synth.py::test_the_same_tables_are_measured_on_every_engine[",
)
"""A dozen tests of Spark that `make test` runs; `make prove` has the others."""


BY_THIRDS = frozenset(
    {
        "anonymize/test_lattice.py::test_the_best_of_all",
        "attacks/test_broken_twins.py::test_the_broken_twin_is_caught",
        "attacks/test_broken_twins.py::test_the_mended_twin_is_not",
        "attacks/test_every_mechanism.py::test_no_fraction_and_no_size_of_a_number_breaks_the_guarantee",
        "attacks/test_every_mechanism.py::test_the_guarantee_is_kept_and_the_audit_would_notice_if_it_were_not",
        "hub/anonymizing/test_picture.py::test_no_name_is_on_another_and_none_is_outside",
        "hub/trail/test_pages.py::test_each",
        "hub/web/test_chinese_refusals.py::test_what_is_refused_on_other_pages",
        "learn/test_accountant.py::test_dp_accounting_agrees",
        "learn/test_every_model.py::test_model",
        "learn/test_kernel.py::test_nothing_breaks_it",
        "learn/test_kmeans_tables.py::test_any_number_of_clusters_and_rounds",
        "learn/test_kmeans_tables.py::test_no_rows_and_no_noise_break_it",
        "local/test_numeric.py::test_the_mean_squared_error_is_the_stated_one",
        "local/test_optimal.py::test_the_channel_keeps_epsilon_and_means_are_unbiased_at_every_grid_and_epsilon",
        "noise/test_matrix.py::test_the_best_strategy_beats_every_candidate_and_no_bound",
        "pgwire/test_catalogue.py::test_what_tools_ask_is_answered_in_both_protocols",
        "privacy/test_accounting.py::test_a_sampled_laplace_release_is_its_exact_curve",
        "query/test_against_duckdb.py::test_the_answer_without_noise_is_duckdbs",
        "query/test_postprocessing.py::test_the_values_are_those_of_duckdb",
        "query/test_postprocessing_worlds.py::test_no_number_within_its_interval_leads_out_of_an_interval_of_the_result",
        "query/test_spellings.py::test_the_answer_is_duckdbs",
        "query/test_touched.py::test_without_what_it_touches_it_cannot_be_planned_and_without_all_else_it_can",
        "query/test_tpch.py::test_what_is_said_of_a_customer_narrows_the_margins",
        "query/test_views.py::test_a_battery_of_questions_sees_no_other_row",
        "query/test_views.py::test_a_view_is_the_table_without_the_other_rows",
        "session/test_marginals.py::test_no_other_shares_are_better",
        "statistical/test_coverage.py::test_margins_cover_as_often_as_they_say",
        "statistical/test_coverage_local.py::test_margins_cover_as_often_as_they_say",
        "statistical/test_coverage_statistics.py::test_margins_cover_as_often_as_they_say",
        "statistical/test_samplers.py::test_discrete_gaussian_has_its_shape",
        "statistical/test_statistics.py::test_moments_are_covered",
        "statistical/test_statistics.py::test_quantiles_are_covered",
        "synth/test_choosing.py::test_all_is_charged_once_and_the_same_again_costs_nothing",
        "synth/test_choosing.py::test_the_acts_take_all_of_the_spend_and_no_more",
        "synth/test_rules.py::test_rows_under_conditions_on_any_column_obey_too",
        "tables/test_table.py::test_whether_a_column_of_objects_opens_does_not_depend_on_a_row",
        "together/circuits/test_language.py::test_integers_and_gates_agree_to_the_last_bit",
        "together/circuits/test_protocol.py::test_hostile_messages_are_refused",
        "together/test_panel.py::test_a_question_is_answered_and_charged",
        "traces/test_stored_windows.py::test_resumed_after_each_step_it_goes_on_as_if_it_had_not_stopped",
    }
)
"""Tests of many dear cases that look for one thing: by day a third of the cases, all of them at night."""


def proves(file: str, name: str, *, spark: bool, browser: bool) -> bool:
    """Whether a test belongs to `make prove`: by its file below tests/, its name, and what it needs.

    >>> proves("engines/test_scalars.py", "test_dates[spark]", spark=True, browser=False)
    False
    >>> proves("hub/jobs/test_killed.py", "test_a_worker_that_is_killed", spark=False, browser=False)
    True
    """
    if browser or _proved(file):
        return True
    return spark and not f"{file}::{name}".startswith(SPARK_BY_DAY)


def left_to_the_night(names: Sequence[str]) -> set[str]:
    """Of the cases of one such test those that run at night alone: two of three by their names; the first and the last never.

    >>> sorted({"t[a]", "t[b]", "t[c]", "t[d]", "t[e]"} - left_to_the_night(["t[a]", "t[b]", "t[c]", "t[d]", "t[e]"]))
    ['t[a]', 't[c]', 't[d]', 't[e]']
    """
    return {name for name in names[1:-1] if crc32(name.encode()) % 3}


@cache
def _proved(file: str) -> bool:
    return any(fnmatch(file, pattern) for pattern in PROVED)


def by_day_and_night(name: str, day: int, night: int) -> pytest.MarkDecorator:
    """Run a test with two sizes: `day` in every run of the tests, `night` only among the slow ones."""
    return pytest.mark.parametrize(
        name, [pytest.param(day, id=f"{day} {name}"), pytest.param(night, id=f"{night} {name}", marks=pytest.mark.slow)]
    )


def some_by_day(
    names: str, cases: Iterable[Any], day: Callable[[Any], bool], ids: Callable[[Any], str] | None = None
) -> pytest.MarkDecorator:
    """Run a test over all cases at night, and in every run of the tests over the fixed selection that `day` chooses."""
    given = [*cases]
    chosen = [day(case) for case in given]
    if not any(chosen):
        raise ValueError(f"no case of {names} runs by day")
    several = "," in names
    return pytest.mark.parametrize(
        names,
        [
            pytest.param(*(case if several else (case,)), marks=[] if by_day else [pytest.mark.slow])
            for case, by_day in zip(given, chosen, strict=True)
        ],
        ids=ids,
    )


def pairwise(cases: Iterable[tuple[Any, ...]]) -> Callable[[tuple[Any, ...]], bool]:
    """A selection of cases in which each two values that meet anywhere meet once: what breaks two of them together is found."""
    given = [*cases]
    left = {pair for case in given for pair in _pairs(case)}
    chosen: list[int] = []
    while left:
        best = max(range(len(given)), key=lambda number: len(_pairs(given[number]) & left))
        chosen.append(best)
        left -= _pairs(given[best])
    return lambda case: any(given[number] == case for number in chosen)


def _pairs(case: tuple[Any, ...]) -> set[tuple[int, str, int, str]]:
    return {(i, repr(one), j, repr(case[j])) for j in range(len(case)) for i, one in enumerate(case[:j])}
