package rankduel

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"time"
)

const (
	batchSize   = 100
	sendTime    = 10 * time.Second
	longestWait = 30 * time.Second
	// Feedback of which only the id of the duel is known is sent again for this time.
	keptTime = 24 * time.Hour
)

// aboutAnItem has the statuses with which a server or a proxy refuses a whole request, perhaps for
// one of its items.
var aboutAnItem = map[int]bool{400: true, 413: true, 422: true}

// Counts is the number of queued items of feedback since the client was created, by result.
type Counts struct {
	// Recorded items are stored by the server, and count.
	Recorded int `json:"recorded"`
	// Duplicate items were stored already: an earlier attempt had arrived, but its answer was lost.
	Duplicate int `json:"duplicate"`
	// Refused items are late, different from an earlier answer, or invalid. Options.Log gets the
	// reason.
	Refused int `json:"refused"`
	// Dropped items were discarded by this client: the duel expired while the server could not be
	// reached, the queue was full, or the client was closed.
	Dropped int `json:"dropped"`
	// Waiting items are not sent yet, or not answered yet.
	Waiting int `json:"waiting"`
}

type queued struct {
	body      any
	expiresAt time.Time
}

// queue accepts feedback without waiting, and sends it in a goroutine that ends when the queue is
// empty. The server counts each item once, even if it arrives several times.
type queue struct {
	transport *transport
	path      string
	most      int
	log       func(string)
	closed    chan struct{}

	lock     sync.Mutex
	items    []queued
	sending  int
	together int
	running  bool
	closing  bool
	// idle is closed as soon as nothing waits; nil while nobody asks.
	idle   chan struct{}
	counts Counts
}

func newQueue(server *server, most int, log func(string)) *queue {
	return &queue{
		transport: server.transport, path: server.path + "/feedback", most: most, log: log, closed: make(chan struct{}),
		together: batchSize,
	}
}

// put queues an item. It is sent again until the server has it, at most until the duel expires.
func (q *queue) put(of Duel, body any) {
	expiresAt := time.Now().Add(keptTime)
	if of.ExpiresAt > 0 {
		expiresAt = time.Unix(0, int64(of.ExpiresAt*float64(time.Second)))
	}
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.closing {
		q.counts.Dropped++
		return
	}
	if len(q.items) >= q.most {
		// drop the oldest item: newer ones have more time left to arrive
		q.items = q.items[1:]
		q.counts.Dropped++
	}
	q.items = append(q.items, queued{body, expiresAt})
	if !q.running {
		q.running = true
		go q.run()
	}
}

func (q *queue) count() Counts {
	q.lock.Lock()
	defer q.lock.Unlock()
	counts := q.counts
	counts.Waiting = len(q.items) + q.sending
	return counts
}

// flush waits until nothing waits any more, and reports whether that came in time.
func (q *queue) flush(limit time.Duration) bool {
	q.lock.Lock()
	if !q.running {
		q.lock.Unlock()
		return true
	}
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	q.lock.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
		return false
	}
}

// close flushes, and accepts no more items.
func (q *queue) close(limit time.Duration) bool {
	flushed := q.flush(limit)
	q.lock.Lock()
	defer q.lock.Unlock()
	if !q.closing {
		q.closing = true
		close(q.closed)
	}
	return flushed
}

func (q *queue) run() {
	failures := 0
	for {
		batch := q.take()
		if batch == nil {
			return
		}
		wait := q.send(batch, failures)
		if wait == 0 {
			failures = 0
			continue
		}
		failures++
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-q.closed:
			timer.Stop()
		}
	}
}

// take returns the next items to send; nil if there are none, or if the queue was closed.
func (q *queue) take() []queued {
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.closing {
		q.counts.Dropped += len(q.items)
		q.items = nil
	}
	now := time.Now()
	var batch []queued
	for len(q.items) > 0 && len(batch) < q.together {
		if item := q.items[0]; item.expiresAt.After(now) {
			batch = append(batch, item)
		} else {
			q.counts.Dropped++
		}
		q.items = q.items[1:]
	}
	q.sending = len(batch)
	if batch == nil {
		q.running = false
		if q.idle != nil {
			close(q.idle)
			q.idle = nil
		}
	}
	return batch
}

// send returns the time to wait before the next batch; 0 if this one has its results.
func (q *queue) send(batch []queued, failures int) time.Duration {
	bodies := make([]any, len(batch))
	for i, item := range batch {
		bodies[i] = item.body
	}
	var answer struct {
		Results []struct{ Status, Detail string }
	}
	err := q.transport.send(context.Background(), "POST", q.path, map[string]any{"feedback": bodies}, &answer, sendTime)
	if err == nil && len(answer.Results) != len(batch) {
		err = notRankduel("it has no result for each item")
	}
	var failed *Error
	again := errors.As(err, &failed) && failed.Retryable()
	split := failed != nil && aboutAnItem[failed.Status] && len(batch) > 1
	var found Counts
	switch {
	case split:
	case again && failures == 0:
		q.say("feedback is sent again later: %v", err)
	case again:
	case err != nil:
		q.say("feedback is refused: %v", err)
		found.Refused = len(batch)
	default:
		for _, result := range answer.Results {
			switch Status(result.Status) {
			case Recorded:
				found.Recorded++
			case Duplicate:
				found.Duplicate++
			default:
				hint := ""
				if Status(result.Status) == Late {
					hint = "; if clicks come one by one, queue them with final false"
				}
				q.say("feedback is refused (%s): %s%s", result.Status, result.Detail, hint)
				found.Refused++
			}
		}
	}
	q.lock.Lock()
	defer q.lock.Unlock()
	q.sending = 0
	q.counts.Recorded += found.Recorded
	q.counts.Duplicate += found.Duplicate
	q.counts.Refused += found.Refused
	if err == nil {
		q.together = min(2*q.together, batchSize)
	}
	if !split && !again {
		return 0
	}
	q.items = append(batch, q.items...)
	if split {
		// send fewer together, until the item that is refused is alone
		q.together = len(batch) / 2
		return 0
	}
	return waitAfter(failures, failed.RetryAfter)
}

func waitAfter(failures int, retryAfter time.Duration) time.Duration {
	wait := firstWait << min(failures, 10)
	if wait > longestWait {
		wait = longestWait
	}
	wait = wait/2 + time.Duration(rand.Int63n(int64(wait/2)))
	if retryAfter > longestWait {
		return longestWait
	}
	if wait < retryAfter {
		return retryAfter
	}
	return wait
}

func (q *queue) say(format string, values ...any) {
	if q.log != nil {
		q.log(fmt.Sprintf(format, values...))
	}
}
