// Package watermilljob limits a handler of watermill.
package watermilljob

import (
	"github.com/ThreeDotsLabs/watermill/message"
)

//go:generate go tool rategen

// Mails has a [message.NoPublishHandlerFunc].
type Mails interface {
	// Send sends a mail. It waits for its turn, since a message that is refused is delivered
	// again at once. One that would wait for longer is refused, as one that cannot be decided.
	//
	//ratelimit:key=string(#m.Payload) ctx=#m.Context() algorithm=leaky-bucket window=1s max=10 wait=30s fail=closed
	Send(m *message.Message) error
}
