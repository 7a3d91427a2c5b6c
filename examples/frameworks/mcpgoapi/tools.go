// Package mcpgoapi limits the tools of an MCP server on mcp-go.
package mcpgoapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/rategen/rategen/runtime"
)

//go:generate go tool rategen

// A Query is the input of a search.
type Query struct {
	Text string `json:"text"`
}

// Tools are handlers of tools.
type Tools interface {
	// Search finds orders.
	//
	//ratelimit:key=#in.Text window=1h max=1 message="one search an hour for a text" deny=toolError(#err)
	Search(ctx context.Context, request mcp.CallToolRequest, in Query) (*mcp.CallToolResult, error)
}

// toolError makes a result of a refusal, with the time to come back in its text: a model
// sees nothing else of it. An error would be one of the protocol.
func toolError(err error) (*mcp.CallToolResult, error) {
	limited, ok := errors.AsType[*runtime.LimitedError](err)
	switch {
	case !ok:
		return mcp.NewToolResultError("the tool is not available now, try again later"), nil
	case limited.RetryAfter == runtime.Never:
		return mcp.NewToolResultError(limited.Error()), nil
	}
	wait := limited.RetryAfter.Truncate(time.Second) + time.Second
	return mcp.NewToolResultError(fmt.Sprintf("%s: try again in %v", limited, wait)), nil
}

// newServer returns a server whose tools are behind their limits.
func newServer(tools Tools, limiter *runtime.Limiter) *server.MCPServer {
	s := server.NewMCPServer("orders", "1")
	limited := NewRateLimitedTools(tools, limiter)
	s.AddTool(mcp.NewTool("search", mcp.WithInputSchema[Query]()), mcp.NewTypedToolHandler(limited.Search))
	return s
}
