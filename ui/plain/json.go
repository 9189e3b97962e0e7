package plain

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON encodes to w what people look at on terminals, too: characters that drive one (DEL and C1 controls, which JSON
// leaves as they are) or turn the direction of a line are written as \u escapes, which every reader takes for the same.
func JSON(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(escaping{w})
	enc.SetEscapeHTML(false)
	return enc
}

// An escaping writer gets one whole document a call, in which such characters stand in strings only.
type escaping struct{ w io.Writer }

func (e escaping) Write(p []byte) (int, error) {
	_, err := io.WriteString(e.w, escape(string(p), func(r rune) string {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	}))
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// YAML does the same to a YAML document in which such characters stand in double quotes only.
func YAML(doc string) string {
	return escape(doc, func(r rune) string { return fmt.Sprintf(`\U%08X`, r) })
}

func escape(s string, write func(rune) string) string {
	var b strings.Builder
	kept := 0
	for i, r := range s {
		if r < unicode.MaxASCII || !unicode.Is(unicode.Cc, r) && !unicode.Is(unicode.Cf, r) {
			continue
		}
		b.WriteString(s[kept:i] + write(r))
		kept = i + utf8.RuneLen(r)
	}
	return b.String() + s[kept:]
}
