package live

func (t *Table) toggle() {
	r := t.row()
	if r == nil {
		return
	}
	if r.Disabled != "" && !t.Chosen[r.ID] {
		t.err = r.ID + " cannot be chosen: " + r.Disabled
		return
	}
	was := t.Chosen[r.ID]
	if why := t.Full(r.ID); !was && why != "" {
		t.err = r.ID + " cannot be chosen: " + why
		return
	}
	if t.Radio {
		for _, other := range t.rows {
			if other.Group == r.Group {
				delete(t.Chosen, other.ID)
			}
		}
	}
	if was {
		delete(t.Chosen, r.ID)
	} else {
		t.Chosen[r.ID] = true
	}
}

// all selects every visible row of the given ones that can be selected, or deselects them if all are selected.
func (t *Table) all(meant func(Row) bool) {
	if t.Radio {
		return
	}
	missing := false
	var rows []Row
	for _, i := range t.visible {
		if r := t.rows[i]; meant(r) && (r.Disabled == "" || t.Chosen[r.ID]) {
			rows = append(rows, r)
			missing = missing || !t.Chosen[r.ID]
		}
	}
	for _, r := range rows {
		switch {
		case !missing:
			delete(t.Chosen, r.ID)
		case !t.Chosen[r.ID]:
			t.add(r.ID)
		}
	}
}

// add selects one of several rows if there is room for it; the error names the last row for which there was none.
func (t *Table) add(id string) {
	if why := t.Full(id); why != "" {
		t.err = "not all are chosen: " + id + ": " + why
		return
	}
	t.Chosen[id] = true
}

func (t *Table) invert() {
	if t.Radio {
		return
	}
	var more []string
	for _, i := range t.visible {
		switch r := t.rows[i]; {
		case t.Chosen[r.ID]:
			delete(t.Chosen, r.ID)
		case r.Disabled == "":
			more = append(more, r.ID)
		}
	}
	for _, id := range more {
		t.add(id)
	}
}
