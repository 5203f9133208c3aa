"""Model files: a certified classifier with the columns of its table."""

from missratio.app.modelfile.checks import ModelFileError as ModelFileError
from missratio.app.modelfile.checks import plain as plain
from missratio.app.modelfile.files import load_model as load_model
from missratio.app.modelfile.files import load_table_model as load_table_model
from missratio.app.modelfile.files import save_model as save_model
from missratio.app.modelfile.models import GROUPS as GROUPS
from missratio.app.modelfile.models import SEVERAL_CLASSES as SEVERAL_CLASSES
from missratio.app.modelfile.models import TWO_CLASSES as TWO_CLASSES
from missratio.app.modelfile.models import Decisions as Decisions
from missratio.app.modelfile.models import TableModel as TableModel
from missratio.app.modelfile.models import TrainingData as TrainingData
from missratio.app.modelfile.models import certificates_of as certificates_of
from missratio.app.modelfile.models import kind_of as kind_of
