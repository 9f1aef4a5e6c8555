"""JupyterHub on one machine, each user's server a process of that user (LocalProcessSpawner)."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import caps  # noqa: E402


def pre_spawn(spawner):
    """Fails the start rather than start a server without a cap."""
    if not os.access(caps.LIBRARY, os.R_OK):
        raise RuntimeError(f"{caps.LIBRARY} cannot be read: the server would run uncapped")
    groups = [group.name for group in spawner.user.groups]
    spawner.environment.update(caps.environment(spawner.user.name, groups))


c = get_config()  # noqa: F821
c.JupyterHub.spawner_class = "jupyterhub.spawner.LocalProcessSpawner"
c.Spawner.pre_spawn_hook = pre_spawn
