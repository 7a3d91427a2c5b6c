package rateclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/documents"
	"github.com/rategen/rategen/runtime/rateclient"
)

// A client is one scenario of requests that go out, in a bubble of testing/synctest. A step of it is one of
//
//	peer PATTERN FIELD=VALUE …     declares a peer with one limit; _ stands for a blank, and
//	                               ~ in a field for a comma
//	fits PATTERN URL               declares a peer, and sends a request
//	away                           there is no store
//	others told, others sent, others refused
//	answers STATUS NAME=VALUE …    is what all hosts but good.* answer from then on;
//	                               once STATUS … is what they answer to the next request alone
//	GET URL NAME=VALUE …           and other methods: sends a request with fields, also Host=, within=TIME,
//	                               body, and stream, which is a body that cannot be sent again
//	flow N TIME GET URL …          sends so many, each time after a time, and counts the answers
//	go NAME: GET URL …             begins a request; end NAME waits for its answer, leave NAME ends its context
//	in NAME: STEP                  has another replica do a step
//	track                          has the next requests be one call; settle COST … says what it has cost
//	left                           of the first peer's limit
//	hold TIME, release             of the first peer's key, by an operator
//	sent                           when requests were sent, by their queries
//	events KIND, log, findings RULE, advance TIME, close
//
// Fields of a peer are those of a rule, and wait, retries, refusals, most, least, margin, key=host and
// key=credential, cost=query, share=query and tenant, which are the length, the number and the text of
// a query, and limits. With key=panics or cost=panics that function panics for the query panics, and for the query later when
// it is called again.
type client struct {
	*testing.T
	service  service
	store    runtime.Store
	peers    []rateclient.Peer
	options  []rateclient.Option
	replicas map[string]*replica
	pending  map[string]*pending
	status   int
	fields   map[string]string
	next     func() // what answers after the next request
	began    time.Time
	ctx      context.Context
	call     *rateclient.Call // of all requests since track
}

// A replica is a process of a client.
type replica struct {
	*rateclient.Transport
	limiter *runtime.Limiter
	heard   documents.Events
	log     limittest.Lines
	read    int // of the log
}

type pending struct {
	answer chan string
	cancel context.CancelFunc
}

func TestDocuments(t *testing.T) { document.Run(t, "testdata/client/*.txt", "l", play) }

func play(t *testing.T, s *document.Scenario, world document.World, replace *strings.Replacer) {
	c := &client{T: t, store: runtime.NewMemoryStore(), replicas: map[string]*replica{}, pending: map[string]*pending{}, status: 200, began: time.Now(), ctx: context.Background()}
	c.service.answer = func(r *http.Request) (int, map[string]string) {
		if strings.HasPrefix(r.URL.Host, "good.") {
			return 200, nil
		}
		status, fields := c.status, c.fields
		if c.next != nil {
			c.next()
		}
		return status, fields
	}
	for _, l := range s.Lines {
		if l.Step != "" {
			l.Answer(t, world, document.Repeat(replace.Replace(l.Step), " | ", []string{"advance", "flow"}, func(step string) string { return c.do("l", step) }))
		}
	}
	for _, r := range c.replicas {
		_ = r.limiter.Close()
	}
	synctest.Wait()
	if n := c.service.unclosed.Load(); n != 0 {
		t.Errorf("%s: %d bodies are open", world, n)
	}
}

func (c *client) do(name, text string) string {
	verb, rest, _ := strings.Cut(text, " ")
	words := strings.Fields(rest)
	switch verb {
	case "peer":
		return c.declare(words)
	case "fits":
		if wrong := c.declare(words[:1]); wrong != "" {
			return wrong
		}
		return c.send(context.Background(), c.replica(name), []string{"POST", words[1]})
	case "away":
		c.store = nil
	case "others":
		c.options = map[string][]rateclient.Option{"sent": {rateclient.WithOthers(true)}, "refused": {rateclient.WithOthers(false)}}[rest]
	case "answers":
		c.status, c.fields = fields(words)
	case "once":
		status, answered := c.status, c.fields
		c.status, c.fields = fields(words)
		c.next = func() { c.status, c.fields, c.next = status, answered, nil }
	case "in":
		of, step, _ := strings.Cut(rest, ": ")
		return c.do(of, step)
	case "flow":
		return c.flow(c.replica(name), words)
	case "go":
		of, request, _ := strings.Cut(rest, ": ")
		ctx, cancel := context.WithCancel(context.Background())
		p, r, begin := &pending{make(chan string, 1), cancel}, c.replica(name), time.Now()
		c.pending[of] = p
		go func() { p.answer <- fmt.Sprint(c.send(ctx, r, strings.Fields(request)), " after ", time.Since(begin)) }()
	case "end":
		return <-c.pending[rest].answer
	case "leave":
		c.pending[rest].cancel()
	case "track":
		c.ctx, c.call = rateclient.WithCall(context.Background())
	case "settle":
		var costs []int64
		for _, word := range words {
			cost, err := strconv.ParseInt(word, 10, 64)
			limittest.OK(c, err)
			costs = append(costs, cost)
		}
		c.call.Settle(c.ctx, costs...)
	case "left":
		r := c.peers[0].Limits[0].Rule
		r.Hold = true
		return strconv.FormatInt(limittest.Left(c, c.replica(name).limiter, r.Limit(nil)), 10)
	case "hold", "release":
		return c.operate(verb, words)
	case "sent":
		return c.sent()
	case "events":
		return c.replica(name).heard.Take(rest)
	case "log":
		r := c.replica(name)
		new := r.log.String()[r.read:]
		r.read += len(new)
		return strings.Join(strings.Split(strings.TrimSpace(new), "\n"), " | ")
	case "findings":
		var all []string
		for _, f := range c.replica(name).limiter.Findings() {
			if f.Rule == rest { // others may be those of other scenarios: they are the process's
				all = append(all, f.Code)
			}
		}
		return strings.Join(all, " | ")
	case "advance":
		time.Sleep(c.duration(rest))
	case "close":
		limittest.OK(c, c.replica(name).limiter.Close())
	default:
		return c.send(c.ctx, c.replica(name), append([]string{verb}, words...))
	}
	return ""
}

// replica returns a replica, which it makes when it is asked for first.
func (c *client) replica(name string) *replica {
	if r := c.replicas[name]; r != nil {
		return r
	}
	r := new(replica)
	r.limiter = runtime.New(c.store, r.log.Logger(), runtime.WithObserver(r.heard.Observer()))
	var err error
	r.Transport, err = rateclient.New(r.limiter, c.peers, append(c.options, rateclient.WithNext(&c.service), rateclient.WithLogger(r.log.Slog()))...)
	limittest.OK(c, err)
	c.replicas[name] = r
	return r
}

// declare declares a peer, and tells what is wrong with it.
func (c *client) declare(words []string) string {
	l := rateclient.PeerLimit{Rule: runtime.Rule{Name: "peer", Window: time.Second, Max: 1}}
	p, limits := rateclient.Peer{Pattern: strings.ReplaceAll(words[0], "_", " ")}, 1
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		n, _ := strconv.Atoi(value)
		switch name {
		case "wait":
			p.Wait = c.duration(value)
		case "maxhold":
			p.MaxHold = c.duration(value)
		case "retries":
			p.Retries = n
		case "refusals":
			for _, status := range strings.Split(value, "+") {
				n, _ := strconv.Atoi(status)
				p.Refusals = append(p.Refusals, n)
			}
		case "limits":
			limits = n
		case "least":
			l.Least = int64(n)
		case "most":
			l.Most = int64(n)
		case "margin":
			l.Margin = c.duration(value)
		case "rulewait":
			l.Rule.Wait = c.duration(value)
		case "key":
			l.Key = map[string]func(*http.Request, *runtime.Key){"host": rateclient.Host, "credential": rateclient.Credential}[value]
			if value == "panics" {
				l.Key = func(r *http.Request, _ *runtime.Key) { panics(r, new(int)) }
			}
			if value == "both" {
				l.Key = func(r *http.Request, k *runtime.Key) { rateclient.Host(r, k); rateclient.Credential(r, k) }
			}
		case "cost":
			l.Cost = func(r *http.Request) int64 { return int64(len(r.URL.RawQuery)) }
			if value == "panics" {
				asked := new(int)
				l.Cost = func(r *http.Request) int64 { panics(r, asked); return 1 }
			}
			if n > 0 {
				l.Cost = func(*http.Request) int64 { return int64(n) }
			}
		case "tenant":
			l.Tenant = func(r *http.Request, share *runtime.Key) int64 { share.AddString(r.URL.RawQuery); return 1 }
		case "share":
			l.Share = func(r *http.Request) float64 { f, _ := strconv.ParseFloat(r.URL.RawQuery, 64); return f }
		default:
			if is, err := document.Set(&l.Rule, name, value); err != nil || !is {
				c.Fatalf("peer %s: %v", word, err)
			}
		}
	}
	p.Limits = slices.Repeat([]rateclient.PeerLimit{l}, limits)
	all := append(slices.Clone(c.peers), p)
	if _, err := rateclient.New(runtime.New(c.store), all); err != nil {
		text, _, _ := strings.Cut(err.Error(), " (registered at") // in a file of this machine
		return text
	}
	c.peers = all
	return ""
}

// panics panics for a request that has it so.
func panics(r *http.Request, asked *int) {
	if r.URL.RawQuery == "later" {
		*asked++
	}
	if r.URL.RawQuery == "panics" || r.URL.RawQuery == "later" && *asked > 1 {
		panic("private")
	}
}

// fields reads a status and fields.
func fields(words []string) (int, map[string]string) {
	status, _ := strconv.Atoi(words[0])
	all := map[string]string{}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		all[name] = strings.NewReplacer("_", " ", "~", ",").Replace(value)
	}
	return status, all
}

// send sends a request, and returns what became of it.
func (c *client) send(ctx context.Context, to *replica, words []string) string {
	var body io.Reader
	header, host := http.Header{}, ""
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "Host":
			host = value
		case "within":
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.duration(value))
			defer cancel()
		case "body":
			body = strings.NewReader("x")
		case "stream":
			body = c.service.body("x")
		default:
			header.Set(name, value)
		}
	}
	r, err := http.NewRequestWithContext(documents.OfStep(ctx), words[0], words[1], body)
	limittest.OK(c, err)
	r.Header, r.Host = header, host
	response, err := to.RoundTrip(r)
	limited := new(runtime.LimitedError)
	switch {
	case err == nil:
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if string(text) != "answer" {
			return fmt.Sprintf("%d with the body %q", response.StatusCode, text)
		}
		return strconv.Itoa(response.StatusCode)
	case errors.Is(err, context.Canceled):
		return "the caller has left"
	case errors.Is(err, runtime.ErrClosed):
		return "closed"
	case errors.As(err, &limited) && limited.Blocked:
		return fmt.Sprint("held by ", limited.Rule, ", retry ", limited.RetryAfter)
	case errors.As(err, &limited):
		return fmt.Sprint("refused by ", limited.Rule, ", retry ", limited.RetryAfter)
	}
	return "error: " + err.Error()
}

// flow sends requests again and again, and counts what becomes of them.
func (c *client) flow(to *replica, words []string) string {
	count := map[string]int{}
	n, _ := strconv.Atoi(words[0])
	begin := time.Now()
	for range n {
		text, _, _ := strings.Cut(c.send(context.Background(), to, words[2:]), ", retry")
		count[text]++
		time.Sleep(c.duration(words[1]))
	}
	var all []string
	for _, text := range slices.Sorted(maps.Keys(count)) {
		all = append(all, fmt.Sprintf("%d x %s", count[text], text))
	}
	return fmt.Sprint(strings.Join(all, ", "), " in ", time.Since(begin))
}

// operate holds calls of the first peer, or ends that.
func (c *client) operate(verb string, words []string) string {
	r := c.peers[0].Limits[0].Rule
	r.Hold, r.Outgoing = true, true
	operator := runtime.New(c.store)
	defer operator.Close()
	if verb == "hold" {
		return errorText(operator.Hold(c.Context(), r.Limit(nil), c.duration(words[0])))
	}
	return errorText(operator.Release(c.Context(), r.Limit(nil)))
}

func errorText(err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return ""
}

// sent tells what was sent since the last time, and when.
func (c *client) sent() string {
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
	var all []string
	for i, at := range c.service.arrivals {
		all = append(all, strings.TrimSpace(fmt.Sprint(c.service.order[i], " at ", at.Sub(c.began))))
	}
	c.service.arrivals, c.service.order = nil, nil
	return strings.Join(all, ", ")
}

func (c *client) duration(text string) time.Duration {
	d, err := document.Duration(text)
	limittest.OK(c, err)
	return d
}
