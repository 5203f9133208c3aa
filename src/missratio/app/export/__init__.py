"""Certified classifiers for other runtimes: ONNX."""

from missratio.app.export.graph import CantExportError, export_onnx

__all__ = ["CantExportError", "export_onnx"]
