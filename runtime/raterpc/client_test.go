package raterpc_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/rategen/rategen/runtime/raterpc"
)

// TestReadAnswer reads what servers of RPC really send. A refusal holds back calls: of one without a
// time for as long as the peer says.
func TestReadAnswer(t *testing.T) {
	const exhausted, unavailable = raterpc.CodeResourceExhausted, raterpc.CodeUnavailable
	retry := func(d time.Duration) proto.Message { return &errdetails.RetryInfo{RetryDelay: durationpb.New(d)} }
	quota := &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{QuotaId: "q", QuotaValue: 5}}}
	reason := func(r string) proto.Message {
		return &errdetails.ErrorInfo{Reason: r, Domain: "googleapis.com"}
	}
	for name, c := range map[string]struct {
		code    uint32
		message string
		details []proto.Message
		fields  string // name: value, separated by lines
		refused bool
		hold    time.Duration
	}{
		"Google: RetryInfo":                        {code: exhausted, details: []proto.Message{retry(90 * time.Second)}, refused: true, hold: 90 * time.Second},
		"Google: a quota without a time":           {code: exhausted, details: []proto.Message{quota}, refused: true},
		"Google: a reason alone":                   {code: exhausted, details: []proto.Message{reason("RATE_LIMIT_EXCEEDED")}, refused: true},
		"Google: another reason":                   {code: exhausted, details: []proto.Message{reason("RESOURCE_QUOTA_EXCEEDED")}},
		"Google: help alone":                       {code: exhausted, details: []proto.Message{&errdetails.Help{}}},
		"RetryInfo without a time":                 {code: exhausted, details: []proto.Message{retry(0)}, refused: true},
		"RetryInfo below 0":                        {code: exhausted, details: []proto.Message{retry(-time.Second)}, refused: true},
		"RetryInfo, unavailable":                   {code: unavailable, details: []proto.Message{retry(7 * time.Second)}, refused: true, hold: 7 * time.Second},
		"RetryInfo without a time, unavailable":    {code: unavailable, details: []proto.Message{retry(0)}},
		"RetryInfo of another error":               {code: 5, details: []proto.Message{retry(time.Second)}},
		"the latest time":                          {code: exhausted, details: []proto.Message{retry(time.Second), quota}, fields: "retry-after: 3\ngrpc-retry-pushback-ms: 2000", refused: true, hold: 3 * time.Second},
		"pushback":                                 {code: exhausted, fields: "grpc-retry-pushback-ms: 2500", refused: true, hold: 2500 * time.Millisecond},
		"pushback, unavailable":                    {code: unavailable, fields: "grpc-retry-pushback-ms: 2500", refused: true, hold: 2500 * time.Millisecond},
		"pushback: never":                          {code: exhausted, fields: "grpc-retry-pushback-ms: -1"},
		"pushback: malformed":                      {code: exhausted, fields: "grpc-retry-pushback-ms: soon"},
		"Connect: Retry-After":                     {code: exhausted, fields: "retry-after: 7", refused: true, hold: 7 * time.Second},
		"Connect: Retry-After, unavailable":        {code: unavailable, fields: "retry-after: 7", refused: true, hold: 7 * time.Second},
		"Retry-After of another error":             {code: 5, fields: "retry-after: 7"},
		"Envoy: unavailable, by default":           {code: unavailable, fields: "x-envoy-ratelimited: true", refused: true},
		"Envoy: exhausted":                         {code: exhausted, fields: "x-envoy-ratelimited: true", refused: true},
		"Envoy: its fields":                        {code: unavailable, fields: "x-ratelimit-limit: 10, 10;w=60\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 12", refused: true, hold: 12 * time.Second},
		"Envoy: overloaded":                        {code: unavailable, message: "upstream connect error", fields: "server: envoy"},
		"rategen: RateLimit, served":               {fields: "ratelimit: \"q\";r=0;t=4", hold: 4 * time.Second},
		"grpc-go: a message too large":             {code: exhausted, message: "grpc: received message larger than max (5 vs. 4)"},
		"grpc-go: to send one too large":           {code: exhausted, message: "trying to send message larger than max (5 vs. 4)"},
		"grpc-java: a message too large":           {code: exhausted, message: "gRPC message exceeds maximum size 4: 5"},
		"C++: a message too large":                 {code: exhausted, message: "Received message larger than max (5 vs. 4)"},
		"C++: one that is decompressed":            {code: exhausted, message: "SERVER: Received message larger than max (5 vs. 4)"},
		".NET: a message too large":                {code: exhausted, message: "Received message exceeds the maximum configured message size."},
		"Connect: a message too large":             {code: exhausted, message: "message size 5 is larger than configured max 4"},
		"etcd: no space":                           {code: exhausted, message: "etcdserver: mvcc: database space exceeded"},
		"etcd: too many requests":                  {code: exhausted, message: "etcdserver: too many requests"},
		"CockroachDB: memory":                      {code: exhausted, message: "root: memory budget exceeded: 10240 bytes requested"},
		"go-grpc-middleware: a text alone":         {code: exhausted, message: "/a.B/C is rejected by grpc_ratelimit middleware, please retry later. limited"},
		"nothing at all":                           {code: exhausted},
		"down":                                     {code: unavailable, message: "connection refused"},
		"a time for ever":                          {code: exhausted, details: []proto.Message{retry(1 << 62)}, refused: true, hold: 366 * 24 * time.Hour},
		"a time for polling, beside what is found": {fields: "retry-after: 7"},
	} {
		fields := http.Header{}
		for line := range strings.Lines(c.fields) {
			field, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			fields.Set(field, value)
		}
		a := raterpc.ReadAnswer(c.code, c.message, c.details, fields)
		if a.Refused != c.refused || a.HoldOff != c.hold || a.Status != int(c.code) || a.Message != c.message {
			t.Errorf("%s: %+v, want refused %v for %v", name, a, c.refused, c.hold)
		}
	}
}
