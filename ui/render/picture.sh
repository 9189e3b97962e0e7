#!/usr/bin/env bash
# Picture of the top of a report from the embedded lab: picture.sh BINARY FILE.png. Needs chromium. Eight hosts are set up
# and every pair of their VMs is measured.
set -euo pipefail
bin=$(realpath "$1")
out=$(realpath -m "$2")
work=$(mktemp -d)
lab=
trap 'if [ -n "$lab" ]; then kill "$lab" 2>/dev/null || true; fi; rm -rf "$work"' EXIT
command -v chromium >/dev/null || { echo "picture: chromium is not installed" >&2; exit 1; }

mkfifo "$work/said"
"$bin" lab --hosts 8 --vms 8 --dir "$work/lab" >"$work/said" 2>/dev/null &
lab=$!
read -r word <"$work/said"
[ "$word" = ready ]
set -a
# shellcheck disable=SC1091
. "$work/lab/env"
XDG_STATE_HOME=$work/state
set +a
sed 's/pairs: ring/pairs: all/' "$work/lab/answers-pvrdma.yaml" >"$work/answers.yaml"
grep -q 'pairs: all' "$work/answers.yaml" || echo 'measure: {pairs: all}' >>"$work/answers.yaml"
"$bin" apply -f "$work/answers.yaml" --yes >/dev/null 2>&1
"$bin" report -o html --out "$work/report.html"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,1670 \
  --screenshot="$out" "file://$work/report.html" >/dev/null 2>&1
echo "picture: $out"
