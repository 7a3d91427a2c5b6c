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

	killed sync.Map // *os.Process
}

// start torments processes, until the function that it returns is called. Then no process is stopped.
func (t *tormentor) start(ctx context.Context, commands []*exec.Cmd) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var victims sync.WaitGroup
	for i, cmd := range commands {
		victims.Go(func() { t.torment(ctx, cmd.Process, i%4 == 3) })
	}
	return func() {
		cancel()
		victims.Wait()
	}
}

// torment goes on until ctx or the process ends.
func (t *tormentor) torment(ctx context.Context, process *os.Process, mortal bool) {
	last := t.stops + rand.IntN(5) // stops before it is killed
	for stops := 0; pause(ctx, 50*time.Millisecond+rand.N(400*time.Millisecond)); stops++ {
		if mortal && stops == last {
			t.killed.Store(process, true)
			_ = process.Kill()
			return
		}
		if process.Signal(syscall.SIGSTOP) != nil {
			return // it has ended
		}
		pause(ctx, 5*time.Millisecond+time.Duration(rand.Float64()*rand.Float64()*float64(t.longest)))
		_ = process.Signal(syscall.SIGCONT)
	}
}

// wasKilled reports whether a process has ended because it was killed here.
func (t *tormentor) wasKilled(p *os.Process) bool {
	_, killed := t.killed.Load(p)
	return killed
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
