-- Lmod module file of a relocatable cuota. Put this tree anywhere and its modulefiles directory into
-- MODULEPATH. `module load cuota` gives the command; quotas begin with `cuota run`, or with LD_PRELOAD set to
-- CUOTA_LIBRARY and CUOTA_MEM, CUOTA_SM as libcuota(7) says.
help([[cuota @VERSION@: GPU memory caps and SM-time shares for unmodified CUDA programs]])
whatis("Name: cuota")
whatis("Version: @VERSION@")

-- .../modulefiles/cuota/VERSION.lua
local root = pathJoin(myFileName():match("^(.*)/modulefiles/"), "")

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
setenv("CUOTA_LIBRARY", pathJoin(root, "lib/libcuota.so"))
