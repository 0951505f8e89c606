// The adapter of this client for conformance/check_clients.py: one request and one answer a line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"example.org/rankduel/clients/go"
)

var errApplication = errors.New("a failure of the search that the client calls")

type settings struct {
	URL          string  `json:"url"`
	Experiment   string  `json:"experiment"`
	Control      string  `json:"control"`
	Key          string  `json:"key"`
	DeadlineMS   int64   `json:"deadline_ms"`
	ReportMS     int64   `json:"report_ms"`
	Stock        int     `json:"stock"`
	StockSeconds float64 `json:"stock_seconds"`
	Queue        int     `json:"queue"`
}

type arguments struct {
	settings
	rankduel.Visit
	Rankings rankduel.Rankings `json:"rankings"`
	Form     string            `json:"form"`
	Failing  []string          `json:"failing"`
	Missing  []string          `json:"missing"`
	Others   []string          `json:"others"`
	Of       string            `json:"of"`
	Length   int               `json:"length"`
	Offset   int               `json:"offset"`
	Pinned   []rankduel.Pin    `json:"pinned"`
	Clicks   []json.RawMessage `json:"clicks"`
	Final    bool              `json:"final"`
	Outcome  rankduel.Outcome  `json:"outcome"`
	Metrics  rankduel.Metrics  `json:"metrics"`
	Orders   []order           `json:"orders"`

	DuelID       string `json:"duel_id"`
	Milliseconds int64  `json:"milliseconds"`
}

type order struct {
	ID        string               `json:"order_id"`
	Unit      string               `json:"unit"`
	At        time.Time            `json:"at"`
	Lines     []rankduel.OrderLine `json:"lines"`
	Cancelled bool                 `json:"cancelled"`
}

var client *rankduel.Client

func do(what string, given arguments) (any, error) {
	ctx := context.Background()
	switch what {
	case "connect":
		return map[string]any{"queue": true}, connect(given.settings)
	case "check":
		rankers, err := client.Check(ctx)
		return map[string]any{"rankers": rankers}, err
	case "next_duel":
		return asJSON(client.NextDuel(ctx, given.Visit))
	case "page", "more":
		return page(ctx, what, given)
	case "report_clicks":
		clicks, err := clicks(given.Clicks)
		if err != nil {
			return nil, err
		}
		status, err := client.ReportClicks(ctx, given.Of, clicks, given.Final)
		return map[string]any{"status": status}, err
	case "report_outcome":
		status, err := client.ReportOutcome(ctx, given.Of, given.Outcome)
		return map[string]any{"status": status}, err
	case "report_metrics":
		status, err := client.ReportMetrics(ctx, given.Of, given.Metrics)
		return map[string]any{"status": status}, err
	case "report_orders":
		orders := make([]rankduel.Order, len(given.Orders))
		for i, one := range given.Orders {
			orders[i] = rankduel.Order(one)
		}
		results, err := client.ReportOrders(ctx, orders)
		return map[string]any{"results": results}, err
	}
	return queue(what, given)
}

func queue(what string, given arguments) (any, error) {
	switch what {
	case "queue_clicks", "queue_outcome", "queue_metrics":
		of := rankduel.Duel{ID: given.DuelID}
		if given.Of != "" {
			if err := json.Unmarshal([]byte(given.Of), &of); err != nil {
				return nil, err
			}
		}
		if what == "queue_outcome" {
			return struct{}{}, client.QueueOutcome(of, given.Outcome)
		}
		if what == "queue_metrics" {
			return struct{}{}, client.QueueMetrics(of, given.Metrics)
		}
		clicks, err := clicks(given.Clicks)
		client.QueueClicks(of, clicks, given.Final)
		return struct{}{}, err
	case "flush":
		return map[string]any{"flushed": client.Flush(time.Duration(given.Milliseconds) * time.Millisecond)}, nil
	case "close":
		return map[string]any{"flushed": client.Close(time.Duration(given.Milliseconds) * time.Millisecond)}, nil
	case "counts":
		return client.Counts(), nil
	}
	return nil, fmt.Errorf("unknown request %q", what)
}

func connect(given settings) (err error) {
	client, err = rankduel.New(given.URL, given.Experiment, given.Control, rankduel.Options{
		Key:        given.Key,
		Deadline:   time.Duration(given.DeadlineMS) * time.Millisecond,
		ReportTime: time.Duration(given.ReportMS) * time.Millisecond,
		Stock:      given.Stock,
		StockAge:   time.Duration(given.StockSeconds * float64(time.Second)),
		Queue:      given.Queue,
	})
	return err
}

func page(ctx context.Context, what string, given arguments) (any, error) {
	window := rankduel.Window{Length: given.Length, Offset: given.Offset, Pinned: given.Pinned, Visit: given.Visit}
	asked := [][]string{}
	search := func(rankers []string) (rankduel.Rankings, error) {
		asked = append(asked, rankers)
		made := rankduel.Rankings{}
		for _, ranker := range append(given.Others, rankers...) {
			made[ranker] = given.Rankings[ranker]
		}
		for _, missing := range given.Missing {
			delete(made, missing)
		}
		for _, failing := range given.Failing {
			for _, ranker := range rankers {
				if failing == ranker {
					return nil, errApplication
				}
			}
		}
		return made, nil
	}
	var of rankduel.Duel
	if what == "more" {
		// the JSON of a page has the members of its duel
		if err := json.Unmarshal([]byte(given.Of), &of); err != nil {
			return nil, err
		}
	}
	var page rankduel.Page
	var err error
	switch what + " " + given.Form {
	case "page all":
		page, err = client.Page(ctx, given.Rankings, window)
	case "page pair":
		page, err = client.PageOf(ctx, search, window)
	case "more all":
		page, err = client.More(ctx, of, given.Rankings, window)
	default:
		page, err = client.MoreOf(ctx, of, search, window)
	}
	if err != nil {
		return nil, err
	}
	members, err := asJSON(page)
	if err != nil {
		return nil, err
	}
	members["asked"] = asked
	return members, nil
}

func clicks(given []json.RawMessage) ([]rankduel.Click, error) {
	clicks := []rankduel.Click{}
	for _, raw := range given {
		var position int
		var document string
		var object struct {
			Position *int
			Document string
			Slot     string
			Event    string
		}
		switch {
		case json.Unmarshal(raw, &position) == nil:
			clicks = append(clicks, rankduel.At(position))
		case json.Unmarshal(raw, &document) == nil:
			clicks = append(clicks, rankduel.On(document))
		case json.Unmarshal(raw, &object) != nil:
			return nil, fmt.Errorf("unknown click %s", raw)
		case object.Position != nil:
			clicks = append(clicks, rankduel.At(*object.Position).As(object.Event))
		case object.Slot != "":
			clicks = append(clicks, rankduel.OnSlot(object.Slot).As(object.Event))
		default:
			clicks = append(clicks, rankduel.On(object.Document).As(object.Event))
		}
	}
	return clicks, nil
}

// asJSON is the result with its serialised form; the driver expects null for what is absent.
func asJSON(result any) (map[string]any, error) {
	text, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	for _, name := range []string{"duel_id", "fallback"} {
		if members[name] == "" {
			members[name] = nil
		}
	}
	members["json"] = string(text)
	return members, nil
}

func asError(err error) map[string]any {
	var failed *rankduel.Error
	var usage *rankduel.UsageError
	switch {
	case errors.As(err, &failed):
		members := map[string]any{"reason": failed.Reason, "status": nil, "retry_after": nil, "retryable": failed.Retryable()}
		if failed.Status != 0 {
			members["status"] = failed.Status
		}
		if failed.RetryAfter != 0 {
			members["retry_after"] = failed.RetryAfter.Seconds()
		}
		return members
	case errors.As(err, &usage):
		return map[string]any{"reason": "usage", "detail": fmt.Sprintf("%+v", err)}
	case errors.Is(err, errApplication):
		return map[string]any{"reason": "application"}
	}
	log.Fatal(err)
	return nil
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var request struct {
			Do   string
			With arguments
		}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			log.Fatal(err)
		}
		result, err := do(request.Do, request.With)
		answer := map[string]any{"ok": result}
		if err != nil {
			answer = map[string]any{"error": asError(err)}
		}
		if err := answers.Encode(answer); err != nil {
			log.Fatal(err)
		}
	}
}
