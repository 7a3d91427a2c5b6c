package main

import (
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// patience is longer than a busy machine keeps a call waiting for Redis, so
// that no call passes because of the failure policy.
const patience = 10 * time.Second

func TestStoriesWithEmbeddedRedis(t *testing.T) {
	t.Parallel()
	out := tell(t, "")
	if !strings.Contains(out, "The Redis in this process is closed.") {
		t.Error(out)
	}
}

func TestStoriesWithRealRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for range effort.ChooseMore(1, 2) { // the second run must not meet the calls of the first
		out := tell(t, server.Addr)
		if !strings.Contains(out, "cannot stop your Redis") {
			t.Error(out)
		}
	}
	events := server.Client(t).ZRange(t.Context(), "rate_limit:emp:1001", 0, -1).Val()
	if len(events) != 5 {
		t.Errorf("the stories left %d entries of id 1001, not 5: %v", len(events), events)
	}
}

// A writer that does something when the program says something.
type until struct {
	says string
	end  func()
}

func (u until) Write(p []byte) (int, error) {
	if strings.Contains(string(p), u.says) {
		u.end()
	}
	return len(p), nil
}

// tell runs the stories, which fail by themselves when a limit does not do
// what they say, and checks that they say it.
func tell(t *testing.T, addr string) string {
	t.Helper()
	var out strings.Builder
	start, sixth := time.Now(), time.Duration(0)
	heard := io.MultiWriter(&out, until{"call 6", func() { sixth = time.Since(start) }})
	if err := run(t.Context(), config{redis: addr, timeout: patience, outage: runtime.DefaultTimeout}, heard); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		`call 5  id 1001  Lin Yue `,
		`call 6  id 1001  refused: 查询太快啦，喝杯茶再来 \(limit 5, retry after [\d.m]+s\)`,
		`call 7  id 1002  Noor Haddad `,
		`directory was read 6 times`,
		`203\.0\.113\.7 made 110 calls: 100 passed, 10 were refused: rate limit exceeded, retry after [\d.ms]+\n`,
		`203\.0\.113\.8 made 1 call: it passed`,
		`40 calls for id 1002 in two seconds: all passed`,
		`The log has [1-9]\d* lines about it`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the stories do not say %q:\n%s", want, out.String())
		}
	}
	told := regexp.MustCompile(`call 6 .* retry after (\S+)\)`).FindStringSubmatch(out.String())
	wait, err := time.ParseDuration(told[1])
	if left := 10*time.Second - sixth; err != nil || wait > 10*time.Second || wait < left-time.Second {
		t.Errorf("the sixth call is told to come back after %v, want %v", wait, left)
	}
	// One at the start and one for every second after it.
	most := 1 + int(time.Since(start)/time.Second)
	if lines := strings.Count(out.String(), "rate limit not decided by its store"); lines == 0 || lines > most {
		t.Errorf("%d log lines about redis, want 1 to %d", lines, most)
	}
	return out.String()
}

func TestStoriesNeedARedis(t *testing.T) {
	addr, err := refusedAddr()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = run(t.Context(), config{redis: addr, timeout: patience}, &out)
	if err == nil || !strings.Contains(err.Error(), "REDIS_ADDR") {
		t.Errorf("without a redis at REDIS_ADDR: %v\n%s", err, out.String())
	}
}
