package rankduel

import (
	"context"
	"sync"
	"time"
)

// stock has up to size duels. Each is used once, and not later than maxAge after the request.
type stock struct {
	server *server
	size   int
	maxAge time.Duration

	lock  sync.Mutex
	duels []stocked
}

type stocked struct {
	duel        Duel
	requestedAt time.Time
}

// take returns the oldest fresh duel. If there is none, the stock is filled first.
func (s *stock) take(ctx context.Context, limit time.Duration) (Duel, error) {
	if duel, ok := s.fresh(); ok {
		return duel, nil
	}
	requestedAt := time.Now()
	duels, err := s.request(ctx, limit)
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

func (s *stock) request(ctx context.Context, limit time.Duration) ([]Duel, error) {
	var answer struct {
		Duels []duelAnswer `json:"duels"`
	}
	if err := s.server.ask(ctx, "/next-duel", map[string]int{"count": s.size}, &answer, limit); err != nil {
		return nil, err
	}
	if len(answer.Duels) == 0 {
		return nil, notRankduel("it has no duels")
	}
	duels := make([]Duel, len(answer.Duels))
	for i, one := range answer.Duels {
		var err error
		if duels[i], err = one.duel(); err != nil {
			return nil, err
		}
	}
	return duels, nil
}
