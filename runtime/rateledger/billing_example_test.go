package rateledger

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// A sender sends a delta to a billing system, whose address and secret it has. No error means that the
// system has it, from now on or from a time before.
type sender func(ctx context.Context, address, secret string, d Delta) error

// sendToStripe sends a delta to a meter whose name is the rule's. Stripe knows an identifier for a day,
// and takes events of the last 35 days.
func sendToStripe(ctx context.Context, address, secret string, d Delta) error {
	form := url.Values{
		"event_name": {d.Rule}, "identifier": {d.ID}, "timestamp": {strconv.FormatInt(d.Time().Unix(), 10)},
		"payload[stripe_customer_id]": {d.Subject}, "payload[value]": {strconv.FormatInt(d.Amount, 10)},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/v1/billing/meter_events", strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.SetBasicAuth(secret, "")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return send(r, http.StatusBadRequest, "already exists with identifier")
}

// sendToLago sends a delta to a billable metric whose code is the rule's name, and that is a sum of amount.
func sendToLago(ctx context.Context, address, secret string, d Delta) error {
	return sendJSON(ctx, address, secret, "application/json", map[string]any{"event": map[string]any{
		"transaction_id": d.ID, "external_subscription_id": d.Subject, "code": d.Rule,
		"timestamp": d.Time().Unix(), "properties": map[string]any{"amount": d.Amount},
	}}, http.StatusUnprocessableEntity, "value_already_exist")
}

// sendToOpenMeter sends a delta as a CloudEvent, to a meter of the type rategen.usage that is a sum of
// $.amount, grouped by $.rule.
func sendToOpenMeter(ctx context.Context, address, secret string, d Delta) error {
	return sendJSON(ctx, address, secret, "application/cloudevents+json", d, 0, "")
}

// sendJSON sends an event as [send] does.
func sendJSON(ctx context.Context, address, secret, media string, event any, status int, text string) error {
	body, err := json.Marshal(event)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/api/v1/events", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("Content-Type", media)
	return send(r, status, text)
}

// send sends a request. An answer of a status that has a text says that the delta was sent before.
func send(r *http.Request, status int, text string) error {
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil || resp.StatusCode/100 == 2 || resp.StatusCode == status && bytes.Contains(body, []byte(text)) {
		return err
	}
	return fmt.Errorf("%s: %.200s", resp.Status, body)
}

// Deltas are sent, and then the cursor is kept. A crash between sends some of them once more, by the
// same IDs.
func ExampleLedger_Deltas() {
	bill := func(ctx context.Context, ledger *Ledger, cursor string, keep func(string) error) error {
		for {
			deltas, next, err := ledger.Deltas(ctx, cursor)
			if err != nil || len(deltas) == 0 {
				return err // and again in a minute
			}
			for _, d := range deltas {
				if err := sendToStripe(ctx, "https://api.stripe.com", "sk_…", d); err != nil {
					return err
				}
			}
			if err := keep(next); err != nil {
				return err
			}
			cursor = next
		}
	}
	_ = bill
}
