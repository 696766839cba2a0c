"""What every file that people write needs: problems and their words, paths, YAML with lines, names, amounts, times.

Names are loaded when they are first used; they are listed in `__init__.pyi`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
