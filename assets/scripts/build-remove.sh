#!/bin/sh
# Removes the build of build.sh, also an incomplete one: build-remove.sh NAME BUILT STATE PREFIX. PREFIX is empty for the driver.
name=$1 built=$2 state=$3 prefix=$4
if [ -n "$prefix" ]; then
	rm -rf -- "$prefix" "$built/${prefix##*/}".?????? || exit 1
else
	for m in nvidia_peermem nvidia_drm nvidia_modeset nvidia_uvm nvidia; do modprobe -r $m 2>/dev/null; done
	if command -v nvidia-uninstall >/dev/null; then nvidia-uninstall --silent </dev/null >/dev/null || exit 1; fi
fi
rm -f "$built/$name"
rmdir "$built" 2>/dev/null && rmdir "$state" 2>/dev/null
exit 0
