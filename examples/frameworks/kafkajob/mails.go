// Package kafkajob limits a consumer of Kafka. It has the shape of one on franz-go, whose packages
// take long to compile.
package kafkajob

import (
	"context"
	"errors"
	"time"

	"github.com/rategen/rategen/runtime"
)

//go:generate go tool rategen

// A Record is what a consumer reads of a partition, as a kgo.Record.
type Record struct {
	Key, Value []byte
}

// Mails handles records.
type Mails interface {
	// Send sends a mail. All consumers together send ten a second to a tenant, and have four on
	// their way at a time.
	//
	//ratelimit:key=string(#r.Key) algorithm=leaky-bucket window=1s max=10 wait=30s fail=closed
	//ratelimit:algorithm=concurrency max=4 wait=30s fail=closed
	Send(ctx context.Context, r *Record) error
}

// handle sends a record until its limits have let it through: a record that is skipped is not
// delivered again, once a later one of its partition is committed.
func handle(ctx context.Context, mails Mails, r *Record) error {
	for {
		err := mails.Send(ctx, r)
		limited, ok := errors.AsType[*runtime.LimitedError](err)
		if !ok || limited.RetryAfter == runtime.Never {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(limited.RetryAfter):
		}
	}
}
