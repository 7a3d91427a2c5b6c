package kafkajob

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratetest"
)

const rule = "kafkajob.Mails.Send"

type mails struct{ sent []string }

func (m *mails) Send(_ context.Context, r *Record) error {
	m.sent = append(m.sent, string(r.Value))
	return nil
}

// Records of a partition are handled in their order, ten a second of a tenant. One that is refused
// is tried again when there is room, before the next one.
func TestHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, sent := ratetest.New(t), new(mails)
		limited := NewRateLimitedMails(sent, limiter.Limiter)
		begin := limiter.Now()
		limiter.Next(rule, 1, ratetest.Refuse(5*time.Second))
		for _, value := range []string{"1", "2", "3"} {
			if err := handle(t.Context(), limited, &Record{Key: []byte("acme"), Value: []byte(value)}); err != nil {
				t.Fatal(err)
			}
		}
		if took := limiter.Now().Sub(begin); took != 5*time.Second+200*time.Millisecond {
			t.Errorf("three records took %v, want 5.2s", took)
		}
		if want := []string{"1", "2", "3"}; !slices.Equal(sent.sent, want) {
			t.Errorf("sent %v, want %v", sent.sent, want)
		}
	})
}

// What can never be sent, cannot be decided, or is given up, ends the loop with its error.
func TestHandleEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer ratetest.Answer
		want   error
	}{
		{"never", ratetest.Refuse(runtime.Never), runtime.ErrCostExceedsLimit},
		{"undecided", ratetest.Unavailable(), runtime.ErrUnavailable},
		{"given up", ratetest.Refuse(time.Hour), context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter, sent := ratetest.New(t), new(mails)
				limiter.Next(rule, 1, c.answer)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := handle(ctx, NewRateLimitedMails(sent, limiter.Limiter), &Record{Key: []byte("acme")})
				if !errors.Is(err, c.want) || len(sent.sent) != 0 {
					t.Errorf("%v, %d sent, want %v", err, len(sent.sent), c.want)
				}
			})
		})
	}
}
