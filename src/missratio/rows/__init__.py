"""Where rows come from, and what they weigh."""

from missratio.rows.classes import ClassModel as ClassModel
from missratio.rows.classes import ClassRows as ClassRows
from missratio.rows.classes import Normalization as Normalization
from missratio.rows.classes import check_inclusion as check_inclusion
from missratio.rows.classes import check_missingness as check_missingness
from missratio.rows.classes import class_model as class_model
from missratio.rows.classes import effective_size as effective_size
from missratio.rows.classes import only_columns as only_columns
from missratio.rows.classes import warn_of_weights as warn_of_weights
from missratio.rows.classes import weighed_twice as weighed_twice
from missratio.rows.classes import weights_of_features as weights_of_features
from missratio.rows.labelled import LabelledBlock as LabelledBlock
from missratio.rows.labelled import LabelledSource as LabelledSource
from missratio.rows.labelled import as_source as as_source
from missratio.rows.labelled import check_label_types as check_label_types
from missratio.rows.labelled import refuse_source as refuse_source
from missratio.rows.labelled import survey as survey
from missratio.rows.parquet import ParquetSource as ParquetSource
from missratio.rows.parquet import scan_parquet as scan_parquet
from missratio.rows.source import MemorySource as MemorySource
from missratio.rows.source import RowBlock as RowBlock
from missratio.rows.source import Source as Source
from missratio.rows.source import WeightSums as WeightSums
from missratio.rows.source import weighted_sums as weighted_sums
