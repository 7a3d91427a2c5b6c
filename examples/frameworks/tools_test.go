package frameworks

import (
	"regexp"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rategen/rategen/examples/frameworks/mcpapi"
	"github.com/rategen/rategen/examples/frameworks/mcpgoapi"
	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/runtime"
)

// A search calls a tool, as a model's program does.
type search func(text string) (failed bool, answer string)

// A model is told when to come back, by a result that is an error and no failure of the protocol.
// An outage is told without the address of a server.
func TestTools(t *testing.T) {
	for name, of := range map[string]func(*testing.T, *runtime.Limiter) search{"the official SDK": official, "mcp-go": community} {
		t.Run(name, func(t *testing.T) {
			call := of(t, refused.Limiter(t))
			if failed, text := call("tea"); failed || !strings.Contains(text, "order 1") {
				t.Fatalf("the first call: %s", text)
			}
			want := regexp.MustCompile(`^one search an hour for a text, try again in (1h|59m\d+s)$`)
			if failed, text := call("tea"); !failed || !want.MatchString(text) {
				t.Errorf("the second call: error %t, %s", failed, text)
			}
			if failed, text := call("cups"); failed {
				t.Errorf("another text: %s", text)
			}
			if failed, text := of(t, refused.Down(t))("tea"); !failed || text != runtime.ErrUnavailable.Error() {
				t.Errorf("an outage: error %t, %s", failed, text)
			}
		})
	}
}

func official(t *testing.T, limiter *runtime.Limiter) search {
	near, far := mcp.NewInMemoryTransports()
	serving, err := mcpapi.NewServer(limiter).Connect(t.Context(), far, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), near, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Close(), serving.Wait() })
	return func(text string) (bool, string) {
		result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "search", Arguments: map[string]any{"text": text}})
		if err != nil || len(result.Content) != 1 {
			t.Fatalf("%+v, %v", result, err)
		}
		return result.IsError, result.Content[0].(*mcp.TextContent).Text
	}
}

func community(t *testing.T, limiter *runtime.Limiter) search {
	c, err := client.NewInProcessClient(mcpgoapi.NewServer(limiter))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var hello mcpgo.InitializeRequest
	hello.Params.ProtocolVersion = mcpgo.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcpgo.Implementation{Name: "test", Version: "1"}
	if _, err := c.Initialize(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	return func(text string) (bool, string) {
		var call mcpgo.CallToolRequest
		call.Params.Name, call.Params.Arguments = "search", map[string]any{"text": text}
		result, err := c.CallTool(t.Context(), call)
		if err != nil || len(result.Content) != 1 {
			t.Fatalf("%+v, %v", result, err)
		}
		return result.IsError, result.Content[0].(mcpgo.TextContent).Text
	}
}
