"""How much of device 0 is in use, as the driver says, asked from outside of every tenant: no CUDA context, no
limiter. None where it cannot be asked."""

import ctypes
import os


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Nvml:
    def __init__(self, library="libnvidia-ml.so.1", sim_state=None):
        if sim_state:
            os.environ["CUOTA_SIM_STATE"] = sim_state
        self.device = ctypes.c_void_p()
        self.library = None
        try:
            library = ctypes.CDLL(library)
            if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByIndex_v2(
                0, ctypes.byref(self.device)
            ):
                return
            self.library = library
        except (OSError, AttributeError):
            pass

    def used_mib(self):
        memory = Memory()
        if not self.library or self.library.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(memory)):
            return None
        return memory.used / (1 << 20)
