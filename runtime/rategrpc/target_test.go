package rategrpc

import (
	"testing"

	"github.com/rategen/rategen/internal/testkit/limittest"
)

// The pattern of a peer is met by every spelling of its target.
func TestHostOf(t *testing.T) {
	for target, host := range map[string]string{
		"api.example.com:443":                    "api.example.com:443",
		"api.example.com":                        "api.example.com",
		"dns:api.example.com:443":                "api.example.com:443",
		"dns:///api.example.com:443":             "api.example.com:443",
		"DNS:///api.example.com":                 "api.example.com",
		"dns://10.0.0.1:53/api.example.com:443":  "api.example.com:443",
		"passthrough:api.example.com:443":        "api.example.com:443",
		"passthrough:///api.example.com:443":     "api.example.com:443",
		"xds:///api.example.com":                 "api.example.com",
		"xds://server/api.example.com:80":        "api.example.com:80",
		"own://x/api.example.com:80?weight=1":    "api.example.com:80",
		"ipv4:10.0.0.1:80,10.0.0.2:80":           "10.0.0.1:80",
		"localhost:50051":                        "localhost:50051",
		"unix:/run/api.sock":                     "localhost",
		"unix:api.sock":                          "localhost",
		"unix:///run/api.sock":                   "localhost",
		"unix-abstract:api":                      "localhost",
		"passthrough:///unix:///run/api.sock":    "localhost",
		"dns:///[2001:db8::1]:443":               "[2001:db8::1]:443",
		"ipv6:[2001:db8::1]:80,[2001:db8::2]:80": "[2001:db8::1]:80",
	} {
		limittest.Equal(t, target, hostOf(target), host)
	}
}
