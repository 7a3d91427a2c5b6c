package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// listed returns the rules of the page, of the file or of standard input that -rules names.
func (s *session) listed(ctx context.Context) (rules []declared, err error) {
	const remedy = "make one with: rategen list -json ./... > rules.jsonl"
	in := s.in
	switch {
	case s.rules == "":
		return nil, usagef("which rules are there? Name the file with -rules or RATECTL_RULES; %s", remedy)
	case isPage(s.rules):
		ctx, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		lines, err := s.askPage(ctx, "-rules", s.rules, "api/listing", "application/jsonl")
		if err != nil {
			return nil, err
		}
		defer lines.Close()
		if rules, err = parseListing(lines); err == nil && len(rules) == 0 {
			err = errors.New("the program has no rules: constructors of generated code, or Limiter.Register, make them known")
		}
		if err != nil {
			return nil, foreign{fmt.Errorf("page %s: %w", s.rules, err)}
		}
		return rules, nil
	case s.rules != "-":
		file, err := os.Open(s.rules)
		if err != nil {
			return nil, usagef("-rules: %v; %s", err, remedy)
		}
		defer file.Close()
		in = file
	}
	if rules, err = parseListing(in); err == nil && len(rules) == 0 {
		err = errors.New("there is no rule in it")
	}
	if err != nil {
		return nil, usagef("-rules %s: %v; %s", s.rules, err, remedy)
	}
	return rules, nil
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
	answer, err := s.pageClient(authorities).Do(ask)
	var timed net.Error
	switch {
	case errors.As(err, &timed) && timed.Timeout():
		return nil, foreign{fmt.Errorf("page %s gave no answer within %v, see -timeout: %w", page, s.timeout, err)}
	case err != nil:
		return nil, foreign{err}
	}
	if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), contentType) {
		defer answer.Body.Close()
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		return nil, foreign{fmt.Errorf("page %s: no live page answers there: %s %s", page, answer.Status, strings.TrimSpace(string(said)))}
	}
	return answer.Body, nil
}

// pageClient returns a client that waits for the beginning of an answer as long as
// -timeout says. The stream itself has no end.
func (s *session) pageClient(authorities *x509.CertPool) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	transport.DialContext = (&net.Dialer{Timeout: s.timeout}).DialContext
	transport.TLSHandshakeTimeout, transport.ResponseHeaderTimeout = s.timeout, s.timeout
	transport.DisableKeepAlives = true // nothing else is asked
	return &http.Client{Transport: transport}
}
