package twirpapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/twitchtv/twirp"
	"github.com/twitchtv/twirp/example"

	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/runtime"
)

type hats struct{}

func (hats) MakeHat(_ context.Context, size *example.Size) (*example.Hat, error) {
	return &example.Hat{Size: size.GetInches()}, nil
}

// fields notes the header of the last answer.
type fields struct{ header http.Header }

func (f *fields) Do(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultClient.Do(r)
	if err == nil {
		f.header = answer.Header
	}
	return answer, err
}

// A client of twirp reads the code, and when to come back.
func TestRefused(t *testing.T) {
	var last fields
	for name, c := range map[string]struct {
		limiter *runtime.Limiter
		calls   []twirp.ErrorCode
	}{
		"refused":     {refused.Limiter(t, runtime.WithRefusalError(asTwirp)), []twirp.ErrorCode{twirp.NoError, twirp.ResourceExhausted}},
		"unavailable": {refused.Down(t, runtime.WithRefusalError(asTwirp)), []twirp.ErrorCode{twirp.Unavailable}},
	} {
		server := httptest.NewServer(newHandler(hats{}, c.limiter))
		t.Cleanup(server.Close)
		client := example.NewHaberdasherJSONClient(server.URL, &last)
		for i, want := range c.calls {
			_, err := client.MakeHat(t.Context(), &example.Size{Inches: 12})
			code := twirp.NoError
			if e := twirp.Error(nil); errors.As(err, &e) {
				code = e.Code()
				refused.NoAddress(t, e.Msg())
			}
			if code != want {
				t.Errorf("%s, call %d: %q, %v; want %q", name, i, code, err, want)
			}
			if retry := last.header.Get("Retry-After"); (want == twirp.ResourceExhausted) != (retry == "3600") {
				t.Errorf("%s, call %d: Retry-After %q", name, i, retry)
			}
		}
	}
}
