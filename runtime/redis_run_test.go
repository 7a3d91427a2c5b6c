package runtime_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestRuns has one trip decide calls of which several in a row share their
// terms, which the script is told once: each must be decided by its own, and
// what is wrong with one must not touch those after it.
func TestRuns(t *testing.T) {
	client := ownRedis(t)
	store := runtime.NewRedisStore(client, patient, atOnce)
	for name, rule := range serverRules(time.Hour, 5) {
		t.Run(name, func(t *testing.T) {
			prefix := storetest.Prefix(t)
			shorter := *rule
			shorter.Window, shorter.Max = time.Minute, 3
			one := func(rule *runtime.Rule, key string, cost int64) rawstore.Call {
				return single(rule, prefix+key, cost)[0]
			}
			client.SAdd(t.Context(), prefix+"foreign", "somebody else's")
			calls := []rawstore.Call{
				one(rule, "a", 1), one(rule, "b", 1), one(rule, "foreign", 1), one(rule, "c", 1), one(rule, "a", 1),
				one(&shorter, "d", 1), one(&shorter, "e", 1), one(&shorter, "e", 2),
				{Charges: []rawstore.Charge{chargeOf(rule, prefix+"f", 1), chargeOf(&shorter, prefix+"g", 1)}},
				one(&shorter, "g", 1), one(rule, "f", 1), one(&shorter, "foreign", 1), one(&shorter, "h", 1),
			}
			left := []int64{4, 4, -1, 4, 3, 2, 2, 0, 4, 1, 3, -1, 2}
			ok(t, rawstore.On(store).Take(t.Context(), calls))
			for i := range calls {
				r := &calls[i].Charges[0].Result
				if left[i] < 0 {
					if calls[i].Err == nil || !strings.Contains(calls[i].Err.Error(), "WRONGTYPE") {
						t.Errorf("call %d: got %+v, %v, want WRONGTYPE", i, r, calls[i].Err)
					}
				} else if calls[i].Err != nil || !r.Allowed || r.Remaining != left[i] || r.At == 0 {
					t.Errorf("call %d: got %+v, %v, want %d left", i, r, calls[i].Err, left[i])
				}
			}
			if isBucket(rule) {
				return // how long it lives depends on its level
			}
			for key, longest := range map[string]time.Duration{"b": time.Hour, "d": time.Minute} {
				longest += longest/7 + time.Second // of a bucket too
				between(t, key+": expires in", client.PTTL(t.Context(), prefix+key).Val(), longest/2, longest)
			}
		})
	}
}

// TestLifetime charges keys at many distances in time, and so often that most charges leave
// the expiry alone. It wants each to live until its limit is whole again and for at most a
// second more, whether the charge has set the expiry or has left it as it was.
func TestLifetime(t *testing.T) {
	t.Parallel()
	rules := map[string]*runtime.Rule{}
	for busy, window := range map[string]time.Duration{"": 10 * time.Second, ", busy": 200 * time.Millisecond} {
		for name, rule := range serverRules(window, 1000) {
			rules[name+busy] = rule
		}
	}
	eachLog(t, rules, nil, func(t *testing.T, log *log, rule *runtime.Rule) {
		for i := range effort.Choose(40, 100) {
			step, cost := 7*time.Millisecond, int64(1)
			if often := rule.Window < time.Second; !often {
				// From steps well within the slack to some of many seconds.
				if step = time.Duration(1+i*i*i%977) * time.Duration(1+i%13) * time.Millisecond; i%20 == 8 || i%20 == 9 {
					step = time.Millisecond
				}
				if i%20 == 7 {
					cost = 400
				}
			}
			log.subject.Advance(step)
			c := must(t, log.subject.Store, take, single(rule, log.key, cost))
			if !c.Allowed {
				continue
			}
			if cost == 1 && step == time.Millisecond && i%20 == 8 { // what is left is whole again long before
				c.Cost = 401
				ok(t, rawstore.On(log.subject.Store).Settle(t.Context(), []rawstore.Charge{c}))
				continue
			}
			between(t, fmt.Sprintf("charge %d: lives on when it is whole again for", i), log.lives()-c.ResetAfter, 0, time.Second)
		}
	})
}

// TestRaisedMember charges a key whose only event has left the window, and whose
// member was raised above the time: the charge sets the expiry of what is a new
// key.
func TestRaisedMember(t *testing.T) {
	t.Parallel()
	rule := serverRules(10*time.Second, 5)["log zset"]
	log := newLog(t, redistest.Start(t).Client(t))
	raised := log.subject.Now() + rule.Window.Microseconds() + 1_000_001
	ok(t, log.client.ZAdd(t.Context(), log.key, redis.Z{Score: float64(log.subject.Now()), Member: raised}).Err())
	log.subject.Advance(rule.Window + time.Second)
	must(t, log.subject.Store, take, single(rule, log.key, 1))
	between(t, "expires in", log.lives(), rule.Window, rule.Window+time.Second)
}

// TestRaisedWindow raises a window while a key is in use, and wants the key to outlive what the
// longer window counts: after a charge, and after a denial of a key that expires too early.
func TestRaisedWindow(t *testing.T) {
	t.Parallel()
	only := func(r *runtime.Rule) bool { return !layered(r) } // whose keys name the window
	eachLog(t, serverRules(10*time.Second, 2), only, func(t *testing.T, log *log, rule *runtime.Rule) {
		longer := *rule
		longer.Window = time.Hour
		log.take(rule, 1, 1)
		outlives := func(r terms.Result) {
			t.Helper()
			between(t, "expires in", log.lives(), r.ResetAfter-time.Second, r.ResetAfter+time.Second)
		}
		if r := log.take(&longer, 1, 0); !stored(rule) { // a log may leave its expiry alone for 0.8 seconds
			outlives(r)
		}
		log.client.PExpireAt(t.Context(), log.key, time.UnixMicro(log.subject.Now()).Add(11*time.Second))
		r := log.decide(take, &longer, 1)
		equal(t, "allowed", r.Allowed, false)
		outlives(r)
	})
}

// TestLongScript has a script run for longer than the window, as it may on a
// machine that stalls: what the first calls of a trip charged must not have
// expired when the later ones are decided, which are at the same time.
func TestLongScript(t *testing.T) {
	client := ownRedis(t)
	// The time has to pass after the clock was read.
	slow := func(text string) string {
		const mark = "-- How many milliseconds"
		if !strings.Contains(text, mark) {
			t.Error("the script has changed: nothing would be slow")
		}
		return strings.Replace(text, mark, "for i = 1, 8000000 do end\n"+mark, 1)
	}
	store := runtime.NewRedisStore(client, patient, runtime.Change(slow), runtime.WithDenialMemory(0))
	for name, rule := range serverRules(2*time.Millisecond, 5) {
		rule.Resolution = min(rule.Resolution, time.Millisecond) // not above the window
		calls := make([]rawstore.Call, 60)
		for i := range calls {
			calls[i] = single(rule, "long:"+name, 1)[0]
		}
		must(t, store, take, calls)
		for i := range calls { // which are at one time
			if r := calls[i].Charges[0].Result; r.Allowed != (i < int(rule.Max)) {
				t.Errorf("%s, call %d: %+v", name, i, r)
			}
		}
	}
}

// TestBucketRounding fills a bucket to a level so high that what is left for a
// charge is rounded up, so that the charge fits, while the room for it, rounded
// down, is one less.
func TestBucketRounding(t *testing.T) {
	client := ownRedis(t)
	store := runtime.NewRedisStore(client, patient)
	const most, unit = runtime.MaxCount, 1_000_000
	cost := int64(1)
	for int64(float64((most-cost)*unit)) <= (most-cost)*unit {
		cost++
	}
	level := int64(float64((most - cost) * unit))
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: most, Algorithm: runtime.TokenBucket}
	now, err := client.Time(t.Context()).Result()
	ok(t, err)
	// The level as it is when the charge is decided: time does not pass before
	// this moment in the future.
	at := now.Add(time.Minute).UnixMicro()
	ok(t, client.Set(t.Context(), "rounding", packedBucket(at, level), time.Hour).Err())
	if r := must(t, store, take, single(rule, "rounding", cost)); !r.Allowed || r.Remaining != 0 || r.RetryAfter != 0 {
		t.Errorf("got %+v, want it admitted with nothing left", r)
	}
}

// packedBucket returns a bucket that has a level at a time, in bytes as in bucket.lua.
func packedBucket(at, level int64) []byte {
	value := make([]byte, 8, 30)
	value[0] = 3
	for range 2 { // until when the key lives, and the time
		value = append(value, binary.BigEndian.AppendUint64(nil, uint64(at))[1:]...)
	}
	return binary.BigEndian.AppendUint64(value, uint64(level))
}

// monitor returns what the server executes until stop is called, a line for
// each command.
func monitor(t *testing.T, server *redistest.Server) (stop func() []string) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr)
	ok(t, err)
	const last = "the last command"
	if _, err := fmt.Fprint(conn, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); err != nil || line != "+OK\r\n" {
		t.Fatalf("MONITOR: %q, %v", line, err)
	}
	lines := make(chan []string)
	go func() {
		defer conn.Close()
		var all []string
		for {
			line, err := in.ReadString('\n')
			if err != nil || strings.Contains(line, last) {
				lines <- all
				return
			}
			all = append(all, strings.TrimSpace(line))
		}
	}()
	return func() []string {
		server.Client(t).Do(context.Background(), "echo", last)
		return <-lines
	}
}

// TestNumbers wants no number to reach Redis in scientific notation, from Go or
// from Lua.
func TestNumbers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	limiter := onRedis(server.Client(t))
	stop := monitor(t, server)
	for _, window := range []time.Duration{time.Millisecond, 100_000 * time.Second, runtime.MaxWindow} {
		for _, rule := range serverRules(window, 1_000_000) {
			costs, most := []int64{1, runtime.MaxLogCost, 1}, int64(runtime.MaxLogCost)
			if !stored(rule) {
				rule.Max = runtime.MaxCount
				costs = []int64{1, 100_000_000, 900_000_000_000, 1}
				if rule.Algorithm == runtime.FixedWindow {
					rule.Max = runtime.MaxAmount
					costs = append(costs, 9_000_000_000_000_000)
				}
				most = rule.Max
			}
			rule.Resolution = min(rule.Resolution, window)
			rule.Prefix = fmt.Sprintf("%s%d:", rule.Prefix, window)
			limit := rule.Limit(key("k"))
			for _, cost := range costs {
				d := taken(t, limiter, limit.WithCost(cost))
				left(t, limiter, limit.WithCost(most))
				if cost < 1_000_000 {
					refunded(t, limiter, d)
				}
			}
		}
	}
	lines := stop()
	if len(lines) < 500 {
		t.Errorf("only %d commands seen", len(lines))
	}
	// As MONITOR shows them: the text or the name of a script, an argument that holds bytes, in
	// which no number is to be read, and a number as Lua and Go write large ones.
	script := regexp.MustCompile(`(?i)^"eval(sha)?" "(\\.|[^"\\])*"`)
	packed := regexp.MustCompile(`"[^"]*\\x(\\.|[^"\\])*"`)
	scientific := regexp.MustCompile(`"[^"]*[0-9](\.[0-9]+)?[eE][+-]?[0-9]+[^"]*"`)
	for _, line := range lines {
		_, command, _ := strings.Cut(line, "] ")
		command = packed.ReplaceAllString(script.ReplaceAllString(command, ""), "")
		if scientific.MatchString(command) {
			t.Errorf("%.300s", command)
		}
	}
}
