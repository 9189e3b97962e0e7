#!/bin/sh
# Prints the path of cuda.h.
for f in /usr/local/cuda/include/cuda.h /usr/local/cuda-*/include/cuda.h /usr/include/cuda.h; do
	if [ -e "$f" ]; then
		echo "$f"
		break
	fi
done
