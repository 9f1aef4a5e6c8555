-- Lmod: module load cuota. For sites without root: a relocatable tree of the build, on a shared disk.
--
--   $MODULEPATH/cuota/0.1.0.lua
help([[GPU memory caps and SM-time shares for unmodified CUDA programs.

  module load cuota
  cuota run --mem 8G --sm 30% -- python train.py]])
whatis("Name: cuota")
whatis("Description: GPU quotas for unmodified CUDA programs")

local root = "/opt/apps/cuota/0.1.0"

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
setenv("CUOTA_LIBRARY", pathJoin(root, "lib/libcuota.so"))

-- Not LD_PRELOAD: a module may not decide that every program of the session is capped. cuota run does,
-- and so does the Slurm plugin. Node-local and shared by all users: the default, unless the site set one.
if not os.getenv("CUOTA_DIR") and isDir("/run/cuota") then
	setenv("CUOTA_DIR", "/run/cuota")
end
