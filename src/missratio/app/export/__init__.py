"""Certified classifiers for other runtimes: ONNX."""

from missratio.app.export.graph import export_onnx
from missratio.app.export.scores import CantExportError

__all__ = ["CantExportError", "export_onnx"]
