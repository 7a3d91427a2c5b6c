package ratehttp

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/rategen/rategen/runtime/internal/findings"
)

// A check is something that a program should not do, and is told once.
type check uint8

const (
	untrustedProxy check = iota
	otherHeader
	addressKey
	unknownPeer
	noClient
	emptyKey
	limitedTwice
	middlewareTwice
	samePolicyName
	policyUnmet
	partitionPanicked
	corsInside
	numChecks
)

// texts are of each check its code, what was seen and what helps.
var texts = [numChecks]struct{ code, seen, help string }{
	untrustedProxy: {"untrusted_proxy",
		"a request has a forwarding header, but no proxy is trusted: all clients behind a proxy share one limit",
		"name your proxies with ratehttp.WithTrustedProxies, or have them remove the header"},
	otherHeader: {"other_header",
		"a trusted proxy has sent another forwarding header than the one that it is trusted for: all its clients share one limit",
		"name that header to ratehttp.WithTrustedProxies, or have the proxy write the other one"},
	addressKey: {"address_key",
		"the key of a request is its RemoteAddr, which has the port: each connection has a limit of its own",
		"return ratehttp.ClientIP(r.Context()), or leave Key nil"},
	unknownPeer: {"unknown_peer",
		"a connection has no address: all such clients share one limit",
		"if a trusted proxy connects over a Unix socket, add ratehttp.WithTrustedUnixSocket"},
	noClient: {"no_client",
		"ratehttp.ClientIP was called with a context that has no client: all such calls share one limit",
		"put ratehttp.Middleware around the server's handler, and hand the request's context on"},
	emptyKey: {"empty_key",
		"the key of a request is empty: all such requests share one limit",
		"return what tells callers apart, such as ratehttp.ClientIP(r.Context()), where a caller has no name"},
	limitedTwice: {"limited_twice",
		"a request has passed the same limit twice, and was charged twice",
		"put each ratehttp.RequestLimit into the chain once"},
	middlewareTwice: {"middleware_twice",
		"a request has passed ratehttp.Middleware twice: the inner one and its options have no effect",
		"put ratehttp.Middleware around the server's handler once"},
	samePolicyName: {"same_policy_name",
		"two rules have the same public name: clients cannot tell them apart by it",
		"name them with ratehttp.WithPolicy"},
	policyUnmet: {"policy_unmet",
		"a policy is for a rule whose name differs in case: it has no effect",
		"write the name as the rule has it"},
	partitionPanicked: {"partition_key_panic",
		"the function of ratehttp.WithPartitionKey panicked: the fields have no partition key",
		"return an empty string for requests without one"},
	corsInside: {"cors_inside",
		"a request of another origin was refused without Access-Control-Allow-Origin: its script sees a network error, and neither the status nor Retry-After",
		"put the CORS middleware around ratehttp.RequestLimit and all handlers that are limited"},
}

// checks reports each check once, to the log and as a finding, and never what a client has sent.
type checks struct {
	logger *slog.Logger // nil: slog.Default
	done   [numChecks]atomic.Bool
}

// due reports whether nothing was said about a check yet.
func (c *checks) due(which check) bool { return !c.done[which].Load() }

// warn writes the line of a check, unless it was written before. A panic of the
// log's handler is contained.
func (c *checks) warn(which check, args ...any) {
	if !c.due(which) || !c.done[which].CompareAndSwap(false, true) {
		return
	}
	f := &texts[which]
	found := findings.Finding{Code: f.code, Text: f.seen, Help: f.help}
	if len(args) > 1 && args[0] == "rule" {
		found.Rule, _ = args[1].(string)
	}
	findings.Process.Add(found)
	defer func() { _ = recover() }()
	logger := c.logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.Log(context.Background(), slog.LevelWarn, f.seen, append([]any{"code", f.code, "help", f.help}, args...)...)
}
