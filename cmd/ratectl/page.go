package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A rateLine is how many calls of a rule a program has decided a second.
type rateLine struct {
	Rule      string  `json:"rule"`
	Admitted  float64 `json:"admitted_per_s"`
	Refused   float64 `json:"refused_per_s"`
	Shadow    float64 `json:"shadow_per_s"` // that would have been refused
	Undecided float64 `json:"undecided_per_s"`
}

func (l rateLine) row() []string {
	n := func(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }
	return []string{l.Rule, n(l.Refused), n(l.Admitted), n(l.Shadow), n(l.Undecided)}
}

// A pageFrame is what a page tells of one second: calls that were admitted,
// denied, only counted by a rule in the shadow, and undecided.
type pageFrame struct {
	Point *struct{ Seconds float64 }
	Rows  []struct {
		Name string
		N    [4]float64
	}
}

// maxFrame is more than a page sends at once.
const maxFrame = 64 << 20

// topOfPage prints what a live page tells. If it is to go on until an interrupt, a
// stream that ends is followed by another.
func (o *operator) topOfPage(ctx context.Context) error {
	for printed := 0; ; {
		err := o.followPage(ctx, &printed)
		if err == nil || printed == 0 || o.count > 0 || ctx.Err() != nil {
			return err
		}
		o.reportRetry(err)
		if !o.pause(ctx) {
			return nil
		}
	}
}

// followPage prints what one stream tells, and counts the tables.
func (o *operator) followPage(ctx context.Context, printed *int) error {
	stream, err := o.openPage(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxFrame)
	calls, seconds, event := make(map[string][4]float64), 0.0, ""
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "event":
			event = value
			continue
		case name != "data" || event != "frame":
			continue
		}
		var f pageFrame
		if err := json.Unmarshal([]byte(value), &f); err != nil {
			return fmt.Errorf("page %s: not what a live page sends: %w", o.page, err)
		}
		if f.Point == nil {
			continue
		}
		seconds += f.Point.Seconds
		for _, row := range f.Rows {
			sum := calls[row.Name]
			for i, n := range row.N {
				sum[i] += n
			}
			calls[row.Name] = sum
		}
		if seconds < o.every.Seconds()*0.9 {
			continue
		}
		if err := o.rates(ratesOf(calls, seconds)); err != nil {
			return err
		}
		if *printed++; *printed == o.count {
			return nil
		}
		seconds = 0
		clear(calls)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("page %s: %w", o.page, err)
	}
	return fmt.Errorf("page %s: the program has ended the stream", o.page)
}

// maxPast is how many tables of a page are remembered.
const maxPast = 100

// rates prints calls a second, or those of one rule as they were lately.
func (o *operator) rates(now []rateLine) error {
	const columns = "REFUSED/S ADMITTED/S SHADOW/S UNDECIDED/S"
	rule := o.screen.rule()
	if o.screen != nil {
		o.past = slices.Insert(o.past, 0, pastRates{time.Now(), now})
		o.past = o.past[:min(len(o.past), maxPast)]
	}
	if rule == "" {
		return repeated(o, "calls a second of one program", "RULE "+columns, now, rateLine.row)
	}
	return repeated(o, "calls a second of "+printable(rule)+" in one program", "TIME "+columns, o.past, func(p pastRates) []string {
		line := rateLine{}
		for _, l := range p.rates {
			if printable(l.Rule) == rule {
				line = l
			}
		}
		line.Rule = p.at.Format(time.TimeOnly)
		return line.row()
	})
}

// pastRates are what a page has told at a time.
type pastRates struct {
	at    time.Time
	rates []rateLine
}

// ratesOf returns calls a second, those rules first that refuse most.
func ratesOf(calls map[string][4]float64, seconds float64) []rateLine {
	var rates []rateLine
	for name, n := range calls {
		rates = append(rates, rateLine{name, n[0] / seconds, n[1] / seconds, n[2] / seconds, n[3] / seconds})
	}
	slices.SortFunc(rates, func(a, b rateLine) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Admitted, a.Admitted), cmp.Compare(a.Rule, b.Rule))
	})
	return rates
}

// openPage returns the stream of a live page.
func (o *operator) openPage(ctx context.Context) (io.ReadCloser, error) {
	return o.askPage(ctx, "-page", o.page, "api/stream", "text/event-stream")
}

// isPage reports whether rules are to be read from a page.
func isPage(rules string) bool {
	return strings.HasPrefix(rules, "http://") || strings.HasPrefix(rules, "https://")
}

// rulesOfPage returns the rules of the program that serves a page.
func (o *operator) rulesOfPage(ctx context.Context) ([]declared, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	lines, err := o.askPage(ctx, "-rules", o.rules, "api/listing", "application/jsonl")
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	rules, err := parseListing(lines)
	switch {
	case err != nil:
		return nil, fmt.Errorf("page %s: %w", o.rules, err)
	case len(rules) == 0:
		return nil, fmt.Errorf("page %s: the program has no rules: constructors of generated code, or Limiter.Register, make them known", o.rules)
	}
	return rules, nil
}

// askPage returns what a page answers to a path of its own, if that is of a type. The
// name is that of the flag with the page's address.
func (o *operator) askPage(ctx context.Context, name, page, path, contentType string) (io.ReadCloser, error) {
	parsed, err := url.Parse(page)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, usagef("%s is no http:// or https:// URL", name)
	}
	if parsed.User != nil {
		return nil, usagef("%s has a user: take it out, and set RATECTL_PAGE_AUTHORIZATION to the header that the page wants, such as \"Bearer …\"", name)
	}
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, parsed.JoinPath(path).String(), nil)
	if err != nil {
		return nil, usagef("%s: %v", name, err)
	}
	if header := o.getenv("RATECTL_PAGE_AUTHORIZATION"); header != "" {
		ask.Header.Set("Authorization", header)
	}
	answer, err := o.pageClient().Do(ask)
	var timed net.Error
	switch {
	case errors.As(err, &timed) && timed.Timeout():
		return nil, fmt.Errorf("page %s gave no answer within %v, see -timeout: %w", page, o.timeout, err)
	case err != nil:
		return nil, err
	}
	if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), contentType) {
		defer answer.Body.Close()
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		return nil, fmt.Errorf("page %s: no live page answers there: %s %s", page, answer.Status, strings.TrimSpace(string(said)))
	}
	return answer.Body, nil
}

// pageClient returns a client that waits for the beginning of an answer as long as
// -timeout says. The stream itself has no end.
func (o *operator) pageClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: o.timeout}).DialContext
	transport.TLSHandshakeTimeout, transport.ResponseHeaderTimeout = o.timeout, o.timeout
	transport.DisableKeepAlives = true // nothing else is asked
	return &http.Client{Transport: transport}
}
