"""Models to files and back, by skops: loading runs no code from the file."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

from sklearn.utils.validation import check_is_fitted

from missratio._files import check_writable, written_whole
from missratio.app.modelfile.archive import (
    SCHEMA,
    ModelFileError,
    allowed,
    anchored,
    check_key,
    check_types,
    foreign_types,
    pack,
    python_alone,
    read_bytes,
    sign,
    signature_path,
    signatures,
    unpack,
    verify,
)
from missratio.app.modelfile.checks import check_arrays, check_model, header_of
from missratio.app.modelfile.models import FrameModel
from missratio.classifier import (
    GroupedNeymanPearsonClassifier,
    MulticlassNeymanPearsonClassifier,
    NeymanPearsonClassifier,
)

Certified = (
    NeymanPearsonClassifier
    | MulticlassNeymanPearsonClassifier
    | GroupedNeymanPearsonClassifier
)
_FUNCTION = "missratio.missingness.models.FunctionMissingness"


def save_model(
    model: FrameModel | Certified,
    path: str | Path,
    *,
    force: bool = False,
    sign_with: str | Path | None = None,
    trusted: Sequence[str] = (),
) -> None:
    """Write a fitted classifier to a file, whole or not at all.

    Parameters
    ----------
    model : TableModel, MulticlassTableModel, GroupedTableModel or a classifier
        A `NeymanPearsonClassifier`, `MulticlassNeymanPearsonClassifier` or
        `GroupedNeymanPearsonClassifier` over `KLIEP`, `NaiveBayesRatio` or
        `FDivergenceRatio` with a basis of missratio's own, `LogisticRegression`, alone
        or behind a `StandardScaler`, `HistGradientBoostingClassifier`, or an
        `ImputationEnsemble` of the latter two over a `TiltedImputer` with linear
        regressions.
    path : str or Path
        By convention it ends in .skops.
    force : bool, default=False
        Whether a file of that name is overwritten, instead of an error.
    sign_with : str or Path, optional
        A private Ed25519 key in PEM format. The signature is written beside the model,
        as a file of its name and .sig.
    trusted : sequence of str, default=()
        Types beyond these that the model may hold, as ``module.Class``: your own
        objective, rule or estimator, a forest, XGBoost or LightGBM. Whoever loads the
        file has to name them, too (`load_model`), and missratio can't check them.

    Raises
    ------
    ModelFileError
        Where the model is of another class, or has parts that can't be saved without
        code.
    """
    from skops import io as skops_io

    if not isinstance(model, FrameModel | Certified):
        raise python_alone(type(model).__name__)
    if isinstance(model, Certified):
        check_is_fitted(model, "certificate_")
    path = Path(path)
    outputs = check_outputs(path, force=force, sign_with=sign_with)
    objects = skops_io.dumps(model)
    with ZipFile(io.BytesIO(objects)) as archive:
        foreign = foreign_types(archive.read(SCHEMA), trusted)
    if foreign:
        raise _not_saveable(foreign)
    content = pack(objects, header_of(model))
    if sign_with is None:
        _write(path, content, force=force)
        return
    # Whenever this is cut short, the file that is there has its signature beside it.
    new, signature = sign(content, Path(sign_with)), outputs[1]
    old = signatures(signature) if signature.is_file() else []
    _write(signature, b"".join([new, *old]), force=force)
    _write(path, content, force=force)
    if old:
        _write(signature, new, force=True)


def _write(path: Path, content: bytes, *, force: bool) -> None:
    with written_whole(path, force=force) as draft:
        draft.write_bytes(content)


def check_outputs(
    path: Path,
    *,
    force: bool,
    sign_with: str | Path | None = None,
    others: Sequence[Path | None] = (),
) -> list[Path]:
    """The files that `save_model` will write; refuse those that can't be written.

    Parameters
    ----------
    path : Path
        Of the model.
    force : bool
    sign_with : str or Path, optional
        The key of the signature, if there is to be one.
    others : sequence of Path or None
        What else the command reads and writes, and is never overwritten.
    """
    outputs = [path]
    if sign_with is not None:
        check_key(Path(sign_with), private=True)
        outputs.append(signature_path(path))
        others = [*others, Path(sign_with)]
    for output in outputs:
        check_writable(output, force=force, others=others)
    return outputs


def load_model(
    path: str | Path,
    *,
    verify_with: str | Path | None = None,
    trusted: Sequence[str] = (),
) -> Any:
    """Read what `save_model` wrote; no code from the file is run.

    Sizes are checked before anything is unpacked, types before any object is made, and
    the model before it is returned. The digest in the file reveals damage. It doesn't
    tell who wrote the file: whoever can write it can put any other model there. Only a
    signature tells that; `verify_with` checks it.

    Parameters
    ----------
    path : str or Path
    verify_with : str or Path, optional
        The public Ed25519 key, in PEM format, of who must have signed the file.
    trusted : sequence of str, default=()
        Types that the file may hold beside those of missratio's own models, as
        ``module.Class``. Name only types of files whose writer you know: making an
        object of a type runs its code.

    Returns
    -------
    TableModel, MulticlassTableModel, GroupedTableModel or a classifier

    Raises
    ------
    ModelFileError
        Where the file is damaged, is not a model, holds other types, was written by
        another version, or wasn't signed by the owner of the key.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a model file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no model file {path}.")
    try:
        content = read_bytes(path)
        if verify_with is not None:
            verify(content, signature_path(path), Path(verify_with))
        header, members = unpack(content)
        members[SCHEMA] = anchored(members[SCHEMA], load=True)
        check_types(members[SCHEMA], trusted)
        check_arrays(members, foreign=bool(trusted))
        model = _construct(members, trusted)
        check_model(model, header)
    except ModelFileError as error:
        raise ModelFileError(f"{path} was refused. {error}") from error
    return model


def load_table_model(path: Path, verify_with: Path | None = None) -> FrameModel:
    """Read a model that `missratio fit` wrote, with its columns and its report."""
    model = load_model(path, verify_with=verify_with)
    if not isinstance(model, FrameModel) or model.report is None:
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
        for name, content in members.items():
            archive.writestr(name, content)
    try:
        return skops_io.load(
            buffer, trusted=[*set().union(*allowed().values()), *trusted]
        )
    except (Exception, RecursionError) as error:
        raise ModelFileError(
            f"It can't be loaded: {type(error).__name__}: {error}"
        ) from error


def _not_saveable(foreign: list[str]) -> ModelFileError:
    if _FUNCTION in foreign:
        return ModelFileError(
            "A FunctionMissingness can't be saved: a model file holds no code, and its "
            "function is code. Use StepMissingness, LogisticMissingness or "
            "learn_missingness."
        )
    return ModelFileError(
        f"A model file can't hold {', '.join(foreign[:5])}. It can hold the "
        "classifiers that save_model names; or give save_model and load_model "
        f"trusted={foreign} if you vouch for these types."
    )
