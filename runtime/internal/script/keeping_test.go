package script_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redisclock"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime/internal/documents"
	"github.com/rategen/rategen/runtime/internal/storetest"
)

// TestKeeping plays the documents of what Redis keeps, for how long, and by which commands, and of a Redis that
// cannot. Each way of counting has a server of its own, whose time is the test's.
func TestKeeping(t *testing.T) {
	t.Parallel()
	documents.RunOthers(t, "redis/*.txt", func(t *testing.T) func(*testing.T) documents.Subject {
		server := redistest.Start(t)
		client := server.Client(t)
		store := timed(client)
		return func(t *testing.T) documents.Subject {
			ok(t, client.FlushAll(t.Context()).Err())
			subject := onTime(t, client, store)
			k := &keeper{T: t, server: server, client: client, now: subject.Now}
			subject.Lives, subject.Step = k.lives, k.step
			return subject
		}
	})
}

// A keeper does the steps that are about a server:
//
//	stored KEY                   is how many events, members or bytes the key holds
//	block KEY                    is whether it holds a block
//	commands: STEP               is what scripts execute for another step
//	refusals KEY: STEP | STEP    is what is done to a key by a step without the right to write by one of its commands, and
//	                             when the step, or the other one, is done with all rights then
//	crowd N STEP | STEP …        is what N callers get who do one of some steps together
//	value KEY TEXT, cut KEY N, append KEY TEXT, patch KEY N TEXT, member KEY SCORE TEXT
//	persist KEY, expire KEY TIME
//	note, changed                is which keys have changed since
//	set NAME VALUE               configures the server, and forbid COMMAND … takes rights away, until the end
type keeper struct {
	*testing.T
	server *redistest.Server
	client *redis.Client
	now    func() int64
	noted  map[string]string
}

// lives returns how long a key lives, or less than 0 if that is for ever.
func (k *keeper) lives(key string) time.Duration {
	at := redisclock.ExpireTime(k.Context(), k.client, key)
	if at < 0 {
		return -1
	}
	return at - time.Duration(k.now())*time.Microsecond
}

func (k *keeper) step(text string, of documents.Steps) string {
	ctx, client := k.Context(), k.client
	verb, rest, _ := strings.Cut(text, " ")
	words := strings.Fields(rest)
	if len(words) == 0 {
		words = []string{"all"}
	}
	var did redis.Cmder
	key := of.Key(strings.TrimSuffix(words[0], ":"))
	switch verb {
	case "stored":
		return k.stored(key)
	case "block":
		held := client.ZCount(ctx, key, "inf", "inf").Val() > 0
		if client.Type(ctx, key).Val() == "string" {
			held = strings.Trim(client.Get(ctx, key).Val()[1:8], "\x00") != ""
		}
		return strconv.FormatBool(held)
	case "commands:":
		return k.commands(func() { of.Do(rest) })
	case "refusals":
		name, steps, _ := strings.Cut(rest, ": ")
		step, again, _ := strings.Cut(steps, " | ")
		return k.refusals(of, "peek "+name+" show retry reset", step, again)
	case "crowd":
		steps := strings.Split(strings.Join(words[1:], " "), " | ")
		return k.crowd(k.number(words[0]), func(i int) string { return of.Do(steps[i%len(steps)]) })
	case "value":
		did = client.Set(ctx, key, k.text(words[1]), 0)
	case "cut":
		value := client.Get(ctx, key).Val()
		did = client.Set(ctx, key, value[:(len(value)+k.number(words[1]))%len(value)], 0)
	case "append":
		did = client.Append(ctx, key, k.text(words[1]))
	case "patch":
		did = client.SetRange(ctx, key, int64(k.number(words[1])), k.text(words[2]))
	case "member":
		did = client.ZAdd(ctx, key, redis.Z{Score: float64(k.number(words[1])), Member: k.text(words[2])})
	case "persist":
		did = client.Persist(ctx, key)
	case "expire":
		did = client.PExpireAt(ctx, key, time.UnixMicro(k.now()).Add(of.Time(words[1])))
	case "note":
		k.noted = k.kept()
	case "changed":
		return k.changed()
	case "set":
		before := client.ConfigGet(ctx, words[0]).Val()[words[0]]
		k.Cleanup(func() { client.ConfigSet(context.Background(), words[0], before) })
		did = client.ConfigSet(ctx, words[0], words[1])
	case "forbid":
		k.Cleanup(k.rights("+@all"))
		for _, command := range words {
			k.rights("-" + command)()
		}
	default:
		k.Fatalf("no step is %q", text)
	}
	if did != nil {
		ok(k, did.Err())
	}
	return ""
}

func (k *keeper) number(text string) int {
	n, err := strconv.Atoi(text)
	ok(k, err)
	return n
}

// text returns what a word stands for, in which %00 is a byte 0.
func (k *keeper) text(word string) string {
	text, err := url.PathUnescape(strings.TrimPrefix(word, "nothing"))
	ok(k, err)
	return text
}

func (k *keeper) stored(key string) string {
	switch kind := k.client.Type(k.Context(), key).Val(); kind {
	case "zset":
		return fmt.Sprint(k.client.ZCard(k.Context(), key).Val(), " members")
	case "string":
		return fmt.Sprint(k.client.StrLen(k.Context(), key).Val(), " bytes")
	default:
		return kind
	}
}

// commands returns what scripts execute meanwhile, but for looking at the clock and when keys expire.
func (k *keeper) commands(do func()) string {
	calls := commandsOf(k, k.client, do)
	calls["get"] -= 2 * (calls["evalsha"] + calls["eval"]) // of the clock, see redisclock
	calls["pexpire"] += calls["pexpireat"]
	var all []string
	for _, name := range storetest.Commands() {
		if n := calls[name]; n > 0 && name != "time" && name != "pttl" && name != "pexpireat" {
			all = append(all, fmt.Sprint(n, " ", name))
		}
	}
	return strings.Join(all, ", ")
}

// rights changes which commands may be executed.
func (k *keeper) rights(change string) func() {
	return func() { ok(k, k.client.Do(context.Background(), "ACL", "SETUSER", "default", change).Err()) }
}

// commandsOf returns how often Redis executed each command during do.
func commandsOf(t testing.TB, client *redis.Client, do func()) map[string]int {
	t.Helper()
	ok(t, client.ConfigResetStat(t.Context()).Err())
	do()
	calls := map[string]int{}
	for _, m := range regexp.MustCompile(`cmdstat_(\w+):calls=(\d+)`).FindAllStringSubmatch(client.Info(t.Context(), "commandstats").Val(), -1) {
		calls[m[1]], _ = strconv.Atoi(m[2])
	}
	return calls
}

func (k *keeper) refusals(of documents.Steps, look, step, again string) string {
	ctx, before, state, expiries := k.Context(), of.Do(look), k.kept(), map[string]time.Duration{}
	for key := range state {
		expiries[key] = redisclock.ExpireTime(ctx, k.client, key)
	}
	calls := commandsOf(k, k.client, func() { of.Do(step) })
	after := of.Do(look)
	done := func() string {
		switch of.Do(look) {
		case after:
			return "all"
		case before:
			return "nothing"
		}
		return "A PART"
	}
	var all []string
	for _, command := range []string{"zadd", "zrem", "zremrangebyrank", "append", "set", "setrange", "unlink", "pexpireat"} {
		if calls[command] == 0 {
			continue
		}
		for key := range k.kept() {
			k.client.Del(ctx, key)
		}
		for key, value := range state {
			ok(k, k.client.Restore(ctx, key, 0, value).Err())
			if expiries[key] > 0 {
				k.client.PExpireAt(ctx, key, time.UnixMilli(expiries[key].Milliseconds()))
			}
		}
		k.rights("-" + command)()
		answer := of.Do(step)
		k.rights("+" + command)()
		text := done()
		if strings.Contains(answer, "error") && (text != "all" || again != "") { // else it is charged twice
			of.Do(cmp.Or(again, step))
			text += ", then " + done()
		}
		all = append(all, command+": "+text)
	}
	return strings.Join(all, "; ")
}

// crowd has callers be decided together, and returns their answers.
func (k *keeper) crowd(n int, step func(i int) string) string {
	answers := make([]string, n)
	together(k.server, n, func(i int) { answers[i] = step(i) })
	count := map[string]int{}
	for _, a := range answers {
		count[a]++
	}
	var all []string
	for a, n := range count {
		all = append(all, fmt.Sprint(n, "x ", a))
	}
	slices.Sort(all)
	return strings.Join(all, " | ")
}

// kept returns what all keys hold.
func (k *keeper) kept() map[string]string {
	all := map[string]string{}
	for _, key := range k.client.Keys(k.Context(), "*").Val() {
		if key != redisclock.Key {
			all[key] = k.client.Dump(k.Context(), key).Val()
		}
	}
	return all
}

func (k *keeper) changed() string {
	now := k.kept()
	maps.DeleteFunc(now, func(key, value string) bool {
		same := k.noted[key] == value
		delete(k.noted, key)
		return same
	})
	maps.Copy(now, k.noted)
	var names []string
	for key := range now {
		name, _, _ := strings.Cut(key[strings.LastIndexByte(key, ':')+1:], "%")
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// together makes n calls while the server is paused, so that most are decided together.
func together(server *redistest.Server, n int, call func(i int)) {
	server.Pause()
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { call(i) })
	}
	time.Sleep(20 * time.Millisecond) // most have come by then; it matters little
	server.Resume()
	wait.Wait()
}
