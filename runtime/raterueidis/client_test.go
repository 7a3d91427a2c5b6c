package raterueidis

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/rategen/rategen/runtime/internal/wiretest"
	"github.com/rategen/rategen/runtime/rediswire"
)

// optionOf returns the options of rueidis that stand for those of go-redis.
func optionOf(o *redis.UniversalOptions) *rueidis.ClientOption {
	return Tune(&rueidis.ClientOption{
		InitAddress: o.Addrs, Username: o.Username, Password: o.Password, SelectDB: o.DB, TLSConfig: o.TLSConfig,
		Sentinel: rueidis.SentinelOption{MasterSet: o.MasterName},
	})
}

// dial returns a client, once it can be had.
func dial(tb testing.TB, option *rueidis.ClientOption) rueidis.Client {
	tb.Helper()
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		client, err := rueidis.NewClient(*option)
		if err == nil {
			return client
		}
		if time.Since(begin) > time.Minute {
			tb.Fatal(err)
		}
	}
}

func TestClient(t *testing.T) {
	t.Parallel()
	wiretest.Run(t, func(tb testing.TB, o *redis.UniversalOptions) (rediswire.Client, func()) {
		option := optionOf(o)
		client := dial(tb, option)
		return wireOf(client), client.Close
	})
}
