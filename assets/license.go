package assets

import (
	"strings"
	"sync"
)

// Licenses maps the modules that are linked into the program to their licences, as SPDX expressions.
var Licenses = sync.OnceValue(func() map[string]string {
	text, err := files.ReadFile("licenses.txt")
	if err != nil {
		panic(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if module, expression, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(module, "#") {
			out[module] = expression
		}
	}
	return out
})
