package rateledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/internal/testkit/seed"
	"github.com/rategen/rategen/runtime/rule"
)

// A receiver is a billing system, as its documentation says: it takes each identifier once.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	events map[string]event
	again  int // how often an event came that it had
}

type event struct {
	Rule, Subject string
	Amount        int64
	Time          int64
}

// receive starts one that reads events by read, and answers those that it has by a status and a text.
func receive(t *testing.T, read func(*http.Request) (id string, e event, err error), status int, text string) *receiver {
	c := &receiver{events: map[string]event{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, e, err := read(r)
		if err != nil || id == "" {
			t.Errorf("%s: %q, %v", r.URL, id, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		had, has := c.events[id]
		if has && had != e {
			t.Errorf("%s was %v, and is %v now", id, had, e)
		}
		c.events[id] = e
		if has {
			c.again++
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func readStripe(r *http.Request) (string, event, error) {
	user, _, _ := r.BasicAuth()
	amount, err := strconv.ParseInt(r.PostFormValue("payload[value]"), 10, 64)
	at, wrong := strconv.ParseInt(r.PostFormValue("timestamp"), 10, 64)
	if r.URL.Path != "/v1/billing/meter_events" || user != "secret" {
		err = errors.New("another path, or no key")
	}
	return r.PostFormValue("identifier"), event{r.PostFormValue("event_name"), r.PostFormValue("payload[stripe_customer_id]"), amount, at}, errors.Join(err, wrong)
}

func readLago(r *http.Request) (string, event, error) {
	var body struct {
		Event struct {
			TransactionID string `json:"transaction_id"`
			Subscription  string `json:"external_subscription_id"`
			Code          string
			Timestamp     int64
			Properties    struct{ Amount int64 }
		}
	}
	err := readJSON(r, "/api/v1/events", "application/json", &body)
	e := body.Event
	return e.TransactionID, event{e.Code, e.Subscription, e.Properties.Amount, e.Timestamp}, err
}

func readOpenMeter(r *http.Request) (string, event, error) {
	var body struct {
		SpecVersion, ID, Source, Type, Subject, DataContentType string
		Time                                                    time.Time
		Data                                                    struct {
			Rule   string
			Amount int64
		}
	}
	err := readJSON(r, "/api/v1/events", "application/cloudevents+json", &body)
	if body.SpecVersion != "1.0" || body.Source != "/rategen/test" || body.Type != "rategen.usage" || body.DataContentType != "application/json" {
		err = errors.Join(err, fmt.Errorf("no CloudEvent: %+v", body))
	}
	return body.ID, event{body.Data.Rule, body.Subject, body.Data.Amount, body.Time.Unix()}, err
}

func readJSON(r *http.Request, path, media string, body any) error {
	text, err := io.ReadAll(r.Body)
	if r.URL.Path != path || r.Header.Get("Content-Type") != media || r.Header.Get("Authorization") != "Bearer secret" {
		err = errors.New("another path or type, or no key")
	}
	return errors.Join(err, json.Unmarshal(text, body))
}

// TestDeltas has three billing systems read what processes use, each from its own cursor, and crash
// between any two steps: each is charged for each unit once.
func TestDeltas(t *testing.T) {
	random := seed.New(t)
	pool, client := database(t), redistest.Start(t).Client(t)
	sink, err := NewPostgres(t.Context(), pool)
	ok(t, err)
	c, all := counts{used: map[string]int64{}}, rules()
	first, second := begin(t, client, sink, all), begin(t, client, sink, all)
	systems := []struct {
		*receiver
		send   sender
		cursor string
	}{
		{receive(t, readStripe, http.StatusBadRequest, "An event already exists with identifier x."), sendToStripe, ""},
		{receive(t, readLago, http.StatusUnprocessableEntity, `{"error_details":{"transaction_id":["value_already_exist"]}}`), sendToLago, ""},
		{receive(t, readOpenMeter, http.StatusNoContent, ""), sendToOpenMeter, ""},
	}
	read := func(i int, l *Ledger, crash func() bool) (some bool) {
		s := &systems[i]
		deltas, next, err := l.Deltas(t.Context(), s.cursor)
		ok(t, err)
		for _, d := range deltas {
			if crash() {
				return true
			}
			ok(t, s.send(t.Context(), s.URL, "secret", d))
		}
		if !crash() {
			s.cursor = next
		}
		return len(deltas) > 0
	}
	for range 30 {
		for range random.IntN(40) {
			cost := 1 + random.Int64N(20)
			p := []*process{first, second}[random.IntN(2)]
			p.use(t, &c, all[random.IntN(len(all))], fmt.Sprint("k", random.IntN(5)), cost, random.Int64N(cost+10))
		}
		ok(t, errors.Join(first.ledger.Flush(t.Context()), second.ledger.Flush(t.Context())))
		var group sync.WaitGroup
		for i := range systems {
			dice := rand.New(rand.NewPCG(random.Uint64(), 3))
			group.Go(func() { read(i, []*process{first, second}[i%2].ledger, func() bool { return dice.IntN(8) == 0 }) })
		}
		group.Wait()
	}
	ok(t, errors.Join(first.end(), second.end()))
	for i := range systems {
		for read(i, second.ledger, func() bool { return false }) {
		}
		sums := map[string]int64{}
		for _, e := range systems[i].events {
			sums[e.Rule+" "+e.Subject] += e.Amount
			if age := time.Since(time.Unix(e.Time, 0)); age < -time.Minute || age > time.Hour {
				t.Errorf("%v is %v old", e, age)
			}
		}
		want := map[string]int64{}
		for key, used := range c.used {
			if name, k, _ := strings.Cut(key, " "); name == "hashes" {
				key = fmt.Sprintf("%s %x", name, keyOf(&rule.Rule{Ledger: rule.LedgerHash}, k))
			}
			if used != 0 || sums[key] != 0 {
				want[key] = used
			}
		}
		for key, sum := range sums {
			if sum == 0 && want[key] == 0 {
				delete(sums, key)
				delete(want, key)
			}
		}
		if diff := cmp.Diff(want, sums); diff != "" {
			t.Errorf("system %d is charged, -want +got:\n%s", i, diff)
		}
		if systems[i].again == 0 {
			t.Errorf("system %d got nothing twice", i)
		}
	}
	// What was sent may be deleted, which charges nobody again.
	_, err = pool.Exec(t.Context(), "DELETE FROM ledger_delta")
	ok(t, err)
	if deltas, _, err := second.ledger.Deltas(t.Context(), ""); err != nil || len(deltas) > 0 {
		t.Errorf("%d deltas after those that were sent, %v", len(deltas), err)
	}
}
