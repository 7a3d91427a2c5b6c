package server

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/rediswire"
)

// surveyBatch is how many keys a survey asks a server about at a time.
const surveyBatch = 200

// A survey is one walk over the keys of a database. Servers of a cluster are walked over
// at the same time.
type survey struct {
	groups []Group
	start  string     // of all keys that matter
	mu     sync.Mutex // held to tell of a key
}

// Survey finds the keys of groups on all servers. When it returns an error, what was found so
// far has been heard of.
func Survey(ctx context.Context, client rediswire.Client, groups ...Group) error {
	if len(groups) == 0 {
		return nil
	}
	groups, start, err := sortGroups(groups)
	if err != nil {
		return err
	}
	v := &survey{groups: groups, start: start}
	return private.Hide(Each(ctx, client, v.visitAll))
}

// A finding is what a server says about a key.
type finding struct {
	group               *Group
	key, text           string
	milliseconds, bytes int64 // until it expires, -1: never, -2: it is gone
	healed              bool
	err                 error
}

// lost reports whether the key has gone, be it to another server of a cluster.
func (f *finding) lost() bool {
	return f.err == rediswire.ErrNil || script.Moved(f.err) || f.err == nil && f.milliseconds == keyGone
}

// PTTL replies these for a key that never expires, and for one that is gone.
const (
	keyEndless = -1
	keyGone    = -2
)

// expiry returns what is left of the key's life, or less than 0.
func (f *finding) expiry() time.Duration {
	if f.milliseconds < 0 {
		return time.Duration(f.milliseconds)
	}
	return time.Duration(f.milliseconds) * time.Millisecond
}

func (s *survey) visitAll(ctx context.Context, server rediswire.Server) error {
	pattern := globEscaper.Replace(s.start) + "*"
	for cursor := "0"; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		scan := []rediswire.Command{{Args: []string{"scan", cursor, "match", pattern, "count", strconv.Itoa(surveyBatch)}}}
		server.Do(ctx, scan)
		keys, next, err := parseScan(scan[0])
		if err != nil {
			return private.Errorf("list keys: %w", private.Hide(err))
		}
		for batch := range slices.Chunk(keys, surveyBatch) {
			if err := s.visit(ctx, server, batch); err != nil {
				return err
			}
		}
		if cursor = next; cursor == "0" {
			return nil
		}
	}
}

var errScan = private.New("the reply to SCAN is not understood")

func parseScan(scan rediswire.Command) (keys []string, next string, err error) {
	if scan.Err != nil {
		return nil, "", scan.Err
	}
	reply, _ := scan.Value.([]any)
	if len(reply) != 2 {
		return nil, "", errScan
	}
	next, is := reply[0].(string)
	list, are := reply[1].([]any)
	if !is || !are {
		return nil, "", errScan
	}
	for _, key := range list {
		text, is := key.(string)
		if !is {
			return nil, "", errScan
		}
		keys = append(keys, text)
	}
	return keys, next, nil
}

// visit asks a server about some keys.
func (s *survey) visit(ctx context.Context, server rediswire.Server, keys []string) error {
	var found []finding
	var ask []rediswire.Command
	for _, key := range keys {
		if strings.Contains(key, checkMark) || strings.HasSuffix(key, peerTag) {
			continue // of a check for sharding, or what a peer has said
		}
		for i := range s.groups {
			if text, of := s.groups[i].Text(key); of {
				found = append(found, finding{group: &s.groups[i], key: key, text: text})
				ask = append(ask,
					rediswire.Command{Args: []string{"pttl", key}, Key: 1},
					rediswire.Command{Args: []string{"memory", "usage", key}, Key: 2})
				break
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	server.Do(ctx, ask)
	for i := range found {
		f, expiry, bytes := &found[i], ask[2*i], ask[2*i+1]
		f.err = cmp.Or(expiry.Err, bytes.Err)
		f.milliseconds, _ = expiry.Value.(int64)
		f.bytes, _ = bytes.Value.(int64)
	}
	found, err := dropGone(found)
	if err != nil {
		return private.Errorf("look at keys: %w", private.Hide(err))
	}
	defer s.report(found)
	return s.heal(ctx, server, found)
}

// heal gives those of some keys an expiry that have none, and are to have one.
func (s *survey) heal(ctx context.Context, server rediswire.Server, found []finding) error {
	var ill []*finding
	var heal []rediswire.Command
	for i := range found {
		if f := &found[i]; f.milliseconds == keyEndless && f.group.Expiry > 0 {
			ill = append(ill, f)
			expiry := strconv.FormatInt(max(f.group.Expiry.Milliseconds(), 1), 10)
			heal = append(heal, rediswire.Command{Args: []string{"pexpire", f.key, expiry}, Key: 1})
		}
	}
	if len(ill) == 0 {
		return nil
	}
	server.Do(ctx, heal)
	var failed error
	for i, f := range ill {
		f.healed = heal[i].Err == nil && heal[i].Value == int64(1)
		if err := heal[i].Err; err != nil && !script.Moved(err) && failed == nil {
			failed = private.Errorf("heal keys: %w", private.Hide(err))
		}
	}
	return failed
}

func dropGone(found []finding) ([]finding, error) {
	for i := range found {
		if f := &found[i]; f.err != nil && !f.lost() {
			return nil, f.err
		}
	}
	return slices.DeleteFunc(found, func(f finding) bool { return f.lost() }), nil
}

func (s *survey) report(found []finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range found {
		f := &found[i]
		f.group.Found(Found{f.key, f.text, f.bytes, f.expiry(), f.healed})
	}
}

// globEscaper escapes the special characters of a pattern.
var globEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)
