package rankduel

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// stock has up to size duels. Each is used once, and not later than maxAge after the request.
//
// A server that does not know count refuses it once; from then on the stock makes single requests,
// as many as the deadline allows.
type stock struct {
	server *server
	size   int
	maxAge time.Duration

	lock         sync.Mutex
	refusesCount bool
	duels        []stocked
}

type stocked struct {
	duel        Duel
	requestedAt time.Time
}

type stockAnswer struct {
	duelAnswer
	Duels []duelAnswer `json:"duels"`
}

// take returns the oldest fresh duel. If there is none, the stock is filled first.
func (s *stock) take(ctx context.Context, limit time.Duration) (Duel, error) {
	if duel, ok := s.fresh(); ok {
		return duel, nil
	}
	requestedAt := time.Now()
	duels, err := s.request(ctx, requestedAt.Add(limit))
	if err != nil {
		return Duel{}, err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, duel := range duels[1:] {
		s.duels = append(s.duels, stocked{duel, requestedAt})
	}
	if extra := len(s.duels) - 2*s.size; extra > 0 {
		// several searches filled the stock at the same time
		s.duels = s.duels[extra:]
	}
	return duels[0], nil
}

func (s *stock) fresh() (Duel, bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for len(s.duels) > 0 {
		oldest := s.duels[0]
		s.duels = s.duels[1:]
		if time.Since(oldest.requestedAt) <= s.maxAge && oldest.duel.ExpiresAt > seconds(time.Now()) {
			return oldest.duel, true
		}
	}
	return Duel{}, false
}

func (s *stock) request(ctx context.Context, end time.Time) ([]Duel, error) {
	s.lock.Lock()
	single := s.refusesCount
	s.lock.Unlock()
	var duels []Duel
	if !single {
		var answer stockAnswer
		body := map[string]int{"count": s.size}
		err := s.server.ask(ctx, "/next-duel", body, &answer, time.Until(end))
		var failed *Error
		switch {
		case errors.As(err, &failed) && failed.Status == http.StatusUnprocessableEntity:
			s.lock.Lock()
			s.refusesCount = true
			s.lock.Unlock()
		case err != nil:
			return nil, err
		case len(answer.Duels) > 0:
			return duelsOf(answer.Duels)
		default:
			duels, err = duelsOf([]duelAnswer{answer.duelAnswer})
			if err != nil {
				return nil, err
			}
		}
	}
	return s.singles(ctx, duels, end)
}

func (s *stock) singles(ctx context.Context, duels []Duel, end time.Time) ([]Duel, error) {
	for len(duels) < s.size && (len(duels) == 0 || time.Now().Before(end)) {
		var answer duelAnswer
		err := s.server.ask(ctx, "/next-duel", struct{}{}, &answer, time.Until(end))
		if err == nil {
			var duel Duel
			if duel, err = answer.duel(); err == nil {
				duels = append(duels, duel)
			}
		}
		if err != nil && len(duels) == 0 {
			return nil, err
		}
		if err != nil {
			break
		}
	}
	return duels, nil
}

func duelsOf(answers []duelAnswer) ([]Duel, error) {
	duels := make([]Duel, len(answers))
	for i, answer := range answers {
		var err error
		if duels[i], err = answer.duel(); err != nil {
			return nil, err
		}
	}
	return duels, nil
}
