package sh

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"mvdan.cc/sh/v3/syntax"
)

// jumpsEndLists makes break and continue end the lists of commands around them (POSIX.1-2017, Shell Command Language, 2.14 break and
// continue). The interpreter (mvdan.cc/sh 3.14.1, interp.Runner.stmts) checks for them only after the statements of a loop's own body:
// what follows them in braces, an if or a case still runs. Such a list becomes the body of a loop that runs once, and the break or
// continue counts that loop too.
//
// The interpreter also goes on after those in a condition, in the left side of &&, after !, in a subshell or the right side of a pipe,
// in the text of an eval, and of a number that is not constant. A script with one of these is refused. Not noticed are those in a text
// that is only known at run time, and in a function that is called in a loop.
func jumpsEndLists(stmts []*syntax.Stmt) error {
	n := nest{err: new(error)}
	n.stmts(stmts)
	for _, s := range stmts {
		syntax.Walk(s, func(node syntax.Node) bool {
			if sub, is := node.(*syntax.CmdSubst); is {
				n.stmts(sub.Stmts)
			}
			return true
		})
	}
	return *n.err
}

var errJump = errors.New("break or continue is not to be had here")

// A nest is the loops around a statement.
type nest struct {
	loops []bool // the innermost last; true is a loop of the script, false one that list has added
	err   *error // the first jump that is refused
}

func (n nest) in(own bool) nest {
	n.loops = append(slices.Clone(n.loops), own)
	return n
}

// out is the nest of a process or function of its own.
func (n nest) out() nest {
	n.loops = nil
	return n
}

// refuse refuses jumps in a list.
func (n nest) refuse(list ...*syntax.Stmt) {
	if jumps(list, 0) && *n.err == nil {
		at := list[0].Pos()
		*n.err = fmt.Errorf("%d:%d: %w", at.Line(), at.Col(), errJump)
	}
}

// stmts converts the commands of a list that is not nested, or that is the body of a loop.
func (n nest) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		n.stmt(s)
	}
}

func (n nest) stmt(s *syntax.Stmt) {
	if s.Negated {
		n.refuse(s)
	}
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		n.call(s, cmd)
	case *syntax.Block:
		cmd.Stmts = n.list(cmd.Stmts)
	case *syntax.IfClause:
		for c := cmd; c != nil; c = c.Else {
			n.refuse(c.Cond...)
			n.stmts(c.Cond)
			c.Then = n.list(c.Then)
		}
	case *syntax.CaseClause:
		for _, item := range cmd.Items {
			item.Stmts = n.list(item.Stmts)
		}
	case *syntax.ForClause:
		n.in(true).stmts(cmd.Do)
	case *syntax.WhileClause:
		n.refuse(cmd.Cond...)
		n.in(true).stmts(cmd.Cond)
		n.in(true).stmts(cmd.Do)
	case *syntax.BinaryCmd:
		switch cmd.Op {
		case syntax.Pipe, syntax.PipeAll: // each side is a process of its own
			n.refuse(cmd.X)
			n.refuse(cmd.Y)
			n = n.out()
		case syntax.AndStmt:
			n.refuse(cmd.X)
		}
		n.stmt(cmd.X)
		n.stmt(cmd.Y)
	case *syntax.Subshell:
		n.refuse(cmd.Stmts...)
		n.out().stmts(cmd.Stmts)
	case *syntax.FuncDecl:
		n.out().stmt(cmd.Body)
	}
}

// list converts the list of a nested command.
func (n nest) list(list []*syntax.Stmt) []*syntax.Stmt {
	if len(n.loops) == 0 || len(list) < 2 || !jumps(list[:len(list)-1], 0) {
		n.stmts(list)
		return list
	}
	n.in(false).stmts(list)
	at := list[0].Pos()
	once := &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{ValuePos: at, ValueEnd: at, Value: "1"}}}
	loop := &syntax.WordIter{Name: &syntax.Lit{ValuePos: at, ValueEnd: at, Value: "_once_"}, InPos: at, Items: []*syntax.Word{once}}
	return []*syntax.Stmt{{Position: at, Cmd: &syntax.ForClause{ForPos: at, DoPos: at, DonePos: at, Loop: loop, Do: list}}}
}

// call adds to the number of a break or continue the loops that list has added between it and the loop that it means.
func (n nest) call(s *syntax.Stmt, cmd *syntax.CallExpr) {
	count := jump(cmd)
	if count == unknown {
		n.refuse(s)
	}
	if count <= 0 || len(n.loops) == 0 {
		return
	}
	passed := 0
	for i := len(n.loops) - 1; i >= 0 && count > 0; i-- {
		passed++
		if n.loops[i] {
			count--
		}
	}
	at := cmd.Args[0].End()
	cmd.Args = append(cmd.Args[:1],
		&syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{ValuePos: at, ValueEnd: at, Value: strconv.Itoa(passed)}}})
}

const unknown = 1 << 10

// jump returns the number of loops that a break or continue ends or continues, 0 for any other command.
func jump(cmd *syntax.CallExpr) int {
	args := cmd.Args
	if len(args) > 1 && args[0].Lit() == "command" && (args[1].Lit() == "break" || args[1].Lit() == "continue") {
		return unknown
	}
	if len(args) == 0 || args[0].Lit() != "break" && args[0].Lit() != "continue" {
		return 0
	}
	if len(args) == 1 {
		return 1
	}
	count, err := strconv.Atoi(args[1].Lit())
	if err != nil {
		return unknown
	}
	return max(0, min(count, unknown-1))
}

// jumps reports whether statements below so many loops of their own may break or continue a loop around them.
func jumps(list []*syntax.Stmt, loops int) bool {
	return slices.ContainsFunc(list, func(s *syntax.Stmt) bool {
		switch cmd := s.Cmd.(type) {
		case *syntax.CallExpr:
			return jump(cmd) > loops
		case *syntax.Block:
			return jumps(cmd.Stmts, loops)
		case *syntax.IfClause:
			for c := cmd; c != nil; c = c.Else {
				if jumps(c.Cond, loops) || jumps(c.Then, loops) {
					return true
				}
			}
		case *syntax.CaseClause:
			return slices.ContainsFunc(cmd.Items, func(i *syntax.CaseItem) bool { return jumps(i.Stmts, loops) })
		case *syntax.ForClause:
			return jumps(cmd.Do, loops+1)
		case *syntax.WhileClause:
			return jumps(cmd.Cond, loops+1) || jumps(cmd.Do, loops+1)
		case *syntax.BinaryCmd:
			return jumps([]*syntax.Stmt{cmd.X, cmd.Y}, loops)
		}
		return false
	})
}
