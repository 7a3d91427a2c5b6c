package goredis

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/rediswire"
)

// An other is a client of a type of the program's own.
type other struct{ client redis.UniversalClient }

func (o *other) Execute(ctx context.Context, scripts []*rediswire.Script) {
	execute(ctx, o.client, scripts)
}

func (o *other) Do(ctx context.Context, commands []rediswire.Command) { do(ctx, o.client, commands) }
func (*other) About() rediswire.About                                 { return rediswire.About{} }
func (o *other) Patient(time.Duration) rediswire.Server               { return o }
func (*other) Advice() (set, now string)                              { return "", "" }

// longestRead is the read timeout above which connections to a Redis that does not
// answer are held for too long: go-redis's default.
const longestRead = 5 * time.Second

// advice warns of options with which the store cannot keep its promises: if no read ever
// ends, a few batches to a Redis that went away without closing its connections keep all
// others from finding out that it is back.
func advice(contexts bool, read time.Duration) (set, now string) {
	if contexts || read > 0 && read <= longestRead {
		return "", ""
	}
	return "ContextTimeoutEnabled to true, or ReadTimeout to 5s or less, or use runtime.TuneRedis",
		"ReadTimeout " + max(read, 0).String()
}
