#!/usr/bin/env bash
# Pictures of every page of the wizard on the embedded lab, made in a real terminal: pictures.sh BINARY DIRECTORY
# [PREFIX COLUMNS ROWS INK PAPER ENVIRONMENT...]. Needs tmux, aha and chromium. A page is taken when its text stands on
# the screen, never after a while.
set -euo pipefail
bin=$(realpath "$1")
out=$(mkdir -p "$2" && realpath "$2")
work=$(mktemp -d)
socket=
tm() { tmux -L "$socket" -f /dev/null "$@"; }
# The program's lab ends a moment after its terminal, and writes until then.
clear_up() {
  tm kill-server 2>/dev/null || true
  for _ in $(seq 100); do
    rm -rf "$work" 2>/dev/null && return
    sleep 0.1
  done
}
trap clear_up EXIT
for tool in tmux aha chromium; do
  command -v "$tool" >/dev/null || { echo "pictures: $tool is not installed" >&2; exit 1; }
done

# wait_for TEXT...: until one of the texts stands on the screen; it is left in $found.
wait_for() {
  local screen text
  for _ in $(seq 600); do
    screen=$(tm capture-pane -p -t s 2>/dev/null || true)
    for text in "$@"; do
      if [[ $screen == *"$text"* ]]; then
        found=$text
        return
      fi
    done
    tm has-session 2>/dev/null || break
    sleep 0.1
  done
  echo "pictures: \"$1\" did not come; the screen shows:" >&2
  tm capture-pane -p -t s >&2 || true
  exit 1
}

shot() { # NAME COLUMNS ROWS INK PAPER
  local opts=(--no-header)
  if [ "$5" = black ]; then opts+=(--black); fi
  {
    echo "<body style='margin:0;background:$5'><pre style='margin:8px;color:$4;font:16px/19px DejaVu Sans Mono,monospace'>"
    tm capture-pane -p -e -N -t s | aha "${opts[@]}"
    echo '</pre></body>'
  } >"$work/page.html"
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="$((($2 * 9633 + 999) / 1000 + 16)),$(($3 * 19 + 16))" \
    --screenshot="$out/$1.png" "file://$work/page.html" >/dev/null 2>&1
  tm capture-pane -p -t s >"$out/$1.txt"
}

walk() { # PREFIX COLUMNS ROWS INK PAPER ENVIRONMENT...
  local prefix=$1 columns=$2 rows=$3 ink=$4 paper=$5
  shift 5
  local settings=""
  if [ $# -gt 0 ]; then settings=$(printf '%q ' "$@"); fi
  tm kill-server 2>/dev/null || true
  socket=rdma-pictures-$$-$prefix # a server that is ending refuses new sessions
  local run=$work/$prefix
  mkdir -p "$run"
  tm new-session -d -x "$columns" -y "$rows" -s s \
    "cd '$run' && exec env TERM=xterm-256color COLORTERM=truecolor LANG=C.UTF-8 XDG_STATE_HOME='$run' $settings '$bin' --lab"
  local n=0
  picture() { # NAME
    n=$((n + 1))
    shot "$prefix-$(printf %02d "$n")-$1" "$columns" "$rows" "$ink" "$paper"
  }
  take() { # NAME TEXT
    wait_for "$2"
    picture "$1"
  }
  glimpse() { # NAME TEXT: of a page that passes by itself
    wait_for "$2" 'Next steps'
    if [ "$found" = "$2" ]; then picture "$1"; fi
  }
  take vcenter 'vCenter address'; tm send-keys -t s F2
  take look 'Next steps'; tm send-keys -t s Enter
  take hosts 'Which hosts should be set up'; tm send-keys -t s Enter
  take mode 'How should the guests'; tm send-keys -t s Enter
  take pnics 'Which pNIC of each host'; tm send-keys -t s Enter
  take switch 'Distributed switch'; tm send-keys -t s Enter Enter Enter Enter Enter
  take vms 'Which VMs get an RDMA adapter'; tm send-keys -t s Enter
  take preflight ' passed, '; tm send-keys -t s Enter
  take plan 'Press Enter to apply'; tm send-keys -t s Enter
  glimpse run 'power on'
  glimpse measure ' tests'
  take report 'Next steps'; tm send-keys -t s Enter
}

if [ $# -gt 2 ]; then
  walk "${@:3}"
  exit
fi
walk 80x24 80 24 '#ddd' black
walk 120x40 120 40 '#ddd' black
walk 200x60 200 60 '#ddd' black
walk light 120 40 black white 'COLORFGBG=0;15'
walk plain 80 24 '#ddd' black NO_COLOR=1 LANG=C LC_ALL=C
echo "pictures: in $out"
