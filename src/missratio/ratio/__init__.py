"""Density-ratio estimators: missingness × basis × objective × solver, composed.

Names are listed in ``__init__.pyi`` and loaded when they are first used: a fit of KLIEP
has no need of boosted trees.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
