package sh

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// Scripts keeps parsed scripts by their text: the guests of a lab run the same scripts again and again. A text is kept when it
// comes for the second time, because many contain a number that never comes again. It is safe for concurrent use; nil keeps nothing.
type Scripts struct {
	mu    sync.Mutex
	seed  maphash.Seed
	once  map[uint64]struct{} // hashes of texts that came once
	kept  map[scriptKey]*script
	bytes int // of the texts that are kept
}

// keptScripts is how many bytes of text are kept at most; the parsed form takes many times as much.
const keptScripts = 1 << 20

type scriptKey struct {
	lang syntax.LangVariant
	eval bool // of an eval, so not prepared
	text string
}

// A script is a parsed text, or why it cannot be run. Shells share it, so nobody changes it.
type script struct {
	stmts    []*syntax.Stmt
	err      error
	detaches bool // something in it outlives the shell
}

// NewScripts returns an empty store.
func NewScripts() *Scripts {
	return &Scripts{seed: maphash.MakeSeed(), once: map[uint64]struct{}{}, kept: map[scriptKey]*script{}}
}

// parse returns the script with a text, prepared for running.
func (c *Scripts) parse(lang syntax.LangVariant, text string) *script {
	return c.get(scriptKey{lang: lang, text: text})
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
	file, err := syntax.NewParser(syntax.Variant(key.lang)).Parse(strings.NewReader(key.text), "")
	if s.err = err; err == nil {
		s.stmts = file.Stmts
	}
	if !key.eval && err == nil {
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

// prepare changes statements to what the interpreter has. It reports whether one of them outlives the shell, and fails on one that
// would access the real system.
func (c *Scripts) prepare(stmts []*syntax.Stmt) (detaches bool, err error) {
	for _, s := range stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Stmt:
				n.Redirs = slices.DeleteFunc(n.Redirs, closesNothing)
				declares(n)
				detaches = detaches || n.Background || n.Disown
				if block := c.evaluated(n.Cmd); block != nil {
					n.Cmd = block
					return false
				}
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

// evaluated returns what an eval of a text without expansions runs: the text is parsed once, and not each time that the eval runs.
// The interpreter's eval reads bash, and runs what it has read as it is.
func (c *Scripts) evaluated(cmd syntax.Command) *syntax.Block {
	call, is := cmd.(*syntax.CallExpr)
	if !is || len(call.Args) != 2 || len(call.Assigns) > 0 || call.Args[0].Lit() != "eval" {
		return nil
	}
	var text strings.Builder
	for _, part := range call.Args[1].Parts {
		switch part := part.(type) {
		case *syntax.SglQuoted:
			if part.Dollar {
				return nil
			}
			text.WriteString(part.Value)
		case *syntax.Lit:
			if part.Value != `\'` && !syntax.ValidName(part.Value) { // anything else may expand
				return nil
			}
			text.WriteString(strings.TrimPrefix(part.Value, `\`))
		default:
			return nil
		}
	}
	s := c.get(scriptKey{lang: syntax.LangBash, eval: true, text: text.String()})
	if s.err != nil || len(s.stmts) == 0 {
		return nil
	}
	return &syntax.Block{Lbrace: call.Pos(), Rbrace: call.End(), Stmts: s.stmts}
}
