package ratehttp

import (
	"maps"
	"net/http"
	"strings"
)

// dropped are fields that a refusal drops, and droppedStarts and droppedEnds how names of others
// begin and end. A key of [http.TrailerPrefix] is a trailer.
var dropped = func() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(`
		Accept-Ranges Etag Last-Modified Trailer Transfer-Encoding Digest Repr-Digest Unencoded-Digest Signature Signature-Input
		Delta-Base Im Sourcemap X-Sourcemap Location Refresh
		Age Cache-Control Edge-Control Expires No-Vary-Search Pragma Use-As-Dictionary Warning
		Cache-Tag Edge-Cache-Tag Edge-Cache-Key Netlify-Cache-Id Netlify-Vary X-Cache-Tags X-Ttl Xkey
		X-Lighttpd-Send-File X-Lighttpd-Send-Tempfile X-Litespeed-Location`) {
		all[name] = true
	}
	return all
}()

var (
	droppedStarts = [...]string{"Content-", http.TrailerPrefix, "Surrogate-", "X-Accel-", "X-Sendfile", "X-Reproxy-", "X-Appengine-Blob"}
	droppedEnds   = [...]string{"-Cache-Control", "-Cache-Tag", "-Surrogate-Control"}
)

// deleteTrailers deletes what would be sent after a body.
func deleteTrailers(h http.Header) {
	maps.DeleteFunc(h, func(name string, _ []string) bool { return strings.HasPrefix(name, http.TrailerPrefix) })
}

// drops reports whether a field goes when a refusal takes the place of the answer that it was
// set for: it describes the content, tells a cache to keep or find it, or has a proxy or
// browser replace it. Content-Encoding is not among them, as middleware sets it that encodes
// whatever comes.
func drops(name string) bool {
	name = http.CanonicalHeaderKey(name)
	if dropped[name] {
		return true
	}
	for _, start := range droppedStarts {
		if strings.HasPrefix(name, start) {
			return name != "Content-Encoding" && !strings.HasPrefix(name, "Content-Security-Policy")
		}
	}
	for _, end := range droppedEnds {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}
