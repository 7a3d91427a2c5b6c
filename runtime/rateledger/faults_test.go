package rateledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/internal/testkit/seed"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A use is what a call has used: least for sure, and most if what was not answered was done.
type use struct {
	key         string
	least, most int64
	at          time.Time // by when it was answered
}

// A life is what a process does until it is killed.
type life struct {
	*process
	uses []use
	told time.Time // until when the ledger has them, as it said before Redis or the process was killed
	safe int       // how many of uses were judged by that
}

// A world is processes that charge, and die, on a Redis that is killed.
type world struct {
	sync.Mutex
	rules  []*runtime.Rule
	lives  []*life
	dead   []*life
	ending bool
}

// beforeKill notes which uses the ledgers say to have, since Redis is about to lose the others.
func (w *world) beforeKill() {
	w.Lock()
	defer w.Unlock()
	for _, l := range w.lives {
		l.told = time.Now().Add(-l.ledger.Lag())
	}
	for _, l := range slices.Concat(w.lives, w.dead) {
		for i := l.safe; i < len(l.uses); i++ {
			if l.uses[i].at.After(l.told) {
				l.uses[i].least = 0
			}
		}
		l.safe = len(l.uses)
	}
}

// live has a process charge and settle, here and there more, until it is killed after so many calls.
func (w *world) live(l *life, random *rand.Rand, calls int, down bool) {
	ctx := context.Background()
	for range calls {
		w.Lock()
		ends := w.ending
		w.Unlock()
		if ends {
			break
		}
		r, key := w.rules[random.IntN(len(w.rules))], fmt.Sprint("k", random.IntN(8))
		cost := 1 + random.Int64N(9)
		settled := cost + random.Int64N(9)
		if down {
			settled = random.Int64N(18)
		}
		d, err := l.limiter.Take(ctx, r.Limit(runtime.NewKey().AddString(key)).WithCost(cost))
		u := use{key: r.Name + " " + key, most: max(cost, settled)}
		if err == nil {
			u.least = settled
			if err = l.limiter.Settle(ctx, d, settled); err != nil {
				u.least = min(cost, settled)
			}
		}
		if r.Reserve > 0 { // which lapses if it is not settled, and is charged anew if it was lost
			u.most += cost
			if err != nil {
				u.least = 0
			}
		}
		if r.Mode == runtime.ModeShadow { // which is left out of calls in an outage
			u.least = 0
		}
		u.at = time.Now()
		w.Lock()
		l.uses = append(l.uses, u)
		w.Unlock()
		if err != nil {
			time.Sleep(time.Millisecond) // so that others get on
		}
	}
}

// sums returns what all have used of each key, at least and at most.
func (w *world) sums() (least, most map[string]int64) {
	least, most = map[string]int64{}, map[string]int64{}
	for _, l := range w.dead {
		for _, u := range l.uses {
			least[u.key] += u.least
			most[u.key] += u.most
		}
	}
	return least, most
}

// TestFaults has eight processes charge, settle and refund, while they, their writers and Redis are
// killed. The ledger then has to the unit what Redis counts, and where that has lost counts, all that
// a process has said to be in the ledger by then.
func TestFaults(t *testing.T) {
	for _, of := range []string{"durable", "volatile", "cluster"} {
		t.Run(of, func(t *testing.T) { testFaults(t, of) })
	}
}

func testFaults(t *testing.T, of string) {
	random := seed.New(t)
	var client func() redis.UniversalClient
	var server *redistest.Server
	if of == "cluster" {
		cluster := redistest.StartCluster(t)
		client = func() redis.UniversalClient { return cluster.Client(t) }
	} else {
		keeps := map[string][]string{"durable": {"--appendonly", "yes", "--appendfsync", "no"}}[of] // a killed process loses nothing that it has written
		server = redistest.Start(t, keeps...)
		client = func() redis.UniversalClient { return server.Client(t, func(o *redis.Options) { runtime.TuneRedis(o) }) }
	}
	sink, err := NewPostgres(t.Context(), database(t))
	ok(t, err)
	dying := &mortal{Sink: sink, random: rand.New(rand.NewPCG(random.Uint64(), 1))}
	w := &world{rules: rules()}
	var group sync.WaitGroup
	for range 8 {
		dice := rand.New(rand.NewPCG(random.Uint64(), 2))
		group.Go(func() {
			for ends := false; !ends; {
				l := &life{process: begin(t, client(), dying, w.rules, runtime.WithTimeout(200*time.Millisecond))}
				w.Lock()
				w.lives = append(w.lives, l)
				w.Unlock()
				w.live(l, dice, 20+dice.IntN(600), of != "volatile")
				w.Lock()
				l.kill(&w.lives, &w.dead)
				ends = w.ending
				w.Unlock()
				_ = l.end()
			}
		})
	}
	began, kills := time.Now(), 0
	for time.Since(began) < effort.Choose(2*time.Second, 10*time.Second) {
		time.Sleep(time.Duration(100+random.IntN(500)) * time.Millisecond)
		if server != nil {
			if of == "volatile" {
				w.beforeKill()
			}
			server.Kill()
			kills++
			time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
			server.Restart()
		}
	}
	w.Lock()
	w.ending = true
	w.Unlock()
	group.Wait()
	last := begin(t, client(), sink, w.rules)
	least, most := w.sums()
	restored := 0
	if of == "volatile" {
		ok(t, last.ledger.scan(t.Context()))
		restored, err = last.ledger.Restore(t.Context())
		ok(t, err)
	}
	var used int64
	// What a process that died has reserved lapses within half a second.
	for wrong, until := []string{"?"}, time.Now().Add(10*time.Second); len(wrong) > 0; {
		ok(t, last.ledger.scan(t.Context()))
		wrong, used = nil, 0
		for _, r := range w.rules {
			for i := range 8 {
				key := fmt.Sprint("k", i)
				totals, err := last.ledger.Totals(t.Context(), r.Name, key, time.Time{}, time.Time{})
				ok(t, err)
				has := int64(0)
				for _, p := range totals {
					has += p.Used
				}
				usage, err := last.limiter.Usage(t.Context(), r.Limit(runtime.NewKey().AddString(key)))
				ok(t, err)
				counts, low, high := rule.MaxAmount-usage[0].Remaining, least[r.Name+" "+key], most[r.Name+" "+key]
				lost := of == "volatile" && r.Ledger == rule.LedgerHash // which nobody can restore
				if has < low || has > high || counts != has && !lost {
					wrong = append(wrong, fmt.Sprintf("%s %s: %d in the ledger and %d in Redis, of %d to %d", r.Name, key, has, counts, low, high))
				}
				used += has
			}
		}
		if len(wrong) > 0 && time.Now().After(until) {
			t.Fatal(wrong)
		}
	}
	if dying.deaths == 0 || len(w.dead) < 8 || server != nil && kills == 0 || of == "volatile" && restored == 0 {
		t.Errorf("%d writers and %d processes were killed, Redis %d times, %d counts restored", dying.deaths, len(w.dead), kills, restored)
	}
	t.Logf("%d units used, %d processes, %d writes killed, Redis %d times, %d counts restored", used, len(w.dead), dying.deaths, kills, restored)
	ok(t, errors.Join(last.end()))
}

// kill moves a life to the dead, which knows no more what it has charged.
func (l *life) kill(lives, dead *[]*life) {
	for i, other := range *lives {
		if other == l {
			*lives = append((*lives)[:i], (*lives)[i+1:]...)
			break
		}
	}
	*dead = append(*dead, l)
	l.told = time.Now().Add(-l.ledger.Lag())
	l.ledger.accounts.Charged()
}

// TestRollingDeploy takes ledger=on away from a rule, and adds it again, while both are deployed: the
// key and its count stay, and the ledger ends up with all of it.
func TestRollingDeploy(t *testing.T) {
	random := seed.New(t)
	pool, server := database(t), redistest.Start(t)
	sink, err := NewPostgres(t.Context(), pool)
	ok(t, err)
	for _, with := range rules()[:3] {
		without := *with
		without.Ledger, without.Keep = rule.LedgerOff, 0
		p := begin(t, server.Client(t), sink, []*runtime.Rule{with})
		old := begin(t, server.Client(t), sink, []*runtime.Rule{&without})
		used := int64(0)
		for range 12 { // of both at once, of one, of the other
			charges := []int{random.IntN(2), random.IntN(2)}
			for range 10 {
				of, r := p, with
				if charges[random.IntN(2)] == 0 {
					of, r = old, &without
				}
				c := counts{used: map[string]int64{}}
				of.use(t, &c, r, "k", 1+random.Int64N(9), random.Int64N(12))
				used += c.used[r.Name+" k"]
			}
			for _, of := range []struct {
				*process
				rule *runtime.Rule
			}{{p, with}, {old, &without}} {
				usage, err := of.limiter.Usage(t.Context(), of.rule.Limit(runtime.NewKey().AddString("k")))
				ok(t, err)
				if rule.MaxAmount-usage[0].Remaining != used {
					t.Fatalf("%s: %d count, want %d", with.Name, rule.MaxAmount-usage[0].Remaining, used)
				}
			}
		}
		c := counts{used: map[string]int64{}}
		p.use(t, &c, with, "k", 1, 1)
		used++
		ok(t, p.ledger.Flush(t.Context()))
		totals, err := p.ledger.Totals(t.Context(), with.Name, "k", time.Time{}, time.Time{})
		ok(t, err)
		if len(totals) != 1 || totals[0].Used != used {
			t.Errorf("%s: %v in the ledger, want %d", with.Name, totals, used)
		}
	}
}
