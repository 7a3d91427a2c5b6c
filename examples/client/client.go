// Package client has the recipes of docs/recipes.md: the client of a REST API, and that of a
// language model, whose limits all replicas of a program share.
package client

import (
	"net/http"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
)

// New returns a client of the API at a host, which allows 100 requests in 10 seconds for
// each credential.
func New(limiter *runtime.Limiter, host string) (*http.Client, error) {
	transport, err := rateclient.New(limiter, []rateclient.Peer{{
		Pattern: host + "/",
		Limits: []rateclient.PeerLimit{{
			Rule: runtime.Rule{Name: "payments", Window: 10 * time.Second, Max: 100},
			Key:  rateclient.Credential,
		}},
		Wait:    30 * time.Second,
		Retries: 2,
	}})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport}, nil
}
