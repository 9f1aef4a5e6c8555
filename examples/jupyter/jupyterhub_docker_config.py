"""JupyterHub with a container for each user (DockerSpawner): library and ledgers come from the host."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import caps  # noqa: E402

INSIDE = "/usr/lib/cuota/libcuota.so"


def pre_spawn(spawner):
    groups = [group.name for group in spawner.user.groups]
    spawner.environment.update(caps.environment(spawner.user.name, groups, library=INSIDE))


c = get_config()  # noqa: F821
c.JupyterHub.spawner_class = "dockerspawner.DockerSpawner"
c.DockerSpawner.image = "quay.io/jupyter/pytorch-notebook:cuda12-latest"
c.DockerSpawner.volumes = {
    caps.LIBRARY: {"bind": INSIDE, "mode": "ro"},
    caps.LEDGERS: {"bind": caps.LEDGERS, "mode": "rw"},
}
c.DockerSpawner.extra_host_config = {
    "device_requests": [{"Driver": "nvidia", "DeviceIDs": ["0"], "Capabilities": [["gpu"]]}],
}
c.Spawner.pre_spawn_hook = pre_spawn
