package redistest

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Product returns which server the section "server" of INFO is of, and its
// version: "Redis 7.0.15" or "Valkey 8.1.7". Valkey also says which Redis it
// stands for.
func Product(info string) string {
	fields := map[string]string{}
	readInfo(fields, info)
	if version, ok := fields["valkey_version"]; ok {
		return "Valkey " + version
	}
	return "Redis " + fields["redis_version"]
}

// Product returns which server it is, with its version.
func (s *Server) Product() (product string) {
	s.tb.Helper()
	err := s.ask(func(ctx context.Context, client *redis.Client) error {
		info, err := client.Info(ctx, "server").Result()
		product = Product(info)
		return err
	})
	if err != nil {
		s.tb.Fatalf("the server's version: %v", err)
	}
	return product
}

// FrozenTime reports whether time stands still while the server executes a
// script, as from Redis 7.2 on and in Valkey.
func (s *Server) FrozenTime() bool {
	s.tb.Helper()
	const script = `
local before = redis.call('TIME')
for i = 1, 1000000 do end
local after = redis.call('TIME')
return before[1] == after[1] and before[2] == after[2] and 1 or 0`
	var frozen bool
	err := s.ask(func(ctx context.Context, client *redis.Client) (err error) {
		frozen, err = client.Eval(ctx, script, nil).Bool()
		return err
	})
	if err != nil {
		s.tb.Fatalf("the time of a script: %v", err)
	}
	return frozen
}
