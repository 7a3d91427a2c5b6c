package ratehttp_test

import (
	"testing"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// The reports of vulnerabilities in other libraries, and what comes of each here.
func TestClientIPAdvisories(t *testing.T) {
	const xff, fwd = ratehttp.XForwardedFor, ratehttp.Forwarded
	for _, c := range []struct {
		report string
		peer   string
		lines  []string
		opts   []ratehttp.Option
		want   string
	}{
		{"CVE-2020-28483 in gin: without a proxy a client names itself",
			"203.0.113.7:1", []string{"X-Forwarded-For: 198.51.100.1"}, nil, "203.0.113.7"},
		{"GHSA-3fxj-6jh8-hvhx in chi: True-Client-IP of anybody",
			"203.0.113.7:1", []string{"True-Client-IP: 198.51.100.1"}, []ratehttp.Option{proxies(xff)}, "203.0.113.7"},
		{"GHSA-rjr7-jggh-pgcp in chi: X-Real-IP of anybody",
			"203.0.113.7:1", []string{"X-Real-IP: 198.51.100.1"}, []ratehttp.Option{proxies(xff)}, "203.0.113.7"},
		{"GHSA-9g5q-2w5x-hmxf in chi: the leftmost address",
			proxy, []string{"X-Forwarded-For: 198.51.100.1, 203.0.113.7"}, []ratehttp.Option{proxies(xff)}, "203.0.113.7"},
		{"GHSA-46wh-pxpv-q5gq in express-rate-limit: all IPv4 clients are ::/56",
			"[::ffff:203.0.113.7]:1", nil, nil, "203.0.113.7"},
		{"the same behind a proxy",
			"[::ffff:10.0.0.1]:1", []string{"X-Forwarded-For: ::ffff:203.0.113.7"}, []ratehttp.Option{proxies(xff)}, "203.0.113.7"},
		{"the same in hexadecimal",
			"[::ffff:a00:1]:1", []string{"X-Forwarded-For: ::FFFF:CB00:7107"}, []ratehttp.Option{proxies(xff)}, "203.0.113.7"},
		{"realclientip-go: the header is believed, and the peer not asked",
			"203.0.113.7:1", []string{"X-Forwarded-For: 10.0.0.2"}, []ratehttp.Option{proxies(xff)}, "203.0.113.7"},
		{"a header in several lines, of which one is read",
			proxy, []string{"X-Forwarded-For: 198.51.100.1", "X-Forwarded-For: 203.0.113.7"}, []ratehttp.Option{proxies(xff)}, "203.0.113.7"},
		{"a header that the proxy does not write",
			proxy, []string{"Forwarded: for=198.51.100.1", "X-Forwarded-For: 203.0.113.7"}, []ratehttp.Option{proxies(xff)}, "203.0.113.7"},
		{"the same the other way around",
			proxy, []string{"X-Forwarded-For: 198.51.100.1", "Forwarded: for=203.0.113.7"}, []ratehttp.Option{proxies(fwd)}, "203.0.113.7"},
		{"a trusted address in another notation, so that the walk stops at it",
			proxy, []string{"X-Forwarded-For: 203.0.113.7, ::ffff:10.0.0.2"}, []ratehttp.Option{proxies(xff)}, "203.0.113.7"},
		{"a zone, which makes an address that is in no prefix",
			proxy, []string{"X-Forwarded-For: 203.0.113.7, 2001:db8:ffff::1%x"}, []ratehttp.Option{proxies(xff)}, "203.0.113.7"},
		{"a zone of a client's choice, which makes a new key",
			proxy, []string{"X-Forwarded-For: fe80::1%a"}, []ratehttp.Option{proxies(xff)}, "fe80::1"},
		{"addresses of one IPv6 line, each with a limit of its own",
			"[2001:db8:1:2345:6789::1]:1", nil, nil, "2001:db8:1:2300::/56"},
		{"an opened quote, which swallows what the proxy has added",
			proxy, []string{`Forwarded: for="198.51.100.1, for=203.0.113.7`}, []ratehttp.Option{proxies(fwd)}, "203.0.113.7"},
		{"the same over two lines",
			proxy, []string{`Forwarded: for="198.51.100.1`, `Forwarded: for=203.0.113.7`}, []ratehttp.Option{proxies(fwd)}, "203.0.113.7"},
		{"a quoted comma in what the proxy has copied",
			proxy, []string{`Forwarded: for=203.0.113.7;host="a\", for=198.51.100.1"`}, []ratehttp.Option{proxies(fwd)}, "203.0.113.7"},
		{"octal numbers, which others read as another address",
			proxy, []string{"X-Forwarded-For: 010.0.0.1"}, []ratehttp.Option{proxies(xff)}, "10.0.0.1"},
		{"a name in place of an address, to have no key",
			proxy, []string{"X-Forwarded-For: unknown"}, []ratehttp.Option{proxies(xff)}, "10.0.0.1"},
	} {
		limittest.Equal(t, c.report, clientOf(c.peer, c.lines, c.opts...), c.want)
	}
}
