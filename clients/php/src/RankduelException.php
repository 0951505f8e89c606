<?php

declare(strict_types=1);

namespace Rankduel;

/** A request without a successful answer. */
final class RankduelException extends \Exception
{
    /**
     * @param string $reason `timeout`, `unreachable`, `not-rankduel`, `server-too-old`, `resting`,
     *     `control-unknown`, `ranker-failed`, the slug of the problem such as `duel-expired`, or else `status-502`
     * @param ?int $status the status of the answer, if there was one
     * @param ?int $retryAfter in seconds, if the answer names it
     */
    public function __construct(
        public readonly string $reason,
        string $detail,
        public readonly ?int $status = null,
        public readonly ?int $retryAfter = null,
        ?\Throwable $cause = null,
    ) {
        parent::__construct("$reason: $detail", 0, $cause);
    }

    /** The error of an answer that is not from rankduel. */
    public static function notRankduel(string $detail): self
    {
        return new self('not-rankduel', "the answer is not from rankduel: $detail", 200);
    }

    /** Whether the server did not answer, or failed: the same request may succeed in a moment. */
    public function isTransient(): bool
    {
        if ($this->status === null) {
            return in_array($this->reason, ['timeout', 'unreachable'], true);
        }
        return $this->reason === 'not-rankduel' || $this->status >= 500 || in_array($this->status, [408, 429], true);
    }

    /**
     * Whether the same request may succeed later. Besides transient errors, these are 401 and 403:
     * the key may be corrected.
     */
    public function isRetryable(): bool
    {
        return $this->isTransient() || in_array($this->status, [401, 403], true);
    }
}
