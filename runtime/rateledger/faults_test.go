package rateledger

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/pgtest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/internal/testkit/seed"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

var faults = flag.Duration("faults", 0, "how long each part of TestFaults kills processes")

// childVariable has a test binary be a process that charges, of which it says the [child].
const childVariable = "RATEGEN_LEDGER_CHILD"

// A child is a process that charges, settles and exports until it is killed.
type child struct {
	Addrs          []string
	Cluster, Down  bool // Down: calls may cost less than they have reserved
	Database, File string
	Seed           uint64
}

// run writes a line into the file before each call, with the most that it can use, and one behind
// it: what it has used at least, by when, and until when the ledger has all by then.
func (c *child) run() error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the test has ended
	}()
	ctx := context.Background()
	file, err := os.Create(c.File)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, c.Database)
	if err != nil {
		return err
	}
	sink, err := NewPostgres(ctx, pool)
	if err != nil {
		return err
	}
	client := redis.NewUniversalClient(runtime.TuneRedis(&redis.UniversalOptions{Addrs: c.Addrs, IsClusterMode: c.Cluster}))
	all, random := rules(), rand.New(rand.NewPCG(c.Seed, 1))
	p := open(client, sink, all, runtime.WithTimeout(200*time.Millisecond))
	for {
		r, key := all[random.IntN(len(all))], fmt.Sprint("k", random.IntN(8))
		cost := 1 + random.Int64N(9)
		settled, most := cost+random.Int64N(9), int64(0)
		if c.Down {
			settled = random.Int64N(18)
		}
		if r.Reserve > 0 { // which lapses if it is not settled, and is charged anew if it was lost
			most = cost
		}
		fmt.Fprintf(file, "b %s_%s %d\n", r.Name, key, most+max(cost, settled))
		d, err := p.limiter.Take(ctx, r.Limit(runtime.NewKey().AddString(key)).WithCost(cost))
		least := int64(0)
		if err == nil {
			least = settled
			if err = p.limiter.Settle(ctx, d, settled); err != nil {
				least = min(cost, settled)
			}
		}
		if r.Reserve > 0 && err != nil || r.Mode == runtime.ModeShadow { // which is left out of calls in an outage
			least = 0
		}
		now := time.Now()
		fmt.Fprintf(file, "e %d %d %d\n", least, now.UnixNano(), now.Add(-p.ledger.Lag()).UnixNano())
		if err != nil {
			time.Sleep(time.Millisecond) // so that others get on
		}
	}
}

// A use is what a call has used: least for sure, and most if what was not answered was done.
type use struct {
	key            string
	least, most    int64
	at             int64 // by when it was answered, or 0
	answeredByDead bool  // by a Redis that was killed since
}

// A life is a child that runs, or has.
type life struct {
	cmd   *exec.Cmd
	stdin io.Closer
	file  string
	have  int64 // how much of the file was read
	uses  []use
	told  int64 // until when the ledger has them, as it said
	safe  int   // how many of uses were judged by that
}

func birth(c child) (*life, error) {
	l := &life{file: c.File, cmd: exec.Command(os.Args[0])}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	l.cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	if l.stdin, err = l.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return l, l.cmd.Start()
}

// kill ends a life by SIGKILL.
func (l *life) kill() error {
	_ = l.cmd.Process.Kill()
	_ = l.cmd.Wait()
	return l.follow()
}

// follow reads what the child has written since.
func (l *life) follow() error {
	file, err := os.Open(l.file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, l.have, 1<<40))
	whole := string(text[:strings.LastIndexByte(string(text), '\n')+1])
	l.have += int64(len(whole))
	for line := range strings.Lines(whole) {
		u := use{}
		if _, bad := fmt.Sscanf(line, "b %s %d", &u.key, &u.most); bad == nil {
			l.uses = append(l.uses, u)
			continue
		}
		last := &l.uses[len(l.uses)-1]
		if _, bad := fmt.Sscanf(line, "e %d %d %d", &last.least, &last.at, &l.told); bad != nil {
			return fmt.Errorf("a child: %s", line)
		}
		if last.answeredByDead {
			last.least = 0
		}
	}
	return err
}

// judge notes which uses a Redis that was killed may have lost: those of which the child has not said
// until before a time that the ledger has them.
func (l *life) judge(before int64) {
	for ; l.safe < len(l.uses); l.safe++ {
		if u := &l.uses[l.safe]; u.at == 0 {
			u.answeredByDead = true
		} else if u.at > min(l.told, before) {
			u.least = 0
		}
	}
}

// TestFaults has eight processes charge, settle, refund and export while they and Redis are killed by
// SIGKILL. The ledger then has to the unit what Redis counts, and where that has lost counts, all
// that a process has said to be in the ledger by then. With -faults 10m it takes as long for each.
func TestFaults(t *testing.T) {
	for _, of := range []string{"durable", "volatile", "cluster"} {
		t.Run(of, func(t *testing.T) { testFaults(t, of) })
	}
}

func testFaults(t *testing.T, of string) {
	random := seed.New(t)
	c := child{Down: of == "durable", Cluster: of == "cluster", Database: pgtest.Database(t)}
	var client redis.UniversalClient
	var victim func() *redistest.Server
	if c.Cluster {
		cluster := redistest.StartCluster(t)
		client, c.Addrs = cluster.Client(t), cluster.Addrs()
		victim = func() *redistest.Server {
			cluster.WaitReady() // of two that are down nobody takes over from one
			return cluster.Master(random.IntN(1 << 14))
		}
	} else {
		keeps := map[string][]string{"durable": {"--appendonly", "yes", "--appendfsync", "no"}}[of] // a killed process loses nothing that it has written
		server := redistest.Start(t, keeps...)
		client, c.Addrs = server.Client(t, func(o *redis.Options) { runtime.TuneRedis(o) }), []string{server.Addr}
		victim = func() *redistest.Server { return server }
	}
	pool, err := pgxpool.New(t.Context(), c.Database)
	ok(t, err)
	t.Cleanup(pool.Close)
	sink, err := NewPostgres(t.Context(), pool)
	ok(t, err)
	var lives []*life // the last eight run
	bear := func() {
		c.Seed, c.File = random.Uint64(), filepath.Join(t.TempDir(), "uses")
		l, err := birth(c)
		ok(t, err)
		lives = append(lives, l)
	}
	for range 8 {
		bear()
	}
	t.Cleanup(func() {
		for _, l := range lives[len(lives)-8:] {
			_ = l.kill()
		}
	})
	kills := 0
	length := cmp.Or(*faults, effort.Choose(2*time.Second, 5*time.Second))
	for began := time.Now(); time.Since(began) < length || kills == 0; {
		time.Sleep(time.Duration(100+random.IntN(400)) * time.Millisecond)
		i := len(lives) - 8 + random.IntN(8)
		lives[i], lives[len(lives)-8] = lives[len(lives)-8], lives[i]
		ok(t, lives[len(lives)-8].kill())
		bear()
		if len(lives[len(lives)-9].uses) == 0 || random.IntN(3) > 0 {
			continue
		}
		server := victim()
		at := time.Now()
		if c.Cluster {
			at = at.Add(-time.Second) // a replica that is further behind than this takes over from nobody
		}
		server.Kill()
		kills++
		for _, l := range lives {
			ok(t, l.follow())
			if of != "durable" {
				l.judge(at.UnixNano())
			}
		}
		time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
		server.Restart()
	}
	least, most := map[string]int64{}, map[string]int64{}
	for _, l := range lives {
		ok(t, l.kill())
		for _, u := range l.uses {
			least[u.key] += u.least
			most[u.key] += u.most
		}
	}
	last := begin(t, client, sink, rules(), runtime.WithTimeout(20*time.Second))
	verify(t, last, of, least, most)
	t.Logf("%d processes were killed, Redis %d times", len(lives), kills)
	ok(t, last.end())
}

// verify holds the ledger against what Redis counts, and both against what was used.
func verify(t *testing.T, last *process, of string, least, most map[string]int64) {
	for _, r := range rules() {
		for i := range 8 {
			key := fmt.Sprint("k", i)
			last.use(t, &counts{used: map[string]int64{}}, r, key, 1, 1) // a row follows a count that has lost something
			least[r.Name+"_"+key]++
			most[r.Name+"_"+key]++
		}
	}
	ok(t, last.ledger.scan(t.Context()))
	restored, err := last.ledger.Restore(t.Context())
	if err != nil && err != errHashed || of == "durable" && restored > 0 || of == "volatile" && restored == 0 {
		t.Errorf("%d counts restored, %v", restored, err)
	}
	var used int64
	// What a process that died has reserved lapses within half a second.
	for wrong, until := []string{"?"}, time.Now().Add(20*time.Second); len(wrong) > 0; {
		ok(t, last.ledger.scan(t.Context()))
		wrong, used = nil, 0
		for _, r := range rules() {
			for i := range 8 {
				key := fmt.Sprint("k", i)
				has, count := last.billed(t, r, key), last.counted(t, r, key)
				low, high := least[r.Name+"_"+key], most[r.Name+"_"+key]
				lost := of != "durable" && r.Ledger == rule.LedgerHash // which nobody can restore
				if has < low || has > high || count != has && !lost {
					wrong = append(wrong, fmt.Sprintf("%s %s: %d in the ledger and %d in Redis, of %d to %d", r.Name, key, has, count, low, high))
				}
				used += has
			}
		}
		if len(wrong) > 0 && time.Now().After(until) {
			t.Fatal(wrong)
		}
	}
	t.Logf("%d units used, %d counts restored", used, restored)
}
