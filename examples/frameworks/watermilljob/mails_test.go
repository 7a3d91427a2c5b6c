package watermilljob

import (
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/rategen/rategen/examples/frameworks/refused"
)

type mails struct{ sent chan time.Time }

func (m mails) Send(*message.Message) error {
	m.sent <- time.Now()
	return nil
}

// Messages for one person are sent a tenth of a second apart, and each once.
func TestTurns(t *testing.T) {
	sent := mails{make(chan time.Time, 10)}
	limited := NewRateLimitedMails(sent, refused.Limiter(t))
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: time.Minute}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	queue := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, watermill.NopLogger{})
	router.AddConsumerHandler("mails", "mails", queue, limited.Send)
	ended := make(chan error, 1)
	go func() { ended <- router.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := router.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	for range 3 {
		if err := queue.Publish("mails", message.NewMessage(watermill.NewUUID(), []byte("Ada"))); err != nil {
			t.Fatal(err)
		}
	}
	first := <-sent.sent
	<-sent.sent
	if last := <-sent.sent; last.Sub(first) < 150*time.Millisecond { // a store's answer and a timer take their time
		t.Errorf("three messages took %v, want 200ms", last.Sub(first))
	}
	if len(sent.sent) > 0 {
		t.Error("a message was sent twice")
	}
}

// A message that cannot be decided is not sent, and comes again.
func TestUnavailable(t *testing.T) {
	sent := mails{make(chan time.Time, 1)}
	err := NewRateLimitedMails(sent, refused.Down(t)).Send(message.NewMessage(watermill.NewUUID(), []byte("Ada")))
	if err == nil || len(sent.sent) > 0 {
		t.Fatalf("got %v, and %d were sent", err, len(sent.sent))
	}
	refused.NoAddress(t, err.Error())
}
