#!/usr/bin/env bash
# The moving picture of the README: moving.sh BINARY FILE.svg walks the wizard on the private lab in a real terminal, from the first
# page to the report, and writes what it showed as one SVG that moves by itself. Needs tmux and python3.
set -euo pipefail
bin=$(realpath "$1")
out=$(realpath -m "$2")
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
tm() { tmux -L "rdma-moving-$$" -f /dev/null "$@"; }
trap 'tm kill-server 2>/dev/null || true; rm -rf "$work"' EXIT
for tool in tmux python3; do
  command -v "$tool" >/dev/null || { echo "moving: $tool is not installed" >&2; exit 1; }
done
columns=100 rows=30 n=0

# frame TEXT SECONDS: when the text stands on the screen, keep the screen; it is shown for so long.
frame() {
  local screen=""
  for _ in $(seq 900); do
    screen=$(tm capture-pane -p -t s 2>/dev/null || true)
    if [[ $screen == *"$1"* ]]; then
      n=$((n + 1))
      tm capture-pane -p -e -N -t s | sed "s|$work/run|~|g" >"$work/$(printf %03d "$n")-$2.ansi"
      return
    fi
    tm has-session -t s 2>/dev/null || break
    sleep 0.1
  done
  echo "moving: \"$1\" did not come; the screen shows:" >&2
  tm capture-pane -p -t s >&2 || true
  exit 1
}

mkdir "$work/run"
tm new-session -d -x "$columns" -y "$rows" -s s \
  "cd '$work/run' && exec env TERM=xterm-256color COLORTERM=truecolor LANG=C.UTF-8 XDG_STATE_HOME='$work/run' '$bin' --lab --command-times real"
next() { tm send-keys -t s "$@"; }
frame 'vCenter address' 2; next Enter Enter
frame 'Which hosts should be set up' 2; next Enter
frame 'How should the guests' 2; next Enter
frame 'Which pNIC of each host' 2; next Enter
frame 'Distributed switch' 2; next Enter Enter Enter Enter Enter
frame 'Which VMs get an RDMA adapter' 2; next Enter
frame ' passed, ' 2; next Enter
frame 'Enter APPLY' 3; next PageDown
frame 'Enter APPLY' 1; next Enter
frame '% ' 1
for _ in 1 2 3 4 5 6 7 8; do
  sleep 1
  if [[ $(tm capture-pane -p -t s) == *'Next steps'* ]]; then break; fi
  frame 'rdma-setup' 0.5
done
frame 'Next steps' 4; next PageDown
frame 'Next steps' 4; next Enter
python3 "$here/moving.py" "$columns" "$rows" "$work"/*.ansi >"$out"
