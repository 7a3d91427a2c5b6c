package report

import (
	"sync"
	"time"
	"weak"

	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/rule"
)

const (
	// manyLimiters is how many limiters on one store are too many for one program.
	manyLimiters = 100
	// crowdTime is in which time so many limiters of one rule, each in a memory of its own, are.
	crowdTime = time.Hour
)

// tellMany says, to all limiters, that there are too many of them.
func (e *Events) tellMany(rule string) {
	lines := Lines{Log: Log{Loggers: e.Log.Loggers}, Lists: []*findings.List{&findings.Process}}
	lines.Find(ManyLimiters, rule, "")
}

// A crowd counts the limiters with one rule that have memories of their own.
type crowd struct {
	mu    sync.Mutex
	began time.Time
	size  int
}

// crowds are those of this process.
var crowds findings.Map[weak.Pointer[rule.Rule], crowd]

// Crowd counts a limiter with a rule that has a memory of its own, and says if there are too many.
func (e *Events) Crowd(r *rule.Rule) {
	if crowds.Made(weak.Make(r)).add() {
		e.tellMany(r.Name)
	}
}

func (c *crowd) add() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.began).Abs() > crowdTime {
		c.began, c.size = now, 0
	}
	c.size++
	return c.size >= manyLimiters
}
