"""Density ratios and Neyman-Pearson classifiers from data missing not at random.

Public names are listed in ``__init__.pyi`` and loaded when they are first used, so that
the command line answers at once.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"
