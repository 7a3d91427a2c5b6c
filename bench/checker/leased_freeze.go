package main

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// A tormentor stops processes for a while, and kills one in four.
type tormentor struct {
	stops   int           // before one is killed, and up to four more
	longest time.Duration // that one is stopped

	mu     sync.Mutex
	killed map[*os.Process]bool
}

// start torments processes, until the function that it returns is called.
func (t *tormentor) start(ctx context.Context, commands []*exec.Cmd) (stop func()) {
	t.killed = map[*os.Process]bool{}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { t.torment(ctx, commands) })
	return func() {
		cancel()
		done.Wait()
	}
}

// torment goes on until ctx ends. Then no process is stopped.
func (t *tormentor) torment(ctx context.Context, commands []*exec.Cmd) {
	var victims sync.WaitGroup
	for i, cmd := range commands {
		victims.Go(func() {
			last := t.stops + rand.IntN(5) // stops before it is killed
			for stops := 0; ; stops++ {
				if !pause(ctx, 50*time.Millisecond+rand.N(400*time.Millisecond)) {
					return
				}
				if i%4 == 3 && stops == last {
					t.mu.Lock()
					t.killed[cmd.Process] = true
					t.mu.Unlock()
					_ = cmd.Process.Kill()
					return
				}
				if cmd.Process.Signal(syscall.SIGSTOP) != nil {
					return // it has ended
				}
				pause(ctx, 5*time.Millisecond+time.Duration(rand.Float64()*rand.Float64()*float64(t.longest)))
				_ = cmd.Process.Signal(syscall.SIGCONT)
			}
		})
	}
	victims.Wait()
}

// wasKilled reports whether a process has ended because it was killed here.
func (t *tormentor) wasKilled(p *os.Process) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.killed[p]
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
