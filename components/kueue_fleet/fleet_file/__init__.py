"""The fleet file: its model, how it is read and checked, how two of them differ, and how one is made from a running fleet.

Names are loaded when they are first used; they are listed in `__init__.pyi`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
