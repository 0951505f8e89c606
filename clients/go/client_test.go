package rankduel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"example.org/rankduel/clients/go"
)

func TestWrongArguments(t *testing.T) {
	for _, url := range []string{"rankduel:7171", "ftp://rankduel", "http://", "http://host/?a=b", "http://host/#a"} {
		_, err := rankduel.New(url, "search", "bm25", rankduel.Options{})
		var usage *rankduel.UsageError
		if !errors.As(err, &usage) {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, options := range []rankduel.Options{{Stock: -1}, {Key: "S3cret\n"}, {Key: "\u201cS3cret\u201d"}, {Deadline: -1}, {ReportTime: -1}, {StockAge: -1}, {Queue: -1}} {
		_, err := rankduel.New("http://127.0.0.1", "search", "bm25", options)
		if err == nil || strings.Contains(fmt.Sprintf("%+v", err), "S3cret") {
			t.Errorf("%+v: %v", options, err)
		}
	}
	client, err := rankduel.New("http://127.0.0.1", "search", "bm25", rankduel.Options{Key: "S3cret"})
	if printed := fmt.Sprintf("%+v", client); err != nil || strings.Contains(printed, "S3cret") {
		t.Errorf("%v, %s", err, printed)
	}
}

func TestClicksAreWrittenAsTheAPIExpectsThem(t *testing.T) {
	clicks := []rankduel.Click{rankduel.At(0), rankduel.On("d").As("purchase"), rankduel.OnSlot("s")}
	text, err := json.Marshal(clicks)
	want := `[{"position":0},{"document":"d","event":"purchase"},{"slot":"s"}]`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}

// Goroutines share a client and its stock: each duel is used once.
func TestManyGoroutines(t *testing.T) {
	var lock sync.Mutex
	issued := 0
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		duels := []map[string]any{}
		for range [10]int{} {
			issued++
			duels = append(duels, map[string]any{
				"duel_id": string(rune(0x4e00 + issued)), "left": "a", "right": "b", "expires_at": "2099-01-01T00:00:00Z",
			})
		}
		writer.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(writer).Encode(map[string]any{"duels": duels}); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	client, err := rankduel.New(server.URL, "search", "a", rankduel.Options{Stock: 10, Deadline: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var group sync.WaitGroup
	for range [8]int{} {
		group.Add(1)
		go func() {
			defer group.Done()
			for range [50]int{} {
				duel := client.NextDuel(context.Background(), rankduel.Visit{})
				lock.Lock()
				if duel.ID == "" || seen[duel.ID] {
					t.Errorf("%+v is a fallback or used twice", duel)
				}
				seen[duel.ID] = true
				lock.Unlock()
			}
		}()
	}
	group.Wait()
}

// Goroutines share the queue: each item is sent once, in batches.
func TestManyGoroutinesShareTheQueue(t *testing.T) {
	var lock sync.Mutex
	seen := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		var body struct {
			Feedback []struct {
				DuelID string `json:"duel_id"`
			}
		}
		if err := json.NewDecoder(request.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		lock.Lock()
		defer lock.Unlock()
		results := []map[string]string{}
		for _, item := range body.Feedback {
			seen[item.DuelID]++
			results = append(results, map[string]string{"status": "recorded"})
		}
		writer.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(writer).Encode(map[string]any{"results": results}); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	client, err := rankduel.New(server.URL, "search", "a", rankduel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for number := range [8]int{} {
		group.Add(1)
		go func(number int) {
			defer group.Done()
			for item := range [50]int{} {
				client.QueueClicks(rankduel.Duel{ID: fmt.Sprint(number, " ", item)}, nil, true)
			}
		}(number)
	}
	group.Wait()
	if !client.Close(time.Minute) {
		t.Error("the queue is not empty")
	}
	if counts := client.Counts(); counts != (rankduel.Counts{Recorded: 400}) || len(seen) != 400 {
		t.Errorf("%+v, %d duels", counts, len(seen))
	}
}

func TestCancelledReportEnds(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	client, err := rankduel.New(server.URL, "search", "a", rankduel.Options{ReportTime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var failed *rankduel.Error
	if _, err := client.ReportOutcome(ctx, "duel", rankduel.Left); !errors.As(err, &failed) || !failed.Retryable() {
		t.Errorf("%v", err)
	}
}

// One item that is late or that makes the server refuse the request spoils no other.
func TestOneBadItem(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil || strings.Contains(string(body), "bad") {
			writer.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		results := []map[string]string{}
		for _, part := range strings.Split(string(body), "duel_id")[1:] {
			status := "recorded"
			if strings.Contains(part, "late") {
				status = "late"
			}
			results = append(results, map[string]string{"status": status})
		}
		writer.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(writer).Encode(map[string]any{"results": results}); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	log := ""
	client, err := rankduel.New(server.URL, "search", "a", rankduel.Options{Log: func(message string) { log += message }})
	if err != nil {
		t.Fatal(err)
	}
	for item := range [20]int{} {
		id := map[int]string{7: "bad", 12: "late"}[item]
		client.QueueClicks(rankduel.Duel{ID: fmt.Sprint(id, item)}, nil, true)
	}
	client.QueueClicks(rankduel.Duel{}, nil, true)
	if !client.Close(time.Minute) || client.Counts() != (rankduel.Counts{Recorded: 18, Refused: 2}) {
		t.Errorf("%+v", client.Counts())
	}
	if !strings.Contains(log, "final false") {
		t.Error(log)
	}
}
