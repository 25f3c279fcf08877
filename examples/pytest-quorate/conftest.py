"""A Kubernetes API server for pytest: the fixture `kube`.

It needs the program quorate, on the PATH or named by QUORATE.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Kube:
    """A server that runs: its URL, and the path of a kubeconfig of system:masters."""

    url: str
    kubeconfig: str


@pytest.fixture(scope="session")
def kube(tmp_path_factory):
    """One server for all tests of a run."""
    program = os.environ.get("QUORATE", "quorate")
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} on the PATH: npm install quorate, or set QUORATE")
    directory = tmp_path_factory.mktemp("kube")
    # A run that is killed leaves no server.
    env = {**os.environ, "QUORATE_PARENT_PID": str(os.getpid())}
    command = [program, "apiserver", "--data-dir", str(directory), "--secure-port", "0"]
    with open(directory / "log", "wb") as log:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=env, text=True)
    try:
        url, prefix = "", "export KUBECONFIG="
        for line in server.stdout:
            if line.startswith("https://"):
                url = line.strip()
            if line.startswith(prefix):
                yield Kube(url, line[len(prefix):].strip())
                return
        pytest.fail((directory / "log").read_text())
    finally:
        server.kill()
        server.wait()
