package ratehttp

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rategen/rategen/runtime/ratefield"
)

// A protocol is a way of calling procedures over HTTP whose clients do not read the
// status and body of a problem document. A gRPC client takes HTTP's 429 for
// UNAVAILABLE, for example, which it may try again at once.
type protocol struct {
	mediaType string // of the answer
	answer    func(w http.ResponseWriter, mediaType string, a Answer)
}

// protocols are the values of Content-Type by which requests are known, without
// parameters. The answer never repeats the client's own text.
var protocols = func() map[string]protocol {
	all := map[string]protocol{}
	for _, codec := range [...]string{"", "+proto", "+json"} {
		for _, grpc := range [...]string{"application/grpc", "application/grpc-web", "application/grpc-web-text"} {
			all[grpc+codec] = protocol{grpc + codec, answerGRPC}
		}
		stream := "application/connect" + codec
		if codec != "" {
			all[stream] = protocol{stream, answerConnectStream}
		}
	}
	return all
}()

var connectUnary = protocol{"application/json", answerConnect}

// protocolOf returns the protocol of a request, or nil if it is plain HTTP.
func protocolOf(r *http.Request) *protocol {
	mediaType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	mediaType = strings.ToLower(strings.Trim(mediaType, " \t"))
	if p, ok := protocols[mediaType]; ok {
		return &p
	}
	if strings.HasPrefix(mediaType, "application/grpc+") { // a codec of the program's own
		return &protocol{"application/grpc", answerGRPC}
	}
	if r.Header.Get("Connect-Protocol-Version") == "1" ||
		r.Method == http.MethodGet && strings.Contains(r.URL.RawQuery, "connect=v1") && r.URL.Query().Get("connect") == "v1" {
		return &connectUnary
	}
	return nil
}

// The codes of gRPC, and their names in the Connect protocol.
var codes = map[int]struct {
	number int
	name   string
}{
	http.StatusTooManyRequests:     {8, "resource_exhausted"},
	http.StatusServiceUnavailable:  {14, "unavailable"},
	http.StatusForbidden:           {7, "permission_denied"},
	http.StatusInternalServerError: {13, "internal"},
}

func codeOf(status int) (number int, name string) {
	code, ok := codes[status]
	if !ok {
		return 2, "unknown"
	}
	return code.number, code.name
}

// answerGRPC writes an answer without messages, whose header is its trailer as well:
// "Trailers-Only" in gRPC's description of HTTP/2, and the same in gRPC-Web. The
// fields of the draft may stand in it, because it is one header section.
func answerGRPC(w http.ResponseWriter, mediaType string, a Answer) {
	number, _ := codeOf(a.Status)
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Grpc-Status", strconv.Itoa(number))
	h.Set("Grpc-Message", grpcMessage(a.Detail))
	if a.RetryAfter > 0 {
		h.Set("Grpc-Status-Details-Bin", base64.RawStdEncoding.EncodeToString(statusWithRetry(number, a)))
	}
	w.WriteHeader(http.StatusOK)
}

// answerConnect writes the error of a call with one request and one response.
func answerConnect(w http.ResponseWriter, mediaType string, a Answer) {
	body, _ := json.Marshal(connectErrorOf(a)) // strings alone
	send(w, a.Status, mediaType, body)
}

// answerConnectStream writes a stream that ends at once, with an error.
func answerConnectStream(w http.ResponseWriter, mediaType string, a Answer) {
	const endOfStream = 0x02
	end, _ := json.Marshal(map[string]connectError{"error": connectErrorOf(a)}) // strings alone
	body := binary.BigEndian.AppendUint32([]byte{endOfStream}, uint32(len(end)))
	send(w, http.StatusOK, mediaType, append(body, end...))
}

// A connectError is an error of the Connect protocol.
type connectError struct {
	Code    string          `json:"code"`
	Message string          `json:"message,omitempty"`
	Details []connectDetail `json:"details,omitempty"`
}

type connectDetail struct {
	Type  string `json:"type"`
	Value string `json:"value"` // in base64 without padding
}

func connectErrorOf(a Answer) connectError {
	_, name := codeOf(a.Status)
	e := connectError{Code: name, Message: a.Detail}
	if a.RetryAfter > 0 {
		e.Details = []connectDetail{{retryInfo, base64.RawStdEncoding.EncodeToString(retryInfoOf(a.RetryAfter))}}
	}
	return e
}

const retryInfo = "google.rpc.RetryInfo"

// retryInfoOf returns a google.rpc.RetryInfo: a Duration in field 1, whose seconds
// are its field 1.
func retryInfoOf(seconds int64) []byte {
	duration := binary.AppendUvarint([]byte{1 << 3}, uint64(seconds))
	return appendField(nil, 1, duration)
}

// statusWithRetry returns a google.rpc.Status with a code, a message, and a RetryInfo
// in a google.protobuf.Any.
func statusWithRetry(number int, a Answer) []byte {
	detail := appendField(nil, 1, []byte("type.googleapis.com/"+retryInfo))
	detail = appendField(detail, 2, retryInfoOf(a.RetryAfter))
	status := binary.AppendUvarint([]byte{1 << 3}, uint64(number))
	status = appendField(status, 2, []byte(strings.ToValidUTF8(a.Detail, string(utf8.RuneError))))
	return appendField(status, 3, detail)
}

// appendField appends a field of bytes in the encoding of protocol buffers.
func appendField(dst []byte, number byte, value []byte) []byte {
	dst = binary.AppendUvarint(append(dst, number<<3|2), uint64(len(value)))
	return append(dst, value...)
}

// grpcMessage encodes a message as gRPC wants it: printable ASCII stays, but for %.
func grpcMessage(s string) string {
	return ratefield.Printable(strings.ReplaceAll(s, "%", "%25"))
}
