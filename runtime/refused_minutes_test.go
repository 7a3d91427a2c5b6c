package runtime_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// refusedKey is where Redis keeps what limiters without a namespace have refused.
const refusedKey = "rate_limit:{processes}:refused"

// testRefusedMinutes has processes refuse calls, and wants to read which and how many.
func testRefusedMinutes(t *testing.T, client redis.UniversalClient, _ []*redistest.Server) {
	store := runtime.NewRedisStore(client, runtime.WithTimeout(5*time.Second))
	name := "odd\tname\n%"
	one := &runtime.Rule{Name: name, Prefix: "one:", Window: time.Hour, Max: 1}
	all := &runtime.Rule{Name: "all", Prefix: "all:", Window: time.Hour, Max: 1}
	brings := &runtime.Rule{Name: "brings", Prefix: "brings:", Window: time.Hour}
	shadow := &runtime.Rule{Name: "shadow", Prefix: "shadow:", Window: time.Hour, Max: 1, Mode: runtime.ModeShadow}
	room := &runtime.Rule{Name: "room", Window: time.Hour, Max: 1_000_000, Algorithm: runtime.FixedWindow}
	held := &runtime.Rule{Name: "held", Window: time.Minute, Max: 2, Algorithm: runtime.Concurrency}
	secret := []byte("a secret of team")
	plain, second := runtime.New(store, quiet), runtime.New(store, quiet)
	hiding := runtime.New(store, quiet, runtime.WithNamespace("hiding"), runtime.WithRefusals(time.Hour, secret))
	silent := runtime.New(store, quiet, runtime.WithNamespace("silent"), runtime.WithRefusals(0, nil))
	for _, l := range []*runtime.Limiter{plain, second, hiding, silent} {
		l.Register(one, all, shadow, brings, held, room)
		l.ReportByHand() // a slow machine would tell a part of it before
	}
	take := func(n int, l *runtime.Limiter, limits ...runtime.Limit) {
		for range n {
			_, _ = l.Take(t.Context(), limits...)
		}
	}
	hostile := runtime.NewKey().AddString("a\tb\n1").AddString("ü\xff")
	take(4, plain, one.Limit(hostile))                  // 3 refused
	take(3, second, one.Limit(hostile), all.Limit(nil)) // 3 refused, and the other is not charged
	take(3, second, all.Limit(nil), shadow.Limit(nil))  // 2 refused
	take(3, hiding, one.Limit(key("ada")))              // 2 refused
	take(1, hiding, held.Limit(key("ada")).WithCost(2)) // which the call does not give back
	take(1000, hiding, room.Limit(key("ada")))
	take(1000, silent, room.Limit(key("ada")))
	take(4, plain, brings.Limit(key("ada")).WithMax(2))                   // 2 refused, by the max of the call
	take(3, silent, one.Limit(key("ada")))                                // told to nobody
	take(4001, plain, one.Limit(key("hot")))                              // 4000, of which 128 one by one
	since := time.Unix(client.Time(t.Context()).Val().Unix()/60*60-60, 0) // the minute may turn meanwhile
	for _, l := range []*runtime.Limiter{plain, second, hiding, silent, plain} {
		l.Report()
	}
	read := func(namespace string) map[[2]string]int64 {
		found, err := bridge.StoreOf(store).RefusedMinutes(t.Context(), namespace, since)
		ok(t, err)
		sums := map[[2]string]int64{}
		for _, m := range found {
			sums[[2]string{m.Rule, m.Key}] += m.Count
			if brought := m.Rule == "brings"; brought != (m.Max == 2) || !brought && m.Max != -1 {
				t.Errorf("the max is not that of the last call: %+v", m)
			}
			if m.Start.Second() != 0 || m.Start.Before(since) {
				t.Errorf("%+v", m)
			}
		}
		return sums
	}
	calls := map[string][]bridge.ProcessCalls{}
	for _, namespace := range []string{"", "hiding", "silent"} {
		found, err := bridge.StoreOf(store).Processes(t.Context(), namespace)
		ok(t, err)
		for _, p := range found {
			if p.Calls.Seconds <= 0 || len(p.Calls.Permits) > 0 && p.Calls.Permits[0].Since.Sub(p.Alive).Abs() > time.Minute {
				t.Errorf("%+v", p.Calls)
			}
			for i := range p.Calls.Permits {
				p.Calls.Permits[i].Since = time.Time{}
			}
			p.Calls.Seconds = 0
			for _, k := range p.Calls.Keys {
				if told := namespace == "hiding" && k.Key == spec.HiddenKey(secret, "ada") || namespace == "" && k.Key == ""; !told || k.Count < 64 || k.Count > 4000 {
					t.Errorf("%q tells %+v", namespace, k)
				}
			}
			if namespace == "hiding" && len(p.Calls.Keys) == 0 { // once in 6,000,000 times
				t.Error("the key of a thousand calls is not told")
			}
			p.Calls.Keys = nil
			sum := [4]int64{}
			for _, r := range p.Calls.Rules {
				if r[1] > 900 && p.Rules[r[0]].Name != "room" {
					t.Errorf("%d calls of %s", r[1], p.Rules[r[0]].Name)
				}
				for i := range sum {
					sum[i] += r[i+1]
				}
			}
			same(t, "calls of rules", p.Calls.Decided, sum)
			p.Calls.Rules = nil
			calls[namespace] = append(calls[namespace], p.Calls)
		}
	}
	slices.SortFunc(calls[""], func(a, b bridge.ProcessCalls) int { return cmp.Compare(a.Asked, b.Asked) })
	hidden := spec.HiddenKey(secret, "ada")
	want := map[string][]bridge.ProcessCalls{
		"":       {{}, {Decided: [4]int64{2, 5, 0, 0}, Asked: 3}},
		"hiding": {{Decided: [4]int64{1002, 2, 0, 0}, Asked: 1003, Permits: []bridge.KeyPermits{{Rule: "held", Key: hidden, Permits: 2}}}},
		"silent": {{Decided: [4]int64{1001, 2, 0, 0}, Asked: 1002}},
	}
	if _, is := client.(*redis.ClusterClient); is {
		// It remembers refusals for 50 ms. A busy machine may need those from one call to the next, which asks then.
		for namespace, of := range calls {
			for i := range min(len(of), len(want[namespace])) {
				w := &want[namespace][i]
				w.Asked = min(max(w.Asked, of[i].Asked), w.Decided[0]+w.Decided[1])
			}
		}
	}
	same(t, "calls", want, calls)
	got := read("")
	if hot := got[[2]string{name, "hot"}]; hot < 2000 || hot > 6000 {
		t.Errorf("%d refusals of 4000", hot)
	}
	delete(got, [2]string{name, "hot"})
	same(t, "refused", map[[2]string]int64{{name, hostile.String()}: 6, {"all", ""}: 2, {"brings", "ada"}: 2}, got)
	same(t, "hidden", map[[2]string]int64{{name, hidden}: 2}, read("hiding"))
	same(t, "silent", 0, len(read("silent")))
	if left := client.PTTL(t.Context(), refusedKey).Val(); left <= 0 || left > bridge.KeepRefusals {
		t.Errorf("kept for %v", left)
	}
	later, err := bridge.StoreOf(store).RefusedMinutes(t.Context(), "", since.Add(time.Hour))
	ok(t, err)
	same(t, "later", 0, len(later))
	take(2, second, one.Limit(hostile)) // told at the end
	ok(t, errors.Join(plain.Close(), second.Close(), hiding.Close(), silent.Close()))
	same(t, "after the end", int64(8), read("")[[2]string{name, hostile.String()}])
}

// TestRefusedBounds refuses more callers than Redis keeps, and finds what is older than a day gone.
func TestRefusedBounds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	store := runtime.NewRedisStore(client, runtime.WithTimeout(5*time.Second), runtime.WithRefusalMemory(0))
	attacked := &runtime.Rule{Name: "attacked", Prefix: "attacked:", Window: time.Hour, Max: 1}
	other := &runtime.Rule{Name: "other", Prefix: "other:", Window: time.Hour, Max: 1}
	total := int64(0)
	refuse := func(l *runtime.Limiter, r *runtime.Rule, key *runtime.Key, n int) {
		for i := range n + 1 {
			if _, err := l.Take(t.Context(), r.Limit(key)); i > 0 && !errors.Is(err, runtime.ErrLimited) {
				t.Fatal(err)
			} else if err != nil {
				total++
			}
		}
	}
	now := client.Time(t.Context()).Val().Unix() / 60
	for age, text := range map[int64]string{1441: "\nold\tx\t1\n", 1439: "\nrecent\tx\t1\n", 3000: "older"} {
		ok(t, client.ZAdd(t.Context(), refusedKey, redis.Z{Score: float64(now - age), Member: fmt.Sprint(now-age, text)}).Err())
	}
	for range 3 {
		l := runtime.New(store, quiet)
		l.Register(attacked, other)
		for i := range 120 {
			refuse(l, attacked, key(fmt.Sprint("robot-", i)), 4+i%3)
		}
		refuse(l, other, key("ada"), 1)
		l.Report()
		ok(t, l.Close())
	}
	found, err := bridge.StoreOf(store).RefusedMinutes(t.Context(), "", time.Unix(0, 0))
	ok(t, err)
	minutes, told := map[time.Time]int{}, map[string]int64{}
	for _, m := range found {
		if m.Rule != "" {
			minutes[m.Start]++
		}
		told[m.Rule] += m.Count
		total -= m.Count
	}
	for at, n := range minutes {
		if n > 100 {
			t.Errorf("%v has %d callers", at, n)
		}
	}
	if told["recent"] != 1 || told["old"] > 0 || told["other"] < 3 || told[""] == 0 || total != -1 {
		t.Errorf("%v, %d are missing", told, total)
	}
	if n := client.ZCard(t.Context(), refusedKey).Val(); n > 3 {
		t.Errorf("%d minutes", n)
	}
}

// TestRefusedInShadow counts whom limits in shadow mode would have refused, beside whom others refuse and never
// in their place.
func TestRefusedInShadow(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store := runtime.NewRedisStore(server.Client(t), runtime.WithTimeout(5*time.Second), runtime.WithRefusalMemory(0))
	shadow := &runtime.Rule{Name: "!shadow", Prefix: "shadow:", Window: time.Hour, Max: 1, Mode: runtime.ModeShadow}
	enforced := &runtime.Rule{Name: "!enforced", Prefix: "enforced:", Window: time.Hour, Max: 2}
	l := runtime.New(store, quiet)
	l.Register(shadow, enforced)
	for i := range 130 {
		for range 4 {
			_, _ = l.Take(t.Context(), enforced.Limit(key(fmt.Sprint(i%90))), shadow.Limit(key(fmt.Sprint(i))))
		}
	}
	l.Report()
	found, err := bridge.StoreOf(store).RefusedMinutes(t.Context(), "", time.Unix(0, 0))
	ok(t, err)
	ok(t, l.Close())
	told := map[string]int{}
	for _, m := range found {
		told[fmt.Sprint(m.Rule, " ", m.Shadow)]++
		if m.Rule == "!shadow" && m.Count != 1 && m.Count != 3 || m.Rule == "" {
			t.Errorf("%+v", m)
		}
	}
	if len(told) != 2 || told["!enforced false"] != 90 || told["!shadow true"] != 10 {
		t.Errorf("%v", told)
	}
}

// TestRefusedLater has a report fail, and wants what it tells in the next one.
func TestRefusedLater(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	store := runtime.NewRedisStore(client, runtime.WithTimeout(5*time.Second))
	l := runtime.New(store, quiet, runtime.WithRefusals(time.Hour, []byte("a secret of team")))
	one := &runtime.Rule{Name: "one", Window: time.Hour, Max: 1}
	l.Register(one)
	for range 3 {
		_, _ = l.Take(t.Context(), one.Limit(key("ada")))
	}
	ok(t, client.Do(t.Context(), "ACL", "SETUSER", "default", "-hset").Err())
	l.Report()
	ok(t, client.Do(t.Context(), "ACL", "SETUSER", "default", "+hset").Err())
	l.Report()
	l.Report()
	found, err := bridge.StoreOf(store).RefusedMinutes(t.Context(), "", time.Unix(0, 0))
	ok(t, err)
	if len(found) != 1 || found[0].Count != 2 || found[0].Key != spec.HiddenKey([]byte("a secret of team"), "ada") {
		t.Errorf("%+v", found)
	}
	ok(t, l.Close())
	// What another program has written there is passed over.
	ok(t, client.ZAdd(t.Context(), refusedKey, redis.Z{Score: 9e9, Member: "x\ty"}, redis.Z{Score: 9e9, Member: "5\n\t\t\na\tb\tc\nd\t7\n"}).Err())
	found, err = bridge.StoreOf(store).RefusedMinutes(t.Context(), "", time.Unix(5*60, 0))
	ok(t, err)
	slices.SortFunc(found, func(a, b bridge.RefusedMinute) int { return cmp.Compare(a.Rule, b.Rule) })
	if len(found) != 2 || found[0].Rule != "d" || found[1].Rule != "one" {
		t.Errorf("%+v", found)
	}
	ok(t, client.Set(t.Context(), refusedKey, "x", 0).Err())
	if _, err := bridge.StoreOf(store).RefusedMinutes(t.Context(), "", time.Time{}); err == nil || !strings.Contains(err.Error(), "read what was refused") {
		t.Error(err)
	}
}

func TestWrongRefusals(t *testing.T) {
	t.Parallel()
	for _, kept := range []time.Duration{-time.Minute, 8 * 24 * time.Hour, 90 * time.Second, 5} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v is taken", kept)
				}
			}()
			runtime.WithRefusals(kept, nil)
		}()
	}
}
