"""The model card: what a model learnt from, what it promises, what was spent on what, and what was found out about it.

A card says what it was told and what the model holds; it reads no row. What was found out on private rows has a price, and the
card names it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from cloister.errors import InvalidParameter
from cloister.learn.assessment.scores import Confusion, Reliability, Score
from cloister.learn.frame.portable import plain, read_guarantee, read_spent, spent_of, write_guarantee
from cloister.noise.allowance import Share
from cloister.printable import escape
from cloister.privacy import Guarantee

if TYPE_CHECKING:
    from cloister.learn.assessment.curve import Curve
    from cloister.learn.frame.base import PrivateModel

_FORMAT = 1
_HIDDEN = ("epsilon", "delta", "bounds", "bounds_y", "classes", "privacy", "random")
_NOT_PRIVATE = "NOT PRIVATE: learnt without noise; to be compared with, never to be published"


@dataclass(frozen=True, kw_only=True)
class CardLine:
    """A section's line: what, and what is said of it."""

    what: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is to be known of one model before it is used. Frozen, and portable as JSON.

    >>> from cloister.learn import BoundedScaler
    >>> card = BoundedScaler(bounds=(0, 1)).fit([[0.5]]).card(data="a toy", date="2026-05-01")
    >>> print(card.text())  # doctest: +ELLIPSIS
    BoundedScaler: Scaling by declared bounds
      data set    a toy
      date        2026-05-01
      guarantee   ε = 0
    ...
    >>> Card.from_json(card.to_json()) == card
    True
    """

    model: str
    title: str
    data: str
    date: str
    guarantee: Guarantee | None
    spent: tuple[Share, ...]
    marked: bool
    features: tuple[tuple[str, float, float], ...]
    """Each with its declared bounds."""
    target: str
    parameters: tuple[tuple[str, str], ...]
    findings: tuple[CardLine, ...]
    warnings: tuple[str, ...]

    def sections(self) -> list[tuple[str, list[CardLine]]]:
        """Everything that it says, in order: what all renderings are made of."""
        about = [CardLine(what="data set", text=self.data or "not said"), CardLine(what="date", text=self.date or "not said")]
        about.append(CardLine(what="guarantee", text=_NOT_PRIVATE if self.guarantee is None else str(self.guarantee)))
        if self.target:
            about.append(CardLine(what="target", text=self.target))
        spent = [
            CardLine(what=line.what, text=f"{str(line).rpartition(': ')[2]} ({float(line.portion):.1%})") for line in self.spent
        ]
        bounds = [CardLine(what=name, text=f"{low:g} to {high:g}") for name, low, high in self.features]
        chosen = [CardLine(what=name, text=value) for name, value in self.parameters]
        named = (
            ("", about),
            ("Charges by statistic", spent),
            ("Results", list(self.findings)),
            ("Declared bounds", bounds),
            ("Parameters", chosen),
        )
        return [(title, lines) for title, lines in named if lines]

    def text(self) -> str:
        """For a terminal.

        The widest word of a section sets its column.
        """
        parts = [self._heading()]
        parts += [f"  ! {warning}" for warning in self.warnings]
        for title, lines in self.sections():
            wide = max(len(line.what) for line in lines) + 3
            parts += [f"  {title}"] if title else []
            parts += [f"  {'  ' if title else ''}{line.what.ljust(wide)}{line.text}" for line in lines]
        return "\n".join(parts)

    def markdown(self) -> str:
        """For a repository or a report."""
        parts = [f"# {_marked_down(self._heading())}", *(f"> **{_marked_down(warning)}**" for warning in self.warnings)]
        for title, lines in self.sections():
            rows = "\n".join(f"| {_marked_down(line.what)} | {_marked_down(line.text)} |" for line in lines)
            parts += [f"## {title}"] if title else []
            parts.append(f"| | |\n|---|---|\n{rows}")
        return "\n\n".join(parts) + "\n"

    def fragment(self) -> str:
        """For a page: HTML without a head, with nothing in it that could run."""
        parts = ['<article class="model-card">', f"<h2>{escape(self._heading())}</h2>"]
        parts += [f'<p class="warning" role="note">{escape(warning)}</p>' for warning in self.warnings]
        for title, lines in self.sections():
            rows = "".join(f'<tr><th scope="row">{escape(line.what)}</th><td>{escape(line.text)}</td></tr>' for line in lines)
            parts += [f"<h3>{escape(title)}</h3>"] if title else []
            parts.append(f"<table><tbody>{rows}</tbody></table>")
        return "\n".join([*parts, "</article>"])

    def to_json(self) -> str:
        """For a program; `from_json` reads it."""
        document = {name: getattr(self, name) for name in ("model", "title", "data", "date", "marked", "target")} | {
            "format": _FORMAT,
            "guarantee": write_guarantee(self.guarantee),
            "spent": spent_of(self.spent),
            "features": [list(feature) for feature in self.features],
            "parameters": [list(pair) for pair in self.parameters],
            "findings": [[line.what, line.text] for line in self.findings],
            "warnings": list(self.warnings),
        }
        return json.dumps(document, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Card:
        """A card from its JSON."""
        try:
            read = json.loads(text)
            if read["format"] != _FORMAT:
                raise ValueError
            plainly = {name: str(read[name]) for name in ("model", "title", "data", "date", "target")}
            return cls(
                **plainly,
                marked=bool(read["marked"]),
                guarantee=read_guarantee(read["guarantee"]),
                spent=read_spent(read["spent"]),
                features=tuple((str(name), float(low), float(high)) for name, low, high in read["features"]),
                parameters=tuple((str(name), str(value)) for name, value in read["parameters"]),
                findings=tuple(CardLine(what=str(what), text=str(said)) for what, said in read["findings"]),
                warnings=tuple(str(warning) for warning in read["warnings"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            raise InvalidParameter(
                "The card is invalid", why="it is not a card that this library wrote", instead="Card.from_json(card.to_json())"
            ) from None

    def _heading(self) -> str:
        return f"{self.model}: {self.title}" if self.title else self.model

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.fragment()


def card_of(
    model: PrivateModel,
    *,
    data: str = "",
    date: str = "",
    target: str = "",
    evaluation: Score | Sequence[Score] = (),
    expected: Curve | Mapping[str, Any] | str | None = None,
    membership: Mapping[str, Any] | float | None = None,
) -> Card:
    """The card of a fitted model.

    `evaluation`: scores that were released of it, each with its own cost. `expected`: how much worse it is expected to be than
    without privacy: a `Curve`, made on public or synthetic rows, or the caller's own words. `membership`: what an attack of
    `cloister.attacks` found: a number (the advantage of the attacker), or several by name. The date is the caller's: a card has
    no clock.

    >>> from cloister.learn.frame.examples import Threshold
    >>> model = Threshold(bounds=(0, 1)).fit([[0.2], [0.8]] * 100, [0, 1] * 100)
    >>> card_of(model, membership=0.01).findings
    (CardLine(what='membership inference', text='advantage 0.01'),)
    """
    from cloister.learn.frame.catalogue import METHODS, name_of

    check_is_fitted(model)
    scores = [evaluation] if isinstance(evaluation, Score) else list(evaluation)
    findings = [*_of_scores(scores), *_of_expected(expected, model), *_of_membership(membership)]
    name = name_of(model)
    return Card(
        model=name,
        title=METHODS[name].title if name in METHODS else "",
        data=data,
        date=date,
        guarantee=model.guarantee_,
        spent=tuple(model.spent_),
        marked=model.marked_,
        features=_features(model),
        target=target or _target(model),
        parameters=tuple((key, _shown(value)) for key, value in model._said_parameters().items() if key not in _HIDDEN),
        findings=tuple(findings),
        warnings=tuple(_warnings(model, scores)),
    )


def _warnings(model: PrivateModel, scores: Sequence[Score]) -> list[str]:
    said = []
    if model.guarantee_ is None:
        said.append(_NOT_PRIVATE)
    if model.marked_:
        said.append("its noise came from a generator made for tests, which can be foretold: nothing is promised")
    for score in scores:
        if score.guarantee is None:
            said.append(f"the {score.name} was found without noise: it is not private")
        if isinstance(score, Confusion) and score.worse_than_silence:
            silence = f"{score.silence.value:.1%}".replace("%", " %")
            said.append(f"a majority-class guess would be right {silence}: this model is worse than silence")
    return said


def _of_scores(scores: Sequence[Score]) -> list[CardLine]:
    lines = []
    for score in scores:
        shown = score.accuracy if isinstance(score, Confusion | Reliability) else score
        promise = "not private" if score.guarantee is None else f"bought with {score.guarantee}"
        lines.append(CardLine(what=shown.name, text=f"{shown.told}, {promise}"))
        if isinstance(score, Confusion):
            lines.append(CardLine(what="a guess of the commonest class", text=score.silence.told))
    return lines


def _of_expected(expected: Curve | Mapping[str, Any] | str | None, model: PrivateModel) -> list[CardLine]:
    what = "expected loss against no privacy"
    if expected is None:
        return []
    if isinstance(expected, Mapping):
        return [CardLine(what=f"{what}: {key}", text=_shown(value)) for key, value in expected.items()]
    if isinstance(expected, str):
        return [CardLine(what=what, text=expected)]
    point = expected.nearest(getattr(model.guarantee_, "epsilon", None))
    if expected.plain is None or point is None:
        return []
    lost = (expected.plain.mean - point.mean) * (-1 if expected.measure == "mean_squared_error" else 1) + 0.0
    said = f"{lost:.3g} of {expected.measure} at ε = {float(point.epsilon or 0):g} (from {expected.rows}; {point.runs} runs)"
    return [CardLine(what=what, text=said)]


def _of_membership(membership: Mapping[str, Any] | float | None) -> list[CardLine]:
    if membership is None:
        return []
    if isinstance(membership, Mapping):
        return [CardLine(what=f"membership inference: {key}", text=_shown(value)) for key, value in membership.items()]
    return [CardLine(what="membership inference", text=f"advantage {membership:.3g}")]


def _features(model: PrivateModel) -> tuple[tuple[str, float, float], ...]:
    from cloister.learn.frame.bounds import box_of

    count = model.n_features_in_
    names = [str(name) for name in getattr(model, "feature_names_in_", [f"feature {place}" for place in range(count)])]
    if getattr(model, "bounds", None) is None:
        return ()
    box = box_of(model.bounds, features=count)
    return tuple(zip(names, box.low.tolist(), box.high.tolist(), strict=True))


def _target(model: PrivateModel) -> str:
    if model.target_kind == "class":
        return f"one of {', '.join(str(value) for value in model.classes_.tolist())}"
    if model.target_kind == "number" and hasattr(model, "bounds_y_"):
        low, high = model.bounds_y_
        return f"{low:g} to {high:g}"
    return ""


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False, default=str)


def _marked_down(text: str) -> str:
    """A text in a cell: no character of it is taken for a mark, or for HTML."""
    for character in "\\`*_|[]#":
        text = text.replace(character, f"\\{character}")
    return escape(text.replace("\n", " "), quote=False)
