package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/rategen/rategen/examples/service/employee"
	"github.com/rategen/rategen/runtime"
)

// newHandler serves GET /employees/{id} and GET /employees?email=...
func newHandler(svc employee.EmployeeService, logger *slog.Logger) http.Handler {
	h := &handler{svc, logger}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /employees/{id}", h.byID)
	mux.HandleFunc("GET /employees", h.byEmail)
	return withClientIP(mux)
}

type handler struct {
	svc    employee.EmployeeService
	logger *slog.Logger
}

func (h *handler) byID(w http.ResponseWriter, r *http.Request) {
	e, err := h.svc.GetByID(r.Context(), r.PathValue("id"))
	h.answer(w, r, e, err)
}

func (h *handler) byEmail(w http.ResponseWriter, r *http.Request) {
	e, err := h.svc.GetByEmail(r.Context(), r.URL.Query().Get("email"))
	h.answer(w, r, e, err)
}

func (h *handler) answer(w http.ResponseWriter, r *http.Request, e *employee.Employee, err error) {
	var limited *runtime.LimitedError
	switch {
	case err == nil:
		writeJSON(w, http.StatusOK, e)
	case errors.Is(err, employee.ErrNotFound):
		writeError(w, http.StatusNotFound, err.Error())
	case errors.As(err, &limited):
		// Waiting does not help a call that can never be admitted, so it gets
		// no Retry-After.
		if !errors.Is(err, runtime.ErrCostExceedsLimit) {
			w.Header().Set("Retry-After", retryAfter(limited.RetryAfter))
		}
		writeError(w, http.StatusTooManyRequests, limited.Error())
	case errors.Is(err, runtime.ErrUnavailable):
		writeError(w, http.StatusServiceUnavailable, "the service cannot tell now whether you may call it, try again later")
	case r.Context().Err() != nil:
		// The client has gone: nobody reads an answer.
	default:
		h.logger.ErrorContext(r.Context(), "request failed", "error", err)
		writeError(w, http.StatusInternalServerError, "internal error")
	}
}

// retryAfter returns d in whole seconds, as the header Retry-After wants it. It
// rounds up, so that a client which obeys is not refused again.
func retryAfter(d time.Duration) string {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return strconv.FormatInt(max(1, seconds), 10)
}

// withClientIP puts the address of the connection into the context. It ignores the
// header X-Forwarded-For on purpose: a client can write anything into it, and so
// choose whose budget it uses. Behind a proxy, use the entry that your own proxy has
// added, and only on connections from that proxy.
func withClientIP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
			ctx = employee.WithClientIP(ctx, peer.Addr())
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func writeError(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, struct {
		Error string `json:"error"`
	}{message})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails if the client has gone
}
