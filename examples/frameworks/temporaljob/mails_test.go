package temporaljob

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/runtime"
)

type mails struct{ sent []string }

func (m *mails) Send(_ context.Context, to, _ string) error {
	m.sent = append(m.sent, to)
	return nil
}

func newEnvironment(mails Mails, limiter *runtime.Limiter) *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	register(env, mails, limiter)
	return env
}

// Of two mails to one person the second is retried in an hour, by what Temporal's server is
// told. What it does with that is tested by Temporal: it needs a server.
func TestRefused(t *testing.T) {
	sent := new(mails)
	env := newEnvironment(sent, refused.Limiter(t, runtime.WithRefusalError(retryLater)))
	for _, to := range []string{"Ada", "Lin"} {
		if _, err := env.ExecuteActivity("Send", to, "hello"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := env.ExecuteActivity("Send", "Ada", "hello")
	told, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || told.NonRetryable() || told.Category() != temporal.ApplicationErrorCategoryBenign {
		t.Fatalf("the second mail: %v, want a benign error that is retried", err)
	}
	if d := told.NextRetryDelay(); d < 59*time.Minute || d > time.Hour {
		t.Errorf("the second mail is retried in %v, want about 1h", d)
	}
	if len(sent.sent) != 2 {
		t.Errorf("sent %v", sent.sent)
	}
}

// A mail that could not be decided has failed, and is retried as other failures are.
func TestUnavailable(t *testing.T) {
	env := newEnvironment(new(mails), refused.Down(t, runtime.WithRefusalError(retryLater)))
	_, err := env.ExecuteActivity("Send", "Ada", "hello")
	told, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || told.NonRetryable() || told.NextRetryDelay() != 0 {
		t.Fatalf("an outage is %v", err)
	}
	refused.NoAddress(t, told.Error())
}
