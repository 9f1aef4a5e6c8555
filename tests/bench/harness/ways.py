"""The ways to share a GPU that are compared: each turns a command and a quota into what is started.

  native   the driver's own time-slicing; a quota has no effect, and that must show
  cuota    this library
  mps      NVIDIA MPS, with a daemon of the benchmark's own; caps are of multiprocessors, not of time
  peer     any other preload library: PEER=/path/libvgpu.so, with PEER_ENV and PEER_SETUP
"""

import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import Optional

from . import machine
from .report import progress

# {mem} {sm} {weight} {priority} {group} {dir} are filled in; a word whose value is missing is left out.
PEER_ENV = (
    "CUDA_DEVICE_MEMORY_LIMIT={mem} CUDA_DEVICE_SM_LIMIT={sm} GPU_CORE_UTILIZATION_POLICY=force "
    "CUDA_DEVICE_MEMORY_SHARED_CACHE={dir}/{group}.cache LIBCUDA_LOG_LEVEL=0"
)
PEER_SETUP = "mkdir -p /tmp/vgpulock"


@dataclass
class Quota:
    sm: Optional[int] = None  # percent
    mem: Optional[str] = None
    weight: Optional[int] = None
    priority: Optional[str] = None
    group: Optional[str] = None

    def words(self):
        return {k: v for k, v in vars(self).items() if v is not None}


def clean_environment(build, simulated, scratch):
    """Nothing of the caller's own quota, library or MPS daemon reaches a tenant."""
    dropped = ("CUDA_DEVICE_", "CUDA_MPS_", "GPU_MEMORY_LIMIT", "LD_PRELOAD")
    env = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(dropped) and (not k.startswith("CUOTA_") or k.startswith("CUOTA_SIM_"))
    }
    env["CUDA_MPS_PIPE_DIRECTORY"] = os.path.join(scratch, "no-mps")
    env["PYTHONUNBUFFERED"] = "1"
    if simulated:
        sim = os.path.join(build, "sim")
        env["LD_LIBRARY_PATH"] = ":".join(filter(None, [sim, os.environ.get("LD_LIBRARY_PATH")]))
        env["CUOTA_SIM_STATE"] = os.path.join(scratch, "sim-state")
    return env


class Native:
    name = "native"

    def __init__(self, env):
        self.env = env

    def missing(self):
        return None

    def start(self):
        pass

    def stop(self):
        pass

    def command(self, argv, quota):
        return argv, dict(self.env)


class Cuota(Native):
    name = "cuota"
    options = {"sm": "--sm", "mem": "--mem", "weight": "--weight", "priority": "--priority",
               "group": "--group"}
    variables = {"sm": "CUOTA_SM", "mem": "CUOTA_MEM", "weight": "CUOTA_WEIGHT",
                 "priority": "CUOTA_PRIORITY", "group": "CUOTA_GROUP"}

    def __init__(self, env, build, scratch):
        super().__init__({**env, "CUOTA_DIR": os.path.join(scratch, "ledgers")})
        self.library = os.path.join(build, "libcuota.so")
        self.cli = os.path.join(build, "cuota")
        os.makedirs(self.env["CUOTA_DIR"], exist_ok=True)
        self.has_cli = self.cli_runs()

    def cli_runs(self):
        """A command built elsewhere may lack a library here; the environment does as well then."""
        try:
            done = subprocess.run([self.cli, "version"], env=self.env, capture_output=True, text=True,
                                  timeout=20)
        except (OSError, subprocess.TimeoutExpired) as e:
            progress(f"without the cuota command: {e}")
            return False
        if done.returncode:
            progress(f"without the cuota command: {done.stderr.strip()[:200]}")
        return done.returncode == 0

    def missing(self):
        return None if os.path.exists(self.library) else f"no {self.library}: run make"

    def command(self, argv, quota):
        words = quota.words()
        if not words:
            return argv, {**self.env, "LD_PRELOAD": self.library}
        if self.has_cli:
            run = [self.cli, "run"]
            for key, value in words.items():
                run += [self.options[key], str(value)]
            return run + ["--"] + argv, dict(self.env)
        return argv, {**self.env, "LD_PRELOAD": self.library,
                      **{self.variables[k]: str(v) for k, v in words.items()}}


class Mps(Native):
    name = "mps"

    def __init__(self, env, scratch, simulated):
        super().__init__(env)
        self.control = machine.find_tool("nvidia-cuda-mps-control")
        self.simulated = simulated
        self.dir = None

    def missing(self):
        if self.simulated:
            return "the simulated GPU has no MPS"
        return None if self.control else "nvidia-cuda-mps-control is not installed"

    def tell(self, text, timeout=20):
        return subprocess.run(
            [self.control], input=text + "\n", env=self.env, text=True, capture_output=True,
            timeout=timeout,
        )

    def start(self):
        # The daemon's socket paths are limited in length: not below a deep scratch folder.
        self.dir = tempfile.mkdtemp(prefix="cuota-mps-", dir="/tmp")
        self.env = {**self.env, "CUDA_MPS_PIPE_DIRECTORY": self.dir, "CUDA_MPS_LOG_DIRECTORY": self.dir}
        subprocess.run([self.control, "-d"], env=self.env, timeout=30, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 10
        while time.monotonic() < end:
            if self.tell("get_server_list").returncode == 0:
                return
            time.sleep(0.2)
        raise RuntimeError("the MPS daemon does not answer")

    def stop(self):
        if not self.dir:
            return
        try:
            self.tell("quit", timeout=30)
        except subprocess.TimeoutExpired:
            pass
        shutil.rmtree(self.dir, ignore_errors=True)
        self.dir = None

    def command(self, argv, quota):
        env = dict(self.env)
        if quota.sm:
            env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(quota.sm)
        if quota.mem:
            env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = f"0={quota.mem.upper()}"
        if quota.priority in ("high", "low"):
            env["CUDA_MPS_CLIENT_PRIORITY"] = "0" if quota.priority == "high" else "1"
        return argv, env


class Peer(Native):
    name = "peer"

    def __init__(self, env, library, scratch):
        super().__init__(env)
        self.library = os.path.abspath(library) if library else None
        self.scratch = os.path.join(scratch, "peer")
        os.makedirs(self.scratch, exist_ok=True)
        self.template = os.environ.get("PEER_ENV", PEER_ENV)
        self.count = 0

    def missing(self):
        if not self.library:
            return "PEER is not set"
        return None if os.path.exists(self.library) else f"no {self.library}"

    def start(self):
        subprocess.run(os.environ.get("PEER_SETUP", PEER_SETUP), shell=True, check=False)

    def command(self, argv, quota):
        self.count += 1  # a group that nobody named is a tenant of its own, as with cuota
        words = {"group": f"alone-{self.count}", **quota.words(), "dir": self.scratch}
        env = {**self.env, "LD_PRELOAD": self.library}
        for setting in self.template.split():
            try:
                key, value = setting.format(**words).split("=", 1)
            except KeyError:
                continue
            env[key] = value
        return argv, env


def all_ways(build, scratch, simulated, peer):
    env = clean_environment(build, simulated, scratch)
    return [Native(env), Cuota(env, build, scratch), Mps(env, scratch, simulated),
            Peer(env, peer, scratch)]
