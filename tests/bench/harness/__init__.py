"""The benchmark's parts: machine (what it runs on), ways (native, cuota, MPS, a peer), tenant (processes),
bench (budget, running together), report (JSON as it goes), tables and suites (a file each)."""
