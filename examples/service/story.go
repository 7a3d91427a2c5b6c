package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/examples/service/employee"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// A story prints to out what the limits do, and fails if they do not do it.
type story struct {
	out       io.Writer
	logs      *lineCounter // where logger writes to
	logger    *slog.Logger
	backend   *backend
	outage    time.Duration // the timeout of a limiter that has lost its Redis
	directory *employee.Directory
	limiter   *runtime.Limiter
	svc       employee.EmployeeService
}

// The clients of the story, with addresses that are reserved for such uses.
var (
	oneClient     = netip.MustParseAddr("203.0.113.7")
	anotherClient = netip.MustParseAddr("203.0.113.8")
)

func (s *story) tell(ctx context.Context) error {
	if err := s.startClean(ctx); err != nil {
		return err
	}
	for _, chapter := range []func(context.Context) error{s.byID, s.byClientIP, s.withoutRedis} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startClean resets the counts that an earlier run has left in Redis. A limiter
// finds the keys of a rule by its prefix, so a rule with the same prefix is enough.
func (s *story) startClean(ctx context.Context) error {
	byID := &runtime.Rule{Prefix: "rate_limit:emp:"}
	byClientIP := &runtime.Rule{Prefix: "rate_limit:employee.EmployeeService.GetByEmail:"}
	for _, limit := range []runtime.Limit{
		byID.Limit(runtime.NewKey().AddString("1001")),
		byID.Limit(runtime.NewKey().AddString("1002")),
		byClientIP.Limit(runtime.NewKey().AddString(oneClient.String())),
		byClientIP.Limit(runtime.NewKey().AddString(anotherClient.String())),
	} {
		if err := s.limiter.Reset(ctx, limit); err != nil {
			return fmt.Errorf("forget the calls of an earlier run, is there a redis at REDIS_ADDR? %w", err)
		}
	}
	return nil
}

func (s *story) byID(ctx context.Context) error {
	s.say("\n1. Five lookups of an id in ten seconds, and not a sixth\n\n")
	for i := 1; i <= 5; i++ {
		if err := s.lookup(ctx, i, "1001"); err != nil {
			return fmt.Errorf("call %d of 5 was not let through: %w", i, err)
		}
	}
	if err := s.lookup(ctx, 6, "1001"); !errors.Is(err, runtime.ErrLimited) {
		return fmt.Errorf("call 6 was not refused: %v", err)
	}
	if err := s.lookup(ctx, 7, "1002"); err != nil {
		return fmt.Errorf("another id was not let through: %w", err)
	}
	s.say("\n   Six calls passed, and the directory was read %d times: the refused call did not\n"+
		"   reach it.\n", s.directory.Reads())
	return nil
}

func (s *story) lookup(ctx context.Context, n int, id string) error {
	start := time.Now()
	e, err := s.svc.GetByID(ctx, id)
	took := time.Since(start)
	var limited *runtime.LimitedError
	if errors.As(err, &limited) {
		s.say("   call %d  id %s  refused: %s (limit %d, retry after %v)\n",
			n, id, limited, limited.Limit, limited.RetryAfter.Round(time.Millisecond))
	} else if err == nil {
		s.say("   call %d  id %s  %s  in %v\n", n, id, e.Name, took.Round(10*time.Microsecond))
	}
	return err
}

func (s *story) byClientIP(ctx context.Context) error {
	s.say("\n2. A hundred lookups a minute for each client address\n\n")
	client := ratehttp.WithClientIP(ctx, oneClient)
	passed, refused := 0, 0
	var limited *runtime.LimitedError
	for range 110 {
		_, err := s.svc.GetByEmail(client, "lin.yue@example.com")
		if err == nil {
			passed++
		} else if errors.As(err, &limited) {
			refused++
		} else {
			return err
		}
	}
	s.say("   %v made 110 calls: %d passed, %d were refused", oneClient, passed, refused)
	if limited != nil {
		s.say(": %s, retry after %v", limited, limited.RetryAfter.Round(time.Millisecond))
	}
	s.say("\n")
	if passed != 100 {
		return fmt.Errorf("%d of 110 calls passed, not 100", passed)
	}
	if _, err := s.svc.GetByEmail(ratehttp.WithClientIP(ctx, anotherClient), "lin.yue@example.com"); err != nil {
		return fmt.Errorf("another client was not let through: %w", err)
	}
	s.say("   %v made 1 call: it passed\n", anotherClient)
	return nil
}

func (s *story) withoutRedis(ctx context.Context) error {
	s.say("\n3. Redis dies and the calls go on\n\n")
	svc, err := s.loseRedis()
	if err != nil {
		return err
	}
	before := s.logs.Lines()
	took, err := callForAWhile(ctx, svc)
	if err != nil {
		return fmt.Errorf("a call did not go on without redis: %w", err)
	}
	slices.Sort(took)
	s.say("\n   %d calls for id 1002 in two seconds: all passed, half of them within %v, the\n"+
		"   slowest in %v. The log has %d lines about it. Limits are not enforced meanwhile,\n"+
		"   as nothing else was asked for: fail=closed would refuse, fail=local count here.\n",
		len(took), took[len(took)/2].Round(10*time.Microsecond),
		took[len(took)-1].Round(10*time.Microsecond), s.logs.Lines()-before)
	return nil
}

// loseRedis takes Redis away and returns a service that runs without it.
func (s *story) loseRedis() (employee.EmployeeService, error) {
	if s.backend.embedded != nil {
		s.backend.embedded.Close()
		s.say("   The Redis in this process is closed.\n")
		return s.newServiceOn(s.backend.client), nil
	}
	addr, err := refusedAddr()
	if err != nil {
		return nil, err
	}
	s.say("   This program cannot stop your Redis. It makes as if, with a limiter whose Redis\n"+
		"   is at %s, where nothing listens.\n", addr)
	client := newClient(addr, s.outage)
	s.backend.closers = append(s.backend.closers, func() { _ = client.Close() })
	return s.newServiceOn(client), nil
}

func (s *story) newServiceOn(client redis.UniversalClient) employee.EmployeeService {
	return employee.NewRateLimitedEmployeeService(s.directory, runtime.New(
		runtime.NewRedisStore(client, runtime.WithTimeout(s.outage)),
		runtime.WithLogger(s.logger),
	))
}

// callForAWhile looks up an id forty times in two seconds and returns how long
// each call took. It does not use the id of the first story: the limiter remembers
// that id as refused, and goes on refusing it without Redis.
func callForAWhile(ctx context.Context, svc employee.EmployeeService) ([]time.Duration, error) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	took := make([]time.Duration, 40)
	for i := range took {
		start := time.Now()
		if _, err := svc.GetByID(ctx, "1002"); err != nil {
			return nil, err
		}
		took[i] = time.Since(start)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return took, nil
}

func (s *story) say(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }
