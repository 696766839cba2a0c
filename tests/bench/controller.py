"""The controller under load, beside plain server-side apply: `python -m bench.controller` prints what was measured."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from controller_load import run

if __name__ == "__main__":
    print(json.dumps(asdict(run())))
    sys.exit(0)
