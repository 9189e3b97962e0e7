#!/bin/sh
# Prints the first container engine that answers, its images, and those with a label: engine.sh LABEL INSIDE IMAGE...
# It inspects those of the images IMAGE that exist with the script INSIDE: in a container without network and privileges, which
# downloads nothing and is removed afterwards.
label=$1 inside=$2
shift 2
for e in docker podman nerdctl; do
	command -v $e >/dev/null || continue
	list=$(timeout 10 $e images --format '{{.Repository}}:{{.Tag}}') || continue
	echo "engine $e"
	echo "$list" | head -n 1000 | sed 's/^/image /'
	for i in $(timeout 10 $e images -q --filter "label=$label" | sort -u | head -n 50); do
		timeout 10 $e image inspect --format 'built {{index .Config.Labels "'"$label"'"}}{{range .RepoTags}} {{.}}{{end}}' "$i"
	done
	for i in "$@"; do
		timeout 10 $e image inspect "$i" >/dev/null || continue
		said=$(timeout -k 5 30 $e run --rm --network=none --cap-drop=ALL --entrypoint=/bin/sh "$i" -c "$inside" </dev/null) || continue
		echo "looking $i"
		echo "$said" | head -n 20 | sed 's/^/inside /'
	done
	break
done
