// Package limitfields reads what the fields of an answer of HTTP say about limits, in the forms that
// services write: when to come back, and quotas. It never fails: what is malformed says nothing, and
// what has no end is read up to a bound. It decides nothing.
package limitfields

import (
	"net/http"
	"time"
)

// MaxQuotas is how many quotas are read.
const MaxQuotas = 16

// Requests is the unit of quotas that name none.
const Requests = "requests"

// A Quota is what an answer says about one limit. Its fields are those of package rateclient, which
// says what each means.
type Quota struct {
	Name, Unit string
	Limit      int64
	Window     time.Duration
	Remaining  int64
	Reset      time.Duration
	Gradual    bool // Reset is when all of the quota is back, and some of it is sooner
}

// Read returns what an answer that has arrived at now says: the time until the client may come back,
// and whether any was said, and quotas. A cached answer has none.
func Read(header http.Header, now time.Time) (wait time.Duration, said bool, quotas []Quota) {
	r := reader{header: header, now: now}
	wait, said = r.retryAfter()
	if age := header["Age"]; len(age) == 0 || age[0] == "0" {
		quotas = r.quotas()
	}
	return wait, said, quotas
}
