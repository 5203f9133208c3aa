"""Models to files and back, by skops: loading runs no code from the file."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

from sklearn.utils.validation import check_is_fitted

from missratio._files import written_whole
from missratio._files.files import check_writable
from missratio.app.modelfile.archive import (
    SCHEMA,
    ModelFileError,
    allowed,
    foreign_types,
    located,
    pack,
    unpack,
)
from missratio.app.modelfile.checks import check_arrays, check_model, header_of
from missratio.app.modelfile.models import TableModel


def save_model(
    model: Any, path: str | Path, *, force: bool = False, trusted: Sequence[str] = ()
) -> None:
    """Write a fitted model to a file, whole or not at all.

    Parameters
    ----------
    model : TableModel, estimator or Missingness
        What `missratio fit` makes, and every fitted estimator of missratio: certified
        classifiers, ratios, imputers and models of φ. An estimator within it may be
        `LogisticRegression`, alone or behind a `StandardScaler`, or
        `HistGradientBoostingClassifier`; others have to be `trusted`.
    path : str or Path
        By convention it ends in .skops.
    force : bool, default=False
        Whether a file of that name is overwritten, instead of an error.
    trusted : sequence of str, default=()
        Types beyond these that the model may hold, as ``module.Class``: your own
        objective, rule or estimator, a forest, XGBoost or LightGBM. Whoever loads the
        file has to name them, too (`load_model`), and missratio can't check them.

    Raises
    ------
    ModelFileError
        Where the model has parts that can't be saved without code.
    """
    from skops import io as skops_io

    if hasattr(model, "fit"):
        check_is_fitted(model)
    path = Path(path)
    check_writable(path, force=force)
    objects = skops_io.dumps(model)
    with ZipFile(io.BytesIO(objects)) as archive:
        foreign = foreign_types(archive.read(SCHEMA), trusted)
    if any(name.endswith(".FunctionMissingness") for name in foreign):
        raise ModelFileError(
            "A FunctionMissingness can't be saved: a model file holds no code, and its "
            "function is code. Use StepMissingness, LogisticMissingness or "
            "learn_missingness."
        )
    if "builtins.NoneType" in foreign:
        raise ModelFileError(
            "A model of rows without labels can't be saved: fit it with y, one label "
            "for all rows if need be, or pickle it."
        )
    if foreign:
        raise ModelFileError(
            f"A model file can't hold {', '.join(foreign[:5])}. Give save_model and "
            f"load_model trusted={foreign} if you vouch for these types, or pickle the "
            "model, and unpickle only files that you trust."
        )
    content = pack(objects, header_of(model))
    with written_whole(path, force=force) as draft:
        draft.write_bytes(content)


def load_model(path: str | Path, *, trusted: Sequence[str] = ()) -> Any:
    """Read what `save_model` wrote; no code from the file is run.

    Sizes are checked before anything is unpacked, types before any object is made, and
    the model before it is returned: its thresholds are certified once more by the
    calibration rows in the file. The digest in the file reveals damage. It doesn't tell
    who wrote the file: whoever can write it can put any other model there. Only a
    signature beside it tells that, such as one by openssl or minisign.

    Parameters
    ----------
    path : str or Path
    trusted : sequence of str, default=()
        Types that the file may hold beside those of missratio's own models, as
        ``module.Class``. Name only types of files whose writer you know: making an
        object of a type runs its code.

    Returns
    -------
    TableModel, estimator or Missingness
        As it was saved.

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
        members[SCHEMA] = located(members[SCHEMA])
        foreign = foreign_types(members[SCHEMA], trusted)
        if foreign:
            raise ModelFileError(
                f"It holds {', '.join(map(repr, foreign[:5]))}, which no model of "
                "missratio has. Nothing of it was loaded. If you know who wrote the "
                "file and trust these types, load it by load_model(path, "
                f"trusted={foreign[:5]})."
            )
        check_arrays(members, foreign=bool(trusted))
        model = _construct(members, trusted)
        check_model(model, header)
    except ModelFileError as error:
        raise ModelFileError(f"{path} was refused. {error}") from error
    return model


def load_table_model(path: Path) -> TableModel:
    """Read a model that `missratio fit` wrote, with its columns and its report."""
    model = load_model(path)
    if not isinstance(model, TableModel) or model.report is None:
        raise ModelFileError(
            f"{path} holds a classifier without the columns of a table or a report: it "
            "was saved from Python. Load it there, by load_model, and make a report by "
            "build_report."
        )
    return model


def _construct(members: dict[str, bytes], trusted: Sequence[str]) -> Any:
    from skops import io as skops_io

    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_STORED) as archive:
        while members:
            archive.writestr(*members.popitem())
    try:
        return skops_io.load(
            buffer, trusted=[*set().union(*allowed().values()), *trusted]
        )
    except (Exception, RecursionError) as error:
        raise ModelFileError(
            f"It can't be loaded: {type(error).__name__}: {error}"
        ) from error
