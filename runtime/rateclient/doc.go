// Package rateclient keeps calls that go out to limits that somebody else sets: those of a
// payment service, a map or a language model. All replicas of a program share
// them, and a peer's answer to one replica holds for all.
//
//	transport, err := rateclient.New(limiter, []rateclient.Peer{{
//		Pattern: "api.example.com/",
//		Limits:  []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "example", Window: time.Minute, Max: 100}}},
//		Wait:    10 * time.Second,
//	}})
//	client := &http.Client{Transport: transport}
//
// A request that its limits have no room for waits for its turn, in order with others of
// the process. If it would have to wait for longer than Wait, or than its context lasts, it
// is not sent and its error is a [*runtime.LimitedError].
//
// If a peer refuses a request, or says that nothing is left although the limits have counted
// less, all replicas wait as long as it says: the key of the request's first limit is blocked in
// Redis, see [runtime.Limiter.Hold]. Calls then go on evenly rather than all at once, by what
// they cost, for a window, but for no longer than a minute or the hold. One that costs more than
// a 64th of the limit counts as that.
//
// # What a peer cannot do
//
// A peer is not trusted. It holds back calls for MaxHold at a time at most. It
// holds back only calls that share the first key of the request that it answered, and keys
// are made of requests, never of answers. It raises a limit only if the program lets it, up to
// Most. It lowers one to Least, or to 1 without Most, while it says so. At most 16 lines
// of a field, 8 KiB of a list and 64 KiB of a body (within a second) are read.
package rateclient
