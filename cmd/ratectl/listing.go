package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/rulelist"
	"github.com/rategen/rategen/runtime"
)

func parseListing(in io.Reader) (rules []operate.Rule, err error) {
	lines := json.NewDecoder(in)
	for n := 1; ; n++ {
		var l rulelist.Rule
		err := lines.Decode(&l)
		if err == io.EOF {
			return rules, nil
		}
		if err != nil {
			return nil, fmt.Errorf("rule %d: not what rategen list -json prints: %w", n, err)
		}
		r, err := l.Rule()
		if err != nil {
			return nil, fmt.Errorf("rule %d, %q: %w", n, l.Name, err)
		}
		d := operate.Rule{Rule: r, Shadow: !r.Mode.Refuses(), Place: l.File, Parts: l.Key, AnyKey: l.AnyKey}
		r.Mode = runtime.ModeEnforce
		if !l.AnyKey { // else the file names the method
			d.Place = fmt.Sprintf("%s:%d", l.File, l.Line)
		}
		for n := range l.KeyParts {
			d.Parts, d.AnyKey = append(d.Parts, fmt.Sprintf("part %d", n+1)), false
		}
		if l.ByCall() {
			d.ByCall = l.Max
		}
		rules = append(rules, d)
	}
}

// listed returns the rules of the page, of the file or of standard input that -rules names.
func (s *session) listed(ctx context.Context) (rules []operate.Rule, err error) {
	const remedy = "make one with: rategen list -json ./... > rules.jsonl"
	in, none := s.in, "there is no rule in it"
	wrong := func(err error) error { return usagef("-rules %s: %v; %s", s.rules, err, remedy) }
	if s.rules == "" {
		return nil, usagef("which rules are there? Name the file with -rules or RATECTL_RULES; %s", remedy)
	}
	if isPage(s.rules) {
		ctx, cancel := context.WithTimeout(ctx, s.Timeout)
		defer cancel()
		lines, err := s.askPage(ctx, "-rules", s.rules, "api/listing", "application/jsonl")
		if err != nil {
			return nil, err
		}
		defer lines.Close()
		in, none = lines, "the program has no rules: constructors of generated code, or Limiter.Register, make them known"
		wrong = func(err error) error { return foreign{fmt.Errorf("page %s: %w", s.rules, err)} }
	} else if s.rules != "-" {
		file, err := os.Open(s.rules)
		if err != nil {
			return nil, usagef("-rules: %v; %s", err, remedy)
		}
		defer file.Close()
		in = file
	}
	if rules, err = parseListing(in); err == nil && len(rules) == 0 {
		err = errors.New(none)
	}
	if err != nil {
		return nil, wrong(err)
	}
	setReferences(rules)
	return rules, nil
}

func setReferences(rules []operate.Rule) {
	prefixes := make(map[string]map[string]bool) // by name
	for _, d := range rules {
		if prefixes[d.Name] == nil {
			prefixes[d.Name] = make(map[string]bool)
		}
		prefixes[d.Name][d.Prefix] = true
	}
	for i, d := range rules {
		rules[i].Reference = d.Name
		if d.Name == "" || len(prefixes[d.Name]) > 1 {
			rules[i].Reference = d.Prefix
		}
	}
}

// askPage returns what a page answers to a path of its own, if that is of a type. The
// name is that of the flag with the page's address.
func (s *session) askPage(ctx context.Context, name, page, path, contentType string) (io.ReadCloser, error) {
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
	if header := s.getenv("RATECTL_PAGE_AUTHORIZATION"); header != "" {
		ask.Header.Set("Authorization", header)
	}
	authorities, err := s.authorities()
	if err != nil {
		return nil, err
	}
	// The beginning of an answer is waited for as long as -timeout says. A stream has no end.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	transport.DialContext = (&net.Dialer{Timeout: s.Timeout}).DialContext
	transport.TLSHandshakeTimeout, transport.ResponseHeaderTimeout = s.Timeout, s.Timeout
	transport.DisableKeepAlives = true // nothing else is asked
	answer, err := (&http.Client{Transport: transport}).Do(ask)
	timed, _ := errors.AsType[net.Error](err)
	if timed != nil && timed.Timeout() {
		return nil, foreign{fmt.Errorf("page %s gave no answer within %v, see -timeout: %w", page, s.Timeout, err)}
	}
	if err != nil {
		return nil, foreign{err}
	}
	if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), contentType) {
		defer answer.Body.Close()
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		return nil, foreign{fmt.Errorf("page %s: no live page answers there: %s %s", page, answer.Status, strings.TrimSpace(string(said)))}
	}
	return answer.Body, nil
}
