package rankduel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const maxAnswerBytes = 64 << 20

// transport sends requests to one server. Each ends at its deadline, even if the answer arrives
// slowly.
type transport struct {
	base   string
	key    string
	client *http.Client
}

func newTransport(address, key string) (*transport, error) {
	if !isAddress(address) {
		shown := strconv.Quote(address)
		if strings.Contains(address, "@") {
			// the message must not show a password
			shown = "the URL"
		}
		return nil, usage("%s is not the address of a server; it must look like http://rankduel.internal:7171", shown)
	}
	if !isVisible(key) {
		// nor must this one show the key
		return nil, usage("the key has a character that no key has, such as a space, a line break or a typographic quote")
	}
	pool := http.DefaultTransport.(*http.Transport).Clone()
	pool.MaxIdleConnsPerHost = 32
	client := &http.Client{
		Transport: pool,
		// a key must not reach another server
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &transport{strings.TrimRight(address, "/"), key, client}, nil
}

func isAddress(address string) bool {
	parsed, err := url.Parse(address)
	if err != nil || !isVisible(address) {
		return false
	}
	port, err := strconv.ParseUint(parsed.Port(), 10, 16)
	return (parsed.Scheme == "http" || parsed.Scheme == "https") && parsed.Hostname() != "" && parsed.User == nil &&
		(parsed.Port() == "" || err == nil && port > 0) && parsed.RawQuery == "" && parsed.Fragment == ""
}

// isVisible reports whether the text has neither spaces nor characters beyond ASCII.
func isVisible(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// send decodes an answer with status 200 into answer. For any other answer it returns an *Error;
// for a GET request, which is never part of a search, also if the server is older than this client.
func (t *transport) send(ctx context.Context, method, path string, body, answer any, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return usage("%v", err)
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, t.base+path, content)
	if err != nil {
		return usage("%v", err)
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Rankduel-Version", Version)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if t.key != "" {
		request.Header.Set("Authorization", "Bearer "+t.key)
	}
	response, err := t.client.Do(request)
	if err != nil {
		return failed(err, limit)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return failed(err, limit)
	}
	if err := decode(response, text, answer); err != nil {
		return err
	}
	if method == "GET" {
		return checkServer(response.Header.Get("Rankduel-Version"))
	}
	return nil
}

func failed(err error, limit time.Duration) *Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{Reason: "timeout", Detail: fmt.Sprintf("no answer within %v", limit), cause: err}
	}
	return &Error{Reason: "unreachable", Detail: err.Error(), cause: err}
}

type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Errors []struct {
		Pointer string `json:"pointer"`
		Detail  string `json:"detail"`
	} `json:"errors"`
}

func decode(response *http.Response, text []byte, answer any) error {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	isJSON := kind == "application/json" || strings.HasSuffix(kind, "+json")
	if response.StatusCode == http.StatusOK {
		if !isJSON {
			return notRankduel("its content type is " + strconv.Quote(kind))
		}
		if err := json.Unmarshal(text, answer); err != nil {
			return notRankduel(err.Error())
		}
		return nil
	}
	var found problem
	if isJSON && json.Unmarshal(text, &found) != nil {
		found = problem{}
	}
	err := &Error{Status: response.StatusCode, Reason: found.Type[strings.LastIndex(found.Type, "/")+1:]}
	if err.Reason == "" {
		err.Reason = fmt.Sprintf("status-%d", response.StatusCode)
	}
	if err.Detail = found.Detail; err.Detail == "" {
		err.Detail = fmt.Sprintf("status %d %s", response.StatusCode, found.Title)
	}
	for _, one := range found.Errors {
		err.Detail += fmt.Sprintf("; %s: %s", one.Pointer, one.Detail)
	}
	err.RetryAfter = retryAfter(response.Header)
	return err
}

// retryAfter is what Retry-After says: seconds, or a date. By the clock of the server, if it says
// what that is.
func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	until, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	if until.Before(now) {
		return 0
	}
	return until.Sub(now)
}
