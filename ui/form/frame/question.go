package frame

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// A questionMsg is sent by an operation that waits for the operator's answer.
type questionMsg struct {
	live.Question
	ctx    context.Context // done when the answer is no longer needed
	typed  string          // the secret typed so far
	answer chan live.Answer
}

// ask shows the question over the current page; without a screen it returns no answer.
func (w *Wizard) ask(ctx context.Context, q live.Question) live.Answer {
	m := questionMsg{Question: backends.Shown(q), ctx: ctx, answer: make(chan live.Answer, 1)}
	w.Send(m)
	select {
	case a := <-m.answer:
		return a
	case <-ctx.Done():
	case <-w.gone:
	}
	return live.Answer{}
}

// question returns the question that is being shown, or nil if there is none.
func (w *Wizard) question() *questionMsg {
	for len(w.questions) > 0 && w.questions[0].ctx.Err() != nil {
		w.questions = w.questions[1:]
	}
	if len(w.questions) == 0 {
		return nil
	}
	return &w.questions[0]
}

func (w *Wizard) reply(a live.Answer) {
	w.questions[0].answer <- a
	w.questions = w.questions[1:]
	w.glass.cover() // the next question is a different one
}

// decide handles a key while a question is shown. Enter alone is not accepted: it may have been meant for the page below.
func (w *Wizard) decide(q *questionMsg, k tea.KeyPressMsg) {
	key := k.String()
	switch {
	case key == "esc":
		w.reply(live.Answer{})
	case q.Secret == "":
		if key == "y" || key == "n" {
			w.reply(live.Answer{Yes: key == "y"})
		}
	case key == "enter":
		if q.typed != "" {
			w.reply(live.Answer{Text: q.typed})
		}
	case key == "backspace":
		_, size := utf8.DecodeLastRuneInString(q.typed)
		q.typed = q.typed[:len(q.typed)-size]
	case key == "ctrl+u":
		q.typed = ""
	default:
		q.typed += k.Text
	}
}

func (w *Wizard) questionView(q *questionMsg, width int) string {
	switch {
	case q.Key != nil:
		return theme.Wrap(fmt.Sprintf("%s, at %s, shows an SSH host key that this machine does not know.\n\n%s, SHA-256 fingerprint\n%s\n\n"+
			"Compare it with the output of ssh-keygen -lf for the host key, on the machine's console. Press y to trust it and save it in %s, or n "+
			"to skip this login.",
			q.Key.Who, q.Key.Address, q.Key.Type,
			w.Theme.Accent.Render(q.Key.Fingerprint), q.Key.KeptIn), width)
	case q.Secret != "":
		return theme.Wrap(fmt.Sprintf("%s\n\n> %s\n\nIt is kept in memory only: never in the answers, the journal or a log.",
			w.Theme.Title.Render(capital(q.Secret)), strings.Repeat("*", utf8.RuneCountInString(q.typed))), width)
	}
	return theme.Wrap(q.Yes+"?", width)
}

func capital(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func (q *questionMsg) hints() []Hint {
	switch {
	case q.Key != nil:
		return []Hint{{"y", "trust it and keep it"}, {"n Esc", "decline"}}
	case q.Secret != "":
		return []Hint{{"Enter", "use it"}, {"Esc", "continue without it"}, {"Ctrl-C", "leave"}}
	}
	return []Hint{{"y", "yes"}, {"n", "no"}}
}

// leaveQuestions handles Ctrl-C while a question is open: operations that wait for an answer stop at once, and so does a run.
func (w *Wizard) leaveQuestions() tea.Cmd {
	for _, q := range w.questions {
		q.answer <- live.Answer{Interrupted: true}
	}
	w.questions = nil
	w.interrupted = true
	if !isClosed(w.stop) {
		close(w.stop)
	}
	if w.cancel != nil {
		w.cancel()
	}
	return tea.Quit
}
