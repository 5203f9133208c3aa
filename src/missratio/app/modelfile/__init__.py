"""Model files: a certified classifier with the columns of its table."""

from missratio.app.modelfile.checks import ModelFileError, plain
from missratio.app.modelfile.files import load_model, load_table_model, save_model
from missratio.app.modelfile.models import (
    GROUPS,
    SEVERAL_CLASSES,
    TWO_CLASSES,
    Decisions,
    TableModel,
    TrainingData,
    certificates_of,
    kind_of,
)

__all__ = [
    "GROUPS",
    "SEVERAL_CLASSES",
    "TWO_CLASSES",
    "Decisions",
    "ModelFileError",
    "TableModel",
    "TrainingData",
    "certificates_of",
    "kind_of",
    "load_model",
    "load_table_model",
    "plain",
    "save_model",
]
