package quotas

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// serverOf is the variable of the environment that makes this program a process
// of the service, with the address of Redis in it.
const serverOf = "QUOTAS_TEST_REDIS"

func TestMain(m *testing.M) {
	if addr := os.Getenv(serverOf); addr != "" {
		if err := serve(addr, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

type reports struct{}

func (reports) Export(context.Context, Tenant, string) ([]byte, error) { return nil, nil }

// serve is a process of the service. For every line with a tenant and a number it
// makes so many calls, and writes how many were admitted and by which max the last
// one was decided. A hash in Redis is the database.
func serve(addr string, in io.Reader, out io.Writer) error {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	plans := NewPlans(func(ctx context.Context, id string) (Tenant, error) {
		perHour, err := client.HGet(ctx, "plans", id).Int64()
		return Tenant{id, perHour}, err
	}, time.Hour, 1)
	exceptions := Exceptions(func(ctx context.Context) (map[string]int64, error) {
		rows, err := client.HGetAll(ctx, "exceptions").Result()
		quotas := make(map[string]int64, len(rows))
		for id, text := range rows {
			n, failed := strconv.ParseInt(text, 10, 64)
			quotas[id], err = n, errors.Join(err, failed)
		}
		return quotas, err
	})
	limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(10*time.Second)),
		runtime.WithLogger(slog.New(slog.DiscardHandler)), runtime.WithOverrides(exceptions, 10*time.Millisecond))
	defer limiter.Close()
	service := NewRateLimitedReports(reports{}, limiter)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var id string
		var calls, admitted int
		if _, err := fmt.Sscanf(lines.Text(), "%q %d", &id, &calls); err != nil {
			return err
		}
		limit := int64(-1)
		for range calls {
			_, err := service.Export(ctx, plans.Tenant(ctx, id), "all")
			if limited := (*runtime.LimitedError)(nil); errors.As(err, &limited) {
				limit = limited.Limit
			} else if err != nil {
				return err
			} else {
				admitted++
			}
		}
		fmt.Fprintln(out, admitted, limit)
	}
	return nil
}

// A process of the service, seen from the test.
type process struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func start(t *testing.T, addr string) *process {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), serverOf+"="+addr)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &process{t, in, bufio.NewReader(out)}
}

func (p *process) ask(id string, calls int) {
	if _, err := fmt.Fprintf(p.in, "%q %d\n", id, calls); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) answer() (admitted int, limit int64) {
	if _, err := fmt.Fscanln(p.out, &admitted, &limit); err != nil {
		p.t.Fatal(err)
	}
	return admitted, limit
}

// Processes admit together what the plans allow, and what the exceptions do once
// those are changed while they run.
func TestQuotas(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	ctx := context.Background()
	client.HSet(ctx, "plans", map[string]any{"acme": 20, "globex": 50, "odd:{*": 7, "late": 5})
	client.HSet(ctx, "exceptions", map[string]any{"initech": 0, "odd:{*": 9})
	processes := []*process{start(t, server.Addr), start(t, server.Addr)}
	together := func(id string) (sum int) {
		for _, p := range processes {
			p.ask(id, 60)
		}
		for _, p := range processes {
			admitted, _ := p.answer()
			sum += admitted
		}
		return sum
	}
	for id, want := range map[string]int{"acme": 20, "globex": 50, "unknown": 1, "initech": 0, "odd:{*": 9} {
		if got := together(id); got != want {
			t.Errorf("%q: %d admitted, want %d", id, got, want)
		}
	}
	client.HSet(ctx, "exceptions", "acme", 25)
	deadline := time.Now().Add(time.Minute)
	for _, p := range processes { // each sees the change at its own time
		for limit := int64(0); limit != 25; {
			p.ask("acme", 30)
			if time.Now().After(deadline) {
				t.Fatal("the exception does not come into force")
			}
			_, limit = p.answer()
		}
	}
	if got := together("globex"); got != 0 {
		t.Errorf("another tenant: %d more admitted, want 0", got)
	}
	client.HSet(ctx, "exceptions", "late", 0)
	for _, p := range processes {
		for limit := int64(-1); limit != 0; {
			p.ask("late", 6)
			if time.Now().After(deadline) {
				t.Fatal("the block does not come into force")
			}
			_, limit = p.answer()
		}
	}
}

// The database is asked once in a while, and a limit does not fail with it.
func TestPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, perHour, failed := 0, int64(10), error(nil)
		plans := NewPlans(func(_ context.Context, id string) (Tenant, error) {
			asked++
			return Tenant{id, perHour}, failed
		}, time.Minute, 1)
		for i, step := range []struct {
			after  time.Duration
			now    int64
			failed error
			want   int64
			asked  int
		}{
			{0, 10, nil, 10, 1},
			{59 * time.Second, 20, nil, 10, 1},
			{time.Second, 20, nil, 20, 2},
			{time.Minute, 0, errors.New("away"), 20, 3},
			{time.Minute, 30, nil, 30, 4},
		} {
			time.Sleep(step.after)
			perHour, failed = step.now, step.failed
			if got := plans.Tenant(t.Context(), "a"); got != (Tenant{"a", step.want}) || asked != step.asked {
				t.Errorf("step %d: got %+v after %d queries, want %d after %d", i, got, asked, step.want, step.asked)
			}
		}
		failed = errors.New("away")
		if got := plans.Tenant(t.Context(), "b"); got != (Tenant{"b", 1}) {
			t.Errorf("without an answer: %+v", got)
		}
		for i := range maxPlans + 10 {
			plans.Tenant(t.Context(), strconv.Itoa(i))
		}
		if n := len(plans.known); n > maxPlans {
			t.Errorf("%d tenants are remembered", n)
		}
	})
}
