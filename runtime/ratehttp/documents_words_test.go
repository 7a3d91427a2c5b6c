package ratehttp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/ratefield"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// open makes the limiter.
func (p *site) open(words []string) {
	var store runtime.Store = runtime.NewMemoryStore()
	opts := []runtime.Option{p.log.Logger(), runtime.WithFailurePolicy(runtime.FailOpen), runtime.WithObserver(&observe.Observer{
		Hidden: func(_ context.Context, ev observe.HiddenEvent) {
			p.hidden = append(p.hidden, ev.Rule+map[bool]string{true: " served"}[ev.Served])
		},
	})}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "away":
			store = failing()
		case "gone":
			store = nil
		case "cap":
			opts = append(opts, runtime.WithProcessCap(p.rules[value]))
		case "hides":
			opts = append(opts, runtime.WithRefusalError(func(context.Context, error) error { return errors.New("domain error") }))
		case "default":
		case "wraps":
			opts = append(opts, runtime.WithRefusalError(func(_ context.Context, err error) error { return fmt.Errorf("domain: %w", err) }))
		default:
			p.Fatalf("no limiter has %s", word)
		}
	}
	p.limiter, p.server = runtime.New(store, opts...), nil
}

func (p *site) declare(words []string) {
	r := document.Rule(p, words)
	if text, err := strconv.Unquote(`"` + r.Message + `"`); err == nil { // with \n and \xff
		r.Message = text
	}
	p.rules[words[0]] = r
}

// limits returns limits of rules and keys, which may be left out: RULE/KEY COST + …
func (p *site) limits(text string) (all []runtime.Limit) {
	for one := range strings.SplitSeq(text, " + ") {
		words := strings.Fields(one)
		name, id, keyed := strings.Cut(words[0], "/")
		if p.rules[name] == nil {
			p.Fatalf("no rule is named %s", name)
		}
		var key *runtime.Key
		if id == "?" {
			key = runtime.NewKey().AddInvalid("nil")
		} else if keyed {
			key = limittest.Key(id)
		}
		limit := p.rules[name].Limit(key)
		if len(words) > 1 {
			cost, err := strconv.ParseInt(words[1], 10, 64)
			limittest.OK(p, err)
			limit = limit.WithCost(cost)
		}
		all = append(all, limit)
	}
	return all
}

// declareLimit makes a limit of requests: key=all, key=peer, key=user, cost=query, refund=STATUS+…, refund=panics and skip=USER.
func (p *site) declareLimit(words []string) {
	as, limit := words[0], ratehttp.RequestLimit{Limiter: p.limiter, Rule: p.rules[words[0]]}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "key":
			limit.Key = map[string]func(*http.Request) string{
				"all": func(*http.Request) string { return "all" }, "none": func(*http.Request) string { return "" },
				"peer": func(r *http.Request) string { return r.RemoteAddr }, "user": func(r *http.Request) string { return r.URL.Query().Get("user") },
			}[value]
		case "cost":
			limit.Cost = func(r *http.Request) int64 {
				cost, _ := strconv.ParseInt(r.URL.Query().Get("cost"), 10, 64)
				return cost
			}
		case "refund":
			limit.Refund = func(status int) bool {
				if value == "panics" {
					panic("no")
				}
				return slices.Contains(strings.Split(value, "+"), strconv.Itoa(status))
			}
		case "skip":
			limit.Skip = func(r *http.Request) bool { return r.URL.Query().Get("user") == value }
		case "as":
			as = value
		}
	}
	p.requests[as], p.server = limit, nil
}

// option returns an option of the middleware.
func (p *site) option(word string) ratehttp.Option {
	name, value, _ := strings.Cut(word, "=")
	n, _ := strconv.Atoi(value)
	switch name {
	case "left":
		return ratehttp.WithHiddenRefusals()
	case "forced":
		return ratehttp.WithForcedRefusals()
	case "legacy":
		return ratehttp.WithLegacyFields()
	case "nofields":
		return ratehttp.WithoutFields()
	case "cors":
		return ratehttp.WithCORS()
	case "draft":
		return ratehttp.WithDraft(map[string]ratefield.Draft{"11": ratefield.Draft11, "proposed": ratefield.DraftProposed}[value])
	case "maxrate":
		return ratehttp.WithMaxRate(n)
	case "proxies":
		p.header = value
		return proxies(value)
	case "hops":
		p.header = ratehttp.XForwardedFor
		return ratehttp.WithTrustedHops(p.header, n)
	case "unix":
		return ratehttp.WithTrustedUnixSocket()
	case "bits":
		return ratehttp.WithIPv6Prefix(n)
	case "networks":
		return ratehttp.WithNetworks(&p.networks)
	case "brokenlog":
		return ratehttp.WithLogger(slog.New(lineHandler{}))
	case "pkpanics":
		return ratehttp.WithPartitionKey([]byte("s"), func(*http.Request, string) string { panic("hxqzj") })
	case "pk":
		return ratehttp.WithPartitionKey([]byte("s"), func(r *http.Request, rule string) string {
			return map[string]string{"x/192.0.2.1": r.URL.Query().Get("user")}[rule+"/"+ratehttp.ClientIP(r.Context())]
		})
	case "answers":
		return ratehttp.WithAnswer(func(w http.ResponseWriter, _ *http.Request, a ratehttp.Answer) {
			if value == "itself" {
				w.WriteHeader(http.StatusTeapot)
				_, _ = fmt.Fprint(w, a.Status, a.RetryAfter, a.Policies, a.Detail, errors.Is(a.Err, runtime.ErrLimited))
			}
		})
	case "messages":
		return ratehttp.WithMessages(func(language, rule string) string {
			if language == "xx" {
				panic("no")
			}
			return map[string]string{"zh shop.Orders": "请 {retry_after} 后再来", "de ": "gerade nicht", "de shop.Orders": "in {retry_after} wieder"}[language+" "+rule]
		})
	case "called":
		rule, text, _ := strings.Cut(value, ":")
		name, unit, _ := strings.Cut(text, ":")
		return ratehttp.WithPolicy(rule, ratefield.Policy{Name: strings.ReplaceAll(name, "_", " "), Unit: unit})
	case "internal", "outgoing", "public", "bytes":
		audience := map[string]ratefield.Audience{"internal": ratefield.Internal, "outgoing": ratefield.Outgoing}[name]
		policy := ratefield.Policy{Audience: audience}
		if name == "bytes" {
			policy.Name, policy.Unit = "bytes", "content-bytes"
		}
		return ratehttp.WithPolicy(value, policy)
	case "default":
		return ratehttp.WithIPv6Prefix(56)
	}
	p.Fatalf("no option is %s", word)
	return nil
}

// build puts the layers around the handler, which is that of a route.
func (p *site) build() {
	mux := http.NewServeMux()
	do := func(w http.ResponseWriter, r *http.Request) {
		if p.usage != nil {
			p.usage.ServeHTTP(w, r)
		} else {
			p.handle(w, r, p.serve)
		}
	}
	mux.HandleFunc("GET /orders/{id}", do)
	mux.HandleFunc("/", do)
	p.server = mux
	for _, name := range slices.Backward(p.layers) {
		switch name {
		case "middleware":
			p.server = ratehttp.Middleware(append([]ratehttp.Option{ratehttp.WithLogger(p.log.Slog())}, p.options...)...)(p.server)
		case "cors":
			p.server = cors(p.server)
		case "timeout":
			p.server = http.TimeoutHandler(p.server, 24*time.Hour, "late")
		case "gzip":
			p.server = compressed(p.server)
		case "delegate", "panicking":
			p.server = delegating(p.server, name == "panicking")
		case "recovery":
			p.server = recovering(p.server)
		case "none":
		default:
			p.server = p.requests[name].Wrap(p.server)
		}
	}
}

// cors lets scripts of all origins read X-Own, and answers preflights.
func cors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Expose-Headers", "X-Own")
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}
