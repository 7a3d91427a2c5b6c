// Package gateway limits the use of a language model by requests and by tokens, for
// each tenant and for all of them.
package gateway

import "context"

//go:generate go tool rategen

// A Request is what a tenant asks.
type Request struct {
	Tenant    string
	Prompt    string
	MaxTokens int64 // of the answer; 0: as many as the gateway allows
}

// A Response is what the model answers.
type Response struct {
	Text  string
	Usage struct{ TotalTokens int64 }
}

// Model is the service.
type Model interface {
	// Complete has the model answer.
	//
	//ratelimit:key=#req.Tenant max=60 name=gateway.requests
	//ratelimit:key=#req.Tenant max=100_000 algorithm=token-bucket cost=reserve(#req) settle=used(#resp) refund="#err != nil" name=gateway.tokens
	//ratelimit:max=1000 algorithm=sliding-counter name=gateway.requests.all
	//ratelimit:max=1_000_000 algorithm=token-bucket cost=reserve(#req) settle=used(#resp) refund="#err != nil" name=gateway.tokens.all
	Complete(ctx context.Context, req Request) (resp *Response, err error)
}

// reserve returns how many tokens a request may take: those of its prompt, about one
// for four bytes, and those of the answer. A caller's MaxTokens is not believed to be
// above 0: a cost of 0 would pass every limit.
func reserve(req Request) int64 {
	const most = 8192
	answer := req.MaxTokens
	if answer <= 0 || answer > most {
		answer = most
	}
	return int64(len(req.Prompt)/4) + answer
}

// used returns how many tokens a call has used. A model that does not say counts as it
// has reserved.
func used(resp *Response) int64 {
	if resp == nil || resp.Usage.TotalTokens == 0 {
		return -1
	}
	return resp.Usage.TotalTokens
}
