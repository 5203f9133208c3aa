"""Certified classifiers for other runtimes: ONNX."""

from missratio.app.export._export import export_onnx
from missratio.app.export._scores import CantExportError

__all__ = ["CantExportError", "export_onnx"]
