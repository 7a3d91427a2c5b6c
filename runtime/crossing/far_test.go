package crossing

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redisclock"
	"github.com/rategen/rategen/runtime/rediswire"
)

// A farScript is a script on its way.
type farScript struct {
	texts   []string
	numbers []int64
	err     error
}

func newFarScript(s *rediswire.Script) *farScript {
	f := &farScript{}
	for _, text := range s.Text(nil) {
		f.texts = append(f.texts, strings.Clone(text))
	}
	return f
}

// keys returns those of the script.
func (f *farScript) keys() []string {
	n, _ := strconv.Atoi(f.texts[rediswire.FirstKey-1])
	return f.texts[rediswire.FirstKey : rediswire.FirstKey+n]
}

// knows reports whether the server has a script.
func (s *farServer) knows(hash string) (known bool) {
	s.outside(func() { known = s.hashes[hash] != "" })
	return known
}

// forget has the server forget all scripts.
func (s *farServer) forget() {
	clear(s.hashes)
	s.client.ScriptFlush(context.Background())
}

// execute executes scripts when the clock shows a time.
func (s *farServer) execute(now int64, scripts []*farScript) {
	ctx := context.Background()
	var keys []string
	for _, f := range scripts {
		keys = append(keys, f.keys()...)
	}
	_ = redisclock.Set(ctx, s.client, now, keys...)
	pipe := s.client.Pipeline()
	var replies []*redis.Cmd
	for _, f := range scripts {
		args := make([]any, len(f.texts))
		for i, text := range f.texts {
			args[i] = text
		}
		if args[0] == "eval" {
			text := redisclock.Script(f.texts[1])
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
		scripts[i].numbers, scripts[i].err = values, replied(err)
	}
}

// do executes commands.
func (s *farServer) do(commands []rediswire.Command) {
	for i := range commands {
		args := make([]any, len(commands[i].Args))
		for j, arg := range commands[i].Args {
			args[j] = arg
		}
		value, err := s.client.Do(context.Background(), args...).Result()
		commands[i].Value, commands[i].Err = value, replied(err)
	}
}

// replied returns the error of a reply as a client has it.
func replied(err error) error {
	var reply redis.Error
	switch {
	case err == redis.Nil:
		return rediswire.ErrNil
	case errors.As(err, &reply):
		return rediswire.Reply(reply.Error())
	}
	return err
}

func hashOf(text string) string {
	hash := sha1.Sum([]byte(text))
	return hex.EncodeToString(hash[:])
}
