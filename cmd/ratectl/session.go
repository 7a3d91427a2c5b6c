package main

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/progress"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
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
	said
	rules, page string
	scans       scans       // of the walk under way
	screen      *screen     // of top; nil: tables are printed one after another
	past        []pastRates // that a page has told
}

func (s *session) given(name string) bool { return s.flags.IsSet(name) }

// open connects to Redis, and reads the overrides if the hash is named and the
// command judges by them.
func (s *session) open(ctx context.Context, judges bool) (err error) {
	if s.dial.Password, err = s.secret("RATECTL_PASSWORD", s.passwordFile); err != nil {
		return err
	}
	if s.dial.SentinelPassword, err = s.secret("RATECTL_SENTINEL_PASSWORD", s.sentinelPasswordFile); err != nil {
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

// keyNamed returns the rule that the first argument names, and the key that the others name.
func (s *session) keyNamed(args []string) (d operate.Rule, key *runtime.Key, err error) {
	if d, err = s.Rule(args[0]); err != nil {
		return d, nil, err
	}
	args = args[1:]
	text := ""
	if len(args) == 1 && !s.parts {
		text = args[0]
		if whole := bridge.LimiterOf(s.Limiter).KeysOf(d.Rule); strings.HasPrefix(text, whole.Prefix) {
			rest, is := whole.Text(text)
			if !is {
				return d, nil, usagef("%q is no key of %s: it counts by another algorithm", text, d.Name)
			}
			text, args = rest, []string{rest}
		}
	}
	if strings.HasSuffix(text, "*") { // no call has that key
		return d, nil, usagef("%q would be one key, and not all that begin so: write ratectl override set %s -keys '%s' with -max 0 or -enabled false, or %%2A for a * in a key", text, d.Name, text)
	}
	key = runtime.NewKey()
	if s.parts {
		for _, part := range args {
			key.AddString(part)
		}
	} else if len(args) == 1 {
		if key, err = rule.ParseKey(text); err != nil {
			return d, nil, usagef("%q is no key of %s: %v; with -parts a key is given as it is, without escapes", text, d.Name, err)
		}
	} else if len(args) > 1 {
		return d, nil, usagef("a KEY is one argument, its parts joined by colons; or give the parts as they are with -parts")
	}
	n := len(args)
	if d.AnyKey && n == 0 { // else everybody would be blocked, and nobody is
		return d, nil, usagef("the rules of a live page do not say whose limit %s is: name the KEY, as ratectl keys %s shows it, or write \"\" if all callers share one", d.Name, d.Name)
	}
	if n == 1 && !s.parts {
		n += strings.Count(key.String(), ":")
	}
	return d, key, d.Fits(key, n)
}

// progress shows on a terminal how much of the database has been looked at, until
// stop is called.
func (s *session) progress(ctx context.Context) (stop func()) {
	if !s.shows {
		return func() {}
	}
	s.scans.n.Store(0)
	s.scans.total.Store(0)
	_ = s.Masters(ctx, func(ctx context.Context, c *redis.Client) error {
		if _, is := s.scans.hooked.LoadOrStore(c, true); !is {
			c.AddHook(&s.scans)
		}
		s.scans.total.Add(c.DBSize(ctx).Val())
		return nil
	})
	line := progress.NewLine(s.err)
	s.scans.line.Store(line)
	return func() {
		s.scans.line.Store(nil)
		line.Clear()
	}
}

// A scans is a hook that counts SCAN, and shows how far a walk is.
type scans struct {
	hooked   sync.Map                      // clients that have it: a client keeps its hooks, and top walks again and again
	n, total atomic.Int64                  // SCANs so far, and keys
	line     atomic.Pointer[progress.Line] // nil: nobody is shown
}

func (s *scans) DialHook(next redis.DialHook) redis.DialHook {
	return next
}

func (s *scans) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "scan" {
			s.line.Load().Show("looked at about %d of %d keys", min(s.n.Add(1)*operate.ScanBatch, s.total.Load()), s.total.Load())
		}
		return next(ctx, cmd)
	}
}

func (s *scans) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
