"""Why values are missing, as a person writes it down: a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logit

from missratio._base.hints import did_you_mean, listed
from missratio._base.typing import FloatArray
from missratio._files.numbers import canonical
from missratio.app.tables import Encoder
from missratio.exceptions import TableError
from missratio.missingness import (
    Block,
    BlockMissingness,
    LogisticMissingness,
    Missingness,
    StepMissingness,
)

KINDS = ("logistic", "step")
UNITS = ("values", "rows")
# A file of this kind is written by hand.
_MOST_BYTES = 2**22
_SHOWN = 60
NEVER = -700.0

EXAMPLE = """\
# Why values are missing: for each class by itself, in the units of your table.
# A class that is left out has nothing missing; nor has a column that is left out.
# Give this file to `missratio fit` by --missingness.

# 1. Single values go missing, with log-odds that are a line in the value itself:
#    P(missing | value) = 1 / (1 + exp(-(intercept + coef * value))).
[classes.well]
missing = "values"
kind = "logistic"

[classes.well.features.pulse]
intercept = -9.0
coef = 0.1

[classes.well.features.sugar]
intercept = -2.0
coef = 0.0          # the same for all values: missing completely at random

# A column of categories has P(missing) for each of its levels, 0 for others:
#
# [classes.well.features.ward]
# levels = { east = 0.1, west = 0.3 }

# 2. Single values go missing beyond a step: with one probability above or below it.
[classes.sick]
missing = "values"
kind = "step"

[classes.sick.features.pulse]
above = 120.0
probability = 0.8

# 3. Whole rows go missing, where a weighted sum of the columns is above a step:
#
# [classes.sick]
# missing = "rows"
# kind = "step"
# direction = { pulse = 1.0, sugar = -0.5 }
# threshold = 100.0
# probability = 0.9
#
# 4. Whole rows go missing, with log-odds that are a weighted sum of the columns:
#
# [classes.sick]
# missing = "rows"
# kind = "logistic"
# intercept = -3.0
# coef = { pulse = 0.02 }
"""
"""What ``missratio fit --example`` writes."""


class PhiFileError(TableError):
    """A file that doesn't say why values are missing, with where and what to do."""


@dataclass(frozen=True)
class _Section:
    """A table of the file, and where it is."""

    where: str
    content: Mapping[str, Any]

    def check_keys(self, known: Sequence[str]) -> None:
        for key in self.content:
            if key not in known:
                hint = did_you_mean(key, known)
                raise PhiFileError(
                    f"{self.where}: {key!r} is not known here.{hint} Known are "
                    f"{listed(known)}."
                )

    def number(self, key: str) -> float:
        value = self._required(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise PhiFileError(
                f"{self.where}: {key} must be a number, got {_short(value)}."
            )
        try:
            return float(value)
        except OverflowError:
            raise PhiFileError(
                f"{self.where}: {key} is too large, it has {len(str(value))} digits."
            ) from None

    def choice(self, key: str, choices: Sequence[str]) -> str:
        value = self._required(key)
        if value not in choices:
            hint = did_you_mean(str(value), choices)
            raise PhiFileError(
                f"{self.where}: {key} must be one of {listed(choices)}, got "
                f"{_short(value)}.{hint}"
            )
        return str(value)

    def section(self, key: str) -> _Section:
        value = self._required(key)
        if not isinstance(value, dict):
            raise PhiFileError(
                f"{self.where}: {key} must be a table, such as "
                f"{{ pulse = 1.0 }}, got {_short(value)}."
            )
        return _Section(f"{self.where.rstrip(']')}.{key}]", value)

    def _required(self, key: str) -> Any:
        if key not in self.content:
            raise PhiFileError(
                f"{self.where} has no {key!r}. `missratio fit --example` shows what a "
                "file looks like."
            )
        return self.content[key]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def read_missingness(
    path: Path, encoder: Encoder, labels: Sequence[Any]
) -> dict[Any, Missingness]:
    """Read the models of a file.

    Parameters
    ----------
    path : Path
    encoder : Encoder
        The columns. Only those of numbers can have a model.
    labels : sequence
        The two classes.

    Returns
    -------
    dict from label to Missingness
        For the columns of the encoded matrix.
    """
    root = _Section(str(path), _parsed(path))
    root.check_keys(["classes"])
    classes = root.section("classes")
    by_name = {canonical(label): label for label in labels}
    models = {}
    for key in classes.content:
        if canonical(key) not in by_name:
            hint = did_you_mean(key, by_name)
            raise PhiFileError(
                f"{path}: the table has no class {key!r}.{hint} It has "
                f"{listed(labels)}."
            )
        section = classes.section(key)
        section = _Section(f"{path}, [classes.{key}]", section.content)
        try:
            models[by_name[canonical(key)]] = _model(section, encoder)
        except PhiFileError:
            raise
        except ValueError as error:
            raise PhiFileError(f"{section.where}: {error}") from error
    return models


def _parsed(path: Path) -> dict[str, Any]:
    if path.is_dir():
        raise PhiFileError(f"{path} is a folder: name a TOML file.")
    if not path.exists():
        raise FileNotFoundError(
            f"There is no file {path}. `missratio fit --example` writes one to start "
            "from; to do without, say --missingness ignore."
        )
    if not path.is_file():
        raise PhiFileError(f"{path} is not a regular file: copy it into one first.")
    with path.open("rb") as stream:
        content = stream.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise PhiFileError(f"{path} is too large for a file about missing values.")
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except RecursionError:
        raise PhiFileError(f"{path} is nested too deeply for a TOML file.") from None
    except ValueError as error:
        raise PhiFileError(f"{path} is no TOML file: {error}.") from error


def _model(section: _Section, encoder: Encoder) -> Missingness:
    unit = section.choice("missing", UNITS)
    kind = section.choice("kind", KINDS)
    make = {
        ("values", "logistic"): _logistic_values,
        ("values", "step"): _step_values,
        ("rows", "logistic"): _logistic_rows,
        ("rows", "step"): _step_rows,
    }
    return make[unit, kind](section, encoder)


def _logistic_values(section: _Section, encoder: Encoder) -> Missingness:
    section.check_keys(["missing", "kind", "features"])
    features = section.section("features")
    intercept, coef = np.full(encoder.width, -np.inf), np.zeros(encoder.width)
    numbers, blocks = _categories(features, encoder)
    for name, place in numbers.items():
        feature = features.section(name)
        feature.check_keys(["intercept", "coef"])
        intercept[place] = feature.number("intercept")
        coef[place] = feature.number("coef")
    return _with_blocks(LogisticMissingness(intercept, coef), blocks, encoder)


def _step_values(section: _Section, encoder: Encoder) -> Missingness:
    section.check_keys(["missing", "kind", "features"])
    features = section.section("features")
    direction, threshold, probability = np.zeros((3, encoder.width))
    numbers, blocks = _categories(features, encoder)
    for name, place in numbers.items():
        feature = features.section(name)
        feature.check_keys(["above", "below", "probability"])
        if ("above" in feature.content) == ("below" in feature.content):
            raise PhiFileError(
                f"{feature.where} must say either above or below which value the step "
                "is."
            )
        sign, side = (1.0, "above") if "above" in feature.content else (-1.0, "below")
        direction[place], threshold[place] = sign, sign * feature.number(side)
        probability[place] = feature.number("probability")
    base = StepMissingness(direction, threshold, probability, rowwise=False)
    return _with_blocks(base, blocks, encoder)


def _categories(
    features: _Section, encoder: Encoder
) -> tuple[dict[str, int], tuple[Block, ...]]:
    """Where columns of numbers are, and why categories are missing."""
    named = [name for name in features.content if name in encoder.indicators]
    blocks = [_category(features.section(name), encoder, name) for name in named]
    rest = {k: v for k, v in features.content.items() if k not in named}
    if named and not rest:
        return {}, tuple(blocks)
    return _places(_Section(features.where, rest), encoder), tuple(blocks)


def _category(section: _Section, encoder: Encoder, name: str) -> Block:
    """φ of a category, by its levels."""
    section.check_keys(["levels"])
    given = section.section("levels")
    column = next(column for column in encoder.columns if column.name == name)
    assert column.levels is not None
    given.check_keys(column.levels)
    chance = [
        given.number(level) if level in given.content else 0.0
        for level in column.levels
    ]
    if not all(0.0 <= each < 1.0 for each in chance) or not any(chance):
        raise PhiFileError(
            f"{given.where}: give the probability of being missing for each level, 0 "
            f"or more and below 1, and not all of them 0; got {_short(given.content)}."
        )
    # A level that never goes missing has log-odds at which φ is 0 in all digits.
    odds = np.maximum(logit(chance), NEVER)
    model = LogisticMissingness(odds[0], odds[1:] - odds[0], rowwise=True)
    own = tuple(encoder.indicators[name].tolist())
    return Block(own, own, model)


def _with_blocks(
    base: Missingness, blocks: tuple[Block, ...], encoder: Encoder
) -> Missingness:
    return BlockMissingness(base, blocks, encoder.width) if blocks else base


def _logistic_rows(section: _Section, encoder: Encoder) -> Missingness:
    section.check_keys(["missing", "kind", "intercept", "coef"])
    coef = _vector(section.section("coef"), encoder)
    return LogisticMissingness(section.number("intercept"), coef, rowwise=True)


def _step_rows(section: _Section, encoder: Encoder) -> Missingness:
    section.check_keys(["missing", "kind", "direction", "threshold", "probability"])
    direction = _vector(section.section("direction"), encoder)
    return StepMissingness(
        direction, section.number("threshold"), section.number("probability")
    )


def _vector(section: _Section, encoder: Encoder) -> FloatArray:
    vector = np.zeros(encoder.width)
    for name, place in _places(section, encoder).items():
        vector[place] = section.number(name)
    return vector


def _places(section: _Section, encoder: Encoder) -> dict[str, int]:
    """Where the columns named in a section are; they must be numbers."""
    numeric = {name: j for j, name in enumerate(encoder.names[: encoder.n_numeric])}
    for name in section.content:
        if name in encoder.names and name not in numeric:
            raise PhiFileError(
                f"{section.where}: {name!r} is a column of categories, and whole rows "
                "go missing by a function of numbers. Leave it out here; where single "
                'values go missing (missing = "values"), give it '
                "levels = { … }."
            )
        if name not in numeric:
            hint = did_you_mean(name, numeric)
            raise PhiFileError(
                f"{section.where}: the table has no column {name!r}.{hint}"
            )
    if not section.content:
        raise PhiFileError(f"{section.where} names no column.")
    return {name: numeric[name] for name in section.content}
