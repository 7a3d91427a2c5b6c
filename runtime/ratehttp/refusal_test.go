package ratehttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
)

const types = "https://iana.org/assignments/http-problem-types#"

func bodyOf(t testing.TB, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	limittest.OK(t, err)
	return string(body)
}

// failing returns a store that decides nothing.
func failing() runtime.Store { return rawstore.New(mute{}, nil) }

type mute struct{ terms.Store }

var errSecret = errors.New("10.1.2.3:6379: secret")

func (mute) Take(context.Context, []terms.Call) error { return errSecret }

// A rule that has no room, with a message.
var (
	full    = &runtime.Rule{Name: "shop.Orders.Place", Window: time.Minute, Max: 1, Message: "喝杯茶再来 \"<tea>\""}
	nobody  = &runtime.Rule{Name: "nobody", Window: time.Minute, Max: 0}
	another = &runtime.Rule{Name: "another", Window: time.Hour, Max: 1}
	hourly  = &runtime.Rule{Name: "hourly", Window: time.Hour, Max: 1000}
)

type statusError int

func (e statusError) Error() string   { return "10.1.2.3: secret" }
func (e statusError) StatusCode() int { return int(e) }
