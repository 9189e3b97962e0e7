package theme

import "strings"

// Spark draws values from 0 to 1 as a row of columns, one cell each; values below 0 were not measured and stay blank.
func (t Theme) Spark(values []float64) string {
	levels := []rune("▁▂▃▄▅▆▇█")
	if t.ASCII {
		levels = []rune("_.:-=+*#")
	}
	var b strings.Builder
	for _, v := range values {
		if v < 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(levels[min(int(v*float64(len(levels))), len(levels)-1)])
	}
	return t.Accent.Render(b.String())
}
