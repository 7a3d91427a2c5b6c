package asynqjob

import (
	"context"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

type mails struct{ sent chan string }

func (m mails) ProcessTask(_ context.Context, task *asynq.Task) error {
	m.sent <- string(task.Payload())
	return nil
}

// Of two mails to one person the second waits for the next hour.
func TestRefused(t *testing.T) {
	client := redistest.Start(t).Client(t)
	quiet := config
	quiet.LogLevel = asynq.FatalLevel
	server := asynq.NewServerFromRedisClient(client, quiet)
	sent := mails{make(chan string, 3)}
	if err := server.Start(NewRateLimitedMails(sent, refused.Limiter(t))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)

	queue := asynq.NewClientFromRedisClient(client)
	for _, to := range []string{"Ada", "Ada", "Lin"} {
		if _, err := queue.Enqueue(asynq.NewTask("mail", []byte(to))); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"Ada", "Lin"} {
		if got := <-sent.sent; got != want {
			t.Fatalf("a mail to %s, want one to %s", got, want)
		}
	}

	// The worker that sent to Lin had refused Ada before, and has written that.
	waiting, err := asynq.NewInspectorFromRedisClient(client).ListRetryTasks("default")
	if err != nil || len(waiting) != 1 {
		t.Fatalf("%d tasks wait, %v; want 1", len(waiting), err)
	}
	if wait := time.Until(waiting[0].NextProcessAt); wait < 50*time.Minute || wait > time.Hour+time.Minute {
		t.Errorf("the task waits for %v, want about 1h", wait)
	}
	if waiting[0].Retried != 0 {
		t.Errorf("the task has been retried %d times, want 0", waiting[0].Retried)
	}
}

// A task that could not be decided has failed, and comes back as other failures do.
func TestUnavailable(t *testing.T) {
	task := asynq.NewTask("mail", []byte("Ada"))
	err := NewRateLimitedMails(mails{make(chan string, 1)}, refused.Down(t)).ProcessTask(t.Context(), task)
	if err == nil || !config.IsFailure(err) {
		t.Fatalf("%v is no failure", err)
	}
	refused.NoAddress(t, err.Error()) // asynq keeps the text, and shows it on its page
}
