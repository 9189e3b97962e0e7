#!/bin/sh
# Loads the distribution's kernel modules after MLNX_OFED was removed: modules-back.sh MODULE...
depmod -a
for module; do modprobe -- "$module" || exit 1; done
