<?php

declare(strict_types=1);

namespace Rankduel;

/**
 * Requests to one server. Each ends at its deadline, even if the answer arrives slowly. The streams
 * of PHP have a time limit for each read only, so this reads the answer itself.
 *
 * @internal
 */
final class Transport
{
    private const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
    private const LONGEST_WAIT = 0.05;

    private readonly string $socket;
    private readonly string $host;
    private readonly string $path;

    public function __construct(#[\SensitiveParameter] string $url, #[\SensitiveParameter] private readonly ?string $key)
    {
        // parse_url returns false for a port above 65535
        $parts = preg_match('/^[!-~]+$/D', $url) === 1 ? (parse_url($url) ?: []) : [];
        $scheme = $parts['scheme'] ?? '';
        $others = array_diff_key($parts, ['scheme' => 1, 'host' => 1, 'port' => 1, 'path' => 1]);
        $isAddress = in_array($scheme, ['http', 'https'], true) && isset($parts['host']) && ($parts['port'] ?? 1) > 0;
        if (!$isAddress || $others !== []) {
            // the message must not show a password
            $shown = str_contains($url, '@') ? 'the url' : "\"$url\"";
            $example = 'it must look like http://rankduel.internal:7171';
            throw new \InvalidArgumentException("$shown is not the address of a server; $example");
        }
        $port = $parts['port'] ?? ($scheme === 'https' ? 443 : 80);
        $this->socket = ($scheme === 'https' ? 'tls' : 'tcp') . "://{$parts['host']}:$port";
        $this->host = "{$parts['host']}:$port";
        $this->path = rtrim($parts['path'] ?? '', '/');
        if (preg_match('/^[!-~]*$/D', $key ?? '') !== 1) {
            $such = 'such as a space, a line break or a typographic quote';
            throw new \InvalidArgumentException("the key has a character that no key has, $such");
        }
    }

    /** @return array<string, string> without the key: errors and logs show what they dump */
    public function __debugInfo(): array
    {
        return ['socket' => $this->socket, 'path' => $this->path];
    }

    /**
     * The content of an answer with status 200.
     *
     * @param array<string, mixed>|null $body null for a GET request, which is never part of a search
     *     and fails also if the server is older than this client
     * @return array<string, mixed>
     */
    public function send(string $path, ?array $body, float $seconds): array
    {
        $end = microtime(true) + $seconds;
        $request = $this->request($path, $body);
        $stream = @stream_socket_client($this->socket, $code, $message, $seconds);
        if ($stream === false) {
            throw $this->failed($end, $seconds, "$message ($code)");
        }
        try {
            stream_set_blocking($stream, false);
            $this->write($stream, $request, $end, $seconds);
            [$answerHead, $text] = $this->read($stream, $end, $seconds);
            $content = self::content($answerHead, $text);
            if ($body === null) {
                Version::checkServer($answerHead);
            }
            return $content;
        } finally {
            fclose($stream);
        }
    }

    /** @param array<string, mixed>|null $body */
    private function request(string $path, ?array $body): string
    {
        $head = [
            ($body === null ? 'GET ' : 'POST ') . "$this->path$path HTTP/1.1",
            "host: $this->host",
            'connection: close',
            'accept: application/json',
            'rankduel-version: ' . Version::CLIENT,
        ];
        if ($this->key !== null && $this->key !== '') {
            $head[] = "authorization: Bearer $this->key";
        }
        $content = '';
        if ($body !== null) {
            try {
                $content = json_encode((object) $body, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES);
            } catch (\JsonException $error) {
                throw new RankduelException('invalid-request', $error->getMessage(), cause: $error);
            }
            $head[] = 'content-type: application/json';
            $head[] = 'content-length: ' . strlen($content);
        }
        return implode("\r\n", $head) . "\r\n\r\n$content";
    }

    private function failed(float $end, float $seconds, string $detail): RankduelException
    {
        // PHP rounds the time limit of a connection, so it may end a moment early
        return microtime(true) >= $end - 0.001
            ? new RankduelException('timeout', "no answer within $seconds s")
            : new RankduelException('unreachable', $detail);
    }

    /** @param resource $stream */
    private function write($stream, string $text, float $end, float $seconds): void
    {
        while ($text !== '') {
            $written = @fwrite($stream, $text);
            if ($written === false) {
                throw $this->failed($end, $seconds, 'the connection was closed');
            }
            $text = substr($text, $written);
            if ($text !== '') {
                $this->wait($stream, false, $end, $seconds);
            }
        }
    }

    /**
     * @param resource $stream
     * @return array{string, string} the head and the content
     */
    private function read($stream, float $end, float $seconds): array
    {
        $text = '';
        while (strlen($text) < self::MAX_ANSWER_BYTES) {
            $more = @fread($stream, 65536);
            $text .= (string) $more;
            $parts = explode("\r\n\r\n", $text, 2);
            $isClosed = $more === false || ($more === '' && feof($stream));
            if (count($parts) === 2) {
                $content = self::complete(strtolower($parts[0]), $parts[1], $isClosed);
                if ($content !== null) {
                    return [$parts[0], $content];
                }
            }
            if ($isClosed) {
                throw $this->failed($end, $seconds, 'the connection was closed before the end of the answer');
            }
            if ($more === '') {
                $this->wait($stream, true, $end, $seconds);
            } elseif (microtime(true) >= $end) {
                throw $this->failed($end, $seconds, '');
            }
        }
        throw RankduelException::notRankduel('it is too long');
    }

    /** @param resource $stream */
    private function wait($stream, bool $isForRead, float $end, float $seconds): void
    {
        $left = $end - microtime(true);
        if ($left <= 0) {
            throw $this->failed($end, $seconds, '');
        }
        // TLS may hold bytes that the operating system does not report, hence the short wait
        $micros = (int) ceil(min($left, self::LONGEST_WAIT) * 1e6);
        $read = $isForRead ? [$stream] : [];
        $write = $isForRead ? [] : [$stream];
        $except = [];
        @stream_select($read, $write, $except, 0, $micros);
    }

    /** The content of the answer, or null if there is more to come. */
    private static function complete(string $head, string $content, bool $isClosed): ?string
    {
        if (preg_match('/^transfer-encoding:.*\bchunked\s*$/m', $head) === 1) {
            return self::unchunked($content);
        }
        if (preg_match('/^content-length:\s*(\d{1,9})\s*$/m', $head, $found) === 1) {
            return strlen($content) >= (int) $found[1] ? substr($content, 0, (int) $found[1]) : null;
        }
        return $isClosed ? $content : null;
    }

    private static function unchunked(string $chunks): ?string
    {
        $content = '';
        while (preg_match('/^([0-9a-f]{1,7})[^\n]*\r\n/i', $chunks, $found) === 1) {
            $length = (int) hexdec($found[1]);
            $start = strlen($found[0]);
            if (strlen($chunks) < $start + $length + 2) {
                return null;
            }
            if ($length === 0) {
                return $content;
            }
            $content .= substr($chunks, $start, $length);
            $chunks = substr($chunks, $start + $length + 2);
        }
        return null;
    }

    /** @return array<string, mixed> */
    private static function content(string $head, string $text): array
    {
        if (preg_match('~^HTTP/1\.[01] (\d{3})~', $head, $found) !== 1) {
            throw RankduelException::notRankduel('it is not HTTP');
        }
        $status = (int) $found[1];
        $isJson = preg_match('~^content-type:\s*application/([a-z.-]+\+)?json\s*(;.*)?$~im', $head) === 1;
        $content = $isJson ? json_decode($text, true) : null;
        if ($status === 200) {
            if (is_array($content)) {
                return $content;
            }
            throw RankduelException::notRankduel('its content is not a JSON object');
        }
        $problem = is_array($content) ? $content : [];
        $slug = substr((string) strrchr('/' . self::text($problem['type'] ?? ''), '/'), 1);
        $detail = self::text($problem['detail'] ?? "status $status");
        foreach (array_filter((array) ($problem['errors'] ?? []), is_array(...)) as $error) {
            $detail .= '; ' . self::text($error['pointer'] ?? '') . ': ' . self::text($error['detail'] ?? '');
        }
        throw new RankduelException($slug ?: "status-$status", $detail, $status, self::retryAfter($head));
    }

    /** What Retry-After says in seconds, also as a date: by the clock of the server, if it says what that is. */
    private static function retryAfter(string $head): ?int
    {
        $value = fn (string $name) => preg_match("/^$name:\s*(.+?)\s*$/im", $head, $found) === 1 ? $found[1] : '';
        $time = fn (string $date) => \DateTimeImmutable::createFromFormat(DATE_RFC7231, $date) ?: null;
        $text = $value('retry-after');
        if (preg_match('/^\d{1,9}$/', $text) === 1) {
            return (int) $text;
        }
        $until = $time($text)?->getTimestamp();
        return $until === null ? null : max(0, $until - ($time($value('date'))?->getTimestamp() ?? time()));
    }

    private static function text(mixed $value): string
    {
        return is_string($value) ? $value : '';
    }
}
