"""Model files: a certified classifier with the columns of its table."""

from missratio.app.modelfile.archive import ModelFileError
from missratio.app.modelfile.checks import plain
from missratio.app.modelfile.files import (
    check_outputs,
    load_model,
    load_table_model,
    save_model,
)
from missratio.app.modelfile.models import (
    FrameModel,
    GroupedTableModel,
    MulticlassTableModel,
    TableModel,
    TrainingData,
    TwoClassModel,
)

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
