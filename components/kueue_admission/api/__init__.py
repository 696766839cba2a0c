"""Kueue's objects: typed models of their specs, and the plain data they become.

Names are loaded when they are first used; they are listed in `__init__.pyi`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
