# What a user would run in a cell: all the GPU memory there is, straight from the driver.
import ctypes
import os

cuda = ctypes.CDLL("libcuda.so.1")
device, context = ctypes.c_int(), ctypes.c_void_p()
free, total, pointer = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
got = 0
refused = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
if refused == 0:
    assert cuda.cuCtxSetCurrent(context) == 0
    while (refused := cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(64 << 20))) == 0:
        got += 64
    assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
print(f"total_mib={total.value >> 20} got_mib={got} refused={refused} group={os.environ.get('CUOTA_GROUP')}")
