package rankduel

import (
	"fmt"
	"time"
)

// Error is a request without a successful answer.
type Error struct {
	// Reason is timeout, unreachable, not-rankduel, server-too-old, resting, control-unknown,
	// ranker-failed, the slug of the problem such as duel-expired, or else status-502.
	Reason string
	Detail string
	// Status is the status of the answer, or 0 if there was none.
	Status int
	// RetryAfter is what the answer names, or 0.
	RetryAfter time.Duration
	cause      error
}

func (e *Error) Error() string { return e.Reason + ": " + e.Detail }

// Unwrap returns the error of the network or of the ranker, if there is one.
func (e *Error) Unwrap() error { return e.cause }

// Transient reports whether the server did not answer, or failed: the same request may succeed in a
// moment.
func (e *Error) Transient() bool {
	if e.Status == 0 {
		return e.Reason == "timeout" || e.Reason == "unreachable"
	}
	return e.Reason == "not-rankduel" || e.Status >= 500 || e.Status == 408 || e.Status == 429
}

// Retryable reports whether the same request may succeed later. Besides transient errors, these are
// 401 and 403: the key may be corrected.
func (e *Error) Retryable() bool {
	return e.Transient() || e.Status == 401 || e.Status == 403
}

// UsageError is an error of the calling program, found before any request.
type UsageError struct{ Detail string }

func (e *UsageError) Error() string { return "rankduel: " + e.Detail }

func usage(format string, values ...any) error {
	return &UsageError{fmt.Sprintf(format, values...)}
}

func notRankduel(detail string) *Error {
	return &Error{Reason: "not-rankduel", Detail: "the answer is not from rankduel: " + detail, Status: 200}
}
