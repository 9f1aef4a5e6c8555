#!/bin/sh
# One container, one GPU, 8 GiB of its memory and 30 % of its time; docker or podman, no CDI needed:
#
#   examples/containers/run.sh nvcr.io/nvidia/pytorch:25.10-py3 python train.py
#
# The library comes from the host, so the image needs no change. The ledger directory must be the
# host's: containers that do not share it are capped each on its own, but take no turns.
library=${CUOTA_LIBRARY:-/usr/lib/x86_64-linux-gnu/libcuota.so}
gpus=${GPUS-'--gpus=device=0'}

# shellcheck disable=SC2086 # several options, or none
exec "${ENGINE:-docker}" run --rm $gpus $OPTIONS \
	--volume "$library:/usr/lib/cuota/libcuota.so:ro" \
	--volume /run/cuota:/run/cuota \
	--env LD_PRELOAD=/usr/lib/cuota/libcuota.so \
	--env CUOTA_GROUP=auto \
	--env CUOTA_MEM="${CUOTA_MEM:-8G}" \
	--env CUOTA_SM="${CUOTA_SM:-30}" \
	"$@"
