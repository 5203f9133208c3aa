"""Workbooks read in forked processes: the same code, without a new interpreter.

A workbook is read by a process of its own, because the library that reads it may
end the process. A fuzzer has no time to start an interpreter for each; a server that
has loaded the library forks instead, some hundred times a second.
"""

import json
import signal
import subprocess
import sys
from types import SimpleNamespace

SECONDS = 30

_SERVER = f"""
import json, os, resource, sys, tempfile
import python_calamine
for line in sys.stdin:
    code, *words = json.loads(line)
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as printed:
        child = os.fork()
        if child == 0:
            os.dup2(said.fileno(), 2)
            os.dup2(printed.fileno(), 1)
            resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            sys.argv = ["-c", *words]
            status = 0
            try:
                exec(code, {{"__name__": "__main__"}})
            except SystemExit as leave:
                print(leave.code, file=sys.stderr)
                status = 1
            except BaseException:
                sys.excepthook(*sys.exc_info())
                status = 1
            sys.stderr.flush()
            sys.stdout.flush()
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for stream in (printed, said):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
        print(json.dumps([status, *texts]), flush=True)
"""


class ForkedProbes:
    """Takes the place of `subprocess` where a workbook is probed.

    A probe that computes for more than 30 seconds is a find, not a refusal.
    """

    TimeoutExpired = subprocess.TimeoutExpired

    def __init__(self):
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.ended = 0

    def run(self, words, **_):
        _, _, *told = words
        self._server.stdin.write(json.dumps(told).encode() + b"\n")
        self._server.stdin.flush()
        status, printed, said = json.loads(self._server.stdout.readline())
        if status in (-signal.SIGXCPU, -signal.SIGKILL):
            raise TimeoutError(f"More than {SECONDS} s for one workbook.")
        # Contained by the probe: the reader refuses such a workbook.
        self.ended += status < 0
        return SimpleNamespace(
            returncode=status, stdout=printed.encode(), stderr=said.encode()
        )

    def close(self):
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()
