"""Who gets how much of the GPU: one table for all spawners, beside jupyterhub_config.py.

A user's servers and kernels are one group, so that ten notebooks share what one could have.
"""

LIBRARY = "/usr/lib/x86_64-linux-gnu/libcuota.so"
LEDGERS = "/run/cuota"

# First match counts: a user's own row, then that of a JupyterHub group, then "*".
CAPS = {
    "alice": {"CUOTA_MEM": "16G", "CUOTA_SM": "50"},
    "@students": {"CUOTA_MEM": "4G", "CUOTA_SM": "10", "CUOTA_PRIORITY": "low"},
    "*": {"CUOTA_MEM": "8G", "CUOTA_SM": "30"},
}


def environment(user, groups=(), library=LIBRARY, ledgers=LEDGERS):
    """The variables of a user's server."""
    rows = [user, *("@" + group for group in groups), "*"]
    caps = next(CAPS[row] for row in rows if row in CAPS)
    return {
        "LD_PRELOAD": library,
        "CUOTA_DIR": ledgers,
        "CUOTA_GROUP": "jupyter-" + "".join(c if c.isalnum() or c in "._@+-" else "-" for c in user),
        **caps,
    }
