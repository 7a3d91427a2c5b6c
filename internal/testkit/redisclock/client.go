package redisclock

import (
	"context"
	"time"

	"github.com/rategen/rategen/runtime/rediswire"
)

// A Client asks a [Server] in a bubble, at the bubble's time.
type Client struct {
	Server *Server
	Trip   func(ctx context.Context, ask func() error) error // makes each trip, and may fail or take a while
}

// About implements [rediswire.Client].
func (c *Client) About() rediswire.About { return rediswire.About{Address: "wire", Punctual: true} }

// Advice implements [rediswire.Client].
func (c *Client) Advice() (set, now string) { return "", "" }

// Patient implements [rediswire.Client].
func (c *Client) Patient(time.Duration) rediswire.Server { return c }

// Execute implements [rediswire.Server].
func (c *Client) Execute(ctx context.Context, scripts []*rediswire.Script) {
	sent := make([]*Sent, len(scripts))
	for i, s := range scripts {
		sent[i] = NewSent(s)
	}
	err := error(rediswire.Reply("NOSCRIPT No matching script."))
	if c.Server.Known(sent) {
		err = c.Trip(ctx, func() error {
			now := time.Now().UnixMicro() // which nobody knows outside
			c.Server.Outside(func() { c.Server.Execute(now, sent) })
			return nil
		})
	}
	for i, s := range scripts {
		s.Numbers, s.Err = nil, err
		if err == nil {
			s.Numbers, s.Err = sent[i].Numbers, sent[i].Err
		}
	}
}

// Do implements [rediswire.Server].
func (c *Client) Do(ctx context.Context, commands []rediswire.Command) {
	err := c.Trip(ctx, func() error {
		c.Server.Outside(func() { c.Server.Do(commands) })
		return nil
	})
	for i := range commands {
		if err != nil {
			commands[i].Err = err
		}
	}
}
