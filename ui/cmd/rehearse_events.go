package cmd

import (
	"bytes"
	"encoding/json"

	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// events is the output of a command on a twin: with -o json the events of a run that a rehearsal needs, and all other output.
type events struct {
	bytes.Buffer
	list []engine.Event // plans without their nodes, skipped and failed steps, results
	line []byte         // the beginning of a line
}

// Write implements io.Writer.
func (e *events) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		if e.line = append(e.line, line...); line[len(line)-1] != '\n' {
			break
		}
		e.take(e.line)
		e.line = e.line[:0]
	}
	return len(b), nil
}

func (e *events) take(line []byte) {
	_, kind, is := bytes.Cut(line, []byte(`"event":"`))
	if !is {
		e.Buffer.Write(line)
		return
	}
	kind, _, _ = bytes.Cut(kind, []byte(`"`))
	switch engine.EventType(kind) {
	case engine.EventPlanned, engine.EventSkipped, engine.EventFailed, engine.EventResult:
		var event engine.Event
		if json.Unmarshal(line, &event) == nil {
			event.Nodes = nil
			e.list = append(e.list, event)
		}
	}
}
