#!/bin/sh
# The same by CDI (podman 4.1, docker 25, containerd 1.7 or newer). Once, as root:
#
#   cuota cdi generate --output /etc/cdi/cuota.json
#
# Then a quota is a device, beside NVIDIA's own (nvidia-ctk cdi generate --output /etc/cdi/nvidia.json):
#
#   examples/containers/run-cdi.sh nvcr.io/nvidia/pytorch:25.10-py3 python train.py
gpu=${GPU-'--device=nvidia.com/gpu=0'}

# shellcheck disable=SC2086 # several options, or none
exec "${ENGINE:-podman}" run --rm $gpu $OPTIONS \
	--device cuota.dev/quota=8g \
	--device cuota.dev/quota=sm30 \
	"$@"
