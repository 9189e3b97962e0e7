#!/bin/sh
# Marks the RDMA traffic of a device with a traffic class, now and after each boot: class-set.sh SCRIPT MAC CLASS UNIT
sh "$1" "$2" "$3" || exit 1
systemctl enable "$4" && systemctl restart "$4"
