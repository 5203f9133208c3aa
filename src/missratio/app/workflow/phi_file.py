"""Why values are missing, as a person writes it down: a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logit

from missratio._base.blocks import rows_with_nan
from missratio._base.hints import did_you_mean, listed, shown
from missratio._files.files import RegularFile
from missratio.app.tables.columns import Encoder
from missratio.app.tables.labelled import LabelledTable, find_name
from missratio.exceptions import TableError
from missratio.missingness import (
    Block,
    BlockMissingness,
    LogisticMissingness,
    Missingness,
    StepMissingness,
)

# A file of this kind is written by hand.
_MOST_BYTES = 2**22
NEVER = -700.0


@dataclass(frozen=True)
class _Section:
    """A table of the file, and where it is."""

    where: str
    content: Mapping[str, Any]

    def check_keys(self, known: Sequence[str]) -> None:
        for key in self.content:
            if key not in known:
                raise TableError(
                    f"{self.where}: {key!r} is not known here."
                    f"{did_you_mean(key, known)} Known are {listed(known)}."
                )

    def get(self, key: str, kinds: Any, what: str, choices: Sequence[str] = ()) -> Any:
        if key not in self.content:
            raise TableError(
                f"{self.where} has no {key!r}. The page on the command line shows what "
                "a file looks like."
            )
        value = self.content[key]
        wrong = isinstance(value, bool) or not isinstance(value, kinds)
        if wrong or (choices and value not in choices):
            hint = did_you_mean(str(value), choices)
            raise TableError(
                f"{self.where}: {key} must be {what}, got {shown(value)}.{hint}"
            )
        return value

    def number(self, key: str) -> float:
        return float(self.get(key, int | float, "a number"))

    def curve(self) -> tuple[float, float]:
        """Intercept and slope of log-odds, as such or by one or two of their points."""
        if "at" not in self.content:
            return self.number("intercept"), self.number("coef")
        if len(self.content) > 1:
            raise TableError(
                f"{self.where} must have either at, or intercept and coef."
            )
        points = np.zeros((1, 2))
        with suppress(TypeError, ValueError):
            points = np.array(self.content["at"], dtype=np.float64)
        shaped = points.shape in ((1, 2), (2, 2)) and bool(np.isfinite(points).all())
        chances = points[:, 1] if shaped else np.zeros(1)
        likely = bool(((chances > 0.0) & (chances < 1.0)).all())
        if not likely or len(np.unique(points[:, 0])) < len(points):
            raise TableError(
                f"{self.where}: at must be one value or two different ones, each with "
                "its probability of being missing, above 0 and below 1, such as "
                f"[[60, 0.1], [100, 0.6]]: got {shown(self.content['at'])}."
            )
        (low, high), odds = points[[0, -1], 0], logit(points[[0, -1], 1])
        coef = 0.0 if low == high else (odds[1] - odds[0]) / (high - low)
        return float(odds[0] - coef * low), float(coef)

    def choice(self, key: str, *choices: str) -> str:
        value: str = self.get(key, str, f"one of {listed(choices)}", choices)
        return value

    def section(self, key: str) -> _Section:
        value = self.get(key, dict, "a table, such as { pulse = 1.0 }")
        return _Section(f"{self.where.rstrip(']')}.{key}]", value)


def read_missingness(
    path: Path, encoder: Encoder, labels: Sequence[Any]
) -> dict[Any, Missingness]:
    """Read the models of a file, by label, for the columns of the encoded matrix."""
    content = RegularFile.at(path).read(_MOST_BYTES)
    try:
        root = _Section(str(path), tomllib.loads(content.decode("utf-8-sig")))
    except (ValueError, RecursionError) as error:
        raise TableError(f"{path} is no TOML file: {error}.") from error
    root.check_keys(["classes"])
    models = {}
    for key, given in root.section("classes").content.items():
        label = find_name(key, labels, f"{path}: the table has no class {key!r}")
        section = _Section(f"{path}, [classes", {key: given}).section(key)
        unit = section.choice("missing", "values", "rows")
        is_step = section.choice("kind", "logistic", "step") == "step"
        make = _values if unit == "values" else _rows
        try:
            models[label] = make(section, encoder, is_step)
            object.__setattr__(models[label], "source", str(path))
        except TableError:
            raise
        except (ValueError, OverflowError) as error:
            said = str(error).rstrip(".")
            raise TableError(f"{section.where}: {said}.") from error
    return models


def _values(section: _Section, encoder: Encoder, is_step: bool) -> Missingness:
    """Single values go missing: numbers by a curve or a step, categories by level."""
    section.check_keys(["missing", "kind", "features"])
    features = section.section("features")
    named = [name for name in features.content if name in encoder.indicators]
    blocks = [_block(features.section(name), encoder, name) for name in named]
    numbers = {k: v for k, v in features.content.items() if k not in named}
    places = {}
    if numbers or not named:
        places = _places(_Section(features.where, numbers), encoder)
    width = encoder.width
    direction, threshold, probability, coef = np.zeros((4, width))
    intercept = np.full(width, -np.inf)
    for name, place in places.items():
        feature = features.section(name)
        if not is_step:
            feature.check_keys(["at", "intercept", "coef"])
            intercept[place], coef[place] = feature.curve()
            continue
        feature.check_keys(["above", "below", "probability"])
        if ("above" in feature.content) == ("below" in feature.content):
            raise TableError(
                f"{feature.where} must say either above or below which value the step "
                "is."
            )
        sign, side = (1.0, "above") if "above" in feature.content else (-1.0, "below")
        direction[place], threshold[place] = sign, sign * feature.number(side)
        probability[place] = feature.number("probability")
    base: Missingness = LogisticMissingness(intercept, coef)
    if is_step:
        base = StepMissingness(direction, threshold, probability, rowwise=False)
    return BlockMissingness(base, tuple(blocks), width) if blocks else base


def _block(section: _Section, encoder: Encoder, name: str) -> Block:
    """φ of a category, by its levels."""
    section.check_keys(["levels"])
    given = section.section("levels")
    levels = next(c.levels for c in encoder.columns if c.name == name) or ()
    given.check_keys(levels)
    chance = [given.number(each) if each in given.content else 0.0 for each in levels]
    if not all(0.0 <= each < 1.0 for each in chance) or not any(chance):
        raise TableError(
            f"{given.where} must have the probability of being missing for each level, "
            "0 or more and below 1, and not all of them 0."
        )
    # A level that never goes missing has log-odds at which φ is 0 in all digits.
    odds = np.maximum(logit(chance), NEVER)
    model = LogisticMissingness(odds[0], odds[1:] - odds[0], rowwise=True)
    columns = tuple(encoder.indicators[name].tolist())
    return Block(columns, columns, model)


def _rows(section: _Section, encoder: Encoder, is_step: bool) -> Missingness:
    """Whole rows go missing, by a weighted sum of numbers."""
    name = "direction" if is_step else "coef"
    numbers = ["threshold", "probability"] if is_step else ["intercept"]
    section.check_keys(["missing", "kind", name, *numbers])
    weights, vector = section.section(name), np.zeros(encoder.width)
    for column, place in _places(weights, encoder).items():
        vector[place] = weights.number(column)
    first, *others = (section.number(each) for each in numbers)
    if is_step:
        return StepMissingness(vector, first, others[0])
    return LogisticMissingness(first, vector, rowwise=True)


def _places(section: _Section, encoder: Encoder) -> dict[str, int]:
    """Where the columns named in a section are; they must be numbers."""
    numeric = {name: j for j, name in enumerate(encoder.names[: encoder.n_numeric])}
    for name in section.content:
        if name in encoder.indicators:
            raise TableError(
                f"{section.where}: {name!r} is a column of categories, and whole rows "
                "go missing by a function of numbers. Leave it out here; where single "
                'values go missing (missing = "values"), give it levels = { … }.'
            )
        if name not in numeric:
            hint = did_you_mean(name, numeric)
            raise TableError(
                f"{section.where}: the table has no column {name!r}.{hint}"
            )
    if not section.content:
        raise TableError(f"{section.where} names no column.")
    return {name: numeric[name] for name in section.content}


def loses_whole_rows(table: LabelledTable, label: Any) -> bool:
    """Whether rows of a class are missing as a whole, if any of them is."""
    X = table.X[table.y == label]
    lost = np.isnan(X[rows_with_nan(X)])
    return X.shape[1] > 1 and len(lost) > 0 and bool(lost.all())
