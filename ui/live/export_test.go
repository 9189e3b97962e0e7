package live

import "time"

// AttachView draws the page of another process's run.
func AttachView(run *Run, title string, width, height int, now time.Time) string {
	a := &attached{o: AttachOptions{Title: title, Theme: run.theme}, run: run, now: now, width: width, height: height}
	return a.View().Content
}
