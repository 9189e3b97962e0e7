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

// SchemaVersion is the version of the JSON documents that commands print: it changes when a field is removed or its meaning
// changes, not when a field is added.
const SchemaVersion = 1

// JSON writes JSON that is safe on terminals: control characters (DEL and C1, which JSON does not escape) and characters that
// change the direction of text are written as \u escapes, which are equivalent. Each document that is an object begins with its
// schemaVersion.
func JSON(w io.Writer) *json.Encoder {
	return encoder(escaping{w: w, versioned: true})
}

// ForeignJSON does the same without a schemaVersion, for documents whose format others define.
func ForeignJSON(w io.Writer) *json.Encoder { return encoder(escaping{w: w}) }

func encoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}

// An escaping writer receives one whole document per call, in which such characters occur in strings only.
type escaping struct {
	w         io.Writer
	versioned bool
}

func (e escaping) Write(p []byte) (int, error) {
	doc := string(p)
	if e.versioned {
		doc = withVersion(doc)
	}
	_, err := io.WriteString(e.w, escape(doc, func(r rune) string {
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

// withVersion inserts the schemaVersion as the first member of an object, with the document's indentation.
func withVersion(doc string) string {
	fields, is := strings.CutPrefix(doc, "{")
	if !is {
		return doc
	}
	layout := fields[:len(fields)-len(strings.TrimLeft(fields, "\n "))]
	colon, comma := ":", ","
	if layout != "" {
		colon = ": "
	}
	if strings.HasPrefix(fields[len(layout):], "}") {
		comma = ""
	}
	return fmt.Sprintf(`{%s"schemaVersion"%s%d%s%s`, layout, colon, SchemaVersion, comma, fields)
}

// YAML does the same for a YAML document in which such characters occur only in double quotes.
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
