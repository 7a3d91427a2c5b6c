package rateclient

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/report"
)

// A Transport is an [http.RoundTripper] that keeps to the limits of peers. It is safe for
// concurrent use.
type Transport struct {
	limiter *runtime.Limiter
	engine  bridge.Limiter // the limiter as well
	next    http.RoundTripper
	peers   *http.ServeMux
	byName  map[string]*peer
	logger  *slog.Logger // nil: slog.Default
	others  *bool        // whether requests that no peer fits are sent; nil: they are, and it is told
	unmet   atomic.Bool  // a request met no peer, and that was told
	lines   report.Lines
}

// An Option configures a [Transport].
type Option func(*Transport)

// WithNext sets what sends the requests; the default is [http.DefaultTransport].
func WithNext(next http.RoundTripper) Option { return func(t *Transport) { t.next = next } }

// WithLogger sets where refusals by peers are reported, a line a second at most for each
// peer, and what is wrong, once. The default is [slog.Default] as it is at the time of the
// line. No line has a key, a URL or a credential in it.
func WithLogger(logger *slog.Logger) Option { return func(t *Transport) { t.logger = logger } }

// ErrNoPeer is the error of a request that no pattern fits, with [WithOthers](false).
var ErrNoPeer = errors.New("no peer's pattern fits the request")

// WithOthers says what becomes of requests that no pattern fits. True: they are sent as they
// are. False: they are not sent, and their error is [ErrNoPeer]. Without the option they are
// sent, and the first one is logged and a finding, see [runtime.Limiter.Findings].
func WithOthers(sent bool) Option { return func(t *Transport) { t.others = &sent } }

// New returns a Transport that has the limiter decide when requests to peers are sent. The
// error says what is wrong with a peer.
func New(limiter *runtime.Limiter, peers []Peer, opts ...Option) (*Transport, error) {
	t := &Transport{limiter: limiter, engine: bridge.LimiterOf(limiter), peers: http.NewServeMux(), byName: map[string]*peer{}}
	for _, opt := range opts {
		opt(t)
	}
	t.next = cmp.Or[http.RoundTripper](t.next, http.DefaultTransport)
	if len(peers) == 0 {
		return nil, errors.New("rateclient: there are no peers, so nothing is limited: name one, with the Pattern of its requests")
	}
	t.lines.Loggers, t.lines.Lists = []*slog.Logger{t.logger}, []*findings.List{new(findings.List), &findings.Process}
	for _, p := range peers {
		ready, err := newPeer(p)
		if err == nil {
			err = t.add(ready)
		}
		if err != nil {
			return nil, fmt.Errorf("rateclient: peer %q: %w", p.Pattern, err)
		}
	}
	return t, nil
}

// add makes a peer known under its pattern, and its rules to the limiter. The error says which other
// pattern or rule one cannot go together with.
func (t *Transport) add(p *peer) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%v", reason)
		}
	}()
	t.peers.Handle(p.Pattern, p)
	t.byName[p.Pattern] = p
	for _, l := range p.limits {
		t.limiter.Register(&l.rule)
	}
	return nil
}

// peer returns the peer of a request, or nil.
func (t *Transport) peer(r *http.Request) *peer {
	probe := http.Request{Method: cmp.Or(r.Method, http.MethodGet), Host: hostOf(r), URL: r.URL}
	_, pattern := t.peers.Handler(&probe)
	return t.byName[pattern]
}

// CloseIdleConnections has what sends the requests close its idle connections.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip sends a request when its limits have room for it, and obeys what the peer
// answers. A request that is not sent has the error of [runtime.Limiter.Take].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	c, err := t.call(r)
	if err != nil {
		return nil, unsent(r, err)
	}
	if c == nil {
		return t.next.RoundTrip(r)
	}
	for tries := 0; ; tries++ {
		if err := c.admit(r); err != nil {
			return nil, unsent(r, err)
		}
		response, err := t.next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		again := c.obey(r.Context(), c.read(response, now), now)
		if tries >= c.peer.Retries || !again.Before(c.deadline) {
			return response, nil
		}
		next, err := resendable(r)
		if next == nil || err != nil {
			return response, nil
		}
		discard(response)
		r = next
	}
}

// contain, deferred, ends a panic in a function that a peer was given, and logs it.
func (t *Transport) contain(in string) {
	if value := recover(); value != nil {
		t.lines.Panic(in, value)
	}
}

// unsent returns the error of a request that is not sent.
func unsent(r *http.Request, err error) error {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return err
}

// Admit charges the limits of a request when they have room for it, for one that something
// else sends than a [http.RoundTripper]: a client of gRPC, or an SDK. The error is that of
// [runtime.Limiter.Take]. The request says which peer it is for, by its method, host and
// path, and is what Key and Cost are called with. Its body is not used.
func (t *Transport) Admit(r *http.Request) (*Call, error) {
	c, err := t.call(r)
	if c == nil || err != nil {
		return nil, err
	}
	if err := c.admit(r); err != nil {
		return nil, err
	}
	return c, nil
}

// call returns the call of a request. It is nil if no pattern fits.
func (t *Transport) call(r *http.Request) (*Call, error) {
	p := t.peer(r)
	if p == nil {
		if t.others != nil && !*t.others {
			return nil, fmt.Errorf("%w %s %s: add a peer for it, or rateclient.WithOthers(true)", ErrNoPeer, cmp.Or(r.Method, http.MethodGet), hostOf(r))
		}
		if t.others == nil && !t.unmet.Swap(true) {
			t.lines.Find(report.NoPeer, "", "")
		}
		return nil, nil
	}
	c, ok := r.Context().Value(callKey{}).(*Call)
	if !ok {
		c = new(Call)
	}
	*c = Call{transport: t, peer: p, deadline: time.Now().Add(p.Wait), settle: c.settle}
	if c.settle != nil {
		*c.settle = runtime.Decision{}
	}
	if deadline, ok := r.Context().Deadline(); ok && deadline.Before(c.deadline) {
		c.deadline = deadline
	}
	return c, nil
}
