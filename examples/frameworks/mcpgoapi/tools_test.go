package mcpgoapi

import (
	"context"
	"regexp"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/runtime"
)

type tools struct{}

func (tools) Search(context.Context, mcp.CallToolRequest, Query) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText("order 1"), nil
}

// search returns a function that calls the tool, as a model's program does.
func search(t *testing.T, limiter *runtime.Limiter) func(text string) (failed bool, answer string) {
	t.Helper()
	c, err := client.NewInProcessClient(newServer(tools{}, limiter))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "test", Version: "1"}
	if _, err := c.Initialize(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	return func(text string) (bool, string) {
		t.Helper()
		var call mcp.CallToolRequest
		call.Params.Name, call.Params.Arguments = "search", map[string]any{"text": text}
		result, err := c.CallTool(t.Context(), call)
		if err != nil || len(result.Content) != 1 {
			t.Fatalf("%+v, %v", result, err)
		}
		return result.IsError, result.Content[0].(mcp.TextContent).Text
	}
}

// A model is told when to come back, by a result that is an error and no failure of the
// protocol.
func TestRefused(t *testing.T) {
	call := search(t, refused.Limiter(t))
	if failed, text := call("tea"); failed || text != "order 1" {
		t.Fatalf("the first call: %s", text)
	}
	want := regexp.MustCompile(`^one search an hour for a text, try again in (1h|59m\d+s)$`)
	if failed, text := call("tea"); !failed || !want.MatchString(text) {
		t.Errorf("the second call: error %t, %s", failed, text)
	}
	if failed, text := call("cups"); failed {
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
