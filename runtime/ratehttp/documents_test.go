package ratehttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// A site is one scenario of requests that a server answers, in a bubble of testing/synctest. A step of it is one of
//
//	rule NAME FIELD=VALUE …        declares a rule
//	limiter OPTION …               makes another limiter: away has one that fails, gone has none, cap=RULE one for the process,
//	                               hides and wraps replace the errors of refusals
//	layers LAYER …                 are around the handler, from outside: middleware, cors, timeout, gzip, recovery,
//	                               delegate, whose flush fails as that below does, or panicking, and limits of requests;
//	                               at first there is a middleware alone, none stands for no layer
//	options OPTION …               are those of the middleware, see [site.option]
//	limit RULE FIELD=VALUE …       is a layer of the rule's name, or as=NAME, see [site.declareLimit]
//	handler DO; DO …               is what the handler does from then on, see [site.handle]
//	usage RULE …                   has it tell what the user in the query has left, history what one has used, and
//	usage fails STATUS             what it cannot tell
//	networks exempt=NETWORK,… refuse=NETWORK,…
//	GET PATH | NAME: VALUE | …     and other methods: sends a request, also from: ADDRESS
//	client VALUE | VALUE …         sends one through a trusted proxy, whose header has these lines, and tells its client
//	shows FIELD …                  are told of each answer beside its status and Retry-After: fields, and of the body
//	                               detail, document, body, quoted, which is the body, its size, trailers, and client,
//	                               which the handler asked for
//	take LIMIT                     charges one beside requests; return gives the last such charge back
//	log, hidden, health, advance TIME
//
// The log and answers must not have what clients have sent: hxqzj. For long texts see [document.Expand].
type site struct {
	*testing.T
	rules    map[string]*runtime.Rule
	limiter  *runtime.Limiter
	taken    runtime.Decision
	networks ratehttp.Networks
	requests map[string]ratehttp.RequestLimit // by layer
	peers    map[string]http.RoundTripper     // by rule
	layers   []string
	options  []ratehttp.Option
	header   string // of proxies
	shows    []string
	server   http.Handler // nil: it is to be built
	serve    []string     // what the handler does
	usage    http.Handler // is asked in its place
	client   string
	log      limittest.Lines
	read     int // of the log
	hidden   []string
}

func TestDocuments(t *testing.T) { document.Run(t, "testdata/*.txt", "http", play) }

func play(t *testing.T, s *document.Scenario, world document.World, replace *strings.Replacer) {
	p := &site{T: t, rules: map[string]*runtime.Rule{}, requests: map[string]ratehttp.RequestLimit{}, peers: map[string]http.RoundTripper{}, layers: []string{"middleware"}}
	p.open(nil)
	for _, l := range s.Lines {
		if l.Step != "" {
			l.Answer(t, world, document.Repeat(replace.Replace(l.Step), " ; ", []string{"advance"}, p.step))
		}
	}
	_ = p.limiter.Close()
	if text := p.log.String(); strings.Contains(text, "hxqzj") || strings.Count(text, "code=") > strings.Count(text, "help=") {
		t.Errorf("%s: the log has what a client has sent, or no help:\n%s", world, text)
	}
}

func (p *site) step(text string) string {
	verb, rest, _ := strings.Cut(text, " ")
	words := strings.Fields(rest)
	switch verb {
	case "rule":
		p.declare(words)
	case "limiter":
		_ = p.limiter.Close()
		p.open(words)
	case "layers":
		p.layers, p.server = words, nil
	case "options":
		p.options, p.server = nil, nil
		for _, word := range words {
			p.options = append(p.options, p.option(word))
		}
	case "limit":
		p.declareLimit(words)
	case "handler":
		p.serve, p.usage = strings.Split(rest, "; "), nil
	case "history":
		p.usage = ratehttp.History(history)
	case "usage":
		if status, fails := strings.CutPrefix(rest, "fails "); fails {
			p.usage = ratehttp.Usage(func(*http.Request) ([]runtime.Usage, error) { return nil, denied[status] })
			break
		}
		p.usage = ratehttp.Usage(func(r *http.Request) ([]runtime.Usage, error) {
			var rules []*runtime.Rule
			for _, name := range words {
				rules = append(rules, p.rules[name])
			}
			return usagesOf(p.limiter, rules...)(r)
		})
	case "networks":
		for _, word := range words {
			list, all, _ := strings.Cut(word, "=")
			var prefixes []netip.Prefix
			for one := range strings.SplitSeq(all, ",") {
				if one != "" {
					prefixes = append(prefixes, netip.MustParsePrefix(one))
				}
			}
			map[string]func(...netip.Prefix){"exempt": p.networks.Exempt, "refuse": p.networks.Refuse}[list](prefixes...)
		}
	case "client":
		r := p.request("GET /", "from: "+proxy)
		for line := range strings.SplitSeq(rest, "|") {
			r.Header.Add(p.header, p.proxied(line))
		}
		p.serve = []string{"client"}
		p.answer(r)
		return p.client
	case "shows":
		p.shows = words
	case "take":
		d, err := p.limiter.Take(p.Context(), p.limits(rest)...)
		limittest.OK(p, err)
		p.taken = d
	case "return":
		limittest.OK(p, p.limiter.Settle(p.Context(), p.taken))
	case "log":
		return p.logged()
	case "health":
		w := httptest.NewRecorder()
		ratehttp.Health(p.limiter).ServeHTTP(w, nil)
		status, _, _ := strings.Cut(bodyOf(p, w.Result()), ",")
		return status
	case "hidden":
		all := strings.Join(p.hidden, ", ")
		p.hidden = nil
		return all
	case "advance":
		d, err := document.Duration(rest)
		limittest.OK(p, err)
		time.Sleep(d)
	default:
		line, fields, _ := strings.Cut(text, " | ")
		return p.answer(p.request(line, strings.Split(fields, " | ")...))
	}
	return ""
}

// request returns a request with fields.
func (p *site) request(line string, fields ...string) *http.Request {
	method, path, _ := strings.Cut(line, " ")
	r := httptest.NewRequest(method, path, nil)
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		if name == "from" {
			r.RemoteAddr = strings.TrimPrefix(value, "nowhere")
		} else if name != "" {
			r.Header.Add(name, value)
		}
	}
	return r
}

// proxied returns a list of addresses as it is in the header of the trusted proxies.
func (p *site) proxied(line string) string {
	if p.header != ratehttp.Forwarded || strings.Contains(line, "=") {
		return line
	}
	var nodes []string
	for node := range strings.SplitSeq(line, ",") {
		if node = strings.Trim(node, " "); node != "" {
			node = "proto=https;FOR=" + node + ";by=10.0.0.9"
		}
		nodes = append(nodes, node)
	}
	return strings.Join(nodes, ", ")
}

// answer has the server answer a request, and tells how.
func (p *site) answer(r *http.Request) (told string) {
	if p.server == nil {
		p.build()
	}
	w := httptest.NewRecorder()
	defer func() {
		if reason := recover(); reason != nil {
			told = fmt.Sprint("panic: ", reason)
		}
	}()
	p.server.ServeHTTP(w, r)
	return p.told(w.Result())
}

// logged tells the codes, rules and routes of new lines, but for those of refusals.
func (p *site) logged() string {
	text := p.log.String()
	var all []string
	for line := range strings.Lines(text[p.read:]) {
		if strings.Contains(line, "code=") || strings.Contains(line, "in its place") {
			all = append(all, strings.Join(logged.FindAllString(line, -1), " "))
		}
	}
	p.read = len(text)
	return strings.Join(all, " ; ")
}

var logged = regexp.MustCompile(`(code|rule|route|status)=("[^"]*"|\S+)|in its place`)
