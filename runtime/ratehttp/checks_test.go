package ratehttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// A lineHandler panics with every line.
type lineHandler struct{ slog.Handler }

func (lineHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (lineHandler) Handle(context.Context, slog.Record) error { panic("handle") }

// A program that asks for the client outside of a request is told, once.
func TestNoClient(t *testing.T) {
	var log bytes.Buffer
	ratehttp.SetStandard(t, ratehttp.WithLogger(slog.New(slog.NewJSONHandler(&log, nil))))
	for range 3 {
		limittest.Equal(t, "no client", ratehttp.ClientIP(t.Context()), "unknown")
	}
	var line struct{ Level, Msg, Code, Help string }
	if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.Level != "WARN" || line.Code != "no_client" || line.Help == "" || line.Msg == "" {
		t.Errorf("%v %q", err, log.String())
	}
}
