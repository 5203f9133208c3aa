"""Model files: a certified classifier with the columns of its table."""

from missratio.app.modelfile._checks import plain
from missratio.app.modelfile._files import (
    check_outputs,
    load_model,
    load_table_model,
    save_model,
)
from missratio.app.modelfile._frame import FrameModel, TrainingData, TwoClassModel
from missratio.app.modelfile._groups import GroupedTableModel
from missratio.app.modelfile._model import TableModel
from missratio.app.modelfile._several import MulticlassTableModel
from missratio.app.modelfile._types import ModelFileError

__all__ = [
    "FrameModel",
    "GroupedTableModel",
    "ModelFileError",
    "MulticlassTableModel",
    "TableModel",
    "TrainingData",
    "TwoClassModel",
    "check_outputs",
    "load_model",
    "load_table_model",
    "plain",
    "save_model",
]
