package raterueidis

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/rategen/rategen/runtime/rediswire"
)

// A server is what a client reaches: a server, the master under Sentinel, or all of a cluster.
type server struct {
	client rueidis.Client
	routed bool        // the client finds the server by the key
	broken atomic.Bool // the last request had no answer
}

// About implements [rediswire.Server].
func (*server) About() rediswire.About { return rediswire.About{Punctual: true} }

// Patient implements [rediswire.Server].
func (s *server) Patient(time.Duration) rediswire.Server { return s }

// Slot implements [slots.Client].
func (s *server) Slot(key string) int {
	command := s.client.B().Arbitrary("EXISTS").Keys(key).Build()
	return int(command.Slot())
}

// Nodes implements [slots.Client].
func (s *server) Nodes() map[string]rediswire.Server {
	nodes := make(map[string]rediswire.Server)
	for address, client := range s.client.Nodes() {
		nodes[address] = &server{client: client}
	}
	return nodes
}

// Advice implements [rediswire.Client]: a connection ends with the context of a command.
func (*server) Advice() (set, now string) { return "", "" }

// Execute implements [rediswire.Server].
func (s *server) Execute(ctx context.Context, scripts []*rediswire.Script) {
	commands := make([]rueidis.Completed, 0, 2*len(scripts))
	for _, script := range scripts {
		if script.Asking {
			commands = append(commands, s.client.B().Arbitrary("ASKING").Blocking())
		}
		commands = append(commands, s.completed(script))
	}
	results, err := s.send(ctx, commands)
	for _, script := range scripts {
		script.Numbers = script.Numbers[:0]
		script.Err = err
		if err != nil {
			continue
		}
		if script.Asking {
			results = results[1:]
		}
		script.Numbers, script.Err = numbers(script.Numbers, results[0])
		results = results[1:]
	}
}

// completed returns the command of a script.
func (s *server) completed(script *rediswire.Script) rueidis.Completed {
	texts, is := script.Own.(*[]string)
	if !is {
		texts = new([]string)
		script.Own = texts
	}
	*texts = script.Text((*texts)[:0])
	rest := *texts
	command := s.client.B().Arbitrary(rest[:rediswire.FirstKey]...)
	rest = rest[rediswire.FirstKey:]
	if s.routed && len(rest) > 0 {
		command, rest = command.Keys(rest[0]), rest[1:]
	}
	completed := command.Args(rest...).Blocking()
	clear(*texts)
	return completed
}

// numbers decodes a reply of integers into memory.
func numbers(memory []int64, result rueidis.RedisResult) ([]int64, error) {
	values, err := result.ToArray()
	if err != nil {
		return memory, known(err)
	}
	for i := range values {
		n, err := values[i].ToInt64()
		if err != nil {
			return memory, known(err)
		}
		memory = append(memory, n)
	}
	return memory, nil
}

// Do implements [rediswire.Server].
func (s *server) Do(ctx context.Context, commands []rediswire.Command) {
	if len(commands) == 0 {
		return
	}
	all := make([]rueidis.Completed, len(commands))
	for i, c := range commands {
		if !s.routed || c.Key == 0 {
			all[i] = s.client.B().Arbitrary(c.Args...).Blocking()
			continue
		}
		all[i] = s.client.B().Arbitrary(c.Args[:c.Key]...).Keys(c.Args[c.Key]).Args(c.Args[c.Key+1:]...).Blocking()
	}
	results, err := s.send(ctx, all)
	for i := range commands {
		commands[i].Err = err
		if err == nil {
			value, err := results[i].ToAny()
			commands[i].Value, commands[i].Err = value, known(err)
		}
	}
}

// send sends commands, and returns when all have results, or with an error when the
// context is over.
//
// Rueidis does not look at the context while it makes a connection that another caller
// has begun, or ends one. So after a request without an answer it is left alone with the
// next.
func (s *server) send(ctx context.Context, commands []rueidis.Completed) ([]rueidis.RedisResult, error) {
	if !s.broken.Load() {
		return s.request(ctx, commands), nil
	}
	answered := make(chan []rueidis.RedisResult, 1)
	go func() { answered <- s.request(ctx, commands) }()
	select {
	case results := <-answered:
		return results, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *server) request(ctx context.Context, commands []rueidis.Completed) (results []rueidis.RedisResult) {
	if len(commands) == 1 {
		results = []rueidis.RedisResult{s.client.Do(ctx, commands[0])}
	} else {
		results = s.client.DoMulti(ctx, commands...)
	}
	broken := false
	for i := range results {
		broken = broken || results[i].NonRedisError() != nil
	}
	if broken != s.broken.Load() {
		s.broken.Store(broken)
	}
	return results
}
