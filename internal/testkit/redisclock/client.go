package redisclock

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime/rediswire"
)

// A Client asks a [Server] in a bubble, at the bubble's time.
type Client struct {
	Server *Server
	// Trip makes each trip, and may fail or take a while, also after it has returned.
	Trip func(ctx context.Context, ask func() error) error
	// Forgot reports whether the server has forgotten scripts; nil: never. Before, that it does not know one is known
	// at once: a program takes as long whichever ran before it.
	Forgot func() bool
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
	unknown := c.Server.Unknown(sent)
	for _, f := range unknown {
		f.Err = err
	}
	known := slices.DeleteFunc(slices.Clone(sent), func(f *Sent) bool { return slices.Contains(unknown, f) })
	if len(unknown) == 0 || len(known) > 0 && c.Forgot != nil && c.Forgot() {
		err = c.Trip(ctx, func() error {
			now := time.Now().UnixMicro() // which nobody knows outside
			c.Server.Outside(func() { c.Server.Execute(now, known) })
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
	sent := make([]rediswire.Command, len(commands))
	for i := range commands {
		for _, arg := range commands[i].Args {
			sent[i].Args = append(sent[i].Args, strings.Clone(arg))
		}
	}
	err := c.Trip(ctx, func() error {
		now := time.Now().UnixMicro()
		c.Server.Outside(func() { c.Server.Do(now, sent) })
		return nil
	})
	for i := range commands {
		commands[i].Err = err
		if err == nil {
			commands[i].Value, commands[i].Err = sent[i].Value, sent[i].Err
		}
	}
}
