package ratepage

import (
	"fmt"
	"net/http"
	"time"
)

// writeTimeout is how long a viewer may take for one frame. It also lifts the
// server's WriteTimeout, which would end a stream.
const writeTimeout = 10 * time.Second

// serveState answers with what a viewer needs to know to begin with.
func (p *Page) serveState(w http.ResponseWriter, _ *http.Request) {
	_, data := p.sampler.state(p, time.Now())
	writeJSON(w, http.StatusOK, data)
}

// serveStream sends the state, and then a frame every second, until the viewer
// goes or the page is closed.
func (p *Page) serveStream(w http.ResponseWriter, r *http.Request) {
	defer p.looking.Add(-1)
	if p.looking.Add(1) > int64(p.viewers) {
		w.Header().Set("Retry-After", "10")
		writeError(w, http.StatusServiceUnavailable, fmt.Sprintf("%d viewers look at this page already, see ratepage.WithViewers", p.viewers))
		return
	}
	rc := http.NewResponseController(w)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // or nginx sends nothing for long
	if rc.Flush() != nil {           // or a viewer would begin anew all the time
		writeError(w, http.StatusInternalServerError, "the page cannot send a stream: what wraps its http.ResponseWriter needs a method Unwrap or Flush, see http.ResponseController")
		return
	}
	send := func(event string, data []byte) error {
		_ = rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every server has one
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data); err != nil {
			return err
		}
		return rc.Flush()
	}
	number, data := p.sampler.state(p, time.Now())
	if send("state", data) != nil {
		return
	}
	timer := time.NewTimer(untilNext(time.Now()))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		case <-p.closed:
			return
		}
		event := "frame"
		latest, data := p.sampler.next(p, time.Now())
		switch {
		case latest == number:
			event = ""
		case latest != number+1: // it has missed one, and with it changes
			event = "state"
			latest, data = p.sampler.state(p, time.Now())
		}
		number = latest
		if event != "" && send(event, data) != nil {
			return
		}
		timer.Reset(untilNext(time.Now()))
	}
}

// untilNext returns the time until the next whole interval. All viewers wake at the
// same moment, so one sample serves them all.
func untilNext(now time.Time) time.Duration {
	return now.Truncate(interval).Add(interval).Sub(now)
}
