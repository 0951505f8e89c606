// Package rankduel requests the two rankings to interleave for a query, and sends the clicks.
//
//	client, err := rankduel.New("http://127.0.0.1:7171", "search", "bm25", rankduel.Options{})
//	rankings := rankduel.Rankings{"bm25": bm25, "neural": neural}
//	page, err := client.Page(ctx, rankings, rankduel.Window{})
//	show(page.Documents(), page.ID)
//	status, err := client.ReportClicks(ctx, duelID, []rankduel.Click{rankduel.At(0)}, true)
//
// Page always returns within the deadline. If the service does not answer in time, it returns the
// control's ranking.
package rankduel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// Status is the result of a report.
type Status string

const (
	// Recorded feedback counts.
	Recorded Status = "recorded"
	// Duplicate feedback was stored before: an earlier attempt had arrived.
	Duplicate Status = "duplicate"
	// Late clicks arrived after the duel was settled, by a call with final true or by the time.
	Late Status = "late"
	// Ignored feedback is about a fallback page; it was not sent.
	Ignored Status = "ignored"
)

// Outcome is the result of a duel, if your own code credits the clicks.
type Outcome string

const (
	Left  Outcome = "left"
	Right Outcome = "right"
	Tie   Outcome = "tie"
	None  Outcome = "none"
)

// Metrics are values of the experiment's metrics, by ranker and metric, such as
// {"bm25": {"latency_ms": 12}, "neural": {"latency_ms": 41}}.
type Metrics map[string]map[string]float64

// The server issues no more duels at once.
const mostDuels = 1000

// Options of a client. The zero value has the defaults.
type Options struct {
	// Key is an API key, if the server requires one.
	Key string
	// Deadline is the time limit of a request for a duel or a page; 50 ms by default.
	Deadline time.Duration
	// ReportTime is the time limit of a report, with all attempts; 10 s by default.
	ReportTime time.Duration
	// Stock is the number of duels to request at once; 0 for single requests.
	Stock int
	// StockAge is the time for which a duel of the stock may be used; 5 s by default.
	StockAge time.Duration
	// Queue is the number of items of feedback that may wait to be sent; 10,000 by default. If there
	// are more, the oldest are dropped.
	Queue int
	// Log is called with each message about queued feedback that is refused or sent again.
	Log func(message string)
	// OnFallback is called with the error behind each fallback to the control.
	OnFallback func(*Error)
}

// Client is one experiment of a rankduel server. Goroutines can share it.
type Client struct {
	experiment string
	control    string
	options    Options
	server     *server
	stock      *stock
	queue      *queue
}

// New returns a client that shows the ranker control if rankduel does not answer in time.
func New(url, experiment, control string, options Options) (*Client, error) {
	for _, limit := range []time.Duration{options.Deadline, options.ReportTime, options.StockAge} {
		if limit < 0 {
			return nil, usage("a time limit is %v; it must not be negative", limit)
		}
	}
	if experiment == "" || control == "" {
		return nil, usage("experiment is %q and control %q; both must be names", experiment, control)
	}
	if options.Stock < 0 || options.Stock > mostDuels {
		return nil, usage("Stock is %d; it must be from 0 to %d", options.Stock, mostDuels)
	}
	if options.Queue < 0 {
		return nil, usage("Queue is %d; it must be at least 1", options.Queue)
	}
	if options.Queue == 0 {
		options.Queue = 10_000
	}
	setDefault(&options.Deadline, 50*time.Millisecond)
	setDefault(&options.ReportTime, 10*time.Second)
	setDefault(&options.StockAge, 5*time.Second)
	transport, err := newTransport(url, options.Key)
	if err != nil {
		return nil, err
	}
	// who prints a client must not see the key
	options.Key = ""
	client := &Client{experiment: experiment, control: control, options: options}
	client.server = newServer(transport, experiment)
	client.queue = newQueue(client.server, options.Queue, options.Log)
	if options.Stock > 0 {
		client.stock = &stock{server: client.server, size: options.Stock, maxAge: options.StockAge}
	}
	return client, nil
}

func setDefault(value *time.Duration, to time.Duration) {
	if *value == 0 {
		*value = to
	}
}

// Check returns the rankers of the experiment. Call it when your service starts: it fails if the
// server, the experiment or the key is wrong, or if the control is not one of the rankers, which
// otherwise shows only in an outage. A key needs the scope read for it.
func (c *Client) Check(ctx context.Context) ([]string, error) {
	rankers, err := c.server.rankers(ctx, c.options.ReportTime)
	if err != nil {
		return nil, err
	}
	for _, ranker := range rankers {
		if ranker == c.control {
			return rankers, nil
		}
	}
	detail := fmt.Sprintf("control is %q, but the rankers of %q are %s", c.control, c.experiment, strings.Join(rankers, ", "))
	return nil, &Error{Reason: "control-unknown", Detail: detail}
}

// NextDuel returns the two rankers to interleave. If rankduel does not answer in time, both are the
// control. A duel with a unit or a segment is requested by itself, not taken from the stock.
func (c *Client) NextDuel(ctx context.Context, visit Visit) Duel {
	duel, err := c.nextDuel(ctx, visit)
	if err != nil {
		return controlDuel(c.control, c.fellBack(err))
	}
	return duel
}

func (c *Client) nextDuel(ctx context.Context, visit Visit) (Duel, error) {
	if c.stock != nil && visit == (Visit{}) {
		return c.stock.take(ctx, c.options.Deadline)
	}
	var answer duelAnswer
	if err := c.server.ask(ctx, "/next-duel", visit, &answer, c.options.Deadline); err != nil {
		return Duel{}, err
	}
	return answer.duel()
}

// Page returns a page of two interleaved rankings. If rankduel does not answer in time, it has the
// control's ranking. The error is a *UsageError: the rankings lack the control.
func (c *Client) Page(ctx context.Context, rankings Rankings, window Window) (Page, error) {
	control, err := c.controlOf(rankings)
	if err != nil {
		return Page{}, err
	}
	body := window.body()
	body.Rankings = rankings.complete()
	var answer pageAnswer
	err = c.server.ask(ctx, "/next-duel", body, &answer, c.options.Deadline)
	if err == nil {
		var duel Duel
		var page Page
		if duel, err = answer.duel(); err == nil {
			if page, err = answer.page(duel.Left, duel.Right); err == nil {
				return page, nil
			}
		}
	}
	return controlPage(c.control, control, c.fellBack(err), window), nil
}

// PageOf is Page for expensive rankings: it calls search for those of the two rankers that rankduel
// selects, at once. If that fails or one is missing, the page has the control's ranking, for which
// there is a second call unless the first one had it. The error is that of the second call.
func (c *Client) PageOf(ctx context.Context, search Search, window Window) (Page, error) {
	visit := window.Visit
	if c.stock != nil {
		// with a stock, the unit and the segment go with the rankings alone
		visit = Visit{}
	}
	return c.MoreOf(ctx, c.NextDuel(ctx, visit), search, window)
}

// More returns a page of an earlier duel: the first page of a duel from NextDuel, or a later page
// of the same list. Pass the same rankings and pins for every page of a duel. If rankduel does not
// answer in time, or did not answer for the duel, the page has the control's ranking.
func (c *Client) More(ctx context.Context, of Duel, rankings Rankings, window Window) (Page, error) {
	if _, err := c.controlOf(rankings); err != nil {
		return Page{}, err
	}
	return c.MoreOf(ctx, of, func([]string) (Rankings, error) { return rankings, nil }, window)
}

// MoreOf is More for expensive rankings.
func (c *Client) MoreOf(ctx context.Context, of Duel, search Search, window Window) (Page, error) {
	reason := of.Fallback
	var rankings Rankings
	if of.ID != "" {
		var page Page
		var err error
		if rankings, err = search(rankersOf(of)); err != nil {
			err = &Error{Reason: "ranker-failed", Detail: err.Error(), cause: err}
		} else if page, err = c.interleaved(ctx, of, rankings, window); err == nil {
			return page, nil
		}
		reason = c.fellBack(err)
	}
	if _, ok := rankings[c.control]; !ok {
		var err error
		if rankings, err = search([]string{c.control}); err != nil {
			return Page{}, err
		}
	}
	control, err := c.controlOf(rankings)
	if err != nil {
		return Page{}, err
	}
	return controlPage(c.control, control, reason, window), nil
}

func rankersOf(duel Duel) []string {
	if duel.SelfDuel() {
		return []string{duel.Left}
	}
	return []string{duel.Left, duel.Right}
}

func (c *Client) interleaved(ctx context.Context, of Duel, rankings Rankings, window Window) (Page, error) {
	for _, ranker := range rankersOf(of) {
		if _, ok := rankings[ranker]; !ok {
			return Page{}, &Error{Reason: "ranker-failed", Detail: "rankings lack " + ranker}
		}
	}
	left, right := notNil(rankings[of.Left]), notNil(rankings[of.Right])
	body := window.body()
	body.DuelID, body.Left, body.Right = of.ID, &left, &right
	var answer pageAnswer
	if err := c.server.ask(ctx, "/interleave", body, &answer, c.options.Deadline); err != nil {
		return Page{}, err
	}
	return answer.page(of.Left, of.Right)
}

func (c *Client) controlOf(rankings Rankings) ([]string, error) {
	control, ok := rankings[c.control]
	if !ok {
		return nil, usage("rankings lack the control, %q, which is shown if rankduel does not answer", c.control)
	}
	return control, nil
}

// complete has an empty list where a ranking is nil, which JSON would write as null.
func (r Rankings) complete() Rankings {
	complete := make(Rankings, len(r))
	for ranker, ranking := range r {
		complete[ranker] = notNil(ranking)
	}
	return complete
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// ReportClicks reports the clicks on the page of a duel; none if there were none. Transient
// failures are repeated for at most Options.ReportTime. An empty duelID is that of a fallback page,
// and is ignored. If the error is an *Error and Retryable, the same feedback may be accepted later.
//
// Clicks that come after a call with final true are late and do not count. If you call it once for
// each click, pass false: more clicks can then follow, in any order, and all clicks of a duel
// together count as one outcome.
func (c *Client) ReportClicks(ctx context.Context, duelID string, clicks []Click, final bool) (Status, error) {
	return c.report(ctx, duelID, clicksItem(duelID, clicks, final))
}

// ReportOutcome reports the outcome, if your own code merges the pages and credits the clicks.
func (c *Client) ReportOutcome(ctx context.Context, duelID string, outcome Outcome) (Status, error) {
	item, err := outcomeItem(duelID, outcome)
	if err != nil {
		return "", err
	}
	return c.report(ctx, duelID, item)
}

// ReportMetrics reports values of the experiment's metrics. Report them for every page, whether it
// is clicked or not: a value that does not come counts as the worst.
func (c *Client) ReportMetrics(ctx context.Context, duelID string, metrics Metrics) (Status, error) {
	item, err := metricsItem(duelID, metrics)
	if err != nil {
		return "", err
	}
	return c.report(ctx, duelID, item)
}

// QueueClicks is ReportClicks without waiting: a goroutine sends the clicks again until the server
// has them or the duel has expired. Duel{ID: id} will do; its clicks are kept for a day. Those of a
// fallback page are ignored.
func (c *Client) QueueClicks(of Duel, clicks []Click, final bool) {
	if of.ID != "" {
		c.queue.put(of, clicksItem(of.ID, clicks, final))
	}
}

// QueueOutcome is ReportOutcome without waiting, like QueueClicks.
func (c *Client) QueueOutcome(of Duel, outcome Outcome) error {
	item, err := outcomeItem(of.ID, outcome)
	if err == nil && of.ID != "" {
		c.queue.put(of, item)
	}
	return err
}

// QueueMetrics is ReportMetrics without waiting, like QueueClicks.
func (c *Client) QueueMetrics(of Duel, metrics Metrics) error {
	item, err := metricsItem(of.ID, metrics)
	if err == nil && of.ID != "" {
		c.queue.put(of, item)
	}
	return err
}

// Counts returns the number of queued items of feedback so far, by result.
func (c *Client) Counts() Counts { return c.queue.count() }

// Flush waits at most this long until the server has all queued feedback. It reports whether it
// has.
func (c *Client) Flush(limit time.Duration) bool { return c.queue.flush(limit) }

// Close is Flush, and drops all later feedback for the queue. Call it before the process ends.
func (c *Client) Close(limit time.Duration) bool { return c.queue.close(limit) }

func clicksItem(duelID string, clicks []Click, final bool) map[string]any {
	return map[string]any{"duel_id": duelID, "clicks": notNil(clicks), "final": final}
}

func outcomeItem(duelID string, outcome Outcome) (map[string]any, error) {
	switch outcome {
	case Left, Right, Tie, None:
		return map[string]any{"duel_id": duelID, "outcome": outcome}, nil
	}
	return nil, usage("outcome is %q; it must be left, right, tie or none", outcome)
}

func metricsItem(duelID string, metrics Metrics) (map[string]any, error) {
	for ranker, values := range metrics {
		for metric, value := range values {
			if math.IsNaN(value) || math.IsInf(value, 0) {
				return nil, usage("%s of %s is %v; it must be a finite number", metric, ranker, value)
			}
		}
	}
	return map[string]any{"duel_id": duelID, "metrics": metrics}, nil
}

func (c *Client) report(ctx context.Context, duelID string, item map[string]any) (Status, error) {
	if duelID == "" {
		return Ignored, nil
	}
	return c.server.report(ctx, item, c.options.ReportTime)
}

// fellBack returns the reason of an error, for the fallback.
func (c *Client) fellBack(err error) string {
	var failed *Error
	if !errors.As(err, &failed) {
		failed = &Error{Reason: "usage", Detail: err.Error(), cause: err}
	}
	if c.options.OnFallback != nil {
		c.options.OnFallback(failed)
	}
	return failed.Reason
}
