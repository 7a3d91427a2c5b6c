package temporaljob

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

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

// A workflow sends two mails to one person. In the test environment, which skips time, the second is
// tried once more, an hour later.
func TestRetried(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	limiter := runtime.New(runtime.NewMemoryStore(runtime.WithClock(env.Now)), runtime.WithRefusalError(retryLater))
	t.Cleanup(func() { _ = limiter.Close() })
	sent := new(mails)
	register(env, sent, limiter)
	attempts := 0
	env.SetOnActivityStartedListener(func(*activity.Info, context.Context, converter.EncodedValues) { attempts++ })
	begin := env.Now()
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		for range 2 {
			if err := workflow.ExecuteActivity(ctx, "Send", "Ada", "hello").Get(ctx, nil); err != nil {
				return err
			}
		}
		return nil
	})
	refusal := retryLater(t.Context(), &runtime.LimitedError{RetryAfter: time.Hour})
	if told, ok := errors.AsType[*temporal.ApplicationError](refusal); !ok || told.Category() != temporal.ApplicationErrorCategoryBenign {
		t.Errorf("a refusal is %v, want a benign error", refusal)
	}
	if err := env.GetWorkflowError(); !env.IsWorkflowCompleted() || err != nil {
		t.Fatal("the workflow:", err)
	}
	if took := env.Now().Sub(begin); attempts != 3 || len(sent.sent) != 2 || took < time.Hour || took > 61*time.Minute {
		t.Errorf("%d attempts in %v, sent %v; want 3 in an hour", attempts, took, sent.sent)
	}
}
