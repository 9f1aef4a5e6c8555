"""Takes all the GPU memory that PyTorch can get, says what it got, holds it for SECONDS; with a FRACTION,
after set_per_process_memory_fraction(FRACTION).

Prints "total_mib= got_mib= refused=" as tests/sim_tools/take.c does; refused is 2 for a clean out of memory.
"""

import sys
import time

import torch

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.cuda.init()
if len(sys.argv) > 2:
    torch.cuda.set_per_process_memory_fraction(float(sys.argv[2]))
held, got, piece, refused = [], 0, 256, 0
while piece >= 1:
    try:
        held.append(torch.empty(piece << 20, dtype=torch.uint8, device="cuda"))
        got += piece
    except torch.cuda.OutOfMemoryError:
        refused = 2
        piece //= 2
free, total = torch.cuda.mem_get_info()
print(f"total_mib={total >> 20} free_mib={free >> 20} got_mib={got} refused={refused}", flush=True)
time.sleep(seconds)
