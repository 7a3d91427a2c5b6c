package mcpapi

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/runtime"
)

type tools struct{}

func (tools) Search(context.Context, *mcp.CallToolRequest, Query) (*mcp.CallToolResult, Found, error) {
	return nil, Found{Orders: []string{"order 1"}}, nil
}

// A model is told when to come back, by a result that is an error and no failure of the
// connection.
func TestRefused(t *testing.T) {
	search := search(t, refused.Limiter(t))
	if failed, text := search("tea"); failed || !strings.Contains(text, "order 1") {
		t.Fatalf("the first call: %s", text)
	}
	want := regexp.MustCompile(`^one search an hour for a text, try again in (1h|59m\d+s)$`)
	if failed, text := search("tea"); !failed || !want.MatchString(text) {
		t.Errorf("the second call: error %t, %s", failed, text)
	}
	if failed, text := search("cups"); failed {
		t.Errorf("another text: %s", text)
	}
}

// An outage is told without the address of a server.
func TestUnavailable(t *testing.T) {
	failed, text := search(t, refused.Down(t))("tea")
	if !failed || text != runtime.ErrUnavailable.Error() {
		t.Errorf("an outage: error %t, %s", failed, text)
	}
}

// search returns a function that calls the tool, as a model's program does.
func search(t *testing.T, limiter *runtime.Limiter) func(text string) (failed bool, answer string) {
	t.Helper()
	server := newServer(tools{}, limiter)
	near, far := mcp.NewInMemoryTransports()
	serving, err := server.Connect(t.Context(), far, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), near, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), serving.Wait() })
	return func(text string) (bool, string) {
		t.Helper()
		result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "search", Arguments: map[string]any{"text": text}})
		if err != nil || len(result.Content) != 1 {
			t.Fatalf("%+v, %v", result, err)
		}
		return result.IsError, result.Content[0].(*mcp.TextContent).Text
	}
}
