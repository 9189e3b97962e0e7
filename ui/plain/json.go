package plain

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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

// WriteJSON prints one indented document.
func WriteJSON(w io.Writer, v any) error { return indented(escaping{w: w, versioned: true}, v) }

// WriteForeignJSON writes a document in a foreign format, such as SPDX: it has no schemaVersion.
func WriteForeignJSON(w io.Writer, v any) error { return indented(escaping{w: w}, v) }

func indented(w io.Writer, v any) error {
	enc := encoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

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
	// A small document is written at once; of a large one, no copy is kept in memory.
	out := bufio.NewWriterSize(e.w, min(len(p)+64, 64<<10))
	rest := p
	if e.versioned {
		rest = withVersion(out, p)
	}
	escape(out, rest, func(r rune) string {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
	if err := out.Flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// withVersion writes the beginning of an object with the schemaVersion as its first member, with the document's indentation, and
// returns the rest.
func withVersion(out *bufio.Writer, doc []byte) []byte {
	fields, is := bytes.CutPrefix(doc, []byte("{"))
	if !is {
		return doc
	}
	layout := fields[:len(fields)-len(bytes.TrimLeft(fields, "\n "))]
	colon, comma := ":", ","
	if len(layout) > 0 {
		colon = ": "
	}
	if bytes.HasPrefix(fields[len(layout):], []byte("}")) {
		comma = ""
	}
	fmt.Fprintf(out, `{%s"schemaVersion"%s%d%s`, layout, colon, SchemaVersion, comma)
	return fields
}

// YAML does the same for a YAML document in which such characters occur only in double quotes.
func YAML(doc string) string {
	var out bytes.Buffer
	b := bufio.NewWriter(&out)
	escape(b, []byte(doc), func(r rune) string { return fmt.Sprintf(`\U%08X`, r) })
	_ = b.Flush() // to memory
	return out.String()
}

// escape writes a document, and what write returns for each character that is not safe on a terminal. The writer keeps its error.
func escape(out *bufio.Writer, doc []byte, write func(rune) string) {
	kept := 0
	for i := 0; i < len(doc); {
		r, size := utf8.DecodeRune(doc[i:])
		if r >= unicode.MaxASCII && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r)) {
			_, _ = out.Write(doc[kept:i])
			_, _ = out.WriteString(write(r))
			kept = i + size
		}
		i += size
	}
	_, _ = out.Write(doc[kept:])
}
