package documents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// tell tells what is known of a limiter.
func (p *program) tell(ctx context.Context, l *process, what string, words []string) string {
	var all []string
	switch what {
	case "events":
		text, other := l.heard.Take(words[0]), l.other.Take(words[0])
		if l.heard.panics {
			return other
		}
		if text != other && words[0] != "recorded" && words[0] != "refusals" { // of contexts
			text += " BUT ANOTHER HEARS " + other
		}
		return text
	case "log":
		text := l.log.String()
		for line := range strings.Lines(text[l.read:]) {
			all = append(all, strings.TrimSpace(line))
		}
		l.read = len(text)
	case "lines":
		return fmt.Sprint(strings.Count(l.log.String(), strings.Join(words, " ")))
	case "check":
		var rules []*runtime.Rule
		for _, name := range words {
			rules = append(rules, p.rules[name])
		}
		all = append(all, Words(l.board.now.Check(rules...)))
	case "exceeded":
		for _, e := range runtime.Exceeded(p.call(words[0]).ctx) {
			all = append(all, fmt.Sprintf("%s, retry %v, %q", e.Rule, e.RetryAfter, e.Error()))
		}
	case "tenants":
		tenants, total, err := bridge.LimiterOf(l.Limiter).Tenants(ctx, p.limit(strings.Join(words, " ")), 3)
		for _, t := range tenants {
			all = append(all, fmt.Sprintf("%s has used %.2f, blocked for %v", t.Name, t.Used, t.Rest))
		}
		all = append(all, fmt.Sprint(total, " have used something", Words(err)))
	case "processes":
		return p.processes(ctx, l)
	case "refused":
		return p.refused(ctx, l)
	case "key":
		text := bridge.LimiterOf(l.Limiter).RedisKey(p.limit(strings.Join(words, " ")))
		return strings.TrimPrefix(text, strings.TrimPrefix(p.options[0], "namespace=")+":")
	case "found":
		rules := map[string]bool{}
		for _, f := range l.Findings() {
			rules[f.Rule] = rules[f.Rule] || f.Code == words[0]
		}
		all = append(all, fmt.Sprint("of ", len(rules), " rules"))
	case "findings":
		for _, f := range l.Findings() {
			all = append(all, strings.TrimSpace(f.Code+" "+f.Rule))
			if f.Text == "" || f.Help == "" || f.Since.IsZero() || !strings.Contains(l.log.String(), "code="+f.Code+" ") {
				all = append(all, fmt.Sprintf("INCOMPLETE %+v", f))
			}
		}
	case "permits":
		for name, n := range bridge.LimiterOf(l.Limiter).Permits() {
			all = append(all, fmt.Sprint(n, " of ", name))
		}
		slices.Sort(all)
	case "trips":
		all = append(all, fmt.Sprint(p.store.trips.Swap(0)))
	case "leased":
		for name, n := range bridge.LimiterOf(l.Limiter).Leased() {
			all = append(all, fmt.Sprint(n, " of ", name))
		}
	case "rules":
		for _, s := range l.Rules() {
			text := fmt.Sprintf("%s max %d in %v", s.Rule.Name, s.Max, s.Window)
			for _, o := range []struct {
				is   bool
				text string
			}{{s.Factor != 1, fmt.Sprint("by ", s.Factor)}, {!s.Enabled, "off"}, {s.Mode != 0, s.Mode.String()}, {s.Overridden, "overridden"}, {s.Keys > 0, fmt.Sprint(s.Keys, " keys")}, {s.Called, "called"}} {
				if o.is {
					text += " " + o.text
				}
			}
			all = append(all, text)
		}
	case "enabled":
		all = append(all, fmt.Sprint(l.Enabled()))
	default:
		p.Fatalf("no step is %q", what)
	}
	return cmp.Or(strings.Join(all, " | "), "none")
}

// Told returns what is told of a decision.
func Told(d runtime.Decision, err error, show ...string) (text string) {
	defer func() { text += statusOf(err, show) }()
	var limited *runtime.LimitedError
	switch {
	case err == nil && d.Rule == "":
		text = "admitted"
	case err == nil:
		text = fmt.Sprint(d.Remaining, " left")
	case !errors.As(err, &limited):
		return Words(err)
	case d.RetryAfter == runtime.Never:
		text = "never admitted by " + d.Rule
	case d.Blocked:
		text = "blocked by " + d.Rule
	default:
		text = fmt.Sprint("refused by ", d.Rule, " with ", d.Remaining, " left")
	}
	if slices.Contains(show, "verdict") && err == nil {
		return "passes"
	}
	if d.Allowed != (err == nil) || limited != nil && (limited.Rule != d.Rule || limited.RetryAfter != d.RetryAfter) || err != nil && d.RetryAfter <= 0 {
		text += fmt.Sprintf(" CONTRADICTION %+v", d)
	}
	if d.Source > rule.SourceStore {
		text += ", " + d.Source.String()
	}
	for _, field := range show {
		switch field {
		case "retry":
			text += fmt.Sprint(", retry ", d.RetryAfter)
		case "reset":
			text += fmt.Sprint(", reset ", d.ResetAfter)
		case "limit":
			text += fmt.Sprint(" of ", d.Limit)
		case "text":
			if err != nil {
				text += fmt.Sprintf(", %q", err)
			}
		}
	}
	return text
}

// statusOf returns which status an error has, if that is to be shown.
func statusOf(err error, show []string) string {
	var status interface{ StatusCode() int }
	if err == nil || !slices.Contains(show, "status") {
		return ""
	}
	if !errors.As(err, &status) {
		return ", no status"
	}
	return fmt.Sprint(", status ", status.StatusCode())
}

// Words returns an error in words.
func Words(err error) string {
	var limited *runtime.LimitedError
	for _, known := range []struct {
		err  error
		text string
	}{
		{runtime.ErrClosed, "closed"}, {runtime.ErrUnavailable, "unavailable"}, {context.Canceled, "the caller has left"}, {context.DeadlineExceeded, "too late"},
		{runtime.ErrSettled, "settled before"}, {runtime.ErrOtherLimiter, "of another limiter"},
	} {
		if errors.Is(err, known.err) {
			return known.text
		}
	}
	if err == nil {
		return ""
	}
	if errors.As(err, &limited) {
		return "refused by " + limited.Rule
	}
	if errors.Is(err, runtime.ErrInvalidLimit) || errors.Is(err, runtime.ErrInvalidKey) {
		return err.Error()
	}
	return "error: " + err.Error()
}

// A player reads the words of steps.
type player struct{ *testing.T }

func (p player) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		p.Fatal(err)
	}
	return n
}

func (p player) numbers(words []string) (all []int64) {
	for _, word := range words {
		all = append(all, p.number(word))
	}
	return all
}

func (p player) duration(text string) time.Duration {
	d, err := document.Duration(text)
	if err != nil {
		p.Fatal(err)
	}
	return d
}

// repeat does a step so often, and returns the answers that differ from the one before.
func repeat(times int, do func(time int) string) string {
	var answers []string
	for i := range times {
		if a := do(i); len(answers) == 0 || a != answers[len(answers)-1] {
			answers = append(answers, a)
		}
	}
	return strings.Join(answers, " | ")
}
