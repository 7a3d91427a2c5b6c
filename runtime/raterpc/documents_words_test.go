package raterpc_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratefield"
	"github.com/rategen/rategen/runtime/raterpc"
)

// option returns an option of the server.
func (p *service) option(word string) raterpc.Option {
	name, value, _ := strings.Cut(word, "=")
	switch name {
	case "left":
		return raterpc.WithHiddenRefusals()
	case "forced":
		return raterpc.WithForcedRefusals()
	case "domain":
		return raterpc.WithDomain(value)
	case "nofields":
		return raterpc.WithoutFields()
	case "internal":
		return raterpc.WithPolicy(value, ratefield.Policy{Audience: ratefield.Internal})
	case "outgoing":
		return raterpc.WithPolicy(value, ratefield.Policy{Audience: ratefield.Outgoing})
	case "messages":
		return raterpc.WithMessages(func(language, rule string) string {
			return map[string]string{"zh x": "请 {retry_after} 后再来"}[language+" "+rule]
		})
	case "default":
		return nil
	}
	p.Fatalf("no option is %s", word)
	return nil
}

// methodLimit returns a limit of methods.
func methodLimit(method string, rule *runtime.Rule, words []string) raterpc.MethodLimit {
	l := raterpc.MethodLimit{Method: method, Rule: rule}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "on":
			l.On = eventsOf(value)
		case "except":
			l.Except = strings.Split(value, "+")
		case "key":
			l.Key = func(_ context.Context, msg any) *runtime.Key {
				if value == "nil" {
					return nil
				}
				return runtime.NewKey().AddString(msg.(string))
			}
		case "cost":
			l.Cost = func(_ context.Context, msg any) int64 { return int64(len(msg.(string))) }
		}
	}
	return l
}

func eventsOf(text string) (on raterpc.Event) {
	named := map[string]raterpc.Event{"open": raterpc.OnOpen, "receive": raterpc.OnReceive, "send": raterpc.OnSend, "8": 8}
	for name := range strings.SplitSeq(text, "+") {
		on |= named[name]
	}
	return on
}

// An uncomparable error has a type that can be compared, and no value that can.
type uncomparable struct{ f any }

func (uncomparable) Error() string { return "uncomparable" }

// failures are errors of handlers.
var failures = map[string]error{
	"nothing": nil, "other": errors.New("no such order"), "uncomparable": uncomparable{func() {}},
	"replaced": errors.New("come back later"), "away": errors.New("away"),
	"unavailable": fmt.Errorf("%w: dial tcp 10.0.0.3:6379", runtime.ErrUnavailable),
	"invalid key": fmt.Errorf("rule %q: %w", "pkg.Get", runtime.ErrInvalidKey), "invalid limit": runtime.ErrInvalidLimit,
	"cancelled": context.Canceled, "late": fmt.Errorf("query: %w", context.DeadlineExceeded),
}

// failure returns an error of a handler: last, which is that of the last take, limited RULE TIME, one of failures, or wrapped or
// joined another.
func (p *service) failure(text string) error {
	kind, rest, _ := strings.Cut(text, " ")
	switch kind {
	case "last":
		return p.err
	case "wrapped":
		return fmt.Errorf("get order of secret@example.com: %w", p.failure(rest))
	case "joined":
		return errors.Join(errors.New("cleanup failed"), p.failure(rest))
	case "limited":
		rule, after, _ := strings.Cut(rest, " ")
		limited := &runtime.LimitedError{Rule: rule, Limit: 5, RetryAfter: runtime.Never}
		if after != "never" {
			limited.RetryAfter, _ = document.Duration(after)
		}
		return limited
	}
	err, known := failures[text]
	if !known {
		p.Fatalf("no error is %q", text)
	}
	return err
}

// outcome tells what became of a charge.
func outcome(err error) string {
	limited := new(runtime.LimitedError)
	switch {
	case errors.Is(err, runtime.ErrCostExceedsLimit):
		return "never admitted"
	case errors.As(err, &limited):
		return "refused by " + limited.Rule
	case errors.Is(err, runtime.ErrInvalidKey):
		return "invalid key"
	}
	return strings.ToValidUTF8(errorText(err), "\uFFFD")
}

func errorText(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// told tells what a client is told.
func told(r *raterpc.Refusal) string {
	if r == nil {
		return "nothing"
	}
	text := fmt.Sprintf("code %d %q", r.Code, r.Message)
	if r.Own {
		text += " of its own"
	}
	if r.RetryAfter == runtime.Never {
		text += ", never"
	} else if r.RetryAfter != 0 {
		text += fmt.Sprint(", retry ", r.RetryAfter)
	}
	for _, d := range r.Details {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			text += fmt.Sprintf(" | ErrorInfo %s of %q", d.Reason, d.Domain)
			for _, name := range slices.Sorted(maps.Keys(d.Metadata)) {
				text += " " + name + "=" + d.Metadata[name]
			}
		case *errdetails.QuotaFailure:
			text += " | QuotaFailure"
			for _, v := range d.Violations {
				text += fmt.Sprintf(" %s %s %q %d", v.Subject, v.QuotaId, v.Description, v.QuotaValue)
			}
		case *errdetails.RetryInfo:
			text += fmt.Sprint(" | RetryInfo ", d.RetryDelay.AsDuration())
		}
	}
	return text
}

// readDetails returns the details of an answer.
func readDetails(parts []string) (details []proto.Message) {
	for _, part := range parts {
		kind, value, _ := strings.Cut(part, " ")
		switch kind {
		case "RetryInfo":
			d, err := document.Duration(value)
			if err != nil {
				d = 1 << 62
			}
			details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(d)})
		case "QuotaFailure":
			n, _ := strconv.ParseInt(value, 10, 64)
			details = append(details, &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{QuotaId: "q", QuotaValue: n}}})
		case "ErrorInfo":
			details = append(details, &errdetails.ErrorInfo{Reason: value, Domain: "googleapis.com"})
		case "Help":
			details = append(details, &errdetails.Help{})
		}
	}
	return details
}
