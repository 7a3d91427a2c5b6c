package riverjob

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/runtime"
)

type mails struct{ sent []string }

func (m *mails) Work(_ context.Context, job *river.Job[Mail]) error {
	m.sent = append(m.sent, job.Args.To)
	return nil
}

// Of two mails to one person the second is snoozed for an hour. What river does with
// that is tested by river: it needs a Postgres.
func TestRefused(t *testing.T) {
	limiter := refused.Limiter(t, runtime.WithRefusalError(snooze))
	sent := new(mails)
	if err := addWorker(river.NewWorkers(), sent, limiter); err != nil {
		t.Fatal(err)
	}
	worker := NewRateLimitedMails(sent, limiter)
	for _, to := range []string{"Ada", "Lin"} {
		if err := worker.Work(t.Context(), &river.Job[Mail]{Args: Mail{to}}); err != nil {
			t.Fatal(err)
		}
	}
	err := worker.Work(t.Context(), &river.Job[Mail]{Args: Mail{"Ada"}})
	snoozed, ok := errors.AsType[*river.JobSnoozeError](err)
	if !ok || snoozed.Duration < 59*time.Minute || snoozed.Duration > time.Hour {
		t.Errorf("the second mail: %v, want a snooze of about 1h", err)
	}
	if len(sent.sent) != 2 {
		t.Errorf("sent %v", sent.sent)
	}
	if err := snooze(t.Context(), runtime.ErrUnavailable); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("an outage is %v", err)
	}
}
