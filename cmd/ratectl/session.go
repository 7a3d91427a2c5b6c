package main

import (
	"context"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime"
)

// A session is what commands share: what their flags name, and what is reached by it. It works
// with the code of the limiter itself.
type session struct {
	printer
	server
	flags  *cli.Command // as they were parsed
	unsaid []string     // flags that the environment or a context has set
	config config

	operate.Core
	rules, page string
	parts       bool  // a key is given by its parts
	scans       scans // of the walk under way
}

func (s *session) base() *session { return s }

// given reports whether the command line has a flag.
func (s *session) given(name string) bool { return s.flags.IsSet(name) }

// open connects to Redis, and reads the overrides if the hash is named and the
// command judges by them.
func (s *session) open(ctx context.Context, judges bool) (err error) {
	if s.said.Password, err = s.secret("RATECTL_PASSWORD", s.passwordFile); err != nil {
		return err
	}
	if s.said.SentinelPassword, err = s.secret("RATECTL_SENTINEL_PASSWORD", s.sentinelPasswordFile); err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	s.Secret, s.Scanning, s.Explain = []byte(s.getenv("RATECTL_REFUSED_SECRET")), s.progress, s.explained
	s.Warn = func(text string) { s.logger().Print(visible(text)) }
	s.Store = runtime.NewRedisStore(s.Client, runtime.WithTimeout(s.Timeout), runtime.WithRefusalMemory(0))
	if judges {
		return s.Renew(ctx)
	}
	return s.AsDeclared(ctx)
}
