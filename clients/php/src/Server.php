<?php

declare(strict_types=1);

namespace Rankduel;

/**
 * One experiment of a server: the pause after failures, and the attempts to send feedback.
 *
 * @internal
 */
final class Server
{
    /** After this many consecutive requests without an answer, the client pauses. */
    private const FAILURES_TO_REST = 5;
    private const REST_SECONDS = 1.0;
    /** The longest pause that a `Retry-After` of the server causes. */
    private const LONGEST_REST = 5.0;
    /** A report has this share of its time for one attempt. */
    private const ATTEMPTS = 5;
    private const FIRST_WAIT = 0.1;

    private readonly string $path;
    private int $failures = 0;
    private float $restUntil = 0.0;

    public function __construct(private readonly Transport $transport, string $experiment)
    {
        $this->path = '/v1/experiments/' . rawurlencode($experiment);
    }

    /**
     * Requests a duel or a page, in one attempt: a search waits for the answer.
     *
     * @param array<string, mixed> $body
     * @return array<string, mixed>
     */
    public function ask(string $path, array $body, float $seconds): array
    {
        if (microtime(true) < $this->restUntil) {
            $detail = 'the last requests failed, so the client sends none for a moment';
            throw new RankduelException('resting', $detail);
        }
        try {
            $answer = $this->transport->send($this->path . $path, $body, $seconds);
            $this->failures = 0;
            return $answer;
        } catch (RankduelException $failed) {
            $this->failures = $failed->isTransient() ? $this->failures + 1 : 0;
            $rest = $this->failures >= self::FAILURES_TO_REST ? self::REST_SECONDS : 0.0;
            $asked = $failed->isTransient() ? min($failed->retryAfter ?? 0, self::LONGEST_REST) : 0;
            $this->restUntil = microtime(true) + max($rest, $asked);
            throw $failed;
        }
    }

    /**
     * Sends one item of feedback. Transient errors are followed by another attempt while there is
     * time for a whole one; the server counts the item once.
     *
     * @param array<string, mixed> $item
     */
    public function report(array $item, float $seconds): Status
    {
        return $this->repeated('/feedback', $item, $seconds, static function (array $answer): Status {
            $name = $answer['status'] ?? '';
            $status = is_string($name) ? Status::tryFrom($name) : null;
            return $status ?? throw RankduelException::notRankduel('it has no status');
        });
    }

    /**
     * Sends orders, like `report`. Returns a result for each.
     *
     * @param list<array<string, mixed>> $orders
     * @return list<array<string, mixed>>
     */
    public function orders(array $orders, float $seconds): array
    {
        $read = static function (array $answer) use ($orders): array {
            $results = $answer['results'] ?? null;
            $isWhole = is_array($results) && count($results) === count($orders)
                && array_filter($results, is_array(...)) === $results;
            return $isWhole ? $results : throw RankduelException::notRankduel('it has no result for each order');
        };
        return $this->repeated('/orders', ['orders' => $orders], $seconds, $read);
    }

    /**
     * @template T
     * @param array<string, mixed> $body
     * @param \Closure(array<string, mixed>): T $read
     * @return T
     */
    private function repeated(string $path, array $body, float $seconds, \Closure $read): mixed
    {
        $limit = $seconds / self::ATTEMPTS;
        $last = microtime(true) + $seconds - $limit;
        for ($attempt = 0; ; $attempt++) {
            try {
                return $read($this->transport->send($this->path . $path, $body, $limit));
            } catch (RankduelException $failed) {
                $wait = self::FIRST_WAIT * 2 ** min($attempt, 10) * random_int(50, 100) / 100;
                $wait = max($wait, $failed->retryAfter ?? 0);
                if (!$failed->isTransient() || microtime(true) + $wait > $last) {
                    throw $failed;
                }
                usleep((int) ($wait * 1e6));
            }
        }
    }

    /** @return list<string> the rankers of the experiment */
    public function rankers(float $seconds): array
    {
        $answer = $this->transport->send($this->path, null, $seconds);
        $rankers = is_array($answer['rankers'] ?? null) ? array_column($answer['rankers'], 'id') : [];
        return $rankers ?: throw RankduelException::notRankduel('it has no rankers');
    }
}
