package limiters

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rategen/rategen/bench/internal/load"
)

// least is the least that a limiter does which goes by the clock of Redis: it
// looks at the clock, reads what it knows of a key, and writes that anew. It
// decides nothing.
const least = `redis.call('TIME')
redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`

// newScriptFloor sends the script as a user of go-redis does. What it writes is
// a time of 16 digits.
func newScriptFloor(s Server, limits Limits) (load.Take, error) {
	sha, err := s.Client.ScriptLoad(context.Background(), least).Result()
	if err != nil {
		return nil, err
	}
	window := limits.Level.Window.Milliseconds()
	return func(ctx context.Context, key string) load.Answer {
		return answerOf(true, s.Client.EvalSha(ctx, sha, []string{"floor:" + key}, time.Now().UnixMicro(), window).Err())
	}, nil
}

func newPing(s Server, _ Limits) (load.Take, error) {
	return func(ctx context.Context, _ string) load.Answer {
		return answerOf(true, s.Client.Ping(ctx).Err())
	}, nil
}

// leastOfMany is least for many calls at a time.
const leastOfMany = `redis.call('TIME')
redis.call('MGET', unpack(KEYS))
for _, key in ipairs(KEYS) do
  redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
end
return 1`

// mostTogether is how many calls a script decides at most, rategen's also.
const mostTogether = 128

// newSharedFloor has calls that come meanwhile wait for the trip that is under way, and share the next.
func newSharedFloor(s Server, limits Limits) (load.Take, error) {
	sha, err := s.Client.ScriptLoad(context.Background(), leastOfMany).Result()
	if err != nil {
		return nil, err
	}
	window := limits.Level.Window.Milliseconds()
	var mu sync.Mutex
	var sending bool
	var keys []string
	var callers []chan error
	send := func() {
		mu.Lock()
		defer mu.Unlock()
		for len(keys) > 0 {
			n := min(len(keys), mostTogether)
			sent, waiting := keys[:n], callers[:n]
			keys, callers = keys[n:], callers[n:]
			mu.Unlock()
			err := s.Client.EvalSha(context.Background(), sha, sent, time.Now().UnixMicro(), window).Err()
			for _, caller := range waiting {
				caller <- err
			}
			mu.Lock()
		}
		sending = false
	}
	return func(_ context.Context, key string) load.Answer {
		done := make(chan error, 1)
		mu.Lock()
		keys, callers = append(keys, "many:"+key), append(callers, done)
		first := !sending
		sending = true
		mu.Unlock()
		if first {
			go send()
		}
		return answerOf(true, <-done)
	}, nil
}

// newSockets sends a command with one key, which takes the place of the fourth of its texts.
func newSockets(s Server, command []string, prefix string) load.Take {
	before, after := fmt.Sprintf("*%d\r\n%s", len(command), texts(command[:3]...)), texts(command[4:]...)
	free := make(chan *bufio.ReadWriter, s.Connections)
	for range s.Connections {
		free <- nil
	}
	return func(_ context.Context, key string) load.Answer {
		conn := <-free
		defer func() { free <- conn }()
		if conn == nil {
			to, err := net.Dial("tcp", s.Addr)
			if err != nil {
				return load.Failed
			}
			conn = bufio.NewReadWriter(bufio.NewReader(to), bufio.NewWriter(to))
		}
		for _, part := range []string{before, texts(prefix + key), after} {
			_, _ = conn.WriteString(part) // Flush fails if this does
		}
		return answerOf(true, readNumbers(conn))
	}
}

// texts returns texts as Redis has them.
func texts(all ...string) (s string) {
	for _, text := range all {
		s += "$" + strconv.Itoa(len(text)) + "\r\n" + text + "\r\n"
	}
	return s
}

// readNumbers reads an answer that is a list of numbers.
func readNumbers(conn *bufio.ReadWriter) error {
	if err := conn.Flush(); err != nil {
		return err
	}
	head, err := conn.ReadString('\n')
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(head), "*"))
	if err != nil {
		return fmt.Errorf("the answer %q", head)
	}
	for range n {
		if _, err := conn.ReadSlice('\n'); err != nil {
			return err
		}
	}
	return nil
}
