package pagetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
)

// patience is for how long the test waits for anything. A machine that is busy with
// other tests is slow.
const patience = 2 * time.Minute

// A chromium is a headless browser that is driven by the DevTools protocol over two
// pipes: messages are JSON, each followed by a zero byte.
// (https://chromedevtools.github.io/devtools-protocol/)
type chromium struct {
	t       *testing.T
	to      *os.File
	session string // of the page, once it is attached to
	heard   func(method string, params json.RawMessage)

	mu      sync.Mutex
	calls   int
	waiting map[int]chan reply
	ended   chan struct{} // closed when the browser says nothing more
}

// A reply is a message of the browser: the result of a call, or an event.
type reply struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// startChromium starts a browser that ends with the test. It calls heard with every
// event of its page.
func startChromium(t *testing.T, heard func(method string, params json.RawMessage)) *chromium {
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("RATEGEN_REQUIRE_CHROMIUM") == "1" {
			t.Fatal("chromium is not installed, and RATEGEN_REQUIRE_CHROMIUM=1: apt-get install chromium")
		}
		t.Skip("chromium is not installed: apt-get install chromium")
	}
	profile, err := os.MkdirTemp("", "pagetest")
	limittest.OK(t, err)
	theirs, to, err := os.Pipe()
	limittest.OK(t, err)
	from, ours, err := os.Pipe()
	limittest.OK(t, err)
	var said bytes.Buffer
	cmd := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-extensions", "--font-render-hinting=none",
		"--remote-debugging-pipe", "--user-data-dir="+profile, "about:blank")
	cmd.ExtraFiles = []*os.File{theirs, ours}
	cmd.Stderr = &said
	cmd.WaitDelay = 5 * time.Second // its children may have the error output open
	limittest.OK(t, cmd.Start())
	_, _ = theirs.Close(), ours.Close()
	c := &chromium{t: t, to: to, heard: heard, waiting: make(map[int]chan reply), ended: make(chan struct{})}
	go c.listen(from)
	t.Cleanup(func() {
		_ = to.Close() // the browser ends with the pipe
		select {
		case <-c.ended:
		case <-time.After(10 * time.Second):
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		<-c.ended
		_ = from.Close()
		_ = os.RemoveAll(profile)
		if t.Failed() {
			t.Logf("chromium said: %.4000s", &said)
		}
	})
	c.attach()
	return c
}

// attach opens a page and listens to it.
func (c *chromium) attach() {
	c.t.Helper()
	target := call[struct{ TargetID string }](c, "Target.createTarget", args{"url": "about:blank"})
	c.session = call[struct{ SessionID string }](c, "Target.attachToTarget", args{"targetId": target.TargetID, "flatten": true}).SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		call[any](c, domain+".enable", nil)
	}
}

// listen hands on what the browser says.
func (c *chromium) listen(from *os.File) {
	defer close(c.ended)
	lines := bufio.NewReader(from)
	for {
		text, err := lines.ReadBytes(0)
		if err != nil {
			return
		}
		var r reply
		if json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &r) != nil {
			continue
		}
		if r.ID == 0 {
			c.heard(r.Method, r.Params)
			continue
		}
		c.mu.Lock()
		waits := c.waiting[r.ID]
		delete(c.waiting, r.ID)
		c.mu.Unlock()
		if waits != nil {
			waits <- r
		}
	}
}

// args are the parameters of a method.
type args map[string]any

// call calls a method of the protocol, and fails the test if that fails.
func call[T any](c *chromium, method string, params args) (result T) {
	c.t.Helper()
	result, err := try[T](c, method, params)
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	return result
}

func try[T any](c *chromium, method string, params args) (result T, err error) {
	message := args{"method": method, "params": params}
	if params == nil {
		message["params"] = args{}
	}
	if c.session != "" {
		message["sessionId"] = c.session
	}
	answer := make(chan reply, 1)
	c.mu.Lock()
	c.calls++
	message["id"] = c.calls
	c.waiting[c.calls] = answer
	c.mu.Unlock()
	text, err := json.Marshal(message)
	if err != nil {
		return result, err
	}
	if _, err := c.to.Write(append(text, 0)); err != nil {
		return result, err
	}
	select {
	case r := <-answer:
		if r.Error != nil {
			return result, fmt.Errorf("%s", r.Error.Message)
		}
		return result, json.Unmarshal(r.Result, &result)
	case <-c.ended:
		return result, fmt.Errorf("the browser has ended")
	case <-time.After(patience):
		return result, fmt.Errorf("no answer after %v", patience)
	}
}
