package raterpc_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/raterpc"
)

// A service is one scenario of calls of procedures, in a bubble of testing/synctest. A step of it is one of
//
//	rule NAME FIELD=VALUE …        declares a rule
//	limiter OPTION …               makes another limiter: gone has no store, capped the rule cap for the process,
//	                               replaces has errors of the program's own, and spoils one that no status can hold
//	options OPTION …               are those of the server, see [service.option]
//	limit METHOD RULE FIELD=VALUE … has the server limit methods: on=EVENT+…, except=METHOD+…, key=message, key=nil,
//	                               cost=length, which may panic without a message, cost=panics
//	call NAME METHOD LANGUAGE      begins a call, of which the next steps are; end NAME ends it
//	take RULE COST + …             takes limits in the call
//	charge EVENT+… MESSAGE         charges an event of the call; event METHOD EVENT+… MESSAGE one of a new call
//	refusal ERROR                  is what the client gets of an error, see [service.failure]
//	ended CODE RULE gone           has a call end with a code that a limit has refused, or whose client has gone as well
//	fields, left RULE
//	check METHOD on=EVENT+… except=METHOD compares a limit with the methods of a server
//	answer CODE MESSAGE | DETAIL | NAME: VALUE | … is what a peer answers
type service struct {
	*testing.T
	rules   map[string]*runtime.Rule
	limiter *runtime.Limiter
	options []raterpc.Option
	limits  []raterpc.MethodLimit
	server  *raterpc.Server // nil: it is to be built
	calls   map[string]*call
	call    *call
	err     error // of the last take
	hidden  []observe.HiddenEvent
}

type call struct {
	*raterpc.Call
	context.Context
}

const method = "/shop.v1.Orders/Get"

// A peer has no address, and languages that it prefers as its metadata.
type peer string

func (peer) Addr() string { return "" }

func (p peer) Header(name string) []string {
	return map[string][]string{"Accept-Language": {string(p)}}[name]
}

const nobody peer = ""

func TestDocuments(t *testing.T) {
	document.Run(t, "testdata/*.txt", "calls", func(t *testing.T, s *document.Scenario, world document.World, replace *strings.Replacer) {
		p := &service{T: t, rules: map[string]*runtime.Rule{}, calls: map[string]*call{}}
		p.open("")
		for _, l := range s.Lines {
			if l.Step != "" {
				l.Answer(t, world, document.Repeat(replace.Replace(l.Step), " ; ", nil, p.step))
			}
		}
		_ = p.limiter.Close()
	})
}

func (p *service) step(text string) string {
	verb, rest, _ := strings.Cut(text, " ")
	words := strings.Fields(rest)
	switch verb {
	case "rule":
		p.rules[words[0]] = document.Rule(p, words)
	case "limiter":
		_ = p.limiter.Close()
		p.open(rest)
	case "options":
		p.options, p.server = nil, nil
		for _, word := range words {
			p.options = append(p.options, p.option(word))
		}
	case "limit":
		return p.limit(words)
	case "call":
		p.calls[words[0]] = p.begin(p.Context(), words[1], words[2:]...)
		p.call = p.calls[words[0]]
	case "end":
		p.calls[rest].End(p.Context())
	case "take":
		var limits []runtime.Limit
		for one := range strings.SplitSeq(rest, " + ") {
			limits = append(limits, p.rules[one].Limit(nil))
		}
		_, p.err = p.limiter.Take(p.call, limits...)
		return outcome(p.err)
	case "charge":
		return p.charge(p.call, words)
	case "event":
		return p.charge(p.begin(p.Context(), words[0]), words[1:])
	case "refusal":
		return told(p.call.Refusal(p.failure(rest)))
	case "ended":
		return p.ended(words[0], p.rules[words[1]], len(words) > 2)
	case "fields":
		limit, policy := p.call.Fields()
		return strings.TrimSpace(limit + " " + policy)
	case "left":
		return strconv.FormatInt(limittest.Left(p, p.limiter, p.rules[rest].Limit(nil)), 10)
	case "check":
		methods := []raterpc.Method{{Name: "/shop.v1.Orders/Place"}, {Name: "/shop.v1.Orders/Watch", Streams: true}}
		rule := &runtime.Rule{Name: "r", Window: time.Minute, Max: 1}
		return errorText(raterpc.CheckLimits(methods, raterpc.MethodLimit{Method: "*", Rule: rule}, methodLimit(words[0], rule, words[1:])))
	case "answer":
		return answer(rest)
	default:
		p.Fatalf("no step is %q", text)
	}
	return ""
}

// open makes the limiter.
func (p *service) open(kind string) {
	store, opts := runtime.Store(runtime.NewMemoryStore()), []runtime.Option{
		runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithObserver(&observe.Observer{Hidden: func(_ context.Context, ev observe.HiddenEvent) { p.hidden = append(p.hidden, ev) }}),
	}
	for word := range strings.FieldsSeq(kind) {
		switch word {
		case "gone":
			store = nil
		case "capped":
			opts = append(opts, runtime.WithProcessCap(p.rules["cap"]))
		case "spoils":
			opts = append(opts, runtime.WithRefusalError(func(context.Context, error) error { return errors.New("\xff") }))
		case "replaces":
			opts = append(opts, runtime.WithRefusalError(func(_ context.Context, err error) error {
				if errors.Is(err, runtime.ErrUnavailable) {
					return failures["away"]
				}
				return failures["replaced"]
			}))
		}
	}
	p.limiter = runtime.New(store, opts...)
}

// begin begins a call.
func (p *service) begin(ctx context.Context, method string, language ...string) *call {
	if p.server == nil {
		all := p.options
		if len(p.limits) > 0 {
			all = append(all[:len(all):len(all)], raterpc.WithLimits(p.limiter, p.limits...))
		}
		p.server = raterpc.NewServer(append(all, nil)...)
	}
	ctx, begun := p.server.Begin(ctx, method, peer(strings.Join(language, " ")))
	return &call{begun, ctx}
}

// limit adds a limit of methods, and tells what is wrong with it.
func (p *service) limit(words []string) (wrong string) {
	all := append(slices.Clone(p.limits), methodLimit(words[0], p.rules[words[1]], words[2:]))
	defer func() {
		if reason := recover(); reason != nil {
			wrong = fmt.Sprint(reason)
		}
	}()
	raterpc.WithLimits(p.limiter, all...)
	p.limits, p.server = all, nil
	return ""
}

// charge charges an event of a call.
func (p *service) charge(c *call, words []string) string {
	var msg any
	if len(words) > 1 {
		msg = strings.Trim(words[1], `"`)
	}
	return outcome(c.Charge(c, eventsOf(words[0]), msg))
}

// ended has a call end with a code that a limit has refused, perhaps when its client has gone.
func (p *service) ended(code string, full *runtime.Rule, gone bool) string {
	ctx, leave := context.WithCancel(p.Context())
	defer leave()
	c := p.begin(ctx, method)
	_, _ = p.limiter.Take(c, full.Limit(nil))
	if gone {
		leave()
	}
	p.hidden = nil
	n, _ := strconv.ParseUint(code, 10, 32)
	text := code + " " + told(c.Ended(c, uint32(n)))
	for _, ev := range p.hidden {
		text += fmt.Sprintf(", reported %s served %t", ev.Rule, ev.Served)
	}
	return text
}

// answer reads what a peer answers.
func answer(text string) string {
	parts := strings.Split(text, " | ")
	first, message, _ := strings.Cut(parts[0], " ")
	code, _ := strconv.ParseUint(first, 10, 32)
	details, fields := readDetails(parts[1:]), http.Header{}
	for _, part := range parts[1:] {
		if name, value, is := strings.Cut(part, ": "); is {
			fields.Set(name, value)
		}
	}
	a := raterpc.ReadAnswer(uint32(code), message, details, fields)
	said := map[bool]string{true: "refused", false: "-"}[a.Refused]
	if a.HoldOff != 0 {
		said += fmt.Sprint(", hold ", a.HoldOff)
	}
	for _, q := range a.Quotas {
		said += fmt.Sprintf(", %s %s %d left %d", q.Name, q.Unit, q.Limit, q.Remaining)
	}
	if a.Status != int(code) || a.Message != message {
		said += fmt.Sprintf(", with %d %s", a.Status, a.Message)
	}
	return said
}
