package sh

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Scripts caches parsed scripts by their text, because the guests of a lab run the same scripts repeatedly. A script is cached
// when it runs for the second time, because many contain a number that is used only once. It is safe for concurrent use; a nil
// cache stores nothing.
type Scripts struct {
	mu    sync.Mutex
	seed  maphash.Seed
	once  map[uint64]struct{} // hashes of scripts that ran once
	kept  map[scriptKey]*script
	bytes int // bytes of cached text
}

// keptScripts is the maximum number of bytes of cached text; the parsed form takes up to forty times as much.
const keptScripts = 1 << 19

type scriptKey struct {
	lang    syntax.LangVariant
	eval    bool // text of an eval, which is not prepared
	escaped bool // text with the escapes of printf %b
	text    string
}

// A script is a parsed text or its parse error. Shells share it, so it must not be changed.
type script struct {
	stmts    []*syntax.Stmt
	err      error
	detaches bool // a background command continues after the shell ends
}

// NewScripts returns an empty cache.
func NewScripts() *Scripts {
	return &Scripts{seed: maphash.MakeSeed(), once: map[uint64]struct{}{}, kept: map[scriptKey]*script{}}
}

// parse returns the parsed script for a text, prepared for the interpreter.
func (c *Scripts) parse(lang syntax.LangVariant, text string) *script {
	return c.get(scriptKey{lang: lang, text: text})
}

// escaped is like parse for a text with the escapes of printf %b.
func (c *Scripts) escaped(lang syntax.LangVariant, text string) *script {
	return c.get(scriptKey{lang: lang, escaped: true, text: text})
}

func (c *Scripts) get(key scriptKey) *script {
	if c != nil {
		c.mu.Lock()
		s, known := c.kept[key]
		c.mu.Unlock()
		if known {
			return s
		}
	}
	s := &script{}
	text, err := key.text, error(nil)
	if key.escaped {
		if text, _, err = expand.Format(&expand.Config{}, "%b", []string{octals(text)}); err != nil {
			return &script{err: err}
		}
		text = strings.TrimRight(text, "\n")
	}
	file, err := syntax.NewParser(syntax.Variant(key.lang)).Parse(strings.NewReader(text), "")
	if s.err = err; err == nil {
		s.stmts = file.Stmts
		if strings.Contains(text, "break") || strings.Contains(text, "continue") {
			s.err = jumpsEndLists(s.stmts)
		}
	}
	switch {
	case s.err != nil:
	case key.eval:
		for _, stmt := range s.stmts {
			syntax.Walk(stmt, func(n syntax.Node) bool {
				joinConstants(n)
				return replacePID(n)
			})
		}
	default:
		s.detaches, s.err = c.prepare(s.stmts)
	}
	if c != nil {
		c.keep(key, s)
	}
	return s
}

func (c *Scripts) keep(key scriptKey, s *script) {
	hash := maphash.String(c.seed, key.text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, again := c.once[hash]; !again {
		if len(c.once) == 1<<14 {
			clear(c.once)
		}
		c.once[hash] = struct{}{}
		return
	}
	if c.bytes += len(key.text); c.bytes > keptScripts {
		clear(c.kept)
		c.bytes = len(key.text)
	}
	c.kept[key] = s
}

// prepare converts statements to a form that the interpreter supports. It reports whether a background command continues after
// the shell ends. It returns an error for a statement that would access the real system.
func (c *Scripts) prepare(stmts []*syntax.Stmt) (detaches bool, err error) {
	for _, s := range stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			joinConstants(n)
			switch n := n.(type) {
			case *syntax.Stmt:
				n.Redirs = slices.DeleteFunc(n.Redirs, closesNothing)
				declares(n)
				detaches = detaches || n.Background || n.Disown
				var block *syntax.Block
				if block, err = c.evaluated(n.Cmd); block != nil {
					n.Cmd = block
					return false
				}
			case *syntax.ParamExp:
				replacePID(n)
			case *syntax.ProcSubst:
				err = fmt.Errorf("%d:%d: process substitution is not to be had here", n.Pos().Line(), n.Pos().Col())
			case *syntax.CoprocClause:
				err = fmt.Errorf("%d:%d: coproc is not to be had here", n.Pos().Line(), n.Pos().Col())
			}
			return err == nil
		})
	}
	return detaches, err
}

// replacePID replaces $$. In the text of an eval that is not constant, $$ remains.
func replacePID(n syntax.Node) bool {
	if n, is := n.(*syntax.ParamExp); is && n.Param != nil && n.Param.Value == "$" {
		n.Param = &syntax.Lit{ValuePos: n.Param.ValuePos, ValueEnd: n.Param.ValueEnd, Value: ownPID}
	}
	return true
}

// evaluated returns the statements of an eval whose text has no expansions, so that the text is parsed once instead of at each
// run. The interpreter's eval parses bash and does not prepare the statements. A text that breaks or continues a loop around the eval
// is an error; see jumpsEndLists.
func (c *Scripts) evaluated(cmd syntax.Command) (*syntax.Block, error) {
	call, is := cmd.(*syntax.CallExpr)
	if !is || len(call.Args) != 2 || len(call.Assigns) > 0 || call.Args[0].Lit() != "eval" {
		return nil, nil
	}
	text, is := constant(call.Args[1])
	if !is {
		return nil, nil
	}
	s := c.get(scriptKey{lang: syntax.LangBash, eval: true, text: text})
	switch {
	case errors.Is(s.err, errJump):
		return nil, s.err
	case s.err == nil && jumps(s.stmts, 0):
		return nil, fmt.Errorf("%d:%d: %w", call.Pos().Line(), call.Pos().Col(), errJump)
	case s.err != nil || len(s.stmts) == 0:
		return nil, nil
	}
	return &syntax.Block{Lbrace: call.Pos(), Rbrace: call.End(), Stmts: s.stmts}, nil
}

// joinConstants makes one quoted part of each constant word of a command. A script that is an argument has a part for each of its own
// quotes, often hundreds, and the interpreter would join them at each run. The result is only for the interpreter: printed, its quotes
// are not escaped.
func joinConstants(n syntax.Node) {
	call, is := n.(*syntax.CallExpr)
	if !is {
		return
	}
	for _, w := range call.Args {
		if len(w.Parts) < 2 {
			continue
		}
		if text, is := constant(w); is {
			w.Parts = []syntax.WordPart{&syntax.SglQuoted{Left: w.Pos(), Right: w.Pos(), Value: text}}
		}
	}
}

// constant returns the text of a word that consists of quoted text, escaped quotes and names. Any other text may contain expansions.
func constant(w *syntax.Word) (_ string, is bool) {
	var text strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false
			}
			text.WriteString(part.Value)
		case *syntax.Lit:
			if part.Value != `\'` && !syntax.ValidName(part.Value) {
				return "", false
			}
			text.WriteString(strings.TrimPrefix(part.Value, `\`))
		default:
			return "", false
		}
	}
	return text.String(), true
}
