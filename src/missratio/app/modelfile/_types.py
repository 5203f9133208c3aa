"""What a model file may hold: these types, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from missratio._base.hints import listed

# Written by their names, so that none of them is loaded to read a file that is refused.
_OBJECTS = (
    "missratio.basis._gaussian.GaussianBasis",
    "missratio.basis._linear.LinearBasis",
    "missratio.basis._polynomial.PolynomialBasis",
    "missratio.classifier._certificate.Certificate",
    "missratio.classifier._calibration.Calibration",
    "missratio.classifier._comparison.CandidatePower",
    "missratio.classifier._comparison.PowerComparison",
    "missratio.classifier._class_scores.ClassScores",
    "missratio.classifier._decisions.OrderedDecision",
    "missratio.classifier._decisions.UnorderedDecision",
    "missratio.classifier._grouped.GroupedNeymanPearsonClassifier",
    "missratio.classifier._grouped_certificate.GroupedCertificate",
    "missratio.classifier._grouped_certificate.KeptPromise",
    "missratio.classifier._multiclass.MulticlassNeymanPearsonClassifier",
    "missratio.classifier._multiclass_certificate.MulticlassCertificate",
    "missratio.classifier._neyman_pearson.NeymanPearsonClassifier",
    "missratio.classifier._rounding.Rounding",
    "missratio.classifier._trade_off.TradeOff",
    "missratio.classifier._target.TargetRatio",
    "missratio.classifier._trust.Trust",
    "missratio.imputation._columns.Columns",
    "missratio.imputation._ensemble.ImputationEnsemble",
    "missratio.imputation._tilted.TiltedImputer",
    "missratio.imputation._trace.ImputationTrace",
    "missratio.learning._checks.Check",
    "missratio.learning._coordinates.Coordinates",
    "missratio.learning._evidence.Evidence",
    "missratio.learning._learned.LearnedMissingness",
    "missratio.learning._shadow.ShadowEvidence",
    "missratio.missingness.blocks.Block",
    "missratio.missingness.blocks.BlockMissingness",
    "missratio.missingness.by_name.NamedMissingness",
    "missratio.missingness.logistic.LogisticMissingness",
    "missratio.missingness.step.StepMissingness",
    "missratio.app.modelfile._frame.TrainingData",
    "missratio.app.modelfile._groups.GroupedTableModel",
    "missratio.app.modelfile._model.TableModel",
    "missratio.app.modelfile._several.MulticlassTableModel",
    "missratio.ratio.base.EachColumnBasis",
    "missratio.ratio.complete.ClassifierRatio",
    "missratio.ratio.kernel.KernelRatio",
    "missratio.ratio.kliep.KLIEP",
    "missratio.ratio.cv.KLIEPCV",
    "missratio.ratio.naive_bayes.NaiveBayesRatio",
    "missratio.ratio.kliep.FDivergenceRatio",
    "missratio.ratio.fit.Strength",
    "missratio.ratio.subspace.SubspaceRatio",
    "missratio._files.cells.Cells",
    "missratio.app.tables.columns.Encoder",
    "missratio.app.tables.columns.TableColumn",
    "missratio.threshold._auto.AutoRule",
    "missratio.threshold._betting.BettingRule",
    "missratio.threshold._betting.FlippedBettingRule",
    "missratio.threshold._betting.TargetRule",
    "missratio.threshold._betting.TunedBettingRule",
    "missratio.threshold._drawing.CountingRule",
    "missratio.threshold._drawing.ThinningRule",
    "missratio.threshold._rules.BernsteinRule",
    "missratio.threshold._rules.BinomialRule",
    "missratio.threshold._rules.HoeffdingBentkusRule",
    "missratio.threshold._rules.PaperRule",
    "missratio.threshold._sample.CalibrationSample",
    "missratio.threshold._sample.LookUps",
    "missratio.threshold._strata.LookUpRule",
    "missratio.rows.source.WeightCheck",
    "missratio.weights._size.SampleSize",
    "sklearn._loss.link.Interval",
    "sklearn._loss.link.LogitLink",
    "sklearn._loss.link.MultinomialLogit",
    "sklearn._loss.loss.HalfBinomialLoss",
    "sklearn._loss.loss.HalfMultinomialLoss",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting"
    ".HistGradientBoostingClassifier",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.linear_model._logistic.LogisticRegression",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.preprocessing._label.LabelEncoder",
)
_NUMPY = ("bool", "float32", "float64", "int64", "intp", "ndarray", "str_", "uint64")

ALLOWED: dict[str, frozenset[str]] = {
    "ObjectNode": frozenset(_OBJECTS),
    "NdArrayNode": frozenset(f"numpy.{name}" for name in _NUMPY),
    "DictNode": frozenset({"builtins.dict"}),
    "ListNode": frozenset({"builtins.list"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "JsonNode": frozenset({"builtins.str"}),
    "TypeNode": frozenset(f"builtins.{name}" for name in ("int", "str", "bool")),
    "LossNode": frozenset(
        f"sklearn._loss._loss.CyHalf{name}Loss" for name in ("Binomial", "Multinomial")
    ),
    "RandomGeneratorNode": frozenset({"numpy.random._generator.Generator"}),
}
"""For each of skops' ways to make an object, the types that may be made by it."""

TRUSTED = sorted(set().union(*ALLOWED.values()))


MOST_OBJECTS = 2 * 10**6


class ModelFileError(ValueError):
    """A model that can't be saved, or a file that can't be loaded, and why."""


def python_alone(name: str) -> ModelFileError:
    """What to say of a model that has no file, by the name of its class."""
    return ModelFileError(
        f"A model file can't hold a {name}: it holds a NeymanPearsonClassifier, "
        "a MulticlassNeymanPearsonClassifier, a GroupedNeymanPearsonClassifier, or "
        f"what missratio fit writes. Use the {name} from Python; pickle it if you "
        "must, and unpickle only files that you trust."
    )


def foreign_types(schema: bytes) -> list[str]:
    """Types in a skops schema that a model file may not hold.

    skops checks types as well, but trusts all of scikit-learn and some functions; here
    no function may be named at all.

    Parameters
    ----------
    schema : bytes
        The content of ``schema.json``.
    """
    try:
        tree = json.loads(schema)
        size = _expanded(tree, {})
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"Its schema is damaged: {error}.") from error
    if size > MOST_OBJECTS:
        raise ModelFileError("Its parts refer to each other more often than in models.")
    found = set()
    for node in _nodes(tree):
        name = f"{node.get('__module__')}.{node.get('__class__')}"
        loader = str(node.get("__loader__"))
        if name not in ALLOWED.get(loader, frozenset()):
            found.add(name)
    return sorted(found)


def check_types(schema: bytes) -> None:
    """Refuse a schema with foreign types."""
    foreign = foreign_types(schema)
    if foreign:
        raise ModelFileError(
            f"It holds {listed(foreign[:5])}, which no model of missratio has. Nothing "
            "of it was loaded."
        )


def _expanded(item: Any, known: dict[Any, int]) -> int:
    """How many values there are, each as often as something refers to it.

    A part is written once and then referred to by its id. Of parts that refer to parts
    a small file can make more than any walk through a model would come to the end of.
    """
    if isinstance(item, list):
        return sum(_expanded(each, known) for each in item)
    if not isinstance(item, dict):
        return 1
    size = 1 + sum(_expanded(each, known) for each in item.values())
    name = item.get("__id__")
    if isinstance(name, int | float | str):
        size = known[name] = min(max(size, known.get(name, 0)), MOST_OBJECTS + 1)
    return size


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of a schema, however deep."""
    waiting = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if "__loader__" in item:
                yield item
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
