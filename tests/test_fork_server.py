"""A fork server ends with the process that started it, also with one that is killed."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from one_cluster import wait_until

STARTS = """
import sys, time
from fork_server import start_fork_server
print(start_fork_server("run = print"), flush=True)
time.sleep(60)
"""


def answers(address: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(address) == 0


def test_it_ends_with_a_process_that_is_killed() -> None:
    support = Path(__file__).with_name("support")
    with subprocess.Popen([sys.executable, "-c", STARTS], cwd=support, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        address = started.stdout.readline().strip()
        assert answers(address)
        started.kill()
    wait_until(lambda: not answers(address), 10)
