package faults

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

var network = []Fault{
	proxied("replies 20 ms late", true, func(p *faultproxy.Proxy) { p.Delay(20 * time.Millisecond) }),
	proxied("replies 80 ms late", false, func(p *faultproxy.Proxy) { p.Delay(80 * time.Millisecond) }, "timeout"),
	proxied("silence", true, (*faultproxy.Proxy).Stall, "timeout"),
	proxied("connections reset", false, (*faultproxy.Proxy).Reset, "connection", "dial", "timeout"),
	proxied("connections refused", true, (*faultproxy.Proxy).Refuse, "dial", "timeout"),
	proxied("replies lost", true, (*faultproxy.Proxy).DropReplies, "timeout"),
	proxied("connections closed in place of a reply", false, (*faultproxy.Proxy).CutReplies, "connection", "timeout"),
}

func proxied(name string, quick bool, fault func(*faultproxy.Proxy), classes ...string) Fault {
	return Fault{Name: name, Where: Network, Classes: classes, Quick: quick, set: func(tb testing.TB, c clients) *site {
		proxy := faultproxy.Start(tb, redistest.Start(tb).Addr)
		connect := func() redis.UniversalClient {
			options := &redis.Options{Addr: proxy.Addr}
			c.tune(options)
			client := redis.NewClient(options)
			tb.Cleanup(func() { _ = client.Close() })
			return client
		}
		return &site{connect: c.store(tb, connect, &redis.UniversalOptions{Addrs: []string{proxy.Addr}}), begin: func() { fault(proxy) }, end: proxy.Pass}
	}}
}
