package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/rategen/rategen/examples/service/employee"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// newHandler serves GET /employees/{id} and GET /employees?email=... The middleware
// finds the client's address, and tells clients how much of their limits is left. It
// ignores the header X-Forwarded-For: behind a proxy of yours, add
// ratehttp.WithTrustedProxies.
func newHandler(svc employee.EmployeeService, logger *slog.Logger) http.Handler {
	h := &handler{svc, logger}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /employees/{id}", h.byID)
	mux.HandleFunc("GET /employees", h.byEmail)
	return ratehttp.Middleware(ratehttp.WithLogger(logger))(mux)
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
	switch {
	case err == nil:
		writeJSON(w, http.StatusOK, e)
	case errors.Is(err, employee.ErrNotFound):
		writeError(w, http.StatusNotFound, err.Error())
	case ratehttp.Error(w, r, err):
		// The call was refused, and the client knows why and for how long.
	case r.Context().Err() != nil:
		// The client has gone: nobody reads an answer.
	default:
		h.logger.ErrorContext(r.Context(), "request failed", "error", err)
		writeError(w, http.StatusInternalServerError, "internal error")
	}
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
