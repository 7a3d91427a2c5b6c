package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/override"
)

// A session is what commands share: what their flags name, and what is reached by it. It works
// with the code of the limiter itself.
type session struct {
	printer
	server
	flags  *cli.Command // as they were parsed
	config config

	operate.Core
	overrides   string
	rules, page string
	parts       bool  // a key is given by its parts
	broken      bool  // the overrides are, and limits as declared here
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
	s.Secret, s.Scanning = []byte(s.getenv("RATECTL_REFUSED_SECRET")), s.progress
	s.Store = runtime.NewRedisStore(s.Client, runtime.WithTimeout(s.timeout), runtime.WithDenialMemory(0))
	if judges {
		return s.follow(ctx)
	}
	s.renew()
	return nil
}

// close gives back what open has taken.
func (s *session) close() {
	if s.Limiter != nil {
		_ = s.Limiter.Close()
	}
	if s.Store != nil {
		_ = s.Store.Close()
	}
	if s.Client != nil {
		_ = s.Client.Close()
	}
}

// renew makes another limiter.
func (s *session) renew(more ...runtime.Option) {
	if s.Limiter != nil {
		_ = s.Limiter.Close()
	}
	settings := []runtime.Option{runtime.WithNamespace(s.Namespace), runtime.WithoutReports(), runtime.WithLogger(slog.New(slog.DiscardHandler))}
	s.Limiter = runtime.New(s.Store, append(settings, more...)...)
}

// follow makes a limiter with the overrides as they are now. What a rule in the
// shadow would refuse is told as a refusal, so the modes are kept apart.
func (s *session) follow(ctx context.Context) error {
	s.AskedBefore(ctx)
	if s.overrides == "" {
		s.renew()
		return nil
	}
	says, err := s.overridesNow(ctx)
	rejected := errors.Is(err, runtime.ErrInvalidOverrides)
	if err == nil {
		err = says.Check(s.declared()...)
		rejected = err != nil
	}
	switch {
	case rejected: // by which ones calls are decided, nobody can read
		if !s.broken { // of a table that is repeated, once
			s.logger().Printf("the limiters reject the overrides, and go on with those before; here limits are as declared: %v", inFull(err))
		}
		s.broken = true
		s.renew()
		return nil
	case err != nil:
		return err
	}
	s.broken = false
	return s.followSaid(ctx, says)
}

// followSaid makes a limiter with overrides.
func (s *session) followSaid(ctx context.Context, says runtime.Overrides) error {
	s.Modes = says
	without := withoutModes(says)
	if without.Enabled == nil && len(without.Rules) == 0 {
		s.renew()
		return nil
	}
	inForce := make(chan error, 1)
	s.renew(runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) { return without, nil }), 24*time.Hour),
		runtime.WithObserver(&observe.Observer{Override: func(ev observe.OverrideEvent) {
			select {
			case inForce <- ev.Err:
			default:
			}
		}}))
	select {
	case err := <-inForce:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// withoutModes returns overrides that leave the mode of all rules at enforce.
func withoutModes(o runtime.Overrides) runtime.Overrides {
	o.Rules = cloned(o.Rules)
	for name, of := range o.Rules {
		of.Mode, of.Keys = nil, cloned(of.Keys)
		for pattern, key := range of.Keys {
			key.Mode = nil
			of.Keys[pattern] = key
		}
		o.Rules[name] = of
	}
	return o
}

// overridesNow returns what the hash says.
func (s *session) overridesNow(ctx context.Context) (runtime.Overrides, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return override.Redis(s.Client, s.overrides).Overrides(ctx)
}

// editor returns an editor of the overrides.
func (s *session) editor() (*override.Editor, error) {
	if s.overrides == "" {
		return nil, usagef("which hash has the overrides? Name the key that the programs give to override.Redis, with -overrides or RATECTL_OVERRIDES")
	}
	return override.NewEditor(s.Client, s.overrides, s.declared()...), nil
}

// entries returns the overrides in the hash.
func (s *session) entries(ctx context.Context) ([]override.Entry, error) {
	edit, err := s.editor()
	if err != nil {
		return nil, err
	}
	return edit.List(ctx)
}

// decidingEntries returns the overrides by which calls are decided: none if the hash is not named,
// or the limiters reject it.
func (s *session) decidingEntries(ctx context.Context) ([]override.Entry, error) {
	if s.overrides == "" || s.broken {
		return nil, nil
	}
	return s.entries(ctx)
}

// declared returns the known rules as the limiter has them.
func (s *session) declared() (rules []*runtime.Rule) {
	for _, d := range s.Rules {
		rules = append(rules, d.Rule)
	}
	return rules
}
