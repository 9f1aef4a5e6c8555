"""A process under test: started in its own session, spoken to by lines, ended with all it started."""

import glob
import json
import os
import queue
import signal
import subprocess
import threading
import time


def service_ns(pid):
    """CPU time of the library's own thread in a process, nanoseconds; None when it has none."""
    total = None
    for task in glob.glob(f"/proc/{pid}/task/*"):
        try:
            with open(task + "/comm", encoding="utf-8") as f:
                if f.read().strip() != "cuota":
                    continue
            with open(task + "/schedstat", encoding="utf-8") as f:
                total = (total or 0) + int(f.read().split()[0])
        except (OSError, ValueError, IndexError):
            continue
    return total


class Tenant:
    def __init__(self, argv, env, log, cwd=None):
        self.argv = argv
        self.log = log
        self.log_at = log.tell()
        self.process = subprocess.Popen(
            argv, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=log, text=True, start_new_session=True,
        )
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def line(self, timeout):
        """The next line; None at the end; TimeoutError."""
        try:
            return self.lines.get(timeout=max(0.0, timeout))
        except queue.Empty:
            raise TimeoutError(f"no answer in {timeout:.0f} s: {' '.join(self.argv[-8:])}") from None

    def answer(self, timeout):
        """The next line that is JSON; {"error": …} at the end of the process."""
        end = time.monotonic() + timeout
        while True:
            text = self.line(end - time.monotonic())
            if text is None:
                return {"error": self.why()}
            if text.startswith("{"):
                try:
                    return json.loads(text)
                except ValueError:
                    continue

    def answers(self, timeout):
        """All JSON lines until the process ends."""
        end, found = time.monotonic() + timeout, []
        while True:
            one = self.answer(end - time.monotonic())
            if "error" in one and self.process.poll() is not None and "what" not in one:
                if self.process.returncode != 0:
                    found.append(one)
                return found
            found.append(one)

    def why(self):
        try:
            code = self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            code = "still there"
        self.log.flush()
        tail = ""
        try:
            with open(self.log.name, encoding="utf-8", errors="replace") as f:
                f.seek(self.log_at)
                tail = f.read()[-300:].strip().replace("\n", " | ")
        except OSError:
            pass
        return f"exit status {code}" + (f": {tail}" if tail else "")

    def send(self, text):
        try:
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass

    def signal(self, number):
        self.process.send_signal(number)

    def end(self, patience=2.0):
        """Lets it end by itself, then kills its whole session; always reaps."""
        try:
            self.process.stdin.close()
        except (BrokenPipeError, OSError, ValueError):
            pass
        try:
            self.process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            pass
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
