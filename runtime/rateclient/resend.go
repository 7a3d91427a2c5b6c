package rateclient

import "net/http"

// resendable returns a request to send in place of one that the peer has refused, or nil
// if it cannot be sent again.
func resendable(r *http.Request) (*http.Request, error) {
	if !idempotent(r) {
		return nil, nil
	}
	again := r.WithContext(r.Context()) // a copy
	if r.Body == nil || r.Body == http.NoBody {
		return again, nil
	}
	if r.GetBody == nil {
		return nil, nil
	}
	body, err := r.GetBody()
	again.Body = body
	return again, err
}

// idempotent reports whether a request may arrive twice, as [http.Transport] has it.
func idempotent(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return len(r.Header["Idempotency-Key"])+len(r.Header["X-Idempotency-Key"]) > 0
}

// discard ends a response that nobody reads. Its connection is used again if 64 KiB of the body, in
// any form, and a second are enough to reach its end.
func discard(response *http.Response) {
	peek(response, mostBody+1)
	_ = response.Body.Close()
}
