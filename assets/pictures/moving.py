"""Turns screens with colours (tmux capture-pane -e) into one SVG that moves: moving.py COLUMNS ROWS NNN-SECONDS.ansi ..."""
import html
import re
import sys
import unicodedata
from pathlib import Path

WIDTH, HEIGHT, INK, PAPER = 8.4, 18, "#d8dee9", "#101418"
BASIC = "#2e3440 #e06c75 #98c379 #e5c07b #61afef #c678dd #56b6c2 #d8dee9 #5c6370 #ef8f97 #b4d79b #f0d399 #89c4f4 #d8a0e6 #7fcdd7 #ffffff".split()


def of256(n):
    """The colour of a number from 0 to 255 (xterm's cube and greys)."""
    if n < 16:
        return BASIC[n]
    if n > 231:
        return "#" + f"{8 + 10 * (n - 232):02x}" * 3
    n -= 16
    return "#" + "".join(f"{(0, 95, 135, 175, 215, 255)[d]:02x}" for d in (n // 36, n // 6 % 6, n % 6))


class Style:
    def __init__(self):
        self.ink, self.paper, self.bold, self.dim, self.reverse = INK, None, False, False, False

    def apply(self, codes):
        codes = [int(c or 0) for c in re.split("[;:]", codes)]
        while codes:
            c = codes.pop(0)
            if c == 0:
                self.__init__()
            elif c in (1, 22):
                self.bold, self.dim = c == 1, False
            elif c == 2:
                self.dim = True
            elif c in (7, 27):
                self.reverse = c == 7
            elif c in (38, 48):
                colour = "#%02x%02x%02x" % tuple(codes[1:4]) if codes[0] == 2 else of256(codes[1])
                del codes[: 4 if codes[0] == 2 else 2]
                if c == 38:
                    self.ink = colour
                else:
                    self.paper = colour
            elif 30 <= c <= 37 or 90 <= c <= 97:
                self.ink = BASIC[c - 30 if c < 90 else c - 82]
            elif 40 <= c <= 47:
                self.paper = BASIC[c - 40]
            elif c == 39:
                self.ink = INK
            elif c == 49:
                self.paper = None

    def drawn(self):
        ink, paper = (self.paper or PAPER, self.ink) if self.reverse else (self.ink, self.paper)
        return ink, paper, self.bold, self.dim


def cells(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def row(line, style, y):
    """The SVG of one row."""
    column, out = 0, []
    for codes, text in re.findall(r"\x1b\[([0-9;:]*)m|([^\x1b]+)", line):
        if not text:
            style.apply(codes)
            continue
        ink, paper, bold, dim = style.drawn()
        x, width = column * WIDTH, cells(text) * WIDTH
        column += cells(text)
        if paper:
            out.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{HEIGHT}" fill="{paper}"/>')
        if text.strip():
            more = (' font-weight="bold"' if bold else "") + (' opacity=".6"' if dim else "")
            fill = "" if ink == INK else f' fill="{ink}"'
            blank = len(text) - len(text.lstrip())
            text = text.strip()
            out.append(f'<text x="{x + blank * WIDTH:.1f}" y="{y + 13}" textLength="{cells(text) * WIDTH:.1f}"{fill}{more}>{html.escape(text)}</text>')
    return "".join(out)


def main():
    columns, rows = int(sys.argv[1]), int(sys.argv[2])
    frames = []
    for name in sys.argv[3:]:
        lines, style = Path(name).read_text(encoding="utf-8").split("\n")[:rows], Style()
        drawn = "\n".join(filter(None, (row(line, style, i * HEIGHT) for i, line in enumerate(lines))))
        seconds = float(Path(name).stem.split("-")[1])
        if frames and frames[-1][0] == drawn:
            frames[-1][1] += seconds
        else:
            frames.append([drawn, seconds])
    total = sum(s for _, s in frames)
    width, height = columns * WIDTH + 16, rows * HEIGHT + 16
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" xml:space="preserve" '
          f'font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="14" fill="{INK}">')
    print("<title>The wizard on the embedded lab, from the first page to the report</title>")
    print(f'<rect width="100%" height="100%" rx="6" fill="{PAPER}"/><g transform="translate(8 8)">')
    begin = 0.0
    for i, (drawn, seconds) in enumerate(frames):
        a, b = begin / total, (begin + seconds) / total
        begin += seconds
        # Where nothing moves, the last frame is what is seen.
        still = "" if i == len(frames) - 1 else ' visibility="hidden"'
        values, times = (["hidden", "visible", "hidden"], [0, a, b]) if i else (["visible", "hidden"], [0, b])
        if i == len(frames) - 1:
            values, times = values[:2], times[:2]
        print(f'<g{still}><animate attributeName="visibility" dur="{total:g}s" repeatCount="indefinite" calcMode="discrete" '
              f'values="{";".join(values)}" keyTimes="{";".join(f"{t:.4f}" for t in times)}"/>\n{drawn}</g>')
    print("</g></svg>")


main()
