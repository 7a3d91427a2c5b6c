package rateclient

import (
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// mostBody is how many bytes of a body are looked at.
	mostBody = 64 << 10
	// bodyTime is for how long an answer waits for them.
	bodyTime = time.Second
)

// A Body reads what the body of an answer says about limits, for peers that say it nowhere
// else. The zero Body reads none.
type Body struct {
	// Statuses are those of the answers whose bodies are read. Such an answer is returned when
	// its body is there, or 64 KiB of it, or a second has passed: so let none be that of a
	// stream. Codes of RPC are statuses, too: 8 for RESOURCE_EXHAUSTED.
	Statuses []int
	// Read adds to an answer, of which the status and the fields are read already, what the
	// body says: Refused, HoldOff and Quotas. It gets the whole body, or the first 64 KiB, and
	// is not called if they do not come in time. It must not change the bytes: who has made the
	// request reads the whole body, too. What it sets is bounded as fields are. If it panics, that
	// is logged, and the body says nothing.
	Read func(a *Answer, body []byte)
}

// read returns what an answer says that has arrived at now.
func (c *Call) read(response *http.Response, now time.Time) (a Answer) {
	p := c.peer
	a = readAnswer(response.StatusCode, response.Header, now, p.Refusals)
	if slices.Contains(p.Body.Statuses, a.Status) {
		c.readBody(&a, peek(response, mostBody))
	}
	return a
}

// readBody adds to an answer what its body says, if that is there and is to be read.
func (c *Call) readBody(a *Answer, body []byte) {
	if b := &c.peer.Body; len(body) > 0 && slices.Contains(b.Statuses, a.Status) {
		defer c.transport.contain("body")
		more := *a
		b.Read(&more, body)
		more.HoldOff, more.Quotas = min(max(0, more.HoldOff), maxTime), more.Quotas[:min(len(more.Quotas), maxQuotas)]
		*a = more
	}
}

// peek returns the first bytes of a body as far as they come in time, or else none. The
// response keeps its body as it was.
func peek(response *http.Response, most int) []byte {
	if response.Body == nil || response.Body == http.NoBody {
		return nil
	}
	p := &peeked{ReadCloser: response.Body, done: make(chan struct{})}
	response.Body = p
	go p.fill(most)
	timer := time.NewTimer(bodyTime)
	defer timer.Stop()
	select {
	case <-p.done:
		return slices.Clip(p.begin)
	case <-timer.C:
		p.late.Store(true)
		return nil
	}
}

// A peeked is a body of which the beginning was read already, or is while somebody waits for
// it. That ends with the read that is under way, so at the latest when the body is closed.
type peeked struct {
	io.ReadCloser
	late  atomic.Bool
	done  chan struct{}
	begin []byte // not yet handed out, once done
	err   error  // after begin
}

// fill reads the beginning.
func (p *peeked) fill(most int) {
	defer close(p.done)
	for len(p.begin) < most && p.err == nil && !p.late.Load() {
		p.begin = slices.Grow(p.begin, 512)
		var n int
		n, p.err = p.ReadCloser.Read(p.begin[len(p.begin):min(cap(p.begin), most)])
		p.begin = p.begin[:len(p.begin)+n]
	}
}

// Read implements [io.Reader].
func (p *peeked) Read(b []byte) (n int, err error) {
	<-p.done
	if len(p.begin) > 0 {
		n = copy(b, p.begin)
		p.begin = p.begin[n:]
		return n, nil
	}
	if p.err != nil {
		return 0, p.err
	}
	return p.ReadCloser.Read(b)
}
