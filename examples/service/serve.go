package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// shutdownTimeout is how long running requests may take to finish.
const shutdownTimeout = 5 * time.Second

// listenAndServe serves h at addr until ctx ends. Then it calls stop, which ends
// the requests that do not end by themselves.
func listenAndServe(ctx context.Context, addr string, h http.Handler, stop func(), out io.Writer) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	fmt.Fprintf(out, "Listening on %s. Ask it six times: curl -i localhost:%s/employees/1001\n", l.Addr(), port)
	fmt.Fprintf(out, "Watch its limits: http://localhost:%s/limits/\n", port)
	return serve(ctx, l, h, stop)
}

// serve serves h on l until ctx ends. Then it calls stop, and lets running requests
// finish.
func serve(ctx context.Context, l net.Listener, h http.Handler, stop func()) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	server.RegisterOnShutdown(stop)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := server.Shutdown(limited)
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
