// Package rediswire is what a store needs of a Redis client. It is for modules that
// bring another client than go-redis, and not for programs: these call
// [runtime.NewRedisStore], or the function of such a module.
//
// A client decides nothing. It sends what it is given to the server that it is told, once,
// and says what came back. When that takes too long, what is sent again, and which server
// is asked instead, the store decides.
//
// # Errors
//
// A script or a command without a result has an error, which says what became of it:
//
//   - An error that a server replied is a [ReplyError].
//   - [ErrClosed] and [ErrNotSent], by [errors.Is], say that certainly no server has
//     executed it. So does a [net.OpError] whose Op is "dial".
//   - The end of the context is [context.Canceled] or [context.DeadlineExceeded].
//   - All else means that a server may have executed it. Errors of the network keep what
//     packages net, os and io say of them, by [errors.As] and [errors.Is].
//
// # Versions
//
// Methods are not added to the interfaces of this package. Fields may be added to its
// structs, and functions to it.
//
// [runtime.NewRedisStore]: https://pkg.go.dev/github.com/rategen/rategen/runtime#NewRedisStore
package rediswire

import (
	"context"
	"time"
)

// A Server is a Redis server, as a client reaches it. Its methods are safe for concurrent
// use. Values of Servers can be compared, and are equal if they are of the same server
// by the same client.
type Server interface {
	// Execute sends scripts, in their order and in one go, over one connection, and
	// returns when each has its Numbers or its Err.
	//
	// The client sends each at most once, whatever happens: a server may have executed a
	// script whose reply is lost, and would charge twice. If it cannot tell whether a
	// server has one, it does not send it again.
	//
	// A client that is [About.Punctual] returns when the context is over. From then on
	// it uses neither the scripts nor what their Args point to.
	Execute(ctx context.Context, scripts []*Script)
	// Do sends commands, in their order and in one go, and returns when each has its
	// Value or its Err. A server may execute them twice without harm.
	Do(ctx context.Context, commands []Command)
	// About says what the store has to know of the server and the client.
	About() About
	// Patient returns the server for requests of no caller, which may take d. They need
	// not be seen by hooks of the client.
	Patient(d time.Duration) Server
}

// A Client is the way to all servers: to the only one, as a program reaches it and
// wherever a failover takes it, or if it is a [Cluster] to several.
type Client interface {
	Server
	// Advice says what to set of the client, and what is set now, if it waits so long for
	// an answer that limits stay off after a server was away. Set is empty if it does not.
	Advice() (set, now string)
}

// A Cluster is a client of several servers, each with a share of the keys. Its own
// Execute and Do find the server of the first key of each script and command, and follow
// redirections.
type Cluster interface {
	Client
	// Slots reports whether the servers redirect by the slots of a Redis cluster, and
	// refuse scripts with keys in several.
	Slots() bool
	// Find returns the server that has a key, to the best of the client's knowledge. It
	// may have to ask for that, the first time.
	Find(ctx context.Context, key string) (Server, error)
	// Masters returns the servers that have keys, by the newest that the client can learn.
	Masters(ctx context.Context) ([]Server, error)
	// Reload has the client ask which server has which keys, and does not wait for that.
	Reload()
}

// About is what a store has to know of a server and its client.
type About struct {
	// Address is the server's host and port, as a redirection to it names it.
	Address string
	// Punctual says that Execute and Do return when their context is over.
	Punctual bool
	// Most is how many connections to the server there may be, each with one request at
	// a time. 0: requests share connections.
	Most int
	// Connections is how many of these there are.
	Connections int
}
