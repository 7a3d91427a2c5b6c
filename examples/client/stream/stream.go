// Package stream is the client of a language model that limits requests and tokens a
// minute, and answers with streams.
package stream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
)

// A Model is a language model that all replicas call within its limits.
type Model struct {
	url    string
	client *http.Client
}

// A Prompt is what a model is asked.
type Prompt struct {
	Text      string
	MaxTokens int64 // of the answer
}

// New returns the model at a host, which allows 500 requests and 200,000 tokens a minute for
// each credential.
func New(limiter *runtime.Limiter, host, url string) (*Model, error) {
	requests := runtime.Rule{Name: "model.requests", Window: time.Minute, Max: 500}
	tokens := runtime.Rule{Name: "model.tokens", Window: time.Minute, Max: 200_000, Algorithm: runtime.TokenBucket}
	transport, err := rateclient.New(limiter, []rateclient.Peer{{
		Pattern: "POST " + host + "/",
		Limits: []rateclient.PeerLimit{
			{Rule: requests, Key: rateclient.Credential},
			{Rule: tokens, Key: rateclient.Credential, Cost: reserved},
		},
		Wait: time.Minute,
	}})
	if err != nil {
		return nil, err
	}
	return &Model{url, &http.Client{Transport: transport}}, nil
}

type reserve struct{}

// reserved returns how many tokens a request may take.
func reserved(r *http.Request) int64 {
	n, _ := r.Context().Value(reserve{}).(int64)
	return max(n, 1)
}

// Stream has the model answer, and calls each with the pieces. It reserves the tokens that
// the answer may take, and is charged those that it has taken when the stream is over.
func (m *Model) Stream(ctx context.Context, p Prompt, each func(piece string)) error {
	ctx, call := rateclient.WithCall(context.WithValue(ctx, reserve{}, int64(len(p.Text))/4+p.MaxTokens))
	body, err := json.Marshal(map[string]any{
		"messages":   []any{map[string]string{"role": "user", "content": p.Text}},
		"max_tokens": p.MaxTokens, "stream": true, "stream_options": map[string]bool{"include_usage": true},
	})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := m.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		call.Settle(ctx, -1, 0) // the request counts, and no tokens
		return fmt.Errorf("the model answers %s", response.Status)
	}
	used, err := read(response.Body, each)
	call.Settle(ctx, -1, used)
	return err
}

// read reads a stream, and returns how many tokens it says it has taken, or -1: then what
// was reserved stays charged.
func read(stream io.Reader, each func(piece string)) (used int64, err error) {
	used = -1
	for lines := bufio.NewScanner(stream); ; {
		if !lines.Scan() {
			if err = lines.Err(); err == nil {
				err = io.ErrUnexpectedEOF
			}
			return used, err
		}
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		if string(data) == "[DONE]" {
			return used, nil
		}
		var chunk struct {
			Choices []struct {
				Delta struct{ Content string }
			}
			Usage *struct {
				Total int64 `json:"total_tokens"`
			}
		}
		if err := json.Unmarshal(data, &chunk); err != nil {
			return used, err
		}
		for _, choice := range chunk.Choices {
			each(choice.Delta.Content)
		}
		if chunk.Usage != nil {
			used = chunk.Usage.Total
		}
	}
}
