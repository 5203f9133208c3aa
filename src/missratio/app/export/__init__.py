"""Certified classifiers for other runtimes: ONNX."""

from missratio.app.export.graph import CantExportError as CantExportError
from missratio.app.export.graph import export_onnx as export_onnx
