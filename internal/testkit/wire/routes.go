package wire

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/rategen/rategen/runtime/ratehttp"
)

// A Call is one of a framework.
type Call struct {
	Context      context.Context
	Param, Query func(name string, others ...string) string
	Set          func(name, value string) // a field of the answer
	Send         func(text string) error  // a body
}

// A Route is one that a server is to have. An error of Do is to be handled in the way of the framework.
type Route struct {
	Method, Path string // as /orders/:id
	Do           func(Call) error
}

// Login is the path of the route that is to be behind the limit [Service.Login].
const Login = "/login"

// Routes returns the routes that [Check] asks for, in a framework that has errors with a status. All but /orders hide what
// refuses: /hidden by a status that says nothing, /lost by an error that has the text alone, and /meant by one of the program's.
func (s *Service) Routes(status func(code int) error) []Route {
	show := func(form func(error) error) func(Call) error {
		return func(c Call) error {
			c.Set("X-Accel-Redirect", "/private/order")
			order, err := s.Show(c.Context, c.Param("id"))
			if err != nil {
				return form(err)
			}
			return c.Send(order)
		}
	}
	return []Route{
		{"GET", "/orders/:id", show(func(err error) error { return err })},
		{"GET", "/hidden/:id", show(func(error) error { return status(500) })},
		{"GET", "/lost/:id", show(func(err error) error { return errors.New(err.Error()) })},
		{"GET", "/meant/:id", show(func(error) error { return status(404) })},
		{"GET", "/down", func(c Call) error { return s.Down(c.Context) }},
		{"GET", "/client", func(c Call) error { return c.Send(ratehttp.ClientIP(c.Context)) }},
		{"GET", "/missing", func(Call) error { return status(404) }},
		{"POST", Login, func(c Call) error {
			if c.Query("password") != "right" {
				return status(401)
			}
			return c.Send("")
		}},
	}
}

// First is a function of one name in the form of a [Call]'s.
func First(of func(string) string) func(string, ...string) string {
	return func(name string, _ ...string) string { return of(name) }
}

// Serve serves on a port of this machine until the test ends.
func Serve(t *testing.T, serve func(net.Listener) error, stop func() error) (url string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- serve(listener) }()
	t.Cleanup(func() {
		if err := errors.Join(stop(), <-served); err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}
