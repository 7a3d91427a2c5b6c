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
func (p *Page) serveState(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, p.sampler.state(p, time.Now(), p.offered(r)).data)
}

// serveStream sends the state and the rules, and then a frame every second, until the
// viewer goes or the page is closed.
func (p *Page) serveStream(w http.ResponseWriter, r *http.Request) {
	defer p.looking.Add(-1)
	most := p.room(p.offered(r))
	if p.looking.Add(1) > int64(most) {
		w.Header().Set("Retry-After", "10")
		writeError(w, http.StatusServiceUnavailable, fmt.Sprintf("%d viewers look at this page already, see ratepage.WithViewers", most))
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
	// The rules come by the stream, too: another request may reach another process.
	var last event
	begin := func() error {
		last = p.sampler.state(p, time.Now(), p.offered(r))
		if err := send("state", last.data); err != nil {
			return err
		}
		version, data := p.sampler.rules(p, time.Now())
		last.version = version
		return send("rules", data)
	}
	if begin() != nil {
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
		var err error
		e := p.sampler.next(p, time.Now())
		if e.number == last.number+1 {
			version := last.version
			last = e
			if err = send("frame", e.data); err == nil && e.reload && version < e.version {
				var data []byte
				last.version, data = p.sampler.rules(p, time.Now())
				err = send("rules", data)
			}
		} else if e.number != last.number { // it has missed one, and with it changes
			err = begin()
		}
		if err != nil {
			return
		}
		timer.Reset(untilNext(time.Now()))
	}
}

// room returns how many streams may be open when a viewer with some actions comes. A quarter
// is for viewers who may act, if there are others.
func (p *Page) room(offered []string) int {
	if p.actions != nil && len(offered) == 0 {
		return p.viewers - p.viewers/4
	}
	return p.viewers
}

// untilNext returns the time until the next whole interval. All viewers wake at the
// same moment, so one sample serves them all.
func untilNext(now time.Time) time.Duration {
	return now.Truncate(interval).Add(interval).Sub(now)
}
