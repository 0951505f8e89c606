package rankduel

import (
	"context"
	"errors"
	"math/rand"
	"net/url"
	"sync"
	"time"
)

const (
	// After this many consecutive requests without an answer, the client pauses.
	failuresToRest = 5
	restTime       = time.Second
	// The longest pause that a Retry-After of the server causes.
	longestRest = 5 * time.Second
	// A report has this share of its time for one attempt.
	attempts  = 5
	firstWait = 100 * time.Millisecond
)

// server is one experiment of a server: the pause after failures, and the attempts to send
// feedback.
type server struct {
	transport *transport
	path      string

	lock      sync.Mutex
	failures  int
	restUntil time.Time
}

func newServer(transport *transport, experiment string) *server {
	return &server{transport: transport, path: "/v1/experiments/" + url.PathEscape(experiment)}
}

// ask requests a duel or a page, in one attempt: a search waits for the answer.
func (s *server) ask(ctx context.Context, path string, body, answer any, limit time.Duration) error {
	if err := s.mayAsk(); err != nil {
		return err
	}
	err := s.transport.send(ctx, "POST", s.path+path, body, answer, limit)
	s.lock.Lock()
	defer s.lock.Unlock()
	var failed *Error
	if errors.Is(ctx.Err(), context.Canceled) {
		// says nothing about the server
		return err
	}
	if !errors.As(err, &failed) || !failed.Transient() {
		s.failures, s.restUntil = 0, time.Time{}
		return err
	}
	s.failures++
	rest := failed.RetryAfter
	if rest > longestRest {
		rest = longestRest
	}
	if s.failures >= failuresToRest && rest < restTime {
		rest = restTime
	}
	s.restUntil = time.Now().Add(rest)
	return err
}

func (s *server) mayAsk() error {
	s.lock.Lock()
	defer s.lock.Unlock()
	now := time.Now()
	if now.Before(s.restUntil) {
		return &Error{Reason: "resting", Detail: "the last requests failed, so the client sends none for a moment"}
	}
	if s.failures >= failuresToRest {
		// this request probes the server; the others fall back until it has a result
		s.restUntil = now.Add(restTime)
	}
	return nil
}

// report sends one item of feedback. Transient errors are followed by another attempt while there
// is time for a whole one; the server counts the item once.
func (s *server) report(ctx context.Context, item any, limit time.Duration) (status Status, err error) {
	err = s.repeat(ctx, limit, func(one time.Duration) error {
		var answer struct{ Status Status }
		err := s.transport.send(ctx, "POST", s.path+"/feedback", item, &answer, one)
		if err == nil && answer.Status == "" {
			err = notRankduel("it has no status")
		}
		status = answer.Status
		return err
	})
	return status, err
}

// orders sends orders, like report, and returns a result for each.
func (s *server) orders(ctx context.Context, orders []Order, limit time.Duration) (results []OrderResult, err error) {
	body := map[string]any{"orders": notNil(orders)}
	err = s.repeat(ctx, limit, func(one time.Duration) error {
		var answer struct{ Results []OrderResult }
		err := s.transport.send(ctx, "POST", s.path+"/orders", body, &answer, one)
		if err == nil && len(answer.Results) != len(orders) {
			err = notRankduel("it has no result for each order")
		}
		results = answer.Results
		return err
	})
	return results, err
}

// repeat makes attempts, each within its share of the limit, while their errors are transient.
func (s *server) repeat(ctx context.Context, limit time.Duration, attempt func(time.Duration) error) error {
	one := limit / attempts
	last := time.Now().Add(limit - one)
	for failures := 0; ; failures++ {
		err := attempt(one)
		var failed *Error
		if !errors.As(err, &failed) || !failed.Transient() {
			return err
		}
		wait := firstWait << min(failures, 10)
		wait = wait/2 + time.Duration(rand.Int63n(int64(wait/2)))
		if wait < failed.RetryAfter {
			wait = failed.RetryAfter
		}
		if time.Now().Add(wait).After(last) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

// rankers returns the rankers of the experiment.
func (s *server) rankers(ctx context.Context, limit time.Duration) ([]string, error) {
	var answer struct {
		Rankers []struct {
			ID string `json:"id"`
		} `json:"rankers"`
	}
	if err := s.transport.send(ctx, "GET", s.path, nil, &answer, limit); err != nil {
		return nil, err
	}
	if len(answer.Rankers) == 0 {
		return nil, notRankduel("it has no rankers")
	}
	rankers := make([]string, len(answer.Rankers))
	for i, ranker := range answer.Rankers {
		rankers[i] = ranker.ID
	}
	return rankers, nil
}
