"""The controller under load beside server-side apply: `python -m tests.bench.controller WORKERS KNOWN` prints it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from controller_load import run

if __name__ == "__main__":
    print(json.dumps(asdict(run(workers=int(sys.argv[1]), known=int(sys.argv[2])))))
    sys.exit(0)
