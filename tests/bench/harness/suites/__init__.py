"""One file a suite: ABOUT, BUDGET (seconds: full, quick, simulated), run(bench, entry), tables(entry) and,
where a picture helps, plots(entry)."""

import importlib

# In the order they run, the short ones first: when time runs out the end is cut. "sim" suites need no GPU and
# are left out on one, "gpu" suites the other way round.
ORDER = (
    ("launch", "both"),
    ("alloc", "both"),
    ("startup", "both"),
    ("reclaim", "both"),
    ("change", "both"),
    ("ledger", "both"),
    ("escape", "both"),
    ("fairness", "both"),
    ("priority", "both"),
    ("shares", "both"),
    ("pairs", "both"),
    ("programs", "gpu"),
    ("counts", "sim"),
)


def names():
    return [name for name, _ in ORDER]


def load(name):
    return importlib.import_module(f"{__name__}.{name}")
