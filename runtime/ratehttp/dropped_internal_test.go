package ratehttp

import (
	"strings"
	"testing"
)

// What belongs to the content, to caches and to proxies that replace it is dropped, and nothing else.
func TestDrops(t *testing.T) {
	for names, want := range map[string]bool{
		"ETag Last-Modified Accept-Ranges Content-Range Content-Disposition Content-Language Content-Length Content-Location Content-Type Content-MD5 Content-Digest Repr-Digest Digest Trailer Trailer:X-Sum":                                      true,
		"Cache-Control CDN-Cache-Control Cloudflare-CDN-Cache-Control Netlify-CDN-Cache-Control Vercel-CDN-Cache-Control X-LiteSpeed-Cache-Control Surrogate-Control Surrogate-Key Edge-Control Cache-Tag Edge-Cache-Tag Expires Pragma Age":        true,
		"X-Accel-Redirect x-accel-expires X-Accel-Buffering X-Accel-Limit-Rate X-Sendfile X-Sendfile-Type X-LIGHTTPD-send-file X-LiteSpeed-Location X-Reproxy-URL X-AppEngine-BlobKey Location Refresh":                                             true,
		"Content-Encoding Content-Security-Policy Content-Security-Policy-Report-Only Vary Set-Cookie Date Link Access-Control-Allow-Origin X-Content-Type-Options X-Request-Id Strict-Transport-Security WWW-Authenticate RateLimit X-Accelerated": false,
	} {
		for name := range strings.FieldsSeq(names) {
			if drops(name) != want {
				t.Errorf("%s is dropped: %t", name, !want)
			}
		}
	}
}
