package server

import (
	"context"
	"strconv"
	"time"

	"github.com/rategen/rategen/internal/peerstate"
	"github.com/rategen/rategen/lua"
	"github.com/rategen/rategen/runtime/internal/background"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/rediswire"
)

// peerTag ends the keys of what peers have said, which begin with the keys of their limits.
const peerTag = "%peer"

var errPeer = private.New("the reply about a peer is not understood")

// Peers are what peers have said, in Redis.
type Peers struct {
	Client   rediswire.Client
	Timeout  time.Duration
	Panicked func(value any)

	work background.Group
}

// Share tells Redis what a peer has said about a key, and returns what it has said to all
// processes. It returns within the timeout. The goroutine that asks Redis has ended when the
// client has given up.
func (p *Peers) Share(ctx context.Context, key string, l *peerstate.Limit,
	said peerstate.Said) (peerstate.State, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	command := []rediswire.Command{{Args: []string{"eval", lua.Peer(), "1", key + peerTag,
		strconv.FormatInt(l.First, 10), strconv.FormatInt(said.Max, 10),
		milliseconds(l.Window), milliseconds(l.Life), milliseconds(said.Evenly)}, Key: rediswire.FirstKey}}
	done := make(chan struct{})
	began := p.work.Go(func() {
		defer cancel() // after done: else it looks late
		defer close(done)
		p.do(ctx, command)
	})
	if !began {
		cancel()
		return peerstate.State{}, rediswire.ErrClosed
	}
	select {
	case <-done:
	case <-ctx.Done():
		select {
		case <-done:
		default:
			return peerstate.State{}, private.Hide(ctx.Err())
		}
	}
	if command[0].Err != nil {
		return peerstate.State{}, private.Hide(command[0].Err)
	}
	return peerState(command[0].Value, time.Now())
}

// Drop has Redis forget what a peer has said about a key.
func (p *Peers) Drop(ctx context.Context, key string) error {
	command := []rediswire.Command{{Args: []string{"unlink", key + peerTag}, Key: 1}}
	p.do(ctx, command)
	return private.Hide(command[0].Err)
}

// do sends a command, whatever hooks of the client do.
func (p *Peers) do(ctx context.Context, command []rediswire.Command) {
	defer func() {
		if value := recover(); value != nil {
			p.Panicked(value)
			command[0].Err = errPeer
		}
	}()
	p.Client.Do(ctx, command)
}

// Close returns when no goroutine asks Redis any more, and none will.
func (p *Peers) Close() { p.work.Close() }

// peerState reads the reply of peer.lua.
func peerState(reply any, now time.Time) (peerstate.State, error) {
	var n [4]int64
	list, _ := reply.([]any)
	if len(list) != len(n) {
		return peerstate.State{}, errPeer
	}
	for i := range n {
		var is bool
		if n[i], is = list[i].(int64); !is {
			return peerstate.State{}, errPeer
		}
	}
	ago := func(n int64) time.Time { return now.Add(-time.Duration(n) * time.Millisecond) }
	return peerstate.State{Max: n[0], Raised: ago(n[1]), Named: ago(n[2]), Paced: ago(-n[3])}, nil
}

// milliseconds returns a time as a script reads it, rounded up.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}
