package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/rategen/rategen/runtime/rateclient"
)

//go:generate go tool rategen

// A Model is the client of a language model. Its provider allows 500 requests and 90,000
// tokens in a minute.
type Model interface {
	// Complete has the model answer a prompt. It reserves the tokens that the answer may
	// have, and is charged those that it has.
	//
	//ratelimit:rate=500/m storage=packed wait=30s hold=retryAfter(#err)
	//ratelimit:name=client.Model.tokens algorithm=token-bucket rate=90000/m wait=30s cost=#maxTokens settle=tokens(#answer)
	Complete(ctx context.Context, prompt string, maxTokens int) (answer *Answer, err error)
}

// An Answer is what the model has answered.
type Answer struct {
	Text  string
	Usage *Usage // nil: the provider has not said
}

// Usage is what an answer costs.
type Usage struct{ Tokens int }

// tokens returns what an answer costs, or -1: what was reserved.
func tokens(a *Answer) int {
	if a == nil || a.Usage == nil {
		return -1
	}
	return a.Usage.Tokens
}

// A ProviderError is the error of an SDK.
type ProviderError struct {
	StatusCode int
	Header     http.Header
}

func (e *ProviderError) Error() string { return http.StatusText(e.StatusCode) }

// retryAfter returns for how long nobody is to call the provider: what it has said when
// it has refused a call, or else a second.
func retryAfter(err error) time.Duration {
	failure, ok := errors.AsType[*ProviderError](err)
	if !ok {
		return 0
	}
	answer := rateclient.ReadAnswer(failure.StatusCode, failure.Header, time.Now())
	if !answer.Refused {
		return 0
	}
	return cmp.Or(answer.HoldOff, time.Second)
}
