package runtime_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

// TestTuneRedis wants every kind of options to get what is recommended, and
// what is already set to stay.
func TestTuneRedis(t *testing.T) {
	const tuned = 500 * time.Millisecond
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: "127.0.0.1:1", ReadTimeout: time.Second}))
	defer client.Close()
	if o := client.Options(); !o.ContextTimeoutEnabled || o.DialerRetries != 1 || o.DialTimeout != tuned || o.ReadTimeout != time.Second || o.WriteTimeout != tuned {
		t.Errorf("standalone: got %+v", o)
	}
	cluster := redis.NewClusterClient(runtime.TuneRedis(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, DialerRetries: 3}))
	defer cluster.Close()
	if o := cluster.Options(); !o.ContextTimeoutEnabled || o.DialerRetries != 3 || o.DialTimeout != tuned || o.ReadTimeout != tuned || o.WriteTimeout != tuned {
		t.Errorf("cluster: got %+v", o)
	}
	failover := redis.NewFailoverClient(runtime.TuneRedis(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}}))
	defer failover.Close()
	if o := failover.Options(); !o.ContextTimeoutEnabled || o.DialerRetries != 1 || o.DialTimeout != tuned || o.ReadTimeout != tuned || o.WriteTimeout != tuned {
		t.Errorf("sentinel: got %+v", o)
	}
	universal := redis.NewUniversalClient(runtime.TuneRedis(&redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}}))
	defer universal.Close()
	if o := universal.(*redis.Client).Options(); !o.ContextTimeoutEnabled || o.DialerRetries != 1 || o.DialTimeout != tuned || o.ReadTimeout != tuned || o.WriteTimeout != tuned {
		t.Errorf("universal: got %+v", o)
	}
}

// TestAdvice wants a warning, once, of options with which connections to a
// silent Redis are held for ever, and of no others.
func TestAdvice(t *testing.T) {
	for _, test := range []struct {
		name   string
		client redis.UniversalClient
		warned bool
	}{
		{"default", redis.NewClient(&redis.Options{}), false},
		{"tuned", redis.NewClient(runtime.TuneRedis(&redis.Options{})), false},
		{"no read timeout", redis.NewClient(&redis.Options{ReadTimeout: -1}), true},
		{"no deadlines", redis.NewClient(&redis.Options{ReadTimeout: -2}), true},
		{"a minute", redis.NewClient(&redis.Options{ReadTimeout: time.Minute}), true},
		{"a minute, but contexts", redis.NewClient(&redis.Options{ReadTimeout: time.Minute, ContextTimeoutEnabled: true}), false},
		{"default cluster", redis.NewClusterClient(&redis.ClusterOptions{}), false},
		{"cluster, no read timeout", redis.NewClusterClient(&redis.ClusterOptions{ReadTimeout: -1}), true},
		{"ring, no read timeout", redis.NewRing(&redis.RingOptions{ReadTimeout: -1}), true},
	} {
		var out bytes.Buffer
		store := runtime.NewRedisStore(test.client)
		runtime.New(store, logger(&out))
		runtime.New(store, logger(&out))
		lines := strings.Count(out.String(), "\n")
		if named := strings.Contains(out.String(), "ContextTimeoutEnabled"); named != test.warned || lines > 1 {
			t.Errorf("%s: the log says %q", test.name, out.String())
		}
		_ = test.client.Close()
	}
}
