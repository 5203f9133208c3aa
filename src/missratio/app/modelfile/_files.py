"""Models to files and back, by skops: loading runs no code from the file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

from missratio._files import check_writable, written_whole
from missratio.app.modelfile._archive import SCHEMA, pack, unpack
from missratio.app.modelfile._checks import check_model, plain
from missratio.app.modelfile._model import TableModel
from missratio.app.modelfile._types import (
    TRUSTED,
    ModelFileError,
    check_types,
    foreign_types,
)
from missratio.classifier import NeymanPearsonClassifier

_FUNCTION = "missratio.missingness.function.FunctionMissingness"


def save_model(
    model: TableModel | NeymanPearsonClassifier,
    path: str | Path,
    *,
    force: bool = False,
) -> None:
    """Write a fitted classifier to a file, whole or not at all.

    Parameters
    ----------
    model : TableModel or NeymanPearsonClassifier
        Over `KLIEP`, `NaiveBayesRatio` or `FDivergenceRatio` with a basis of
        missratio's own, `LogisticRegression`, alone or behind a `StandardScaler`,
        `HistGradientBoostingClassifier`, or an `ImputationEnsemble` of the latter two
        over a `TiltedImputer` with linear regressions.
    path : str or Path
        By convention it ends in .skops.
    force : bool, default=False
        Whether a file of that name is overwritten, instead of an error.

    Raises
    ------
    ModelFileError
        Where the model has parts that can't be saved without code.
    """
    from skops import io as skops_io

    path = Path(path)
    check_writable(path, force=force)
    objects = skops_io.dumps(model)
    with ZipFile(io.BytesIO(objects)) as archive:
        foreign = foreign_types(archive.read(SCHEMA))
    if foreign:
        raise _not_saveable(foreign)
    content = pack(objects, _header(model))
    with written_whole(path, force=force) as draft:
        draft.write_bytes(content)


def load_model(path: str | Path) -> Any:
    """Read what `save_model` wrote; no code from the file is run.

    Sizes are checked before anything is unpacked, types before anything is made, and
    the model before it is returned. There is no signature: whoever can write the file
    can write another model.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    TableModel or NeymanPearsonClassifier

    Raises
    ------
    ModelFileError
        Where the file is damaged, is not a model, holds other types, or was written by
        another version.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a model file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no model file {path}.")
    try:
        header, members = unpack(path)
        check_types(members[SCHEMA])
        model = _construct(members)
        check_model(model, header)
    except ModelFileError as error:
        raise ModelFileError(f"{path} was refused. {error}") from error
    return model


def load_table_model(path: Path) -> TableModel:
    """Read a model that `missratio fit` wrote, with its columns and its report.

    Parameters
    ----------
    path : Path
    """
    model = load_model(path)
    if not isinstance(model, TableModel) or model.report is None:
        raise ModelFileError(
            f"{path} holds a classifier without the columns of a table or a report: it "
            "was saved from Python. Load it there, by load_model, and make a report by "
            "build_report."
        )
    return model


def _construct(members: dict[str, bytes]) -> Any:
    from skops import io as skops_io

    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    try:
        return skops_io.loads(buffer.getvalue(), trusted=TRUSTED)
    except (Exception, RecursionError) as error:
        raise ModelFileError(
            f"It can't be put together: {type(error).__name__}: {error}"
        ) from error


def _header(model: TableModel | NeymanPearsonClassifier) -> dict[str, Any]:
    if isinstance(model, NeymanPearsonClassifier):
        return {"certificate": plain(model.certificate_.to_dict())}
    return {
        "certificate": plain(model.certificate.to_dict()),
        "method": model.method,
        "target": model.target,
        "columns": [
            {"name": column.name, "levels": plain(column.levels)}
            for column in model.encoder.columns
        ],
        "training": {
            "file": model.training.file,
            "sha256": model.training.sha256,
            "rows": plain(model.training.rows),
            "missing": plain(model.training.missing),
        },
    }


def _not_saveable(foreign: list[str]) -> ModelFileError:
    if _FUNCTION in foreign:
        return ModelFileError(
            "A FunctionMissingness can't be saved: a model file holds no code, and its "
            "function is code. Use StepMissingness, LogisticMissingness or "
            "learn_missingness."
        )
    return ModelFileError(
        f"A model file can't hold {', '.join(foreign[:5])}. It can hold the "
        "classifiers that save_model names."
    )
