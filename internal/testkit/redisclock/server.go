package redisclock

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/rediswire"
)

// A Server is a real server that is asked by a goroutine outside of any bubble, so that no time
// passes in one meanwhile. Its scripts go by the clock that they are sent with.
type Server struct {
	client *redis.Client
	doing  chan func()
	done   chan struct{}
	turn   chan struct{}
	hashes map[string]string // of scripts as they are, and as the server has them
}

// NewServer returns the server of a client.
func NewServer(t *testing.T, client *redis.Client) *Server {
	s := &Server{client: client, doing: make(chan func()), done: make(chan struct{}), turn: make(chan struct{}, 1), hashes: map[string]string{}}
	go func() {
		for do := range s.doing {
			do()
			s.done <- struct{}{}
		}
	}()
	t.Cleanup(func() { close(s.doing) })
	return s
}

// Outside does something outside of the bubble, in which no time passes meanwhile.
func (s *Server) Outside(do func()) {
	s.turn <- struct{}{}
	s.doing <- do
	<-s.done
	<-s.turn
}

// A Sent script is one on its way: its caller may have left.
type Sent struct {
	texts   []string
	Numbers []int64
	Err     error
}

// NewSent returns a copy of a script.
func NewSent(s *rediswire.Script) *Sent {
	f := &Sent{}
	for _, text := range s.Text(nil) {
		f.texts = append(f.texts, strings.Clone(text))
	}
	return f
}

// keys returns those of the script.
func (s *Sent) keys() []string {
	n, _ := strconv.Atoi(s.texts[rediswire.FirstKey-1])
	return s.texts[rediswire.FirstKey : rediswire.FirstKey+n]
}

// Unknown returns the scripts that the server does not have, and that no text comes with.
func (s *Server) Unknown(scripts []*Sent) (unknown []*Sent) {
	brought := map[string]bool{} // by texts ahead of others
	for _, f := range scripts {
		script := f.texts[1]
		if f.texts[0] == "eval" {
			brought[hashOf(script)] = true
		} else if !brought[script] {
			s.Outside(func() {
				if s.hashes[script] == "" {
					unknown = append(unknown, f)
				}
			})
		}
	}
	return unknown
}

// Forget has the server forget all scripts.
func (s *Server) Forget() {
	clear(s.hashes)
	s.client.ScriptFlush(context.Background())
}

// Execute executes scripts when the clock shows a time. It is called in Outside.
func (s *Server) Execute(now int64, scripts []*Sent) {
	ctx := context.Background()
	var keys []string
	for _, f := range scripts {
		keys = append(keys, f.keys()...)
	}
	_ = Set(ctx, s.client, now, keys...)
	pipe := s.client.Pipeline()
	var replies []*redis.Cmd
	for _, f := range scripts {
		args := make([]any, len(f.texts))
		for i, text := range f.texts {
			args[i] = text
		}
		if args[0] == "eval" {
			text := Script(f.texts[1])
			s.hashes[hashOf(f.texts[1])] = hashOf(text)
			args[1] = text
		} else {
			args[1] = s.hashes[f.texts[1]]
		}
		replies = append(replies, pipe.Do(ctx, args...))
	}
	_, _ = pipe.Exec(ctx)
	for i, reply := range replies {
		values, err := reply.Int64Slice()
		scripts[i].Numbers, scripts[i].Err = values, replied(err)
	}
}

// Do executes commands when the clock shows a time. It is called in Outside.
func (s *Server) Do(now int64, commands []rediswire.Command) {
	for i := range commands {
		args := make([]any, len(commands[i].Args))
		for j, arg := range commands[i].Args {
			args[j] = arg
		}
		switch args[0] {
		case "time":
			commands[i].Value = []any{strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10)}
			continue
		case "eval":
			_ = Set(context.Background(), s.client, now)
			args[1] = onTime.Replace(commands[i].Args[1])
		}
		value, err := s.client.Do(context.Background(), args...).Result()
		commands[i].Value, commands[i].Err = value, replied(err)
	}
}

// replied returns the error of a reply as a client has it.
func replied(err error) error {
	var reply redis.Error
	if err == redis.Nil {
		return rediswire.ErrNil
	}
	if errors.As(err, &reply) {
		return rediswire.Reply(reply.Error())
	}
	return err
}

func hashOf(text string) string {
	hash := sha1.Sum([]byte(text))
	return hex.EncodeToString(hash[:])
}
